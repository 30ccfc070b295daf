"""Lanes of vectors, simplified for vectors made of constants or known lanes."""

from __future__ import annotations

from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp, intern, vconst

_CONST: Final = Op.Const
_VCONST: Final = Op.VConst
_INVALID: Final = Op.Invalid
_GEP: Final = Op.Gep
_VECTORIZE: Final = Op.Vectorize


def take(x: UOp, lanes: tuple[int, ...]) -> UOp:
    """A vector of these lanes of `x`; `x` itself if they are all its lanes in order, and a Gep only if nothing simpler exists."""
    count = x.dtype.count
    if len(lanes) == count and lanes == tuple(range(count)):
        return x
    if x.op is _CONST:
        return UOp.const(x.arg, x.dtype.scalar().vec(len(lanes)))
    if x.op is _VCONST:
        return vconst(x.dtype.scalar(), [x.arg[i] for i in lanes])
    if x.op is _INVALID:
        return UOp.invalid_at(x.dtype.scalar().vec(len(lanes)))
    if count == 1:
        return UOp.vectorize(*([x] * len(lanes)))
    if x.op is _GEP:
        inner = x.arg
        return take(x.src[0], tuple(inner[i] for i in lanes))
    if x.op is _VECTORIZE:
        return UOp.vectorize(*[x.src[i] for i in lanes])
    return intern(_GEP, x.dtype.scalar().vec(len(lanes)), (x,), lanes)
