"""GROUP and GROUPTOP: a reduction in two steps, each thread of a block folding its part, then all parts through shared memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morok.errors import OptError
from morok.ir.dtype import AddrSpace
from morok.ir.graph import substitute
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.ranges import const_end, flatten_ranges, new_range
from morok.passes.target import Target
from morok.passes.walk import next_range_id, rebuild


def flat(ranges: Sequence[UOp]) -> UOp:
    """The ranges as one row-major number; their lengths are known."""
    place = UOp.const(0)
    for r in ranges:
        place = place * (const_end(r) or 0) + r
    return place


def group(ast: UOp, r: UOp, amount: int, top: bool, target: Target, what: str) -> UOp:
    """`ast` with the reduced range `r` spread over `amount` threads: in blocks (`top`) or in turn.

    OptError, called `what`, where the parts do not fit into shared memory, or a loop around the reduction would fill that again.
    """
    end = const_end(r)
    assert end is not None
    assert end % amount == 0
    id = next_range_id(ast)
    thread = new_range(amount, id, AxisType.GroupReduce, r)
    inner = [new_range(end // amount, r.arg[0], r.arg[1], r)] if amount < end else []
    if not inner:
        value = thread
    elif top:
        value = thread * (end // amount) + inner[0]
    else:
        value = inner[0] * amount + thread
    folds = [n for n in ast.toposort() if n.op is Op.Reduce and r in n.src[1:]]
    local = max((n.arg for n in ast.toposort() if n.op is Op.DefineLocal), default=-1) + 1
    used = 0

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        nonlocal local, id, used
        if node not in folds:
            return None
        body = substitute((src[0],), {r: value})[0]
        ranges = [x for x in src[1:] if x is not r] + inner
        part = UOp.new(Op.Reduce, (body, *ranges), node.arg) if ranges else body
        threads = sorted((x for x in part.ranges if x.arg[1] is AxisType.Local), key=lambda x: x.arg[0])
        lanes = sorted((x for x in part.ranges if x.arg[1] is AxisType.Upcast), key=lambda x: x.arg[0])
        if any(x.arg[1] not in (AxisType.Global, AxisType.Local, AxisType.Upcast, AxisType.GroupReduce) for x in part.ranges):
            raise OptError(
                f"{what}: the reduction is inside another loop", expected="a loop that only threads and lanes run around"
            )
        size = math.prod(const_end(x) or 0 for x in (*threads, thread, *lanes))
        used += size * node.dtype.itemsize
        if used > target.local_bytes or node.dtype.is_index:
            raise OptError(f"{what}: {used} bytes of shared memory", expected=f"at most {target.local_bytes} on {target.name}")
        buffer = UOp.new(Op.DefineLocal, (), local, node.dtype.ptr(size, AddrSpace.LOCAL))
        id, local = id + 1, local + 1
        again = new_range(amount, id, AxisType.Reduce, r)
        kept = UOp.new(Op.Barrier, (buffer.index(flat([*threads, thread, *lanes])).store(part).end(thread),))
        return buffer.after(kept).index(flat([*threads, again, *lanes])).reduce(node.arg, again)

    return flatten_ranges(rebuild(ast, visit))
