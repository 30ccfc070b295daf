"""Random graphs for patterns about tensors: of any rank, with axes of any size, 0 and 1 among them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.ir.dtype import BY_NAME, DType, dtypes
from morok.ir.interpret import evaluate
from morok.ir.op import REDUCE_OPS, TABLE, Op
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.prove.forms import admits_invalid, root_of
from morok.prove.parametric.tensor_rules import MARKS, OPS, has_one_lane, reads_computed
from morok.prove.rule_syntax import names_in
from morok.prove.trust.graphs import Maker, Unmakeable, parts_of

RANKS: Final = (0, 1, 1, 2, 2, 2, 3, 3, 4, 5)
SIZES: Final = (0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5)
ATTEMPTS: Final = 30  # to choose what fits what was chosen before
MOST: Final = 200  # elements of the result
LARGEST: Final = 1000  # of an operand
Shape = tuple[int, ...]


class Misfit(Exception):
    """A choice that does not fit what a name stands for already."""


def about_tensors_alone(rule: CheckedRule) -> bool:
    """True if a pattern is a tensor made of views, or an element of one: this maker builds graphs for these."""
    pattern = rule.syntax.pattern
    made = not OPS.isdisjoint(names_in(pattern)) or reads_computed(rule)
    return made and (root_of(pattern) == "Index" or has_one_lane(rule))


class TensorMaker(Maker):
    """Makes a graph for a pattern of views, and of what makes tensors, from the outside in: each node gets the shape that it is
    to have, and chooses one for its operand.
    """

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        super().__init__(rule, instance, rng)
        self.fields: dict[str, Any] = {}
        self.buffers = 0
        self.any = BY_NAME[rng.choice(("i32", "f32"))]

    def make(self, p: S.Pattern) -> UOp:
        for _ in range(ATTEMPTS):
            self.nodes.clear()
            self.fields.clear()
            try:
                return self.place(p) if root_of(p) == "Index" else self.tensor(p, self.shape())
            except Misfit:
                continue
        raise ValueError("no graph whose parts fit each other")

    def scalar(self, node: S.Syntax) -> DType:
        ty = self.rule.types.get(id(node))
        bound = self.rule.bindings.get(getattr(node, "name", ""))
        if ty is None and bound is not None:
            ty = bound.type
        name = "any" if ty is None else self.instance.element(ty)
        return BY_NAME.get(name, self.any)

    def shape(self) -> Shape:
        while True:
            found = tuple(self.rng.choice(SIZES) for _ in range(self.rng.choice(RANKS)))
            if math.prod(found) <= MOST and (0 not in found or self.rng.random() < 0.6):
                return found

    def order(self, rank: int) -> tuple[int, ...]:
        """A permutation of so many axes."""
        return tuple(self.rng.sample(range(rank), rank))

    def reversed(self, rank: int) -> tuple[bool, ...]:
        """The axes that are reversed, of so many."""
        return tuple(self.rng.random() < 0.5 for _ in range(rank))

    def whole(self, rank: int) -> int:
        """The number of axes that are cut nowhere, the first ones of so many."""
        return 0

    # tensors of a given shape

    def tensor(self, p: Any, shape: Shape) -> UOp:
        match p:
            case S.PVar(name=name):
                return self.named(name, lambda: self.leaf(self.scalar(p), shape), shape)
            case S.PBind(inner=inner) if p.ignored:
                return self.tensor(inner, shape)
            case S.PBind(name=name, inner=inner):
                return self.named(name, lambda: self.tensor(inner, shape), shape)
            case S.PAlternatives(options=options):
                return self.tensor(self.rng.choice(options), shape)
            case S.PConst() | S.PLiteral():
                if shape:
                    raise Misfit
                return super().make(p)
            case S.POp(ops=ops):
                return self.node(self.rng.choice(ops), operands_of(p), p, shape)
            case S.PStruct(op=op):
                return self.node(op, parts_of(p), p, shape)
        raise Unmakeable(type(p).__name__)

    def named(self, name: str, make: Any, shape: Shape) -> UOp:
        found = self.nodes.get(name)
        if math.prod(shape) > LARGEST:
            raise Misfit
        if found is None:
            found = make()
            if not name.startswith("_"):
                self.nodes[name] = found
        elif tuple(shape_of(found)) != shape:
            raise Misfit
        return found

    def leaf(self, d: DType, shape: Shape) -> UOp:
        """A tensor in memory; a number is a variable. At dtypes that memory has not, one made of such."""
        if not shape:
            return super().variable(d)
        if d.is_index:
            return UOp.new(Op.Cast, (self.leaf(dtypes.i32, shape),), dtype=d)
        self.buffers += 1
        unique = UOp.new(Op.Unique, (), self.buffers)
        base = UOp.new(Op.Buffer, (unique, UOp.new(Op.Device, (), "CPU")), math.prod(shape), d)
        return UOp.new(Op.Reshape, (base, *map(UOp.const, shape)))

    def node(self, op: str, parts: dict[str, Any], p: S.Pattern, shape: Shape) -> UOp:
        if op in MARKS:
            opts = {"arg": None} if op == "Contiguous" else {}
            return UOp.new(Op[op], (self.tensor(parts["src"], shape),), **opts)
        made = getattr(self, f"of_{op.lower()}", None)
        if made is not None:
            found: UOp = made(parts, shape)
            return found
        entry = TABLE[Op[op]]
        if not entry.pointwise:
            raise Unmakeable(f"a tensor made by {op}")
        sources = [parts[o.name] for o in entry.operands]
        whole = self.rng.randrange(len(sources))  # one at least has the shape; a number serves all elements
        found_shapes = [shape if k == whole or self.rng.random() < 0.8 else () for k in range(len(sources))]
        dtype = self.scalar(p) if op in ("Cast", "Bitcast") else None
        return UOp.new(
            Op[op], tuple(self.tensor(s, n) for s, n in zip(sources, found_shapes, strict=True)), dtype=dtype
        )

    # numbers and fields

    def sizes(self, part: Any, wanted: Sequence[int | None]) -> list[UOp]:
        """Sizes for a list of operands: those that are wanted, where anything is; any, where None is."""
        part = list(part.items) if isinstance(part, S.PList) else part
        if isinstance(part, list) and len(part) == 1 and isinstance(part[0], S.PSequence):
            part = part[0]
        if isinstance(part, list):
            if len(part) != len(wanted):
                raise Misfit
            return [self.size(q, w) for q, w in zip(part, wanted, strict=True)]
        kept = self.fields.get(part.name)
        chosen = tuple(self.rng.randrange(4) if w is None else w for w in wanted) if kept is None else kept
        if len(chosen) != len(wanted) or any(w is not None and w != c for w, c in zip(wanted, chosen, strict=True)):
            raise Misfit
        if not part.name.startswith("_"):
            self.fields[part.name] = chosen
        return [UOp.const(n, dtypes.index) for n in chosen]

    def size(self, p: Any, wanted: int | None) -> UOp:
        """A node for one size: what a pattern computes is made of sizes that it names."""
        match p:
            case S.POp(ops=("Add", *_), args=(known, open_)) if wanted is not None:
                first = self.size(known, self.fields.get(getattr(known, "name", "")))
                return first + self.size(open_, wanted - number(first))
            case S.POp(ops=(op, *_), args=args):
                return self._is(wanted, UOp.new(Op[op], tuple(self.size(a, None) for a in args)))
            case S.PConst(kind="zero" | "one" as kind):
                return self._is(wanted, UOp.const(int(kind == "one")))
            case S.PLiteral(value=v):
                return self._is(wanted, UOp.const(int(v)))
            case S.PConst(bound=str(name)):
                value = self.values.setdefault(name, self.rng.randrange(4) if wanted is None else wanted)
                return self._is(wanted, UOp.const(value))
        name = getattr(p, "name", "_")
        value = self.fields.get(name)
        if value is None:
            value = self.rng.randrange(4) if wanted is None else wanted
            if not name.startswith("_"):
                self.fields[name] = value
                self.nodes[name] = UOp.const(value)
        return self._is(wanted, UOp.const(value))

    @staticmethod
    def _is(wanted: int | None, made: UOp) -> UOp:
        if number(made) < 0 or (wanted is not None and wanted != number(made)):
            raise Misfit
        return made

    def field(self, part: Any, choose: Any) -> Any:
        """A static field: as it is written, as its name stands for, or chosen."""
        part = part.value if isinstance(part, S.PExpr) else part
        match part:
            case S.PList(items=items) | S.EList(items=items):
                chosen = choose()
                if len(chosen) != len(items):
                    raise Misfit
                return tuple([self.field(item, lambda k=k: chosen[k]) for k, item in enumerate(items)])
            case S.PLiteral(value=v) | S.ENumber(value=v):
                return v
        name = part.name
        if name.startswith("_"):
            return choose()
        return self.fields.setdefault(name, choose())

    # views

    def of_reshape(self, parts: dict[str, Any], shape: Shape) -> UOp:
        sizes = self.sizes(parts["shape"], shape)
        total = math.prod(shape)
        wanted = _sizes_written(parts["src"])
        below: list[int] = []
        if wanted is not None:
            below = self._of_rank(total, wanted)
        else:
            while total > 1 and self.rng.random() < 0.8:
                below.append(self.rng.choice([n for n in range(1, total + 1) if total % n == 0]))
                total //= below[-1]
            if below or total != 1 or self.rng.random() < 0.7:  # else a number
                below.insert(self.rng.randrange(len(below) + 1), total)
        return UOp.new(Op.Reshape, (self.tensor(parts["src"], tuple(below)), *sizes))

    def _of_rank(self, total: int, rank: int) -> list[int]:
        """So many sizes with a product."""
        found: list[int] = []
        for _ in range(rank - 1):
            found.append(
                self.rng.choice([n for n in range(1, total + 1) if total % n == 0]) if total else self.rng.choice(SIZES)
            )
            total //= found[-1] or 1
        return [*found, total]

    def of_permute(self, parts: dict[str, Any], shape: Shape) -> UOp:
        axes = self.field(parts["axes"], lambda: self.order(len(shape)))
        if sorted(axes) != list(range(len(shape))):
            raise Misfit
        below = tuple(shape[axes.index(a)] for a in range(len(shape)))
        return UOp.new(Op.Permute, (self.tensor(parts["src"], below),), axes)

    def of_expand(self, parts: dict[str, Any], shape: Shape) -> UOp:
        sizes = self.sizes(parts["shape"], shape)
        below = tuple(1 if self.rng.random() < 0.4 else n for n in shape)
        return UOp.new(Op.Expand, (self.tensor(parts["src"], below), *sizes))

    def of_shrink(self, parts: dict[str, Any], shape: Shape) -> UOp:
        begins, ends = _edges(parts)
        whole = self.whole(len(shape))
        first = self.sizes(begins, [0 if k < whole else None for k in range(len(shape))])
        last = self.sizes(ends, [number(b) + n for b, n in zip(first, shape, strict=True)])
        below = tuple(number(e) + (0 if k < whole else self.rng.choice((0, 0, 1, 2))) for k, e in enumerate(last))
        return UOp.new(Op.Shrink, (self.tensor(parts["src"], below), *first, *last))

    def of_pad(self, parts: dict[str, Any], shape: Shape) -> UOp:
        begins, ends = _edges(parts)
        first, rest = self._cut(begins, shape)
        last, below = self._cut(ends, rest)
        return UOp.new(Op.Pad, (self.tensor(parts["src"], below), *first, *last))

    def _cut(self, part: Any, shape: Shape) -> tuple[list[UOp], Shape]:
        """Sizes that a shape can lose, and what it is without."""
        named = isinstance(part, list) or getattr(part, "name", "") in self.fields
        sizes = self.sizes(part, [None] * len(shape) if named else self.lost(shape))
        rest = tuple(n - number(k) for n, k in zip(shape, sizes, strict=True))
        if min(rest, default=0) < 0:
            raise Misfit
        return sizes, rest

    def lost(self, shape: Shape) -> list[int]:
        """The number of elements that each axis of a shape loses."""
        return [self.rng.randrange(n + 1) for n in shape]

    def of_flip(self, parts: dict[str, Any], shape: Shape) -> UOp:
        flags = self.field(parts["axes"], lambda: self.reversed(len(shape)))
        if len(flags) != len(shape):
            raise Misfit
        return UOp.new(Op.Flip, (self.tensor(parts["src"], shape),), tuple(map(bool, flags)))

    def of_reduceaxis(self, parts: dict[str, Any], shape: Shape) -> UOp:
        op = self.fold(parts["op"])
        few = self.rng.choice((0, 1, 1, 1, 2, 2, 3))
        axes = self.axes(parts["axes"], len(shape) + few)
        rank = len(shape) + len(axes)
        if len(set(axes)) != len(axes) or not all(0 <= a < rank for a in axes):
            raise Misfit
        left = iter(shape)
        below = tuple(self.rng.choice((0, 1, 1, 1, 2, 2, 3)) if a in axes else next(left) for a in range(rank))
        return UOp.new(Op.ReduceAxis, (self.tensor(parts["src"], below),), (op, axes))

    def fold(self, part: Any) -> Op:
        """The op of a fold: the one that is written, or any for a name."""
        name = str(getattr(part, "name", getattr(getattr(part, "value", None), "name", "")))
        if name in Op.__members__:
            return Op[name]
        found: Op = self.field(S.PVar(name), lambda: self.rng.choice(REDUCE_OPS))
        return found

    def axes(self, part: Any, rank: int) -> tuple[int, ...]:
        """Some axes of so many, or those that a pattern lists, which may have names."""
        part = part.value if isinstance(part, S.PExpr) else part
        if not isinstance(part, (S.PList, S.EList)):
            few = self.rng.randint(0, min(rank, 3))
            found: tuple[int, ...] = self.field(part, lambda: tuple(self.rng.sample(range(rank), few)))
            return found
        return tuple([self.field(i, lambda: self.rng.randrange(rank)) for i in part.items])

    def of_iota(self, parts: dict[str, Any], shape: Shape) -> UOp:
        if len(shape) != 1:
            raise Misfit
        return UOp.new(Op.Iota, (self.size(parts["end"], shape[0]),))

    def of_concat(self, parts: dict[str, Any], shape: Shape) -> UOp:
        if not shape:
            raise Misfit
        axis = self.field(parts["axis"], lambda: self.rng.randrange(len(shape)))
        if not 0 <= axis < len(shape):
            raise Misfit
        sources = parts["sources"].items if isinstance(parts["sources"], S.PList) else parts["sources"]
        if not isinstance(sources, (list, tuple)) or any(isinstance(s, S.PSequence) for s in sources):
            raise Unmakeable("any number of tensors")
        cuts = sorted(self.rng.randrange(shape[axis] + 1) for _ in sources[1:])
        sizes = [b - a for a, b in zip((0, *cuts), (*cuts, shape[axis]), strict=True)]
        made = [self.tensor(s, (*shape[:axis], n, *shape[axis + 1 :])) for s, n in zip(sources, sizes, strict=True)]
        return UOp.new(Op.Concat, tuple(made), axis)

    # places

    def place(self, p: Any) -> UOp:
        """An element of a view."""
        parts = operands_of(p) if isinstance(p, S.POp) else parts_of(p)
        indices = parts["indices"].items if isinstance(parts["indices"], S.PList) else parts["indices"]
        shape = self.shape()
        if isinstance(indices, (list, tuple)) and not any(isinstance(i, S.PSequence) for i in indices):
            shape = tuple(self.rng.choice((1, 1, 2, 3, 4)) for _ in indices)
        if 0 in shape or not shape:
            raise Misfit
        buffer = self.tensor(parts["buffer"], shape)
        written = list(indices) if isinstance(indices, (list, tuple)) else []
        if len(written) != len(shape) or any(isinstance(i, S.PSequence) for i in written):
            written = [S.PVar("_")] * len(shape)
        at = [self.index(p, n) for p, n in zip(written, shape, strict=True)]
        gate = parts.get("gate") or None  # of what is written with positions it is an empty list
        return buffer.index(*at, gate=None if gate is None else self.tensor(gate, ()))

    def index(self, p: Any, size: int) -> UOp:
        """An index, which may be below a size: a number, or a variable; or what a pattern makes of such."""
        match p:
            case S.PBind(inner=inner) if p.ignored:
                return self.index(inner, size)
            case S.PBind(name=name, inner=inner):
                return self.nodes.setdefault(name, self.index(inner, size))
            case S.POp(ops=ops, args=args):
                own = [self.index(a, size) if self.scalar(a).is_index else self.tensor(a, ()) for a in args]
                return UOp.new(Op[self.rng.choice(ops)], tuple(own))
            case S.PVar(name=name) if p.ignored or name not in self.nodes:
                self.count += 1
                found = UOp.var(f"v{self.count}", dtypes.index, 0, size - 1)
                if self.rng.random() < 0.5:
                    found = UOp.const(self.rng.randrange(size))
                if admits_invalid(self.rule, p) and self.rng.random() < 0.3:
                    found = UOp.invalid_at(dtypes.index)
                self.nodes[name] = found
                return found
            case S.PVar(name=name):
                if shape_of(self.nodes[name]):
                    raise Misfit
                return self.nodes[name]
        return super().make(p)


def number(node: UOp) -> int:
    """The number that a size made of numbers is."""
    found = node.arg if node.op is Op.Const else evaluate(node)  # most are constants, and met by the million
    if not isinstance(found, int):
        raise Misfit
    return found


def _edges(parts: dict[str, Any]) -> tuple[Any, Any]:
    """The begins and the ends of a Pad or Shrink: of a list of both, half each."""
    begins, ends = parts["begins"], parts["ends"]
    if isinstance(begins, list) and ends == []:
        half = len(begins) // 2
        return begins[:half], begins[half:]
    return begins, ends


def _sizes_written(p: Any) -> int | None:
    """The rank that a pattern gives a tensor, if it does."""
    while isinstance(p, S.PBind):
        p = p.inner
    if (
        isinstance(p, S.POp)
        and p.ops[0] in ("Reshape", "Expand")
        and not any(isinstance(a, S.PSequence) for a in p.args)
    ):
        return len(p.args) - 1
    return None


def operands_of(p: S.POp) -> dict[str, Any]:
    """The operands and fields that a pattern gives an op one after the other, by their names."""
    entry = TABLE[Op[p.ops[0]]]
    found = parts_of(p)
    for o in entry.operands:
        found.setdefault(o.name, [])
    if not any(o.many for o in entry.operands):
        found |= zip(
            entry.fields, [a for a in p.args if not isinstance(a, S.PType)][len(entry.operands) :], strict=False
        )
    return found
