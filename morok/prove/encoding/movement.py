"""Movement: a tensor is a function of index vectors, and a view of it another one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence as Seq
from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.lanes import Lanes
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.places import OPAQUE, RANKS, Buffer, Place, View
from morok.prove.kinds import Node, Sequence, Truth
from morok.prove.semantics.term import Unsupported, both, either, is_false, is_true, negation
from morok.prove.smt import TRUE, Expr
from morok.prove.symbol import Symbol


def any_number(part: Any) -> bool:
    """True if a pattern leaves the number of operands in this place open."""
    items = part.items if isinstance(part, S.PList) else part if isinstance(part, list) else [part]
    return isinstance(part, S.PVar) or any(isinstance(i, S.PSequence) for i in items)


class Movement(Lanes):
    """Views as maps of index vectors, ranks up to a stated bound."""

    def rank(self, b: Any) -> int | None:
        if isinstance(b, View):
            return b.rank
        return None if b.shape is None else len(b.shape)

    def of_length(self, length: int | None, part: Any) -> list[Any]:
        was, self.expect = self.expect, length
        try:
            found = self.many(part)
        finally:
            self.expect = was
        if length is not None and len(found) != length:
            raise Inapplicable
        return found

    def resolve(self, b: Any, indices: tuple[Expr, ...], valid: Expr, defined: Expr) -> Place:
        """The place in the buffer below all views."""
        while isinstance(b, View):
            if b.shape is not None:  # outside its shape a view has no elements
                bounds = both(*(smt.And(i >= 0, i < n) for i, n in zip(indices, b.shape, strict=True)))
                defined = both(defined, either(negation(valid), bounds))
            indices, there = b.map(indices)
            valid, b = both(valid, there), b.base
        return Place(b, indices, valid, defined)

    def moved(self, parts: dict[str, Any]) -> Any:
        return self.tensor(self.value_of(parts["src"]))

    def tensor(self, x: Any) -> Any:
        """A tensor: a buffer, a view, or any node in such a position, whose elements are then what it is."""
        if isinstance(x, Node) and x.made is None:
            if len(x.lanes) != 1:
                raise Inapplicable  # its lanes are not looked at: one stands for all
            tensor: Symbol = self.world.once(("tensor", x.term.value), lambda: self.world.symbol("tensor"))
            return Buffer(tensor, x.dtype)
        if not isinstance(x, (Buffer, View)):
            raise Unsupported("a tensor of this form")
        return x

    def of_views(self, at: S.Syntax, *conditions: Expr) -> None:
        """Conditions on every view that there is: premises about one that is matched, duties of one that the rule makes."""
        if isinstance(at, S.Pattern):
            self.premise(*conditions)
        else:
            self.must.extend(conditions)

    def dimensions(self, part: Any, length: int | None, at: S.Syntax) -> tuple[Expr, ...]:
        """Dimensions, or edges: integers that are not negative, as every shape's are."""
        nodes = self.of_length(length, part)
        for n in nodes:
            if not isinstance(n, Node):
                raise Unsupported("a dimension that is no number")
            if len(n.lanes) != 1:
                raise Inapplicable  # dimensions are scalars
        values = tuple(self.size(n.term.value) if n.dtype in OPAQUE else n.term.value for n in nodes)
        if not all(v.sort is smt.IntSort() for v in values):
            raise Unsupported("dimensions as bit vectors")
        self.of_views(at, *(n.term.defined for n in nodes), *(v >= 0 for v in values))
        return values

    def size(self, value: Expr) -> Expr:
        """The number that a value is, which the rule does not look at otherwise."""
        found: Expr = self.world.once(("size", value), lambda: self.world.fresh("size", smt.IntSort()))
        return found

    def some_rank(self, x: Any) -> int:
        """The rank of a tensor: one of a few, and the same wherever the rule speaks of it."""
        found = self.rank(x)
        if found is None:
            found = self.world.once(("rank", x.name), lambda: self.sizes.one("rank", "", RANKS))
        return found

    def shape_of(self, x: Any, rank: int) -> tuple[Expr, ...]:
        """The dimensions of a tensor, unknowns where nothing says them."""
        if x.shape is not None:
            found: tuple[Expr, ...] = x.shape
            return found
        if not isinstance(x, Buffer):
            raise Unsupported("a part of what was moved, of sizes that the rule does not say")
        return tuple(smt.Int(Symbol("dimension", x.name, i)) for i in range(rank))

    def reshaped(self, x: Buffer, shape: tuple[Expr, ...]) -> Buffer:
        return Buffer(Symbol("reshaped", x.name, self.another()), x.dtype, shape, x.name)

    def same_views(self, a: Any, b: Any) -> Expr:
        """A condition that two tensors have one shape, and the same element at every place inside it."""
        rank = self.rank(a)
        if rank is None or rank != self.rank(b):
            raise Unsupported("tensors of unknown or different ranks")
        indices = tuple(self.world.fresh("at", smt.IntSort()) for _ in range(rank))
        if a.shape is not None:
            self.premise(*(smt.And(i >= 0, i < n) for i, n in zip(indices, a.shape, strict=True)))
        p, q = (self.resolve(v, indices, TRUE, TRUE) for v in (a, b))
        shapes = TRUE
        if a.shape is not None or b.shape is not None:
            if a.shape is None or b.shape is None:
                raise Unsupported("tensors of unknown shapes")
            shapes = both(*(n == m for n, m in zip(a.shape, b.shape, strict=True)))
        element = self.same_place(p, q)
        return both(shapes, p.valid == q.valid, either(negation(p.valid), element), either(negation(p.defined), q.defined))

    def same_place(self, p: Place, q: Place) -> Expr:
        """A condition that two places are one element: of one tensor in two shapes, where their row-major numbers are equal."""
        if p.buffer.name == q.buffer.name and len(p.indices) == len(q.indices):
            return both(*(i == j for i, j in zip(p.indices, q.indices, strict=True)))
        if p.buffer.of is None or p.buffer.of != q.buffer.of:
            raise Unsupported("elements of two tensors")
        return self.number_in(p) == self.number_in(q)

    def number_in(self, p: Place) -> Expr:
        assert p.buffer.shape is not None
        flat = p.indices[0]
        for n, i in zip(p.buffer.shape[1:], p.indices[1:], strict=True):
            flat = flat * n + i
        return flat

    def base_dtype(self, x: Any) -> str:
        while isinstance(x, View):
            x = x.base
        dtype: str = x.dtype
        return dtype

    def op_reshape(self, parts: dict[str, Any], at: S.Syntax) -> Any:
        x = self.moved(parts)
        length = self.sizes.one("rank", "", RANKS) if any_number(parts["shape"]) else None
        shape = self.dimensions(parts["shape"], length, at)
        old = x.shape
        if old is None:  # of a tensor about which nothing is known: one of this shape
            if not isinstance(x, Buffer):
                raise Unsupported("a Reshape of what was moved, of sizes that the rule does not say")
            elements = smt.Product(*shape) if len(shape) > 1 else shape[0]
            self.of_views(at, elements == self.world.once(("elements", x.name), lambda: elements))
            made: Buffer = self.world.once(("reshaped", x.name, *shape), lambda: self.reshaped(x, shape))
            return made
        self.of_views(at, smt.Product(*shape) == smt.Product(*old) if len(shape) + len(old) > 2 else shape[0] == old[0])

        def index(i: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], Expr]:
            flat = i[0]
            for n, k in zip(shape[1:], i[1:], strict=True):
                flat = flat * n + k
            out: list[Expr] = []
            for n in reversed(old[1:]):
                q = self.world.arithmetic(self.world.dtype("index")).tdiv(flat, n)
                out.insert(0, flat - q * n)
                flat = q
            return (flat, *out), TRUE

        return View(x, len(shape), shape, index)

    def called_so(self, name: str, field: Sequence) -> None:
        """Bind a static field to a name, if it is one."""
        if not name.startswith("_"):
            self.names[name] = field

    def op_permute(self, parts: dict[str, Any], at: S.Syntax) -> View:
        x = self.moved(parts)
        part = parts["axes"]
        if isinstance(part, (S.PVar, S.EName)) and part.name not in self.names:  # one without a name is never among them
            orders = list(itertools.permutations(range(self.some_rank(x))))
            axes: tuple[int, ...] = orders[self.choices.pick(len(orders))]
            self.called_so(part.name, Sequence(tuple(self.numbers.const(a) for a in axes)))
        else:
            known = [self.numbers.n.known(self.number(a).value) for a in self.static(part, "axes").items]
            axes = tuple(a for a in known if a is not None)
            if len(axes) < len(known):
                raise Unsupported("axes that nothing says")
        inverse = sorted(range(len(axes)), key=axes.__getitem__)
        shape = None if x.shape is None else tuple(x.shape[a] for a in axes)
        return View(x, len(axes), shape, lambda i: (tuple(i[inverse[k]] for k in range(len(axes))), TRUE))

    def op_expand(self, parts: dict[str, Any], at: S.Syntax) -> View:
        x = self.moved(parts)
        if x.shape is None:
            raise Unsupported("an expansion of unknown sizes")
        old = x.shape
        shape = self.dimensions(parts["shape"], len(old), at)
        self.of_views(at, *(smt.Or(n == 1, n == m) for n, m in zip(old, shape, strict=True)))
        return View(x, len(shape), shape, lambda i: (tuple(smt.If(n == 1, 0, k) for n, k in zip(old, i, strict=True)), TRUE))

    def edges(self, parts: dict[str, Any], x: Any, at: S.Syntax) -> tuple[tuple[Expr, ...], tuple[Expr, ...], int]:
        rank = self.some_rank(x)
        return self.dimensions(parts["begins"], rank, at), self.dimensions(parts["ends"], rank, at), rank

    def op_shrink(self, parts: dict[str, Any], at: S.Syntax) -> View:
        x = self.moved(parts)
        begins, ends, rank = self.edges(parts, x, at)
        old = self.shape_of(x, rank)
        self.of_views(at, *(smt.And(b <= e, e <= n) for b, e, n in zip(begins, ends, old, strict=True)))
        shape = tuple(e - b for b, e in zip(begins, ends, strict=True))
        return View(x, rank, shape, lambda i: (tuple(k + b for k, b in zip(i, begins, strict=True)), TRUE))

    def op_pad(self, parts: dict[str, Any], at: S.Syntax) -> View:
        x = self.moved(parts)
        if x.shape is None:
            raise Unsupported("padding of unknown sizes")
        old = x.shape
        begins, ends, rank = self.edges(parts, x, at)
        shape = tuple(b + n + e for b, n, e in zip(begins, old, ends, strict=True))

        def index(i: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], Expr]:
            inner = tuple(k - b for k, b in zip(i, begins, strict=True))
            return inner, both(*(smt.And(k >= 0, k < n) for k, n in zip(inner, old, strict=True)))

        return View(x, rank, shape, index)

    def op_flip(self, parts: dict[str, Any], at: S.Syntax) -> View:
        x = self.moved(parts)
        if x.shape is None:
            raise Unsupported("a flip of unknown sizes")
        old = x.shape
        part = parts["axes"]
        if isinstance(part, (S.PVar, S.EName)) and part.name not in self.names:
            picks = list(itertools.product((False, True), repeat=len(old)))
            flips = picks[self.choices.pick(len(picks))]
            self.called_so(part.name, Sequence(tuple(Truth(smt.BoolVal(f)) for f in flips)))
        else:
            flips = tuple(self.decided(self.flag(f)) for f in self.flags_of(part))
        if len(flips) != len(old):
            raise Inapplicable
        return View(
            x, len(old), old, lambda i: (tuple(n - 1 - k if f else k for k, n, f in zip(i, old, flips, strict=True)), TRUE)
        )

    def flags_of(self, part: Any) -> Seq[Any]:
        """The flag of each axis that says if it is reversed: values, or the parts of a pattern in their places."""
        if isinstance(part, S.PExpr):
            part = part.value
        if isinstance(part, S.PList) or (isinstance(part, S.EList) and self.side == "pattern"):
            return part.items
        return self.sequence(part)

    def flag(self, f: Any) -> Truth:
        if isinstance(f, Truth):
            return f
        written = f.value if isinstance(f, S.PExpr) else f
        if not isinstance(written, (S.ENumber, S.PLiteral)):
            raise Unsupported("an axis that is reversed or not")
        return Truth(smt.BoolVal(bool(written.value)))

    def decided(self, flag: Truth) -> bool:
        """True if an axis is reversed. Unsupported where the rule's form does not say it."""
        value = smt.simplify(flag.value)
        if not (is_true(value) or is_false(value)):
            raise Unsupported("an axis that is reversed or not")
        self.need(flag.exists)
        return is_true(value)
