"""Lanes: making vectors, taking them apart, expanding loops into them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from morok.ir.dtype import DType, dtypes
from morok.ir.number import from_bits, to_bits
from morok.ir.op import TABLE, Op, OpDef, Operand, Position, Undefined
from morok.ir.ops.memory_ops import wanted
from morok.ir.shape import one_shape

if TYPE_CHECKING:
    from morok.ir.op import Bounds, Operands


def _one_element_type(src: Operands) -> DType:
    if not src:
        raise TypeError("at least one operand")
    d = src[0].dtype.scalar()
    if d.kind == "void":
        raise TypeError(f"elements with values, not {src[0].op.name}")
    for s in src:
        if s.dtype.scalar() is not d:
            raise TypeError(f"elements of one dtype, not {d} and {s.dtype.scalar()}")
    if not one_shape(src):
        raise TypeError("elements of one shape, and numbers")
    return d


def _vectorize_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    d = _one_element_type(src)
    for s in src:
        if s.dtype.count != 1:
            raise TypeError(f"scalars, not {s.dtype} (Cat joins vectors)")
    return d.vec(len(src))


def _gep_type(src: Operands, indices: tuple[int, ...], requested: DType | None) -> DType:
    d = src[0].dtype
    if d is dtypes.void:
        return d
    if not indices:
        raise TypeError("at least one lane")
    if min(indices) < 0 or max(indices) >= d.count:
        wrong = next(i for i in indices if not 0 <= i < d.count)
        raise TypeError(f"lanes in 0..{d.count} of {d}, not {wrong}")
    return d.scalar().vec(len(indices))


def _cat_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    return _one_element_type(src).vec(sum(s.dtype.count for s in src))


def _width(axes: tuple[tuple[int, int], ...]) -> int:
    return math.prod(n for _, n in axes)


def _unroll_type(src: Operands, axes: tuple[tuple[int, int], ...], requested: DType | None) -> DType:
    d = src[0].dtype
    if d is dtypes.void:
        return d
    n = _width(axes)
    if d.count % n:
        raise TypeError(f"{n} lanes or a multiple to unroll over {axes}, not {d}")
    return d.scalar().vec(d.count // n)


def _contract_type(src: Operands, axes: tuple[tuple[int, int], ...], requested: DType | None) -> DType:
    d = src[0].dtype
    return d if d is dtypes.void else d.scalar().vec(d.count * _width(axes))


def bitcast_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    """The dtype that the caller names; TypeError unless it has as many bits as the operand."""
    d = src[0].dtype
    if requested is None or requested is d:
        return wanted(src, arg, requested)
    for t in (d, requested):
        if not t.bits or t.is_ptr:
            raise TypeError(f"dtypes of bits, not {t}")
    if d.bits * d.count != requested.bits * requested.count:
        raise TypeError(f"a dtype of {d.bits * d.count} bits, as {d} has, not {requested}")
    return requested


def read_as(d: DType, v: Any, source: DType) -> Any:
    """The value of `d` with the bits of the value `v` of `source`; NaN has the bits of a quiet NaN."""
    if d.bits != source.bits:
        raise Undefined(f"{source} and {d} have different numbers of bits")
    return from_bits(d, to_bits(source, v))


def _wmma_type(src: Operands, arg: Any, requested: DType | None) -> DType:
    for s in src:
        if not s.dtype.is_number:
            raise TypeError(f"fragments of numbers, not {s.dtype}")
    return src[2].dtype


def _union(d: DType, src: Operands, arg: Any) -> Bounds:
    return min(s.vmin for s in src), max(s.vmax for s in src)


def _first_bounds(d: DType, src: Operands, arg: Any) -> Bounds:
    return src[0].vmin, src[0].vmax


_ELEMENTS: Final = (Operand("elements", many=True),)
_SOURCES: Final = (Operand("sources", many=True),)

TABLE.define(
    OpDef(
        Op.Vectorize,
        _ELEMENTS,
        typing=_vectorize_type,
        bounds=_union,
        llvm="vectorize",
        cuda="vectorize",
        types="result ~ elements; elements scalar",
        role="join",
    )
)
TABLE.define(
    OpDef(
        Op.Gep,
        (Operand("vector"),),
        ("indices",),
        typing=_gep_type,
        bounds=_first_bounds,
        llvm="gep",
        cuda="gep",
        types="result ~ vector",
        field_kinds={"indices": "ints"},
        role="take",
    )
)
TABLE.define(
    OpDef(
        Op.Cat,
        _SOURCES,
        typing=_cat_type,
        bounds=_union,
        llvm="cat",
        cuda="cat",
        role="join",
        types="result ~ sources",
    )
)
TABLE.define(
    OpDef(Op.PtrCat, (Operand("sources", Position.PLACE, many=True),), typing=_cat_type, types="result ~ sources")
)
TABLE.define(
    OpDef(
        Op.Unroll,
        (Operand("src"),),
        ("axes",),
        typing=_unroll_type,
        bounds=_first_bounds,
        types="result ~ src",
        field_kinds={"axes": "pairs"},
        role="open",
    )
)
TABLE.define(
    OpDef(
        Op.Contract,
        (Operand("src"),),
        ("axes",),
        typing=_contract_type,
        bounds=_first_bounds,
        types="result ~ src",
        field_kinds={"axes": "pairs"},
        role="close",
    )
)
TABLE.define(
    OpDef(
        Op.Wmma,
        (Operand("a"), Operand("b"), Operand("c")),
        ("meta",),
        typing=_wmma_type,
        llvm="",
        cuda="",
        types="result = c",
    )
)
TABLE.define(
    OpDef(
        Op.Bitcast,
        (Operand("x"),),
        typing=bitcast_type,
        evaluate=read_as,
        solver="morok.prove.semantics:bitcast",
        llvm="bitcast",
        cuda="bitcast",
        types="x in any f8e4m3 f8e5m2; result in any f8e4m3 f8e5m2; result lanes x; result bits x",
        dtype_given=True,
    )
)
