"""Tensor-level ops: views, and the marks that Tensor methods leave for the scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from morok.ir.dtype import STORAGE_FLOATS, dtypes
from morok.ir.op import TABLE, Op, OpDef, Operand, Position
from morok.ir.ops.memory_ops import first, wanted
from morok.ir.shape import differ, has_shape, shape_of, shown_shape

if TYPE_CHECKING:
    from morok.ir.dtype import DType
    from morok.ir.op import Bounds, Node, Operands
    from morok.ir.shape import Size

_CONST: Final = Op.Const
_INDEX: Final = dtypes.index


def _first_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return src[0].vmin, src[0].vmax


def _pad_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return min(src[0].vmin, 0), max(src[0].vmax, 0)


def _sizes(nodes: Sequence[Node], what: str) -> list[Size]:
    """Operands as sizes: ints for constants, else the nodes. TypeError for operands that cannot be sizes."""
    found: list[Size] = []
    for n in nodes:
        d = n.dtype
        if d is not _INDEX and (not d.is_index or d.count != 1):
            raise TypeError(f"{what} of dtype index, not {d}")
        if n.vmax < 0:
            raise TypeError(f"{what} of at least 0, not {n.vmax}")
        if n.op is not _CONST and (axes := shape_of(n)):
            raise TypeError(f"{what} without axes, not of shape {shown_shape(axes)}")
        found.append(n.arg if n.op is _CONST else n)
    return found


def _elements(shape: Sequence[Size]) -> int | None:
    """The number of elements of a shape; None unless all its sizes are ints."""
    total = 1
    for d in shape:
        if d.__class__ is not int:
            return None
        total *= d
    return total


def _reshape_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    x = src[0]
    old, new = shape_of(x), _sizes(src[1:], "sizes")
    known, wished = _elements(old), _elements(new)
    if known != wished and known is not None and wished is not None and has_shape(x):
        raise TypeError(f"{known} elements, which shape {shown_shape(old)} has, not {shown_shape(new)}")
    return x.dtype


def _expand_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    x = src[0]
    old, new = shape_of(x), _sizes(src[1:], "sizes")
    fits = len(old) == len(new)
    for n, m in zip(old, new, strict=False):
        if n is not m and n != 1 and differ(n, m):
            fits = False
    if not fits and has_shape(x):
        raise TypeError(f"a shape that {shown_shape(old)} repeats to, not {shown_shape(new)}")
    return x.dtype


def _axes_type(src: Operands, axes: tuple[int | bool, ...], requested: DType | None) -> DType:
    _one_an_axis(src[0], axes)
    return src[0].dtype


def _one_an_axis(x: Node, given: Sequence[object]) -> None:
    shape = shape_of(x)
    if len(given) != len(shape) and has_shape(x):
        raise TypeError(f"{len(shape)}, one an axis of shape {shown_shape(shape)}, not {len(given)}")


def _edged(src: Operands) -> list[Size]:
    """The begins of a padding or cut, and behind them the ends."""
    half, odd = divmod(len(src) - 1, 2)
    if odd:
        raise TypeError(f"as many ends as begins, not {len(src) - 1} of both")
    _one_an_axis(src[0], src[1 : 1 + half])
    return _sizes(src[1:], "begins and ends")


def _pad_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    _edged(src)
    if not (src[0].dtype.is_number or src[0].dtype.is_bool or src[0].dtype in STORAGE_FLOATS):
        raise TypeError(f"numbers to pad, not {src[0].dtype}")
    return src[0].dtype


def _shrink_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    x, edges = src[0], _edged(src)
    half = len(edges) // 2
    for n, begin, end in zip(shape_of(x), edges[:half], edges[half:], strict=False):
        if end.__class__ is int and ((begin.__class__ is int and begin > end) or (n.__class__ is int and end > n)):
            raise TypeError(
                f"begins and ends in order, inside of {shown_shape(shape_of(x))}, not {shown_shape((begin, end))}"
            )
    return x.dtype


def _iota_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    if not src[0].dtype.is_index or src[0].dtype.count != 1:
        raise TypeError(f"an index as end, not {src[0].dtype}")
    _sizes(src, "an end")
    return src[0].dtype


def _iota_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return 0, max(src[0].vmax - 1, 0)


def _concat_type(src: Operands, axis: int, requested: DType | None) -> DType:
    d = first(src, axis, requested)
    _joined(src, axis)
    return d


def _joined(src: Operands, axis: int | None) -> None:
    """TypeError unless these tensors have one dtype, and can be concatenated along `axis` (None: have equal shapes)."""
    d, shape = src[0].dtype, shape_of(src[0])
    if axis is not None and not 0 <= axis < len(shape):
        raise TypeError(f"an axis of {len(shape)}, not {axis}")
    for s in src:
        if s.dtype is not d:
            raise TypeError(f"elements of one dtype, not {d} and {s.dtype}")
        other = shape_of(s)
        if len(other) != len(shape) or any(
            k != axis and differ(n, m) for k, (n, m) in enumerate(zip(shape, other, strict=True))
        ):
            raise TypeError("one shape" if axis is None else f"shapes that differ in axis {axis} alone")


def _multi_type(src: Operands, axis: int | None, requested: DType | None) -> DType:
    d = first(src, axis, requested)
    _joined(src, axis)
    return d


def _mstack_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    return _multi_type(src, None, requested)


def _precast_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    """The dtype that the caller names; TypeError unless its values have bits."""
    if (
        requested is not None
        and requested is not src[0].dtype
        and not (requested.bits and src[0].dtype.bits and not requested.is_ptr)
    ):
        raise TypeError(f"dtypes of bits, not {src[0].dtype} and {requested}")
    return wanted(src, arg, requested)


def _concat_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return min(s.vmin for s in src), max(s.vmax for s in src)


_SRC: Final = Operand("src")
_SHAPE: Final = Operand("shape", many=True)
# Pad and Shrink: two sequences of one length, half of the operands after `src` each.
_EDGES: Final = (Operand("begins", many=True), Operand("ends", many=True))

TABLE.define(
    OpDef(
        Op.Reshape,
        (_SRC, _SHAPE),
        typing=_reshape_type,
        bounds=_first_bounds,
        types="result = src; shape in index; shape scalar",
    )
)
TABLE.define(
    OpDef(
        Op.Permute,
        (_SRC,),
        ("axes",),
        typing=_axes_type,
        bounds=_first_bounds,
        types="result = src",
        field_kinds={"axes": "ints"},
    )
)
TABLE.define(
    OpDef(
        Op.Expand,
        (_SRC, _SHAPE),
        typing=_expand_type,
        bounds=_first_bounds,
        types="result = src; shape in index; shape scalar",
    )
)
_EDGED: Final = "result = src; begins in index; begins scalar; ends in index; ends scalar"
TABLE.define(OpDef(Op.Pad, (_SRC, *_EDGES), typing=_pad_type, bounds=_pad_bounds, types=_EDGED))
TABLE.define(OpDef(Op.Shrink, (_SRC, *_EDGES), typing=_shrink_type, bounds=_first_bounds, types=_EDGED))
TABLE.define(
    OpDef(
        Op.Flip,
        (_SRC,),
        ("axes",),
        typing=_axes_type,
        bounds=_first_bounds,
        types="result = src",
        field_kinds={"axes": "bools"},
    )
)
# A tensor of shape [end] whose element i is i, of dtype index: the base of arange, eye and argmax.
TABLE.define(
    OpDef(
        Op.Iota,
        (Operand("end"),),
        typing=_iota_type,
        bounds=_iota_bounds,
        types="end in index; end scalar; result in index",
    )
)
# Tensors concatenated along an axis.
TABLE.define(
    OpDef(
        Op.Concat,
        (Operand("sources", many=True),),
        ("axis",),
        typing=_concat_type,
        bounds=_concat_bounds,
        types="result = sources",
        field_kinds={"axis": "int"},
    )
)
# `opts`: the optimizations of the kernel that stores it, in order; None: not chosen.
TABLE.define(
    OpDef(
        Op.Contiguous,
        (_SRC,),
        ("opts",),
        typing=first,
        bounds=_first_bounds,
        types="result = src",
        field_kinds={"opts": "other?"},
    )
)
TABLE.define(OpDef(Op.ContiguousBackward, (_SRC,), typing=first, bounds=_first_bounds, types="result = src"))
TABLE.define(OpDef(Op.Detach, (_SRC,), typing=first, bounds=_first_bounds, types="result = src"))
TABLE.define(OpDef(Op.Precast, (_SRC,), typing=_precast_type, dtype_given=True))
TABLE.define(
    OpDef(
        Op.Multi,
        (Operand("sources", many=True),),
        ("axis",),
        typing=_multi_type,
        types="result ~ sources",
        field_kinds={"axis": "int"},
    )
)
TABLE.define(OpDef(Op.MSelect, (Operand("src", Position.PLACE),), ("device",), typing=first, types="result = src"))
TABLE.define(
    OpDef(Op.MStack, (Operand("sources", Position.PLACE, many=True),), typing=_mstack_type, types="result = sources")
)
