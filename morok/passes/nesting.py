"""The nesting order of loops, a helper of rules/target/render.rules (stages 15 and 19)."""

from __future__ import annotations

from collections.abc import Sequence

from morok.ir.op import AxisType
from morok.ir.uop import UOp
from morok.marks import helper


def nesting(r: UOp) -> tuple[bool, int, int]:
    """A sort key for the nesting order of ranges, outermost first: Thread axes, then by priority of the axis type, then by id."""
    return r.arg[1] is not AxisType.Thread, r.arg[1].priority, r.arg[0]


def _depth(r: UOp) -> tuple[int, tuple[bool, int, int]]:
    return len(r.ranges), nesting(r)


@helper
def innermost(r: UOp, others: Sequence[UOp]) -> bool:
    """True if `r` nests inside all `others`: a range whose length depends on another nests inside it."""
    depth = _depth(r)
    return all(depth >= _depth(x) for x in others)
