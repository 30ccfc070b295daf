"""Random graphs of larger sizes than those that rules are mostly tried on: to 64 lanes, five axes, rank 8, 100 iterations."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.ir.dtype import DType
from morok.ir.launch import launched
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.uop import UOp
from morok.prove.rule_syntax import names_in
from morok.prove.trust.arranged import numbers_in, order, places, said
from morok.prove.trust.lane_memory_graphs import LaneMaker
from morok.prove.trust.simt_graphs import LaunchMaker
from morok.prove.trust.structures import ELEMENTS, StructureMaker
from morok.prove.trust.tensor_graphs import TensorMaker
from morok.prove.trust.unrolled import Axes, UnrolledMaker

MOST: Final = 64
# least and greatest number of iterations
ENDS: Final = ((5, 5), (9, 9), (16, 16), (64, 64), (100, 100), (0, 7), (1, 1), (0, 0))
FEW: Final = ((1, 1), (1, 1), (2, 2), (2, 2), (3, 3))  # of several loops within one another
LENGTHS: Final = (
    (2, 3, 2, 1, 2),
    (1, 1, 5, 1, 1),
    (4, 3, 1, 1, 2),
    (7, 1, 1, 2, 1),
    (2, 2, 2, 2, 2),
    (8, 4, 1, 1, 1),
    (64, 1, 1, 1, 1),
)
LAUNCHED: Final = (
    (1, 64, 1, 1, 1),
    (4, 16, 1, 1, 1),
    (2, 4, 1, 5, 1),
    (1, 8, 2, 9, 1),
    (1, 4, 1, 64, 1),
    (2, 2, 2, 3, 1),
)


def size(rng: random.Random) -> int:
    """More lanes than a small graph has, edges of powers of two more often."""
    return rng.choice(
        (4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 48, 63, 64, rng.randint(5, MOST), rng.randint(5, MOST))
    )


def lanes_of_many(rng: random.Random, vector: UOp, which: Any, rule: S.Rule, nodes: Mapping[str, UOp]) -> UOp:
    """Lanes taken from a vector: those that a pattern has places for, those that guards describe, or many."""
    count, turns = vector.dtype.count, numbers_in(rule)
    if isinstance(which, S.EList):
        return vector.gep(*[rng.randrange(count) for _ in which.items])
    lanes = {name: node.dtype.count for name, node in nodes.items()}
    described = said(rule, which.name, count, lanes) if isinstance(which, S.PVar) and rng.random() < 0.5 else None
    if described is not None and all(0 <= k < count for k in described):
        return vector.gep(*described)
    return vector.gep(*places(rng, rng.choice((count, count, size(rng))), count, turns))


class LargeStructures(StructureMaker):
    """Sequences and vectors of many items, loops of many iterations."""

    ends: tuple[tuple[int, int], ...] = ENDS

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        super().__init__(rule, instance, rng)
        self.turns = numbers_in(rule.syntax)
        self.ends = (*self.ends, *((n, n) for n in self.turns))
        self.many = self.size()
        root = rule.syntax.pattern
        if isinstance(root, S.POp) and TABLE[Op[root.ops[0]]].pointwise:
            self.lanes = self.width(root)

    def size(self) -> int:
        """More lanes than a small graph has: as many as the rule says something of, or any."""
        return self.rng.choice(self.turns) if self.turns and self.rng.random() < 0.3 else size(self.rng)

    def several(self) -> int:
        """The number of items of a sequence: often as many as there are of others."""
        return self.many if self.rng.random() < 0.7 else self.size()

    def loops_of(self, p: Any, axis: AxisType) -> list[UOp]:
        self.sequence = self.rng.choice((0, 1, 2, 5, 6))
        if self.sequence > 1:
            self.ends = FEW
        return super().loops_of(p, axis)

    def folded(self) -> int:
        return self.size()

    @property
    def there(self) -> int:
        return self.limit + MOST

    def storage(self, d: DType, size: int = ELEMENTS) -> UOp:
        return super().storage(d, size + MOST)

    def op_load(self, parts: dict[str, Any]) -> UOp:
        place = self.make(parts["index"])
        if place.dtype.count == 1 and "alt" not in parts and self.rng.random() < 0.7:
            return place.load(place.dtype.vec(self.several()))
        return super().op_load(parts)

    def stored(self, value: S.PVar, places: int) -> int:
        return self.width(value) if places == 1 else places

    def op_group(self, parts: dict[str, Any]) -> UOp:
        self.sequence = self.rng.choice((1, 2, 5, 6, 8))
        return super().op_group(parts)

    def width(self, node: S.Syntax) -> int:
        ty = self.rule.types.get(id(node))
        if ty is not None and isinstance(ty.lanes, str) and ty.lanes not in self.widths and self.rng.random() < 0.5:
            self.widths[ty.lanes] = self.several()
        return super().width(node)

    def items(self, lanes: int, most: int) -> int:
        return max(1, self.several() // lanes)

    def several_of(self, d: DType, count: int) -> list[UOp]:
        if d.is_index and self.limit and self.rng.random() < 0.4:
            return [self.const(d, k) for k in places(self.rng, count, self.limit, self.turns)]
        return super().several_of(d, count)

    def op_cat(self, parts: dict[str, Any]) -> UOp:
        return UOp.new(Op.Cat, tuple(self.joined(parts["sources"], self.rng.choice((1, 2, self.size())))))

    def op_gep(self, parts: dict[str, Any]) -> UOp:
        vector = self.vector(parts["vector"], self.size() if self.lanes == 1 else self.lanes)
        which = parts["indices"]
        if isinstance(which, (S.EList, S.PList)):
            return vector.gep(*self.static(which, range(vector.dtype.count)))
        return lanes_of_many(self.rng, vector, which, self.rule.syntax, self.nodes)


class LargeAxes(UnrolledMaker):
    """Five axes, some of many iterations, of nodes of many lanes."""

    counts = (1, 2, 3, 5)
    elements = 512

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        super().__init__(rule, instance, rng)
        self.there = tuple(enumerate(rng.choice(LENGTHS)))
        some, every = [rng.sample(self.there, rng.randrange(5)) for _ in range(4)], len(self.there)
        self.forms = ((), *map(tuple, some), *(tuple(rng.sample(self.there, every)) for _ in range(2)))
        self.asks = self.asks or "Contract" in names_in(rule.syntax.pattern)  # what is collected may be unrolled below

    def axes(self, p: Any) -> Axes:
        """Axes of a name: often those of another one, behind the first few in another order."""
        new = isinstance(p, S.PVar) and p.name not in self.fields
        if new and self.fields and self.rng.random() < 0.4:
            others = self.rng.choice(sorted(self.fields.values()))
            self.fields[p.name] = tuple([others[k] for k in order(self.rng, len(others))])
        return super().axes(p)

    def op_gep(self, parts: dict[str, Any], p: Any) -> UOp:
        return lanes_of_many(self.rng, self.make(parts["vector"]), parts["indices"], self.rule.syntax, self.nodes)


class LargeLanes(LaneMaker):
    """Vectors and sequences of many lanes."""

    counts = (5, 6, 8, 9, 12, 16)

    def op_gep(self, parts: dict[str, Any], p: Any) -> UOp:
        return lanes_of_many(self.rng, self.make(parts["vector"]), parts["indices"], self.rule.syntax, self.nodes)

    def several(self, p: Any, d: DType) -> tuple[UOp, ...]:
        items = p if isinstance(p, list) else [p]
        if len(items) > 1 or not isinstance(items[0], (S.PSequence, S.PVar)):
            return super().several(p, d)
        lanes = self.own(self.type(items[0]))
        return tuple([self.spread(d, lanes) for _ in range(max(1, size(self.rng) // lanes))])


class LargeLaunches(LaunchMaker):
    """Loops of which one or two have many iterations, and up to eight of which none is launched."""

    elements = 1024

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        super().__init__(rule, instance, rng)
        self.loops += [UOp.range(n, len(self.loops) + k, AxisType.Loop) for k, n in enumerate((1, 2, 1, 2, 1, 1, 1))]

    def lengths(self) -> Sequence[int]:
        return self.rng.choice(LAUNCHED)

    def some(self, least: int) -> list[UOp]:
        if self.rng.random() < 0.7:
            return super().some(least)
        in_order = [r for r in self.loops if not launched(r)]
        return self.rng.sample(in_order, self.rng.randint(least, len(in_order)))


class LargeTensors(TensorMaker):
    """Tensors of five to eight axes, most of them of one element or two."""

    def shape(self) -> tuple[int, ...]:
        found = [1] * self.rng.randint(5, 8)
        for k in self.rng.sample(range(len(found)), self.rng.choice((0, 1, 2, 3, 4))):
            found[k] = self.rng.choice((0, 2, 2, 2, 3))
        return tuple(found)

    def order(self, rank: int) -> tuple[int, ...]:
        return order(self.rng, rank)

    def reversed(self, rank: int) -> tuple[bool, ...]:
        kept = self.rng.choice((0, self.rng.randrange(rank + 1)))
        return tuple([k >= kept and self.rng.random() < 0.5 for k in range(rank)])

    def whole(self, rank: int) -> int:
        return self.rng.choice((0, self.rng.randrange(rank + 1)))

    def lost(self, shape: tuple[int, ...]) -> list[int]:
        """The number of elements that each axis loses: all axes lose some, or one alone, or none."""
        axes = range(len(shape))
        some = self.rng.choice((axes, (), self.rng.sample(axes, min(1, len(axes)))))
        return [n if k in some else 0 for k, n in enumerate(super().lost(shape))]
