"""Lanes of vectors, simplified for vectors made of constants or known lanes."""

from __future__ import annotations

from morok.ir.op import Op
from morok.ir.uop import UOp, intern, vconst


def take(x: UOp, lanes: tuple[int, ...]) -> UOp:
    """A vector of these lanes of `x`; `x` itself if they are all its lanes in order, and a Gep only if nothing simpler exists."""
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
    return intern(Op.Gep, x.dtype.scalar().vec(len(lanes)), (x,), lanes)
