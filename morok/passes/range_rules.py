"""What rules/loops/split.rules asks of the graph: where a range may be split, and numbers for new ranges."""

from __future__ import annotations

from dataclasses import dataclass

from morok.ir.op import Op
from morok.ir.uop import UOp


@dataclass(slots=True)
class RangeIds:
    """Numbers for new ranges, from one that no range of the graph has: a new range is then none that is there, open or closed."""

    next: int

    def take(self, count: int) -> int:
        """The first of so many numbers."""
        self.next += count
        return self.next - count


def split_factor(body: UOp, r: UOp, ids: RangeIds) -> int | None:
    """A divisor of the range's length by which `body` takes the range modulo; None where there is none."""
    end = r.src[0]
    if end.op is not Op.Const:
        return None
    for n in body.toposort():
        if n.op is Op.Mod and n.src[0] is r and n.src[1].op is Op.Const:
            c = int(n.src[1].arg)
            if 1 < c < end.arg and end.arg % c == 0:
                return c
    return None


def unused_id(body: UOp, ids: RangeIds) -> int:
    """The first of two numbers that no range has."""
    return ids.take(2)
