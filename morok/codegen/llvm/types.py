"""LLVM's types and constants.

In registers a bool is i1 and a bf16 its bits in an i16 (LLVM's own bfloat calls library functions that may not exist); in memory
a bool is a byte.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp

_REGISTER: Final = {
    "bool": "i1",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
    "u8": "i8",
    "u16": "i16",
    "u32": "i32",
    "u64": "i64",
    "f8e4m3": "i8",
    "f8e5m2": "i8",
    "f16": "half",
    "bf16": "i16",
    "f32": "float",
    "f64": "double",
}
# The type in an intrinsic's name.
_SUFFIX: Final = {
    "half": "f16", "float": "f32", "double": "f64", "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64",
    "i128": "i128",
}  # fmt: skip

_types: dict[DType, str] = {}


def vector(base: str, lanes: int) -> str:
    return base if lanes == 1 else f"<{lanes} x {base}>"


def type_of(d: DType) -> str:
    """The LLVM type of a value of `d` in a register."""
    if d.is_ptr:  # not cached: there is one for every size of a buffer
        return "ptr"
    found = _types.get(d)
    if found is None:
        found = _types[d] = vector(_REGISTER[d.scalar().name], d.count)
    return found


def memory_type(d: DType) -> str:
    """The LLVM type of a value of `d` in memory."""
    return vector("i8", d.count) if d.is_bool else type_of(d)


def suffix(base: str, lanes: int) -> str:
    """The type in an intrinsic's name, such as "v4f32"."""
    return _SUFFIX[base] if lanes == 1 else f"v{lanes}{_SUFFIX[base]}"


def _bf16_bits(v: float) -> int:
    if v != v:
        return 0x7FC0
    # constants are rounded already: the lower bits are zero
    return int(struct.unpack("<I", struct.pack("<f", v))[0]) >> 16


def _f8_bits(d: DType, v: float) -> int:
    """The bits of `v`, a value of the 8-bit float dtype `d`."""
    if d is dtypes.f8e5m2:  # the upper half of an f16
        return 0x7E if v != v else int(struct.unpack("<H", struct.pack("<e", v))[0]) >> 8
    if v != v:
        return 0x7F
    half = int(struct.unpack("<H", struct.pack("<e", v / 256.0))[0])  # exponent bias 15 rather than 7
    return (half >> 8 & 0x80) | (half >> 7 & 0x7F)


def literal(d: DType, v: Any) -> str:
    """The LLVM text of the scalar constant `v` of dtype `d`."""
    if d.is_bool:
        return "true" if v else "false"
    if d.is_float:
        if d is dtypes.f16:
            return "0xH7E00" if v != v else f"0xH{struct.unpack('<H', struct.pack('<e', v))[0]:04X}"
        if d is dtypes.bf16:
            return str(_bf16_bits(v))
        if d.bits == 8:
            return str(_f8_bits(d, v))
        return "0x7FF8000000000000" if v != v else f"0x{struct.unpack('<Q', struct.pack('<d', v))[0]:016X}"
    return str(v)


def splat(base: str, lanes: int, text: str) -> str:
    """A vector constant with `text`, of type `base`, in every lane."""
    return text if lanes == 1 else f"splat ({base} {text})"


def constant(u: UOp) -> str:
    """The LLVM text of a Const or VConst."""
    d = u.dtype
    scalar = d.scalar()
    if u.op is Op.VConst:
        base = type_of(scalar)
        return "<" + ", ".join(f"{base} {literal(scalar, v)}" for v in u.arg) + ">"
    text = literal(scalar, u.arg)
    return splat(type_of(scalar), d.count, text)
