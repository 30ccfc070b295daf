"""Buffers, places, loads and stores, order; and the ops that hold a kernel together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from morok.ir.dtype import DType, PtrType, dtypes
from morok.ir.op import TABLE, Op, OpDef, Operand, Position

if TYPE_CHECKING:
    from morok.ir.op import Bounds
    from morok.ir.uop import UOp

PLACE: Final = Position.PLACE
ORDER: Final = Position.ORDER
BINDER: Final = Position.BINDER

# What an Index may address, and so what a place is made of.
STORAGE: Final = frozenset(
    {
        Op.Buffer, Op.BufferView, Op.Bufferize, Op.Param, Op.DefineGlobal, Op.DefineLocal, Op.DefineReg,
        Op.After, Op.Barrier, Op.Index, Op.Copy, Op.Assign, Op.MSelect, Op.MStack, Op.Multi,
        Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip, Op.Contiguous, Op.Detach,
    }
)  # fmt: skip
PLACES: Final = frozenset({Op.Index, Op.PtrCat, Op.PointerIndex, Op.After, Op.Gep, Op.Vectorize, Op.Unroll, Op.Cat, Op.Contract})


def void(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    return dtypes.void


def first(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    """The dtype of the first operand."""
    if not src:
        raise TypeError("at least one operand")
    return src[0].dtype


def wanted(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    """The dtype that the caller names."""
    if want is None:
        raise TypeError("a dtype")
    return want


def _element(storage: UOp) -> DType:
    d = storage.dtype
    return d.base if isinstance(d, PtrType) else d


def index_type(src: tuple[UOp, ...], gated: bool, want: DType | None) -> DType:
    buffer, *indices = src
    gate = indices.pop() if gated else None
    lanes = 1
    for i in indices:
        if not i.dtype.is_integral:
            raise TypeError(f"indices of dtype index (or an int after stage 15), not {i.dtype}")
        if i.dtype.count not in (1, lanes) and lanes != 1:
            raise TypeError(f"indices of one lane count, not {lanes} and {i.dtype.count}")
        lanes = max(lanes, i.dtype.count)
    if gate is not None and (not gate.dtype.is_bool or gate.dtype.count not in (1, lanes)):
        raise TypeError(f"a bool as gate, for all places or one a place of {lanes}, not {gate.dtype}")
    element = _element(buffer)
    return element if lanes == 1 else element.scalar().vec(lanes * element.count)


def load_type(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    place = src[0]
    if place.op not in PLACES:
        raise TypeError(f"a place (an Index), not {place.op.name}")
    if want is None:
        return place.dtype
    if want.scalar() is not place.dtype.scalar():
        raise TypeError(f"{place.dtype.scalar()} or a vector of it, not {want}")
    return want


def store_type(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    place, value = src[:2]
    if place.op not in PLACES:
        raise TypeError(f"a place (an Index), not {place.op.name}")
    if value.dtype.scalar() is not place.dtype.scalar():
        raise TypeError(f"a value of dtype {place.dtype.scalar()}, not {value.dtype}")
    return dtypes.void


def _noop_type(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    """Nothing done to an operand is the operand; nothing done at all is a statement, unless something else is asked for."""
    if not src:
        return want or dtypes.void
    if want is not None and want is not src[0].dtype:
        raise TypeError(f"{src[0].dtype}, which its operand is, not {want}")
    return src[0].dtype


def pointer(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    if not isinstance(want, PtrType):
        raise TypeError("a pointer dtype")
    return want


def bind_type(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    var, value = src
    if var.op is not Op.DefineVar or value.op is not Op.Const:
        raise TypeError(f"a DefineVar and a Const, not {var.op.name} and {value.op.name}")
    if not var.vmin <= value.arg <= var.vmax:
        raise ValueError(f"{var.arg[0]} lies in {var.vmin}..={var.vmax}, not {value.arg}")
    return var.dtype


def bind_bounds(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return src[1].vmin, src[1].vmax


def _first_bounds(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return src[0].vmin, src[0].vmax


def const_bounds(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return (-float("inf"), float("inf")) if d.is_float else (int(arg), int(arg))


def vconst_bounds(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return (-float("inf"), float("inf")) if d.is_float else (int(min(arg)), int(max(arg)))


def var_bounds(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return (d.min, d.max) if d.is_float else (arg[1], arg[2])


def invalid_bounds(d: DType, src: tuple[UOp, ...], arg: Any) -> Bounds:
    return float("inf"), -float("inf")  # no value at all: the empty interval


def _invalid_type(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    d = want or dtypes.index
    if not d.is_index:
        raise TypeError(f"dtype index, not {d}")
    return d


def var_type(src: tuple[UOp, ...], arg: Any, want: DType | None) -> DType:
    if want is None:
        raise TypeError("a dtype")
    name, lo, hi = arg
    d = want.scalar()
    if not (d.is_bool or d.is_number):
        raise TypeError(f"a dtype of values for {name}, not {want}")
    if not d.min <= lo <= hi <= d.max:
        raise ValueError(f"bounds of {name} in {d.min}..={d.max}, not {lo}..={hi}")
    if d.is_float and (lo, hi) != (d.min, d.max):
        raise ValueError(f"no bounds for {name}: floats have none")
    if any(isinstance(b, float) and b not in (d.min, d.max) for b in (lo, hi)):
        raise ValueError(f"integers as bounds of {name}, not {lo}..={hi}")
    return want


_MANY: Final = (Operand("sources", ORDER, many=True),)
_DEPS: Final = Operand("deps", ORDER, many=True)

# leaves
TABLE.define(OpDef(Op.Const, fields=("value",), typing=wanted, bounds=const_bounds, llvm="const", cuda="const"))
TABLE.define(OpDef(Op.VConst, fields=("values",), typing=wanted, bounds=vconst_bounds, llvm="vconst", cuda="vconst"))
TABLE.define(OpDef(Op.Invalid, typing=_invalid_type, bounds=invalid_bounds))
TABLE.define(
    OpDef(Op.DefineVar, fields=("name", "min", "max"), typing=var_type, bounds=var_bounds, llvm="define_var", cuda="define_var")
)

# storage
TABLE.define(OpDef(Op.Unique, fields=("id",), typing=void))
TABLE.define(OpDef(Op.Device, fields=("name",), typing=void))
TABLE.define(OpDef(Op.Buffer, (Operand("unique", ORDER), Operand("device", ORDER)), ("size",), typing=wanted))
TABLE.define(OpDef(Op.BufferView, (Operand("base", PLACE),), ("offset", "size"), typing=wanted))
TABLE.define(OpDef(Op.Bufferize, (Operand("compute"), Operand("ranges", BINDER, many=True)), ("device", "space"), typing=first))
TABLE.define(OpDef(Op.Param, fields=("slot",), typing=wanted))
TABLE.define(OpDef(Op.DefineGlobal, fields=("slot",), typing=pointer, llvm="define_global", cuda="define_global"))
TABLE.define(OpDef(Op.DefineLocal, fields=("id",), typing=pointer, llvm="define_local", cuda="define_local"))
TABLE.define(OpDef(Op.DefineReg, fields=("id",), typing=pointer, llvm="define_reg", cuda="define_reg"))

# places
TABLE.define(
    OpDef(
        Op.Index,
        (Operand("buffer", PLACE), Operand("indices", many=True), Operand("gate", optional=True)),
        ("gated",),
        typing=index_type,
        llvm="index",
        cuda="index",
    )
)
TABLE.define(
    OpDef(Op.PointerIndex, (Operand("ptr", PLACE), Operand("offset")), typing=wanted, llvm="pointer_index", cuda="pointer_index")
)
TABLE.define(OpDef(Op.Load, (Operand("index", PLACE), Operand("alt", optional=True)), typing=load_type, llvm="load", cuda="load"))
TABLE.define(
    OpDef(
        Op.Store,
        (Operand("index", PLACE), Operand("value"), Operand("ranges", BINDER, many=True)),
        typing=store_type,
        llvm="store",
        cuda="store",
    )
)
TABLE.define(OpDef(Op.Copy, (Operand("src"), Operand("device", ORDER)), typing=first))
TABLE.define(OpDef(Op.Assign, (Operand("target", PLACE), Operand("value")), typing=first))
TABLE.define(OpDef(Op.Bind, (Operand("var"), Operand("value")), typing=bind_type, bounds=bind_bounds))

# order
TABLE.define(OpDef(Op.After, (Operand("passthrough"), _DEPS), typing=first, bounds=_first_bounds))
TABLE.define(OpDef(Op.Barrier, (Operand("src"), _DEPS), typing=first, bounds=_first_bounds, llvm="barrier", cuda="barrier"))

# kernels
TABLE.define(OpDef(Op.Kernel, (Operand("ast", ORDER), Operand("sources", ORDER, many=True)), ("name",), typing=void))
TABLE.define(OpDef(Op.Sink, _MANY, ("info",), typing=void))
TABLE.define(OpDef(Op.Group, _MANY, typing=void))
TABLE.define(OpDef(Op.Noop, _MANY, typing=_noop_type))
TABLE.define(OpDef(Op.Custom, (Operand("sources", many=True),), ("text",), typing=wanted, llvm="custom", cuda="custom"))
TABLE.define(OpDef(Op.CustomI, (Operand("sources", many=True),), ("text",), typing=wanted, llvm="custom", cuda="custom"))
