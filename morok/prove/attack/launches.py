"""The meaning of an index that the hardware counts, tested in a launch: outside of one it has no value."""

from __future__ import annotations

from typing import Final

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp

PLACES: Final = 64


def observed(before: UOp, after: UOp) -> tuple[UOp, UOp]:
    """Two graphs, as statements that store at the place which each is, where the second has a hardware index that the first has
    not: done for all threads they leave the same in storage.
    """
    counted = {n for n in after.toposort() if n.op is Op.Special} - set(before.toposort())
    if not counted or not before.dtype.is_index or before.dtype.count != 1:
        return before, after
    storage = UOp.new(Op.DefineGlobal, (), PLACES, dtypes.i32.ptr(PLACES))
    made = [storage.index(n).store(UOp.const(1, dtypes.i32)) for n in (before, after)]
    return made[0], made[1]
