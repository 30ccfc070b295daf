"""PADTO: a range padded to a multiple of a vector or a block, with no effect in the added iterations."""

from __future__ import annotations

from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.ir.uop import UOp
from morok.passes.range_stages import const_end, new_range
from morok.passes.rebuilding import rebuild


def pad(ast: UOp, r: UOp, length: int) -> UOp:
    """`ast` with `length` iterations of `r`: in the added ones accesses that depend on `r` are gated off, and reductions over `r`
    fold their identity.
    """
    end = const_end(r)
    assert end is not None
    longer = new_range(length, r.arg[0], r.arg[1], r)
    inside = longer < UOp.const(end)

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node is r:
            return longer
        if node.op is Op.Index and r in node.src[1].ranges:
            at, gate = src[1], inside
            if at.op is Op.Where and at.src[2].op is Op.Invalid:  # merge the gates
                at, gate = at.src[1], inside & at.src[0]
            return UOp.new(Op.Index, (src[0], gate.where(at, UOp.invalid_at()), *src[2:]), node.arg)
        if node.op is Op.Reduce and r in node.src[1:]:
            body = inside.where(src[0], src[0].like(identity(node.arg, node.dtype.scalar())))
            return UOp.new(Op.Reduce, (body, *src[1:]), node.arg)
        return None

    return rebuild(ast, (Op.Range, Op.Index, Op.Reduce), visit)
