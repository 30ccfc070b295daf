"""Buffers, places, loads and stores, order; and the ops that hold a kernel together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from morok.ir.dtype import STORAGE_FLOATS, DType, PtrType, dtypes
from morok.ir.op import BINDERS, TABLE, Op, OpDef, Operand, Position
from morok.ir.shape import has_shape, shape_of, unlike

if TYPE_CHECKING:
    from morok.ir.op import Bounds, Node, Operands

PLACE: Final = Position.PLACE
ORDER: Final = Position.ORDER
BINDER: Final = Position.BINDER

# The ops that an Index may address: storage, and nodes that pass storage on.
STORAGE: Final = frozenset(
    {
        Op.Buffer, Op.BufferView, Op.Bufferize, Op.Param, Op.DefineGlobal, Op.DefineLocal, Op.DefineReg,
        Op.After, Op.Barrier, Op.Index, Op.Copy, Op.Assign, Op.MSelect, Op.MStack, Op.Multi,
        Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip, Op.Contiguous, Op.Detach,
    }
)  # fmt: skip
PLACES: Final = frozenset(
    {Op.Index, Op.PtrCat, Op.PointerIndex, Op.After, Op.Gep, Op.Vectorize, Op.Unroll, Op.Cat, Op.Contract}
)


def void(src: Operands, arg: Any, requested: DType | None) -> DType:
    return dtypes.void


def first(src: Operands, arg: Any, requested: DType | None) -> DType:
    """The dtype of the first operand."""
    if not src:
        raise TypeError("at least one operand")
    return src[0].dtype


def wanted(src: Operands, arg: Any, requested: DType | None) -> DType:
    """The dtype that the caller names."""
    if requested is None:
        raise TypeError("a dtype")
    return requested


def ranged(src: Operands, first_range: int) -> None:
    """TypeError unless the operands from `first_range` on name the closed loops directly (`BINDERS`). An expression would close
    the loops of all its leaves, and a rule that rewrites it would close others.
    """
    for r in src[first_range:]:
        if not r.dtype.is_integral:
            raise TypeError(f"ranges of dtype index (or an int after stage 15), not {r.dtype}")
        if r.op not in BINDERS:
            raise TypeError(f"a Range, an Unroll, or a number where there is no loop, not {r.op.name}")


def on_device(src: Operands, arg: Any, requested: DType | None) -> DType:
    """The dtype of the first operand; TypeError unless the second is a Device."""
    if src[1].op is not Op.Device:
        raise TypeError(f"a Device, not {src[1].op.name}")
    return src[0].dtype


def _value_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    """The dtype that the caller names; TypeError unless it has constants."""
    if requested is None or not (requested.is_number or requested.is_bool or requested.scalar() in STORAGE_FLOATS):
        raise TypeError(f"a dtype of numbers{'' if requested is None else f', not {requested}'}")
    if isinstance(arg, tuple) and requested.count not in (1, len(arg)):
        raise TypeError(f"{requested.count} lanes of {requested}, not {len(arg)}")
    return requested


def _buffer_type(src: Operands, size: int, requested: DType | None) -> DType:
    if src[0].op is not Op.Unique:
        raise TypeError(f"a Unique, not {src[0].op.name}")
    on_device(src, size, requested)
    return _value_type(src, size, requested)


def _view_type(src: Operands, part: tuple[int, int], requested: DType | None) -> DType:
    base, (offset, size) = src[0], part
    if requested is None or requested is not _element(base):
        raise TypeError(f"the dtype of the base, {_element(base)}, not {requested}")
    whole = shape_of(base)
    if len(whole) == 1 and isinstance(whole[0], int) and offset + size > whole[0]:
        raise TypeError(f"a part of {whole[0]} elements, not {offset}..{offset + size}")
    return requested


def _bufferize_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    ranged(src, 1)
    return src[0].dtype


def _assign_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    target, value = src
    if value.dtype is not _element(target):
        raise TypeError(f"a value of dtype {_element(target)}, not {value.dtype}")
    old, new = shape_of(target), shape_of(value)
    if unlike(old, new) and has_shape(target) and has_shape(value):
        raise TypeError("a value of the target's shape")
    return target.dtype


def _pointer_index_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    ptr, offset = src
    if not ptr.dtype.is_ptr or not offset.dtype.is_integral:
        raise TypeError(f"a pointer and an index, not {ptr.dtype} and {offset.dtype}")
    return wanted(src, arg, requested)


def _element(storage: Node) -> DType:
    d = storage.dtype
    return d.base if isinstance(d, PtrType) else d


def index_type(src: Operands, gated: bool, requested: DType | None) -> DType:
    buffer = src[0]
    if buffer.dtype.kind == "void":
        raise TypeError(f"a buffer, not {buffer.op.name}")
    lanes = 1
    for i in src[1:-1] if gated else src[1:]:
        d = i.dtype
        if not d.is_integral:
            raise TypeError(f"indices of dtype index (or an int after stage 15), not {d}")
        if d.count != 1:
            if d.count != lanes and lanes != 1:
                raise TypeError(f"indices of one lane count, not {lanes} and {d.count}")
            lanes = d.count
    if gated:
        gate = src[-1].dtype
        if len(src) < 2 or not gate.is_bool or gate.count not in (1, lanes):
            raise TypeError(f"a bool as gate, for all places or one a place of {lanes}, not {gate}")
    element = _element(buffer)
    return element if lanes == 1 else element.scalar().vec(lanes * element.count)


def load_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    place = src[0]
    if place.op not in PLACES:
        raise TypeError(f"a place (an Index), not {place.op.name}")
    found = place.dtype
    if requested is not None:
        if requested.scalar() is not found.scalar():
            raise TypeError(f"{found.scalar()} or a vector of it, not {requested}")
        if found.count not in (1, requested.count):
            raise TypeError(f"one lane a place of {found.count}, not {requested}")
        found = requested
    if len(src) > 1 and src[1].dtype not in (found, found.scalar()):
        raise TypeError(f"{found} in place of what is not read, not {src[1].dtype}")
    return found


def store_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    place, value = src[0].dtype, src[1].dtype
    if src[0].op not in PLACES:
        raise TypeError(f"a place (an Index), not {src[0].op.name}")
    if value is not place and value.scalar() is not place.scalar():
        raise TypeError(f"a value of dtype {place.scalar()}, not {value}")
    if place.count != 1 and value.count not in (1, place.count):
        raise TypeError(f"a value for each place of {place.count}, not {value}")
    if len(src) > 2:
        ranged(src, 2)
    return dtypes.void


def _noop_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    """The dtype of the operand; without operands the one that the caller names, or void."""
    if not src:
        return requested or dtypes.void
    if requested is not None and requested is not src[0].dtype:
        raise TypeError(f"{src[0].dtype}, which its operand is, not {requested}")
    return src[0].dtype


def pointer(src: Operands, arg: Any, requested: DType | None) -> DType:
    if not isinstance(requested, PtrType):
        raise TypeError("a pointer dtype")
    return requested


def bind_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    var, value = src
    if var.op is not Op.DefineVar or value.op is not Op.Const:
        raise TypeError(f"a DefineVar and a Const, not {var.op.name} and {value.op.name}")
    if value.dtype is not var.dtype:
        raise TypeError(f"a value of dtype {var.dtype}, not {value.dtype}")
    if not var.vmin <= value.arg <= var.vmax:
        raise ValueError(f"{var.arg[0]} lies in {var.vmin}..={var.vmax}, not {value.arg}")
    return var.dtype


def bind_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return src[1].vmin, src[1].vmax


def _first_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return src[0].vmin, src[0].vmax


def const_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return (-float("inf"), float("inf")) if d.is_float else (int(arg), int(arg))


def vconst_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return (-float("inf"), float("inf")) if d.is_float else (int(min(arg)), int(max(arg)))


def var_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return (d.min, d.max) if d.is_float else (arg[1], arg[2])


def invalid_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return float("inf"), -float("inf")  # no value at all: the empty interval


def _invalid_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    d = requested or dtypes.index
    if not d.is_index:
        raise TypeError(f"dtype index, not {d}")
    return d


def var_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    if requested is None:
        raise TypeError("a dtype")
    name, lo, hi = arg
    d = requested.scalar()
    if not (d.is_bool or d.is_number):
        raise TypeError(f"a dtype of values for {name}, not {requested}")
    if not d.min <= lo <= hi <= d.max:
        raise ValueError(f"bounds of {name} in {d.min}..={d.max}, not {lo}..={hi}")
    if d.is_float and (lo, hi) != (d.min, d.max):
        raise ValueError(f"no bounds for {name}: floats have none")
    if any(isinstance(b, float) and b not in (d.min, d.max) for b in (lo, hi)):
        raise ValueError(f"integers as bounds of {name}, not {lo}..={hi}")
    return requested


_MANY: Final = (Operand("sources", ORDER, many=True),)
_DEPS: Final = Operand("deps", ORDER, many=True)

# leaves
TABLE.define(
    OpDef(
        Op.Const,
        fields=("value",),
        typing=_value_type,
        bounds=const_bounds,
        llvm="const",
        cuda="const",
        field_kinds={"value": "const"},
        dtype_given=True,
    )
)
TABLE.define(
    OpDef(
        Op.VConst,
        fields=("values",),
        typing=_value_type,
        bounds=vconst_bounds,
        llvm="vconst",
        cuda="vconst",
        field_kinds={"values": "consts"},
        dtype_given=True,
        role="constants",
    )
)
TABLE.define(OpDef(Op.Invalid, typing=_invalid_type, bounds=invalid_bounds, types="result in index"))
TABLE.define(
    OpDef(
        Op.DefineVar,
        fields=("name", "min", "max"),
        typing=var_type,
        bounds=var_bounds,
        llvm="define_var",
        cuda="define_var",
        dtype_given=True,
    )
)

# storage
TABLE.define(
    OpDef(Op.Unique, fields=("id",), typing=void, types="result in void; result scalar", field_kinds={"id": "int"})
)
TABLE.define(OpDef(Op.Device, fields=("name",), typing=void, types="result in void; result scalar"))
TABLE.define(
    OpDef(
        Op.Buffer,
        (Operand("unique", ORDER), Operand("device", ORDER)),
        ("size",),
        typing=_buffer_type,
        field_kinds={"size": "int"},
        dtype_given=True,
    )
)
TABLE.define(
    OpDef(
        Op.BufferView,
        (Operand("base", PLACE, holds="storage"),),
        ("offset", "size"),
        typing=_view_type,
        types="result ~ base",
        field_kinds={"offset": "int", "size": "int"},
        dtype_given=True,
    )
)
TABLE.define(
    OpDef(
        Op.Bufferize,
        (Operand("compute"), Operand("ranges", BINDER, many=True)),
        ("device", "space"),
        typing=_bufferize_type,
        types="result = compute",
    )
)
TABLE.define(OpDef(Op.Param, fields=("slot",), typing=wanted, field_kinds={"slot": "int"}, dtype_given=True))
TABLE.define(
    OpDef(
        Op.DefineGlobal,
        fields=("slot",),
        typing=pointer,
        llvm="define_global",
        cuda="define_global",
        field_kinds={"slot": "int"},
        dtype_given=True,
    )
)
TABLE.define(
    OpDef(
        Op.DefineLocal,
        fields=("id",),
        typing=pointer,
        llvm="define_local",
        cuda="define_local",
        field_kinds={"id": "int"},
        dtype_given=True,
    )
)
TABLE.define(
    OpDef(
        Op.DefineReg,
        fields=("id",),
        typing=pointer,
        llvm="define_reg",
        cuda="define_reg",
        field_kinds={"id": "int"},
        dtype_given=True,
    )
)

# places
TABLE.define(
    OpDef(
        Op.Index,
        (
            Operand("buffer", PLACE, holds="storage"),
            Operand("indices", many=True, holds="count"),
            Operand("gate", optional=True),
        ),
        ("gated",),
        typing=index_type,
        llvm="index",
        cuda="index",
        types="result ~ buffer; indices in int index; gate in bool",
        field_kinds={"gated": "bool?"},
    )
)
TABLE.define(
    OpDef(
        Op.PointerIndex,
        (Operand("ptr", PLACE, holds="storage"), Operand("offset", holds="count")),
        typing=_pointer_index_type,
        llvm="pointer_index",
        cuda="pointer_index",
        types="result ~ ptr; offset in int index",
        dtype_given=True,
    )
)
TABLE.define(
    OpDef(
        Op.Load,
        (Operand("index", PLACE), Operand("alt", optional=True)),
        typing=load_type,
        llvm="load",
        cuda="load",
        types="result ~ index; result = alt",
        dtype_given=True,
    )
)
TABLE.define(
    OpDef(
        Op.Store,
        (Operand("index", PLACE), Operand("value"), Operand("ranges", BINDER, many=True)),
        typing=store_type,
        llvm="store",
        cuda="store",
        types="value ~ index; result in void; result scalar",
    )
)
TABLE.define(OpDef(Op.Copy, (Operand("src"), Operand("device", ORDER)), typing=on_device, types="result = src"))
TABLE.define(
    OpDef(
        Op.Assign,
        (Operand("target", PLACE, holds="storage"), Operand("value")),
        typing=_assign_type,
        types="result ~ target; result ~ value",
    )
)
TABLE.define(
    OpDef(
        Op.Bind,
        (Operand("var"), Operand("value")),
        typing=bind_type,
        bounds=bind_bounds,
        types="result = var; result = value",
    )
)

# order
TABLE.define(
    OpDef(Op.After, (Operand("passthrough"), _DEPS), typing=first, bounds=_first_bounds, types="result = passthrough")
)
TABLE.define(
    OpDef(
        Op.Barrier,
        (Operand("src"), _DEPS),
        typing=first,
        bounds=_first_bounds,
        llvm="barrier",
        cuda="barrier",
        types="result = src",
    )
)

# kernels
TABLE.define(
    OpDef(
        Op.Kernel,
        (Operand("ast", ORDER), Operand("sources", ORDER, many=True)),
        ("name",),
        typing=void,
        types="result in void; result scalar",
    )
)
TABLE.define(OpDef(Op.Sink, _MANY, ("info",), typing=void, types="result in void; result scalar"))
TABLE.define(OpDef(Op.Group, _MANY, typing=void, types="result in void; result scalar"))
TABLE.define(OpDef(Op.Noop, _MANY, typing=_noop_type, types="result = sources", dtype_given=True))
for _op in (Op.Custom, Op.CustomI):
    TABLE.define(
        OpDef(
            _op,
            (Operand("sources", many=True),),
            ("text",),
            typing=wanted,
            llvm="custom",
            cuda="custom",
            dtype_given=True,
        )
    )
