"""Random graphs of larger sizes than those that rules are mostly tried on: to 64 lanes, five axes, rank 8, 100 iterations."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.ir.dtype import DType
from morok.ir.uop import UOp
from morok.prove.trust.lane_memory_graphs import LaneMaker
from morok.prove.trust.simt_graphs import LaunchMaker
from morok.prove.trust.structures import StructureMaker
from morok.prove.trust.tensor_graphs import TensorMaker
from morok.prove.trust.unrolled import UnrolledMaker

MOST: Final = 64
ENDS: Final = ((5, 5), (9, 9), (16, 16), (64, 64), (100, 100), (0, 7), (1, 1), (0, 0))  # least and greatest number of iterations
LENGTHS: Final = (
    (2, 3, 2, 1, 2),
    (1, 1, 5, 1, 1),
    (4, 3, 1, 1, 2),
    (7, 1, 1, 2, 1),
    (2, 2, 2, 2, 2),
    (8, 4, 1, 1, 1),
    (64, 1, 1, 1, 1),
)
LAUNCHED: Final = ((1, 64, 1, 1, 1), (4, 16, 1, 1, 1), (2, 4, 1, 5, 1), (1, 8, 2, 9, 1), (1, 4, 1, 64, 1), (2, 2, 2, 3, 1))


def size(rng: random.Random) -> int:
    """More lanes than a small graph has, edges of powers of two more often."""
    return rng.choice((5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 48, 63, 64, rng.randint(5, MOST), rng.randint(5, MOST)))


def lanes_of_many(rng: random.Random, vector: UOp, which: Any) -> UOp:
    """Lanes taken from a vector: those that a pattern has places for, all in their order, in the other, or any."""
    count = vector.dtype.count
    some = [rng.randrange(count) for _ in range(size(rng))]
    if isinstance(which, S.EList):
        return vector.gep(*some[: len(which.items)])
    return vector.gep(*rng.choice((range(count), tuple(reversed(range(count))), tuple(some))))


class LargeStructures(StructureMaker):
    """Sequences and vectors of many items, loops of many iterations."""

    ends: tuple[tuple[int, int], ...] = ENDS

    def width(self, node: S.Syntax) -> int:
        ty = self.rule.types.get(id(node))
        if ty is not None and isinstance(ty.lanes, str) and ty.lanes not in self.widths and self.rng.random() < 0.5:
            self.widths[ty.lanes] = size(self.rng)
        return super().width(node)

    def items(self, lanes: int, most: int) -> int:
        return size(self.rng) // lanes

    def op_gep(self, parts: dict[str, Any]) -> UOp:
        vector = self.vector(parts["vector"], size(self.rng) if self.lanes == 1 else self.lanes)
        count = vector.dtype.count
        which = parts["indices"]
        if isinstance(which, (S.EList, S.PList)):
            return vector.gep(*self.static(which, range(count)))
        form = self.rng.randrange(4)
        if form < 2:
            return vector.gep(*range(count))
        if form == 2:
            return vector.gep(*reversed(range(count)))
        return vector.gep(*[self.rng.randrange(count) for _ in range(size(self.rng))])


class LargeAxes(UnrolledMaker):
    """Five axes, some of many iterations, of nodes of many lanes."""

    counts = (1, 2, 3, 5)
    elements = 512

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        super().__init__(rule, instance, rng)
        self.there = tuple(enumerate(rng.choice(LENGTHS)))
        some, every = [rng.sample(self.there, rng.randrange(5)) for _ in range(4)], len(self.there)
        self.forms = ((), *map(tuple, some), *(tuple(rng.sample(self.there, every)) for _ in range(2)))

    def op_gep(self, parts: dict[str, Any], p: Any) -> UOp:
        return lanes_of_many(self.rng, self.make(parts["vector"]), parts["indices"])


class LargeLanes(LaneMaker):
    """Vectors and sequences of many lanes."""

    counts = (5, 6, 8, 9, 12, 16)

    def op_gep(self, parts: dict[str, Any], p: Any) -> UOp:
        x = self.make(parts["vector"])
        return lanes_of_many(self.rng, x, parts["indices"])

    def several(self, p: Any, d: DType) -> tuple[UOp, ...]:
        items = p if isinstance(p, list) else [p]
        if len(items) > 1 or not isinstance(items[0], (S.PSequence, S.PVar)):
            return super().several(p, d)
        lanes = self.own(self.type(items[0]))
        return tuple([self.spread(d, lanes) for _ in range(max(1, size(self.rng) // lanes))])


class LargeLaunches(LaunchMaker):
    """Loops of which one or two have many iterations."""

    elements = 512

    def lengths(self) -> Sequence[int]:
        return self.rng.choice(LAUNCHED)


class LargeTensors(TensorMaker):
    """Tensors of five to eight axes, most of them of one element or two."""

    def shape(self) -> tuple[int, ...]:
        found = [1] * self.rng.randint(5, 8)
        for k in self.rng.sample(range(len(found)), self.rng.choice((0, 1, 2, 3, 4))):
            found[k] = self.rng.choice((0, 2, 2, 2, 3))
        return tuple(found)
