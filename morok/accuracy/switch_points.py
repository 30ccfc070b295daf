"""Switch points of a rule `within N ulp`: neighbouring operands between which a comparison in what it makes changes.

A sample of f64 meets a number that a rule computes only by chance. These are found by bisection between sampled operands: where
the operands of a comparison change their order, and where sums and differences change their sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from morok.accuracy import machine_values, ulp
from morok.accuracy.subject import Subject
from morok.accuracy.ulp import CHUNK, Array
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.rewrite.engine import graph_rewrite
from morok.rewrite.ruleset import RuleSet
from morok.runtime.cpu import CPUKernel

COMPARING: Final = frozenset({Op.Lt, Op.Le, Op.Gt, Op.Ge, Op.Eq, Op.Ne, Op.Min, Op.Max})
SUMS: Final = frozenset({Op.Add, Op.Sub})
TOGETHER: Final = 32  # orders computed by one kernel: two bits each of a u64
HELD: Final = 8  # numbers at which the other operand of a pair is held
SAMPLED: Final = 1 << 14  # operands between which orders may change
INTERVALS: Final = 64  # bisected for one order: the sample itself meets an order that changes more often

Points = tuple[Array, ...]  # one array of bit patterns for each operand


def switch_points(s: Subject, rules: RuleSet) -> Iterator[Points]:
    """Operands of the subject, in chunks, on both sides of the changes of order in what `rules` make of it."""
    xs = [UOp.var(name, s.dtype) for name in s.names]
    compared = _compared(graph_rewrite(s.of(xs), rules))
    lines = list(_lines(s))
    for at in range(0, len(compared), TOGETHER):
        some = compared[at : at + TOGETHER]
        orders = _Orders(machine_values.compiled(_together(some), xs, CHUNK), s.dtype)
        found = [i for line in lines for i in orders.intervals(line, len(some), INTERVALS // len(lines) + 1)]
        low, high, which = map(_joined, zip(*found, strict=True))
        if len(low[0]):
            yield from _chunks(orders.ends(low, high, which))


def _compared(made: UOp) -> list[UOp]:
    """The orders of compared numbers, and of sums and 0, in a graph."""
    pairs = [n.src for n in made.toposort() if n.op in COMPARING and n.src[0].dtype is not dtypes.bool]
    pairs += [(n, UOp.const(0.0, n.dtype)) for n in made.toposort() if n.op in SUMS and n.dtype.is_float]
    return list(dict.fromkeys(_order(*p) for p in pairs))


def _order(a: UOp, b: UOp) -> UOp:
    """1 where a < b, 2 where b < a, otherwise 0, as u64."""
    none, below, above = (UOp.const(k, dtypes.u64) for k in range(3))
    return UOp.new(Op.Where, (UOp.new(Op.Lt, (a, b)), below, UOp.new(Op.Where, (UOp.new(Op.Lt, (b, a)), above, none))))


def _together(orders: Sequence[UOp]) -> UOp:
    """Orders as one number, two bits each."""
    whole = orders[0]
    for k, order in enumerate(orders[1:], 1):
        whole = UOp.new(Op.Or, (whole, UOp.new(Op.Shl, (order, UOp.const(2 * k, dtypes.u64)))))
    return whole


def _lines(s: Subject) -> Iterator[Points]:
    """Sampled operands in ascending order, as keys; of a pair one is held at one of a few numbers."""
    named = np.concatenate([ulp.of_numbers(s.dtype, s.numbers, 0), ulp.special(s.dtype)])
    drawn = np.concatenate(list(ulp.sample(s.dtype)))
    few = SAMPLED if s.operands == 1 else SAMPLED // HELD
    ends = np.unique(ulp.keys(s.dtype, np.concatenate([named, drawn[:: len(drawn) // few + 1]])))
    if s.operands == 1:
        yield (ends,)
        return
    for held in ulp.keys(s.dtype, named[:: len(named) // HELD + 1]):
        fixed = np.full_like(ends, held)
        yield ends, fixed
        yield fixed, ends


class _Orders:
    """The orders that a kernel computes, as a function of operands given as keys."""

    def __init__(self, kernel: CPUKernel, dtype: DType) -> None:
        self.kernel, self.dtype = kernel, dtype

    def at(self, keys: Points) -> Array:
        """The orders at these operands."""
        bits = [ulp.of_keys(self.dtype, k) for k in keys]
        return np.concatenate([self._launched(some) for some in _chunks(bits)], dtype=np.uint64)

    def _launched(self, bits: Points) -> Array:
        given = [ulp.stored(self.dtype, b) for b in bits]
        return machine_values.launched(self.kernel, CHUNK, dtypes.u64, self.dtype, given)

    def intervals(self, line: Points, count: int, most: int) -> Iterator[tuple[Points, Points, Points]]:
        """Up to `most` intervals of a line between whose ends an order changes, for each order: ends, and which order it is."""
        orders = self.at(line)
        for k in range(count):
            (found,) = _one(orders[1:] ^ orders[:-1], k).nonzero()
            few = found[:: len(found) // most + 1]
            yield tuple([x[few] for x in line]), tuple([x[few + 1] for x in line]), (np.full(len(few), k, np.uint64),)

    def ends(self, low: Points, high: Points, which: Points) -> Points:
        """The bit patterns of neighbours between which these orders change, found by bisection of the intervals."""
        (order,) = which
        as_low = _one(self.at(low), order)
        while any((b - a > 1).any() for a, b in zip(low, high, strict=True)):
            middle = tuple([a + (b - a) // 2 for a, b in zip(low, high, strict=True)])
            same = _one(self.at(middle), order) == as_low
            low = tuple([np.where(same, m, a) for m, a in zip(middle, low, strict=True)])
            high = tuple([np.where(same, b, m) for m, b in zip(middle, high, strict=True)])
        return tuple([ulp.of_keys(self.dtype, np.concatenate(both)) for both in zip(low, high, strict=True)])


def _one(orders: Array, which: Array | int) -> Array:
    """One of the orders in each number."""
    found: Array = orders >> np.uint64(2) * np.asarray(which, np.uint64) & np.uint64(3)
    return found


def _joined(parts: Sequence[Points]) -> Points:
    return tuple([np.concatenate(column) for column in zip(*parts, strict=True)])


def _chunks(columns: Sequence[Array]) -> Iterator[Points]:
    for at in range(0, len(columns[0]), CHUNK):
        yield tuple([c[at : at + CHUNK] for c in columns])
