"""Conversions between dtypes in LLVM IR.

Rounding to a narrow format through a wider one rounds twice. Where that could change the result, the first step rounds to odd:
its last bit is set if anything was lost, so that the second rounding decides as if it saw the exact value (Boldo and Melquiond,
Emulation of FMA and correctly rounded sums, 2008).
"""

from __future__ import annotations

from typing import Final

from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.lane_arithmetic import Lanes
from morok.codegen.llvm.types import suffix, type_of, vector
from morok.ir.dtype import DType, dtypes

ZERO: Final = {"half": "0xH0000", "float": "0.0", "double": "0.0"}
ONE: Final = {"half": "0xH3C00", "float": "1.0", "double": "1.0"}
INTEGER_OF: Final = {"half": "i16", "float": "i32", "double": "i64"}
WORK: Final = {
    dtypes.f16: "half",
    dtypes.bf16: "float",
    dtypes.f32: "float",
    dtypes.f64: "double",
    dtypes.f8e4m3: "half",
    dtypes.f8e5m2: "half",
}


def widen(b: Builder, d: DType, lanes: int, x: str) -> str:
    """A float of dtype `d`, converted exactly to WORK[d]."""
    if d is dtypes.bf16:
        return (Lanes(b, x, "i16", lanes).convert("zext", "i32") << 16).bits("float").name
    if d is dtypes.f8e5m2:
        return (Lanes(b, x, "i8", lanes).convert("zext", "i16") << 8).bits("half").name
    if d is dtypes.f8e4m3:
        return _widen_e4m3(Lanes(b, x, "i8", lanes)).name
    return x


def _widen_e4m3(x: Lanes) -> Lanes:
    """An f8e4m3 as a half: its bits, read as a half, are the value times 2^-8, since the exponent bias is 15 rather than 7."""
    wide = x.convert("zext", "i16")
    magnitude = wide & 0x7F
    sign = (wide & 0x80) << 8
    scaled = (sign | magnitude << 7).bits("half") * "0xH5C00"
    return magnitude.compare("eq", 0x7F).select(scaled.constant("0xH7E00"), scaled)


def truncate_to_odd(x: Lanes, target: str) -> Lanes:
    """The float `x` in the narrower format `target`, rounded to odd."""
    near = x.convert("fptrunc", target)
    return _step_to_odd(near, x - near.convert("fpext", x.base))


def _step_to_odd(near: Lanes, lost: Lanes) -> Lanes:
    """`near`, moved one step towards `lost`, its error, if that is not zero and `near` is even."""
    bits = near.bits(INTEGER_OF[near.base])
    even = (bits & 1).compare("eq", 0)
    inexact = lost.compare("one", ZERO[lost.base])
    inward = lost.compare("olt", ZERO[lost.base]) ^ bits.compare("slt", 0)
    moved = bits + inward.select(bits.constant(-1), 1)
    return (even & inexact).select(moved, bits).bits(near.base)


def sum_to_odd(x: Lanes, y: Lanes) -> Lanes:
    """x + y in double, rounded to odd."""
    return _step_to_odd(*_two_sum(x, y))


