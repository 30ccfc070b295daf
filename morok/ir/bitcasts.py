"""Bitcasts of constants: their bits as constants of another dtype.

Helper of `rules/algebra/fold.rules`, with the contract written there.
"""

from __future__ import annotations

from morok.ir.op import Op
from morok.ir.ops.vector import read_as
from morok.ir.uop import UOp, vconst
from morok.marks import helper


@helper
def reread(n: UOp, c: UOp) -> UOp | None:
    """The Bitcast `n` of the constant `c` as a constant; None if a lane is NaN, whose bits no constant keeps, or if the number of
    lanes changes.
    """
    d, source = n.dtype, c.dtype
    if d.count != source.count or d.bits != source.bits:
        return None
    a, b = source.scalar(), d.scalar()
    given = c.arg if c.op is Op.VConst else (c.arg,)
    values = [read_as(b, v, a) for v in given]
    if any(v != v for v in (*given, *values)):
        return None
    return UOp.const(values[0], d) if len(values) == 1 else vconst(b, values)
