"""Tensor-level ops: views, and the marks that Tensor methods leave for the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from morok.ir.op import TABLE, Op, OpDef, Operand, Position
from morok.ir.ops.memory import first, wanted

if TYPE_CHECKING:
    from morok.ir.dtype import DType
    from morok.ir.op import Bounds
    from morok.ir.uop import UOp


def _first_bounds(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return src[0].vmin, src[0].vmax


def _pad_bounds(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return min(src[0].vmin, 0), max(src[0].vmax, 0)


def _iota_type(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    if not src[0].dtype.is_index or src[0].dtype.count != 1:
        raise TypeError(f"an index as end, not {src[0].dtype}")
    return src[0].dtype


def _iota_bounds(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return 0, max(src[0].vmax - 1, 0)


_SRC: Final = Operand("src")
_SHAPE: Final = Operand("shape", many=True)
# Pad and Shrink: two sequences of one length, half of the operands after `src` each.
_EDGES: Final = (Operand("begins", many=True), Operand("ends", many=True))

TABLE.define(OpDef(Op.Reshape, (_SRC, _SHAPE), typing=first, bounds=_first_bounds))
TABLE.define(OpDef(Op.Permute, (_SRC,), ("axes",), typing=first, bounds=_first_bounds))
TABLE.define(OpDef(Op.Expand, (_SRC, _SHAPE), typing=first, bounds=_first_bounds))
TABLE.define(OpDef(Op.Pad, (_SRC, *_EDGES), typing=first, bounds=_pad_bounds))
TABLE.define(OpDef(Op.Shrink, (_SRC, *_EDGES), typing=first, bounds=_first_bounds))
TABLE.define(OpDef(Op.Flip, (_SRC,), ("axes",), typing=first, bounds=_first_bounds))
# A tensor of shape [end] whose element i is i, of dtype index: what every arange, eye and argmax is made of.
TABLE.define(OpDef(Op.Iota, (Operand("end"),), typing=_iota_type, bounds=_iota_bounds))
TABLE.define(OpDef(Op.Contiguous, (_SRC,), typing=first, bounds=_first_bounds))
TABLE.define(OpDef(Op.ContiguousBackward, (_SRC,), typing=first, bounds=_first_bounds))
TABLE.define(OpDef(Op.Detach, (_SRC,), typing=first, bounds=_first_bounds))
TABLE.define(OpDef(Op.Precast, (_SRC,), typing=wanted))
TABLE.define(OpDef(Op.Multi, (Operand("sources", many=True),), ("axis",), typing=first))
TABLE.define(OpDef(Op.MSelect, (Operand("src", Position.PLACE),), ("device",), typing=first))
TABLE.define(OpDef(Op.MStack, (Operand("sources", Position.PLACE, many=True),), typing=first))
