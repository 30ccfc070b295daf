"""GROUP and GROUPTOP: a reduction in two steps: each thread of a block folds a part, then the parts are folded via shared memory.

This module splits off the range over threads; rules/vector/expand.rules (stage 9) makes the two steps.
"""

from __future__ import annotations

import math

from morok.errors import OptError
from morok.ir.graph import substitute
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.range_stages import const_end, flatten_ranges, new_range
from morok.passes.rebuilding import next_range_id
from morok.passes.target import Target

_AROUND = frozenset({AxisType.Global, AxisType.Local, AxisType.Upcast})  # loops allowed around a shared reduction


def group(ast: UOp, r: UOp, amount: int, top: bool, target: Target) -> UOp:
    """`ast` with the reduced range `r` distributed over `amount` threads: contiguous parts if `top`, else interleaved.

    OptError if the partial results do not fit into shared memory, or a loop around the reduction would
    fill it again.
    """
    end = const_end(r)
    assert end is not None
    assert end % amount == 0
    thread = new_range(amount, next_range_id(ast), AxisType.GroupReduce, r)
    value = thread
    if amount < end:
        inner = new_range(end // amount, r.arg[0], r.arg[1], r)
        value = thread * (end // amount) + inner if top else inner * amount + thread
    grouped = flatten_ranges(substitute((ast,), {r: value})[0])
    used = 0
    for fold in grouped.toposort():
        if fold.op is not Op.Reduce or thread not in fold.src[1:]:
            continue
        if any(x.arg[1] not in _AROUND for x in fold.ranges):
            raise OptError(
                "the reduction is inside another loop, which would fill its shared buffer again",
                expected="a reduction inside axes of threads, blocks and lanes only",
            )
        beside = [const_end(x) or 0 for x in fold.ranges if x.arg[1] is not AxisType.Global]
        used += amount * math.prod(beside) * fold.dtype.itemsize
        if used > target.local_bytes or fold.dtype.is_index:
            raise OptError(
                f"the partial results would take {used} bytes of shared memory",
                expected=f"at most {target.local_bytes} bytes on {target.name}, and a fold of another dtype than index",
            )
    return grouped
