"""Taking lanes out of vectors, what they are made of being looked through."""

from __future__ import annotations

from morok.ir.op import Op
from morok.ir.uop import UOp, vconst


def take(x: UOp, lanes: tuple[int, ...]) -> UOp:
    """The lanes of `x` with these numbers; x itself where that is all of them in order."""
    count = x.dtype.count
    if len(lanes) == count and lanes == tuple(range(count)):
        return x
    if x.op is Op.Const:
        return UOp.const(x.arg, x.dtype.scalar().vec(len(lanes)))
    if x.op is Op.VConst:
        return vconst(x.dtype.scalar(), [x.arg[i] for i in lanes])
    if x.op is Op.Invalid:
        return UOp.invalid_at(x.dtype.scalar().vec(len(lanes)))
    if count == 1:
        return UOp.vectorize(*([x] * len(lanes)))
    if x.op is Op.Gep:
        inner = x.arg
        return take(x.src[0], tuple(inner[i] for i in lanes))
    if x.op is Op.Vectorize:
        return UOp.vectorize(*[x.src[i] for i in lanes])
    return x.gep(*lanes)