def _two_sum(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    """x + y in double and its rounding error (Knuth)."""
    total = x + y
    of_y = total - x
    of_x = x - (total - of_y)
    return total, of_x + (y - of_y)


def narrow(b: Builder, source: str, d: DType, lanes: int, x: str) -> str:
    """The float `x` of type `source` rounded once to dtype `d`."""
    value = Lanes(b, x, source, lanes)
    if d is dtypes.bf16:
        return _round_bf16(_as_float(value)).name
    if d.bits == 8:
        return _round_f8(_as_float(value), d).name
    if source == "double" and WORK[d] == "half":
        value = truncate_to_odd(value, "float")
    return value.convert("fptrunc" if _WIDTH[value.base] > _WIDTH[WORK[d]] else "fpext", WORK[d]).name


_WIDTH: Final = {"half": 16, "float": 32, "double": 64}


def _as_float(x: Lanes) -> Lanes:
    """`x` in the type float; a double rounded to odd."""
    return truncate_to_odd(x, "float") if x.base == "double" else x.convert("fpext", "float")


def _round_bf16(x: Lanes) -> Lanes:
    """A float rounded to bf16, the upper half of its bits, to nearest even; NaN separately, since the carry could make it
    infinite.
    """
    bits = x.bits("i32")
    last = bits >> 16 & 1
    top = (bits + 0x7FFF + last >> 16).convert("trunc", "i16")
    return x.compare("uno", x).select(top.constant(0x7FC0), top)


def _round_f8(x: Lanes, d: DType) -> Lanes:
    """A float rounded to an 8-bit float, via a half rounded to odd."""
    is_e4m3 = d is dtypes.f8e4m3
    if is_e4m3:  # times 2^-8: a half has exponent bias 15 rather than 7
        x = x * "0x3F70000000000000"
    dropped = 7 if is_e4m3 else 8
    half = truncate_to_odd(x, "half").bits("i16")
    magnitude = half & 0x7FFF
    last = magnitude >> dropped & 1
    top = magnitude + ((1 << dropped - 1) - 1) + last >> dropped
    if is_e4m3:  # it has no infinity: too large values become NaN
        top = top.intrinsic("umin", 0x7F)
    top = x.compare("uno", x).select(top.constant(0x7F if is_e4m3 else 0x7E), top)
    return (half >> 8 & 0x80 | top).convert("trunc", "i8")


def cast(b: Builder, source: DType, target: DType, x: str) -> str:
    """The Cast of `x` from `source` to `target`, lane by lane (ops.md)."""
    lanes = source.count
    s, t = source.scalar(), target.scalar()
    if s is t:
        return x
    if s.is_float:
        if t.is_float:
            return narrow(b, WORK[s], t, lanes, widen(b, s, lanes, x))
        return _float_to_integer(b, s, t, lanes, x)
    if t.is_float:
        return _integer_to_float(b, s, t, lanes, x)
    return _integer_to_integer(b, s, t, lanes, x)


def _float_to_integer(b: Builder, s: DType, t: DType, lanes: int, x: str) -> str:
    """A float truncated to an integer; values out of range saturate and NaN gives 0, where LLVM's plain conversion is poison."""
    base = WORK[s]
    x = widen(b, s, lanes, x)
    if t.is_bool:
        return b.compare("une", base, lanes, x, b.const(base, lanes, ZERO[base]))
    if base == "half":
        base, x = "float", b.convert("fpext", "half", "float", lanes, x)
    integer = type_of(t)
    name = "fptosi" if t.is_signed else "fptoui"
    function = f"@llvm.{name}.sat.{suffix(integer, lanes)}.{suffix(base, lanes)}"
    return b.call(function, vector(integer, lanes), [(vector(base, lanes), x)])


def _integer_to_float(b: Builder, s: DType, t: DType, lanes: int, x: str) -> str:
    source = type_of(s)
    op = "sitofp" if s.is_signed else "uitofp"
    if t.bits <= 16 and t is not dtypes.f16 and s.bits > 16:
        # targets of at most 8 bits of precision: 32-bit integers are exact in a double, 64-bit ones keep 53 leading bits, the
        # last of which is sticky
        if s.bits == 64:
            x = _sticky(Lanes(b, x, source, lanes), s.is_signed).name
        return narrow(b, "double", t, lanes, b.convert(op, source, "double", lanes, x))
    if t.bits <= 16:  # exact in a float if the result is finite, below 2^16
        return narrow(b, "float", t, lanes, b.convert(op, source, "float", lanes, x))
    return b.convert(op, source, type_of(t), lanes, x)


def _sticky(x: Lanes, is_signed: bool) -> Lanes:
    """`x`; if its magnitude is above 2^53, with its last 12 bits replaced by a sticky bit (1 if any of them is 1)."""
    low, high = x & 0xFFF, x & -0x1000
    short = high | low.compare("ne", 0).select(x.constant(0x800), 0)
    magnitude = x.made(x.b.intrinsic_abs("i64", x.lanes, x.name)) if is_signed else x
    return magnitude.compare("ugt", 1 << 53).select(short, x)


def _integer_to_integer(b: Builder, s: DType, t: DType, lanes: int, x: str) -> str:
    source, target = type_of(s), type_of(t)
    if t.is_bool:
        return b.compare("ne", source, lanes, x, b.const(source, lanes, 0))
    if source == target:
        return x
    if s.is_bool or t.bits > s.bits:
        return b.convert("sext" if s.is_signed else "zext", source, target, lanes, x)
    return b.convert("trunc", source, target, lanes, x)


def bitcast(b: Builder, source: DType, target: DType, x: str) -> str:
    """The value of `target` with the bits of `x`, also for another number of lanes; a bool has the bits of a byte, 0 or 1."""
    if source.is_bool and target.is_bool:
        return x
    base = type_of(source.scalar())
    if source.is_bool:
        x, base = b.convert("zext", "i1", "i8", source.count, x), "i8"
    if target.is_bool:
        x = _reinterpret(b, vector(base, source.count), vector("i8", target.count), x)
        return b.compare("ne", "i8", target.count, x, b.const("i8", target.count, 0))
    return _reinterpret(b, vector(base, source.count), type_of(target), x)


def _reinterpret(b: Builder, source: str, target: str, x: str) -> str:
    return x if source == target else b.emit(f"bitcast {source} {x} to {target}")
