"""CUDA C's types and constants.

A bool is a byte in memory; 8-bit floats are bytes in registers too, converted by functions of the prelude.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from morok.codegen.llvm.types import literal as bits_literal
from morok.ir.dtype import DType, dtypes

REGISTER: Final[dict[DType, str]] = {
    dtypes.bool: "bool",
    dtypes.i8: "signed char",
    dtypes.i16: "short",
    dtypes.i32: "int",
    dtypes.i64: "long long",
    dtypes.u8: "unsigned char",
    dtypes.u16: "unsigned short",
    dtypes.u32: "unsigned int",
    dtypes.u64: "unsigned long long",
    dtypes.f8e4m3: "unsigned char",
    dtypes.f8e5m2: "unsigned char",
    dtypes.f16: "__half",
    dtypes.bf16: "__nv_bfloat16",
    dtypes.f32: "float",
    dtypes.f64: "double",
}
# Vector types of one load: the prefix of the type's name, and the possible numbers of lanes, greatest first.
WIDE: Final[dict[DType, tuple[str, tuple[int, ...]]]] = {
    dtypes.bool: ("uchar", (4, 2)),
    dtypes.i8: ("char", (4, 2)),
    dtypes.u8: ("uchar", (4, 2)),
    dtypes.f8e4m3: ("uchar", (4, 2)),
    dtypes.f8e5m2: ("uchar", (4, 2)),
    dtypes.i16: ("short", (4, 2)),
    dtypes.u16: ("ushort", (4, 2)),
    dtypes.f16: ("ushort", (4, 2)),
    dtypes.bf16: ("ushort", (4, 2)),
    dtypes.i32: ("int", (4, 2)),
    dtypes.u32: ("uint", (4, 2)),
    dtypes.f32: ("float", (4, 2)),
    dtypes.i64: ("longlong", (2,)),
    dtypes.u64: ("ulonglong", (2,)),
    dtypes.f64: ("double", (2,)),
}


def memory(d: DType) -> str:
    """The C type of an element in memory."""
    return "unsigned char" if d.is_bool else REGISTER[d]


def from_memory(d: DType, x: str) -> str:
    return f"({x} != 0)" if d.is_bool else x


def from_wide(d: DType, x: str) -> str:
    """The C expression for the value of one lane of a wide load."""
    if d is dtypes.f16:
        return f"__ushort_as_half({x})"
    if d is dtypes.bf16:
        return f"__ushort_as_bfloat16({x})"
    return from_memory(d, x)


def to_wide(d: DType, x: str) -> str:
    if d is dtypes.f16:
        return f"__half_as_ushort({x})"
    if d is dtypes.bf16:
        return f"__bfloat16_as_ushort({x})"
    return x


def unsigned(d: DType) -> str:
    """The unsigned C type in which arithmetic of integer `d` wraps; C promotes narrower types to int, which would overflow."""
    return "unsigned long long" if d.bits == 64 else "unsigned int"


def literal(d: DType, v: Any) -> str:
    """The C expression for the scalar constant `v` of dtype `d`."""
    if d.is_bool:
        return "true" if v else "false"
    if d is dtypes.f16:
        return f"__ushort_as_half(0x{0x7E00 if v != v else struct.unpack('<H', struct.pack('<e', v))[0]:04x})"
    if d is dtypes.bf16:
        return f"__ushort_as_bfloat16(0x{int(bits_literal(d, v)):04x})"
    if d.is_float and d.bits == 8:
        return f"(unsigned char){bits_literal(d, v)}"
    if d is dtypes.f32:
        if v - v != 0:
            return f"__uint_as_float(0x{0x7FC00000 if v != v else struct.unpack('<I', struct.pack('<f', v))[0]:08x}u)"
        return f"{float(v)!r}f"
    if d is dtypes.f64:
        if v - v != 0:
            return f"__longlong_as_double(0x{0x7FF8 << 48 if v != v else struct.unpack('<Q', struct.pack('<d', v))[0]:016x}ll)"
        return repr(float(v))
    if d is dtypes.i64:
        return f"({v + 1}ll - 1)" if v == d.min else f"{v}ll"
    if d is dtypes.u64:
        return f"{v}ull"
    if d is dtypes.u32:
        return f"{v}u"
    if d is dtypes.i32:
        return f"({v + 1} - 1)" if v == d.min else str(v)
    return f"({REGISTER[d]}){v}"
