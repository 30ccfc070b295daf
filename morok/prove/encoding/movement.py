"""Movement: a tensor is a function of index vectors, and a part of it another one. Other views are read at every size alone."""

from __future__ import annotations

from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.lane_selection import Lanes
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.structure_parts import OPAQUE, RANKS, Buffer, Place, View
from morok.prove.kinds import Node
from morok.prove.semantics.term import Unsupported, both, either, negation
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.symbol import Symbol


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

    def same_views(self, a: Any, b: Any) -> Expr:
        """A condition that two tensors have one shape, and the same element at every place inside it."""
        rank = self.rank(a)
        if rank is None or rank != self.rank(b):
            raise Unsupported("tensors of unknown or different ranks")
        indices = tuple(self.world.fresh("at", smt.IntSort()) for _ in range(rank))
        inside = (
            TRUE if a.shape is None else both(*(smt.And(i >= 0, i < n) for i, n in zip(indices, a.shape, strict=True)))
        )
        p, q = (self.resolve(v, indices, TRUE, TRUE) for v in (a, b))
        shapes = TRUE
        if a.shape is not None or b.shape is not None:
            if a.shape is None or b.shape is None:
                raise Unsupported("tensors of unknown shapes")
            shapes = both(*(n == m for n, m in zip(a.shape, b.shape, strict=True)))
        element = either(negation(p.valid), self.same_place(p, q))
        same = both(p.valid == q.valid, element, either(negation(p.defined), q.defined))
        return both(shapes, either(negation(inside), same))  # shapes are compared where no place is inside, too

    def same_place(self, p: Place, q: Place) -> Expr:
        """A condition that two places are one element of one tensor."""
        if p.buffer.name != q.buffer.name or len(p.indices) != len(q.indices):
            raise Unsupported("elements of two tensors")
        return FALSE if p.lane != q.lane else both(*(i == j for i, j in zip(p.indices, q.indices, strict=True)))

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
