"""Helpers of rules/loops/split.rules: the ranges to split and to merge, and numbers for new ranges."""

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
    """Numbers for new ranges, from one that no range of the graph has: a new range is then none that is there, open or closed.

    next      the first of these numbers
    divisors  for bodies that were asked about: by which divisor of its length each takes a range modulo
    """

    next: int
    divisors: dict[UOp, dict[UOp, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, root: UOp) -> RangeIds:
        """The range numbers of a graph."""
        return cls(next_range_id(root))

    def take(self, count: int) -> int:
        """The first of so many numbers."""
        self.next += count
        return self.next - count


@helper
def split_factor(body: UOp, r: UOp, ids: RangeIds) -> int | None:
    """A divisor of the range's length by which `body` takes the range modulo; None where there is none."""
    found = ids.divisors.get(body)
    if found is None:
        found = ids.divisors[body] = _divisors(body)
    return found.get(r)


def _divisors(body: UOp) -> dict[UOp, int]:
    """For each range that `body` takes modulo a divisor of its length: the first of these divisors."""
    found: dict[UOp, int] = {}
    for n in body.toposort():
        if n.op is Op.Mod and n.src[0].op is Op.Range and n.src[1].op is Op.Const and n.src[0] not in found:
            end, c = n.src[0].src[0], int(n.src[1].arg)
            if end.op is Op.Const and 1 < c < end.arg and end.arg % c == 0:
                found[n.src[0]] = c
    return found


@helper
def unused_id(body: UOp, ids: RangeIds) -> int:
    """The first of two numbers that no range has."""
    return ids.take(2)


@dataclass(slots=True)
class MergedRanges:
    """The neighbouring ranges that become one, and its number: the same wherever the two are closed.

    next   the first of the numbers that no range has
    pairs  (outer, inner) ranges that count as one wherever they are used
    ids    what each pair has become, by their ids
    last   the inner range of what a merged range was made of, by its id
    """

    next: int
    pairs: set[tuple[UOp, UOp]]
    ids: dict[tuple[int, int], int] = field(default_factory=dict)
    last: dict[int, UOp] = field(default_factory=dict)

    @classmethod
    def of(cls, root: UOp) -> MergedRanges:
        """The ranges of a graph that stand side by side where they are closed, whether merging them pays or not."""
        pairs = {pair for n in root.toposort() if n.op in CLOSES for pair in itertools.pairwise(n.src[CLOSES[n.op] :])}
        return cls(next_range_id(root), pairs)


@helper
def merged_id(body: UOp, outer: UOp, inner: UOp, found: MergedRanges | None) -> int | None:
    """The number of the range that these two become; None where they stay two. Of three that are one the first two go first."""
    if found is None or (found.last.get(outer.arg[0], outer), inner) not in found.pairs:
        return None
    pair = outer.arg[0], inner.arg[0]
    if pair not in found.ids:
        found.ids[pair] = found.next
        found.last[found.next] = inner
        found.next += 1
    return found.ids[pair]
