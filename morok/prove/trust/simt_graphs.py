"""Random graphs for patterns about what a GPU runs in parallel: stores in launched loops and in others, waited for or masked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Instance
from morok.ir.dtype import DType, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.prove.trust.unrolled import FOLDS, UnrolledMaker

LOOPS: Final = (AxisType.Local, AxisType.Global, AxisType.Local, AxisType.Loop, AxisType.GroupReduce)


class LaunchMaker(UnrolledMaker):
    """Makes one graph for one instance of a rule about launches."""

    def __init__(self, rule: CheckedRule, instance: Instance, rng: random.Random) -> None:
        super().__init__(rule, instance, rng)
        self.loops = [UOp.range(n, i, axis) for i, (n, axis) in enumerate(zip(self.lengths(), LOOPS, strict=True))]

    def lengths(self) -> Sequence[int]:
        """The number of iterations of each loop."""
        return 2, 3, 1, 2, 3

    def some(self, least: int) -> list[UOp]:
        """Some of the loops, in any order."""
        return self.rng.sample(self.loops, self.rng.randrange(least, 4))

    def at(self, used: Sequence[UOp]) -> UOp:
        """A place of its own for every iteration of these loops."""
        index = self.leaf(dtypes.index, 1, 4)
        for r in used:
            index = index * int(r.vmax + 1) + r
        return index

    def stored(self, d: DType, used: Sequence[UOp]) -> UOp:
        """A value that is another in every iteration of these loops, and the same in those of any other that it mentions."""
        value = self.leaf(d, 1)
        for r in used:
            value = value + r.cast(d)
        for r in self.some(0):
            if r not in used:
                value = r.lt(int(r.vmax) + 1).where(value, self.leaf(d, 1))
        return value

    def statement(self) -> UOp:
        used = self.some(0)
        return self.storage(dtypes.i32).index(self.at(used)).store(self.stored(dtypes.i32, used))

    def op_end(self, parts: dict[str, Any], p: Any) -> UOp:
        return self.statement().end(*self.some(1))

    def op_after(self, parts: dict[str, Any], p: Any) -> UOp:
        waits = [*self.some(1), *([UOp.new(Op.Noop, ())] if self.rng.random() < 0.5 else [])]
        self.rng.shuffle(waits)
        return self.storage(dtypes.i32).after(*waits)

    def op_index(self, parts: dict[str, Any], p: Any) -> UOp:
        self.used = self.some(0)
        gate = None if "gate" not in parts else self.leaf(dtypes.bool, 1)
        return self.storage(self.dtype(self.type(p))).index(self.at(self.used), gate=gate)

    def op_store(self, parts: dict[str, Any], p: Any) -> UOp:
        place = self.make(parts["index"])
        loops = () if isinstance(parts.get("ranges"), (S.PList, S.EList)) else self.some(0)
        return UOp.new(Op.Store, (place, self.stored(place.dtype, self.used), *loops))

    def op_reduce(self, parts: dict[str, Any], p: Any) -> UOp:
        """A fold that threads share, alone or with loops, inside of blocks and other threads."""
        around = [self.loops[0], self.loops[1]]
        thread = UOp.range(self.rng.choice((1, 2, 3)), len(self.loops), AxisType.GroupReduce)
        ranges = [thread]
        if isinstance(parts["ranges"], S.PList) and len(parts["ranges"].items) > 1:
            for k in range(self.rng.randrange(3)):
                ranges.append(UOp.range(self.rng.choice((1, 2, 3)), len(self.loops) + 1 + k, AxisType.Reduce))
            ranges += [thread] * (self.rng.random() < 0.1)  # named twice, it runs once
            self.rng.shuffle(ranges)
        source = self.leaf(dtypes.i32, 1)
        for r in (*ranges, *self.rng.sample(around, self.rng.randrange(3))):
            source = source * source.like(3) + r.cast(dtypes.i32)
        return UOp.new(Op.Reduce, (source, *ranges), self.rng.choice(FOLDS))

    def op_range(self, parts: dict[str, Any], p: Any) -> UOp:
        # the last takes two dimensions
        return self.rng.choice((*self.loops, UOp.range(8, len(self.loops), AxisType.Global)))
