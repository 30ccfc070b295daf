"""Helpers of rules/loops/split.rules: the ranges to split and to merge, and ids for new ranges."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from morok.ir.op import Op
from morok.ir.ranges import CLOSES
from morok.ir.uop import UOp
from morok.marks import helper
from morok.passes.rebuilding import next_range_id


@dataclass(slots=True)
class RangeIds:
    """Ids for new ranges, above all ids in the graph, so that a new range differs from every open or closed one.

    next      the least unused id
    divisors  cache of `_divisors` by body
    """

    next: int
    divisors: dict[UOp, dict[UOp, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, root: UOp) -> RangeIds:
        """The unused range ids of a graph."""
        return cls(next_range_id(root))

    def take(self, count: int) -> int:
        """The first of `count` consecutive unused ids."""
        self.next += count
        return self.next - count


@helper
def split_factor(body: UOp, r: UOp, ids: RangeIds) -> int | None:
    """A divisor c of the range's length such that `body` contains `r % c`; None if there is none."""
    found = ids.divisors.get(body)
    if found is None:
        found = ids.divisors[body] = _divisors(body)
    return found.get(r)


def _divisors(body: UOp) -> dict[UOp, int]:
    """For each range r with `r % c` in `body`, where c divides its length: the first such c."""
    found: dict[UOp, int] = {}
    for n in body.toposort():
        if n.op is Op.Mod and n.src[0].op is Op.Range and n.src[1].op is Op.Const and n.src[0] not in found:
            end, c = n.src[0].src[0], int(n.src[1].arg)
            if end.op is Op.Const and 1 < c < end.arg and end.arg % c == 0:
                found[n.src[0]] = c
    return found


@helper
def unused_id(body: UOp, ids: RangeIds) -> int:
    """The first of two unused range ids."""
    return ids.take(2)


@dataclass(slots=True)
class MergedRanges:
    """The adjacent ranges that merge into one, and the id of the result: the same wherever the two are closed.

    next       the least unused range id
    pairs      (outer, inner) ranges that may be merged
    ids        (outer id, inner id) -> id of the merged range
    innermost  id of a merged range -> its original innermost range
    """

    next: int
    pairs: set[tuple[UOp, UOp]]
    ids: dict[tuple[int, int], int] = field(default_factory=dict)
    innermost: dict[int, UOp] = field(default_factory=dict)

    @classmethod
    def of(cls, root: UOp) -> MergedRanges:
        """All pairs of adjacent ranges in closing ops of a graph, even if merging them does not pay."""
        pairs = {pair for n in root.toposort() if n.op in CLOSES for pair in itertools.pairwise(n.src[CLOSES[n.op] :])}
        return cls(next_range_id(root), pairs)


@helper
def merged_id(body: UOp, outer: UOp, inner: UOp, found: MergedRanges | None) -> int | None:
    """The id of the range that `outer` and `inner` merge into; None if they stay two. Three ranges merge from the outside in."""
    if found is None or (found.innermost.get(outer.arg[0], outer), inner) not in found.pairs:
        return None
    pair = outer.arg[0], inner.arg[0]
    if pair not in found.ids:
        found.ids[pair] = found.next
        found.innermost[found.next] = inner
        found.next += 1
    return found.ids[pair]
