"""Stage 10: a Bufferize into shared memory becomes a loop that fills a DefineLocal, and a barrier before its readers."""

from __future__ import annotations

import math

from morok.errors import LoweringError
from morok.ir.dtype import AddrSpace
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import const_end, row_major
from morok.passes.rebuilding import rebuild


def add_local_buffers(root: UOp) -> UOp:
    """`root` without Bufferize: each becomes a DefineLocal, filled over the ranges of the Bufferize in row-major order.

    LoweringError for another kind of memory, and for sizes that are not constant.
    """
    ids = [n.arg for n in nodes_of(root) if n.op is Op.DefineLocal]
    next_id = max(ids, default=-1) + 1

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp:
        nonlocal next_id
        value, *ranges = src
        if node.arg[1] is not AddrSpace.LOCAL:
            raise LoweringError(
                f"a kernel cannot allocate a buffer in {node.arg[1].name} memory: {node}",
                expected="a buffer in LOCAL memory",
            )
        sizes = [const_end(r) for r in ranges]
        known = [n for n in sizes if n is not None]
        if len(known) != len(sizes):
            raise LoweringError(f"a buffer in local memory has a symbolic size: {node}", expected="constant sizes")
        buffer = UOp.new(Op.DefineLocal, (), next_id, value.dtype.ptr(math.prod(known), AddrSpace.LOCAL))
        next_id += 1
        filled = buffer.index(row_major(ranges, known)).store(value).end(*ranges)
        return buffer.after(UOp.new(Op.Barrier, (filled,)))

    return rebuild(root, (Op.Bufferize,), visit)
