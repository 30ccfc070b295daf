"""Random graphs for patterns about unrolled axes: nodes unrolled over a few axes, and what closes these."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance, Ty
from morok.ir.dtype import BY_NAME, DType, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp, vconst
from morok.prove.forms import asks_for_axes
from morok.prove.rule_syntax import names_in
from morok.prove.trust.graphs import FLOATS, Unmakeable, parts_of

Axes = tuple[tuple[int, int], ...]
AXES: Final[Axes] = ((0, 2), (1, 3))  # their ids, with their lengths
FORMS: Final[tuple[Axes, ...]] = tuple(p for k in range(len(AXES) + 1) for p in itertools.permutations(AXES, k))
OWN: Final = (1, 2)  # lanes of its own that a node may have
FOLDS: Final = (Op.Add, Op.Mul, Op.Max, Op.Min)


def width(axes: Axes) -> int:
    """The number of iterations of some axes."""
    return math.prod(n for _, n in axes)


class UnrolledMaker:
    """Makes one graph for one instance of a rule about axes.

    counts    how many lanes a node may have
    elements  of a buffer
    there     the axes that there are
    forms     those that a node may be unrolled over; the last two are all of them
    """

    counts: tuple[int, ...] = OWN
    elements = 64
    there: Axes = AXES
    forms: tuple[Axes, ...] = FORMS

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        self.rule, self.instance, self.rng = rule, instance, rng
        self.nodes: dict[str, UOp] = {}
        self.fields: dict[str, Any] = {}
        self.lanes: dict[str, int] = {}
        self.asks = asks_for_axes(rule.syntax)
        self.count = 0
        self.folds = "Reduce" in names_in(rule.syntax.pattern)

    # types

    def type(self, p: Any) -> Ty:
        found = self.rule.types.get(id(p))
        if found is None and getattr(p, "name", "") in self.rule.bindings:
            found = self.rule.bindings[p.name].type
        if found is None:
            raise Unmakeable("a node without a type")
        return found

    def dtype(self, ty: Ty) -> DType:
        name = self.instance.element(ty)
        return BY_NAME.get(name, dtypes.i32) if name != "void" else dtypes.void

    def own(self, ty: Ty) -> int:
        if isinstance(ty.lanes, int):
            return ty.lanes
        return self.lanes.setdefault(ty.lanes, self.rng.choice(self.counts))

    # leaves

    def leaf(self, d: DType, count: int, most: int = 20) -> UOp:
        """A variable, or some constants."""
        self.count += 1
        v = d.vec(count)
        if d.is_float and self.folds:  # in whichever order it is done, a sum or a product of these is one number
            return UOp.var(f"v{self.count}", dtypes.bool.vec(count)).where(UOp.const(1.0, v), UOp.const(-1.0, v))
        if d.is_integral and self.rng.random() < 0.2:
            return vconst(d, [self.rng.randrange(most) for _ in range(count)])
        if d.is_int and self.rng.random() < 0.2:  # a number that a narrower dtype may not hold
            return UOp.var(f"v{self.count}", v)
        return UOp.var(f"v{self.count}", v, 0, most - 1) if d.is_integral else UOp.var(f"v{self.count}", v)

    def spread(self, d: DType, count: int, most: int = 20) -> UOp:
        """A leaf, perhaps unrolled, of so many lanes."""
        axes = self.rng.choice(self.forms) if self.asks else ()
        inner = self.leaf(d, count * width(axes), most)
        return UOp.new(Op.Unroll, (inner,), axes) if axes else inner

    def place(self, d: DType, count: int, everywhere: bool) -> UOp:
        """A place for every lane, and where that is wanted for every iteration, no two the same."""
        axes = self.rng.choice(self.forms[-2:]) if everywhere else self.rng.choice(self.forms) if self.asks else ()
        lanes = count * width(axes)
        at = (
            vconst(dtypes.index, self.rng.sample(range(self.elements), lanes))
            if everywhere
            else self.leaf(dtypes.index, lanes)
        )
        place = self.storage(d).index(at)
        return UOp.new(Op.Unroll, (place,), axes) if axes else place

    def storage(self, d: DType) -> UOp:
        self.count += 1
        return UOp.new(Op.DefineGlobal, (), self.count, d.scalar().ptr(self.elements))

    def statement(self) -> UOp:
        return self.place(dtypes.i32, 1, everywhere=True).store(self.spread(dtypes.i32, 1))

    def binders(self, p: Any, axis: AxisType) -> tuple[UOp, ...]:
        """Loops, and Unrolls and vectorized ranges that close an axis."""
        found: list[UOp] = []
        left = list(self.there)
        for k in range(self.rng.randrange(3)):
            if left and self.rng.random() < 0.7:
                i, n = left.pop(self.rng.randrange(len(left)))
                unrolled = UOp.new(Op.Unroll, (vconst(dtypes.index, range(n)),), ((i, n),))
                found.append(unrolled if self.rng.random() < 0.6 else UOp.range(n, i, AxisType.Upcast))
            else:
                found.append(UOp.range(self.rng.choice((1, 2, 3)), 10 + k, axis))
        return tuple(found)

    # patterns

    def make(self, p: Any) -> UOp:
        match p:
            case S.PVar(name=name):
                found = self.nodes.get(name)
                if found is None:
                    ty = self.type(p)
                    d = self.dtype(ty)
                    pointer = ty.pointer or ty.place
                    made = (
                        self.storage(d)
                        if pointer
                        else self.statement()
                        if d is dtypes.void
                        else self.spread(d, self.own(ty))
                    )
                    found = self.bound(p, made)
                return found
            case S.PBind(name=name, inner=inner):
                self.nodes[name] = self.make(inner)
                return self.nodes[name]
            case S.PConst(kind="const"):
                d = self.dtype(self.type(p))
                value = self.rng.choice(FLOATS) if d.is_float else self.rng.randrange(2 if d.is_bool else 20)
                return UOp.const(bool(value) if d.is_bool else value, d.vec(self.own(self.type(p))))
            case S.PConst(kind="zero" | "one" | "true" | "false" as kind):
                return self.known(p, {"zero": 0, "one": 1, "true": True, "false": False}[kind])
            case S.PLiteral(value=value):
                return self.known(p, value)
            case S.POp(ops=ops):
                return self.op(self.rng.choice(ops), parts_of(p), p)
            case S.PStruct(op=op):
                return self.op(op, parts_of(p), p)
        raise Unmakeable(type(p).__name__)

    def known(self, p: S.Pattern, value: Any) -> UOp:
        """A constant that the pattern names."""
        ty = self.type(p)
        return UOp.const(value, self.dtype(ty).vec(self.own(ty)))

    def bound(self, p: S.PVar, node: UOp) -> UOp:
        if not p.ignored:
            self.nodes[p.name] = node
        return node

    def axes(self, p: Any) -> tuple[tuple[int, int], ...]:
        if isinstance(p, (S.EList, S.PList)):
            some = self.rng.sample(self.there, min(len(p.items), len(self.there)))
            return tuple([self.axis(item, a) for item, a in zip(p.items, some, strict=True)])
        if p.name not in self.fields or p.name.startswith("_"):
            self.fields[p.name] = self.rng.choice(self.forms)
        found: tuple[tuple[int, int], ...] = self.fields[p.name]
        return found

    def axis(self, p: Any, chosen: tuple[int, int]) -> tuple[int, int]:
        """An axis that a pattern has a name for: the one that it stands for, or the one that was chosen."""
        name = getattr(p, "name", "_")
        return chosen if name.startswith("_") else self.fields.setdefault(name, chosen)

    def op(self, op: str, parts: dict[str, Any], p: Any) -> UOp:
        build: Callable[[dict[str, Any], Any], UOp] | None = getattr(self, f"op_{op.lower()}", None)
        if build is not None:
            return build(parts, p)
        d = self.dtype(self.type(p))
        operands = tuple([self.make(v) for v in parts.values()])
        if op == "Cast":
            return operands[0].cast(d)
        return UOp.new(Op[op], operands, None, d.vec(operands[0].dtype.count) if op == "Bitcast" else None)

    def op_unroll(self, parts: dict[str, Any], p: Any) -> UOp:
        axes = self.axes(parts["axes"])
        inner = parts["src"]
        ty = self.rule.types.get(id(inner))
        if ty is not None and isinstance(ty.lanes, str) and ty.lanes not in self.lanes:
            self.lanes[ty.lanes] = self.own(self.type(p)) * width(axes)
        if isinstance(inner, S.PVar) and ty is not None and self.instance.element(ty) == "any":
            # what is not looked at may be a place
            made = self.bound(inner, self.place(dtypes.i32, self.own(ty), everywhere=False))
        else:
            asks, self.asks = self.asks, False
            made = self.make(inner)
            self.asks = asks
        return UOp.new(Op.Unroll, (made,), axes)

    def op_contract(self, parts: dict[str, Any], p: Any) -> UOp:
        return UOp.new(Op.Contract, (self.make(parts["src"]),), self.axes(parts["axes"]))

    def op_gep(self, parts: dict[str, Any], p: Any) -> UOp:
        x = self.make(parts["vector"])
        return x.gep(*[self.rng.randrange(x.dtype.count) for _ in range(self.rng.choice((1, 2)))])

    def several(self, p: Any, d: DType) -> tuple[UOp, ...]:
        """Operands that one name stands for, or some patterns."""
        if isinstance(p, list) and len(p) > 1:
            return tuple(
                [x for i in p for x in (self.several(i, d) if isinstance(i, S.PSequence) else (self.make(i),))]
            )
        item = p[0] if isinstance(p, list) else p
        if not isinstance(item, (S.PSequence, S.PVar)):
            return (self.make(item),)
        lanes = self.own(self.type(item))
        return tuple([self.spread(d, lanes) for _ in range(self.rng.choice((1, 2, 3)))])

    def op_vectorize(self, parts: dict[str, Any], p: Any) -> UOp:
        return UOp.new(Op.Vectorize, self.several(parts["elements"], self.dtype(self.type(p))))

    def op_cat(self, parts: dict[str, Any], p: Any) -> UOp:
        return UOp.new(Op.Cat, self.several(parts["sources"], self.dtype(self.type(p))))

    def op_index(self, parts: dict[str, Any], p: Any) -> UOp:
        buffer = self.bound(parts["buffer"], self.storage(self.dtype(self.type(p))))
        own = self.rng.choice(OWN)
        gate = None if "gate" not in parts else self.spread(dtypes.bool, self.rng.choice((1, own)))
        return buffer.index(self.spread(dtypes.index, own), gate=gate)

    def place_of(self, part: Any, d: DType, everywhere: bool) -> UOp:
        if isinstance(part, S.PVar):
            return self.bound(part, self.place(d, self.rng.choice(OWN), everywhere))
        return self.make(part)

    def op_load(self, parts: dict[str, Any], p: Any) -> UOp:
        place = self.place_of(parts["index"], self.dtype(self.type(p)), everywhere=False)
        return UOp.new(
            Op.Load, (place, *([self.spread(place.dtype.scalar(), place.dtype.count)] if "alt" in parts else []))
        )

    def op_store(self, parts: dict[str, Any], p: Any) -> UOp:
        place = self.place_of(parts["index"], self.dtype(self.type(parts["value"])), everywhere=True)
        value = self.spread(place.dtype.scalar(), place.dtype.count)
        return UOp.new(Op.Store, (place, value, *self.binders(parts.get("ranges"), AxisType.Loop)))

    def op_end(self, parts: dict[str, Any], p: Any) -> UOp:
        return UOp.new(Op.End, (self.statement(), *self.binders(parts["ranges"], AxisType.Loop)))

    def op_after(self, parts: dict[str, Any], p: Any) -> UOp:
        return UOp.new(Op.After, (self.make(parts["passthrough"]), UOp.new(Op.Noop, ())))

    def op_reduce(self, parts: dict[str, Any], p: Any) -> UOp:
        src = self.make(parts["src"])
        ranges = self.binders(parts["ranges"], AxisType.Reduce)
        return UOp.new(
            Op.Reduce, (src, *ranges), self.rng.choice(FOLDS), src.dtype.scalar().vec(self.own(self.type(p)))
        )

    def op_range(self, parts: dict[str, Any], p: Any) -> UOp:
        axis, length = self.rng.choice(self.there)
        return UOp.range(length, axis, AxisType[parts["axis"].name])
