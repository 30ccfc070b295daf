"""Conversions between dtypes in LLVM IR.

Rounding to a narrow format through a wider one rounds twice. Where that could change the result, the first step rounds to odd:
its last bit is set if anything was lost, so that the second rounding decides as if it saw the exact value (Boldo and Melquiond,
Emulation of FMA and correctly rounded sums, 2008).
"""

from __future__ import annotations

from typing import Final

from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.types import suffix, type_of, vector
from morok.ir.dtype import DType, dtypes

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
        bits = b.convert("zext", "i16", "i32", lanes, x)
        return b.convert("bitcast", "i32", "float", lanes, b.binary("shl", "i32", lanes, bits, b.const("i32", lanes, 16)))
    if d is dtypes.f8e5m2:
        bits = b.convert("zext", "i8", "i16", lanes, x)
        return b.convert("bitcast", "i16", "half", lanes, b.binary("shl", "i16", lanes, bits, b.const("i16", lanes, 8)))
    if d is dtypes.f8e4m3:
        return _widen_e4m3(b, lanes, x)
    return x


def _widen_e4m3(b: Builder, lanes: int, x: str) -> str:
    """An f8e4m3 as a half: its bits, read as a half, are the value times 2^-8, since the exponent bias is 15 rather than 7."""
    wide = b.convert("zext", "i8", "i16", lanes, x)
    magnitude = b.binary("and", "i16", lanes, wide, b.const("i16", lanes, 0x7F))
    sign = b.binary(
        "shl", "i16", lanes, b.binary("and", "i16", lanes, wide, b.const("i16", lanes, 0x80)), b.const("i16", lanes, 8)
    )
    bits = b.binary("or", "i16", lanes, sign, b.binary("shl", "i16", lanes, magnitude, b.const("i16", lanes, 7)))
    half = b.convert("bitcast", "i16", "half", lanes, bits)
    scaled = b.binary("fmul", "half", lanes, half, b.const("half", lanes, "0xH5C00"))
    nan = b.compare("eq", "i16", lanes, magnitude, b.const("i16", lanes, 0x7F))
    return b.select(nan, "half", lanes, b.const("half", lanes, "0xH7E00"), scaled)


def truncate_to_odd(b: Builder, source: str, target: str, lanes: int, x: str, rest: str | None = None) -> str:
    """The float `x` (+ `rest`, smaller than its last bit) in the narrower format `target`, rounded to odd."""
    near = b.convert("fptrunc", source, target, lanes, x)
    lost = b.binary("fsub", source, lanes, x, b.convert("fpext", target, source, lanes, near))
    if rest is not None:
        lost = b.binary("fadd", source, lanes, lost, rest)
    return _step_to_odd(b, source, target, lanes, near, lost)


def _step_to_odd(b: Builder, source: str, target: str, lanes: int, near: str, lost: str) -> str:
    """`near`, moved one step towards `lost` (its error, of type `source`) if that is not zero and `near` is even."""
    integer = INTEGER_OF[target]
    zero = b.const(source, lanes, "0.0" if source != "half" else "0xH0000")
    bits = b.convert("bitcast", target, integer, lanes, near)
    last = b.binary("and", integer, lanes, bits, b.const(integer, lanes, 1))
    even = b.compare("eq", integer, lanes, last, b.const(integer, lanes, 0))
    inexact = b.compare("one", source, lanes, lost, zero)
    below = b.compare("olt", source, lanes, lost, zero)
    negative = b.compare("slt", integer, lanes, bits, b.const(integer, lanes, 0))
    inward = b.binary("xor", "i1", lanes, below, negative)
    step = b.select(inward, integer, lanes, b.const(integer, lanes, -1), b.const(integer, lanes, 1))
    moved = b.binary("add", integer, lanes, bits, step)
    move = b.binary("and", "i1", lanes, even, inexact)
    return b.convert("bitcast", integer, target, lanes, b.select(move, integer, lanes, moved, bits))


def sum_to_odd(b: Builder, lanes: int, x: str, y: str) -> str:
    """x + y in double, rounded to odd."""
    total, lost = _two_sum(b, lanes, x, y)
    return _step_to_odd(b, "double", "double", lanes, total, lost)


def _two_sum(b: Builder, lanes: int, x: str, y: str) -> tuple[str, str]:
    """x + y in double and its rounding error (Knuth)."""
    s = b.binary("fadd", "double", lanes, x, y)
    v = b.binary("fsub", "double", lanes, s, x)
    of_x = b.binary("fsub", "double", lanes, x, b.binary("fsub", "double", lanes, s, v))
    return s, b.binary("fadd", "double", lanes, of_x, b.binary("fsub", "double", lanes, y, v))


def narrow(b: Builder, source: str, d: DType, lanes: int, x: str) -> str:
    """The float `x` of type `source` rounded once to dtype `d`."""
    target = WORK[d]
    if d is dtypes.bf16:
        if source == "double":
            x = truncate_to_odd(b, "double", "float", lanes, x)
        return _round_bf16(b, lanes, b.convert("fpext", "half", "float", lanes, x) if source == "half" else x)
    if d.bits == 8:
        return _round_f8(b, source, d, lanes, x)
    if source == "double" and target == "half":
        x, source = truncate_to_odd(b, "double", "float", lanes, x), "float"
    if source == target:
        return x
    return b.convert("fptrunc" if _WIDTH[source] > _WIDTH[target] else "fpext", source, target, lanes, x)


_WIDTH: Final = {"half": 16, "float": 32, "double": 64}


def _round_bf16(b: Builder, lanes: int, x: str) -> str:
    """A float rounded to bf16, the upper half of its bits, to nearest even; NaN separately, since the carry could make it
    infinite.
    """
    bits = b.convert("bitcast", "float", "i32", lanes, x)
    last = b.binary(
        "and", "i32", lanes, b.binary("lshr", "i32", lanes, bits, b.const("i32", lanes, 16)), b.const("i32", lanes, 1)
    )
    up = b.binary("add", "i32", lanes, b.binary("add", "i32", lanes, bits, b.const("i32", lanes, 0x7FFF)), last)
    top = b.convert("trunc", "i32", "i16", lanes, b.binary("lshr", "i32", lanes, up, b.const("i32", lanes, 16)))
    nan = b.compare("uno", "float", lanes, x, x)
    return b.select(nan, "i16", lanes, b.const("i16", lanes, 0x7FC0), top)


def _round_f8(b: Builder, source: str, d: DType, lanes: int, x: str) -> str:
    """A float rounded to an 8-bit float, via a half rounded to odd."""
    if source == "double":
        x = truncate_to_odd(b, "double", "float", lanes, x)
    elif source == "half":
        x = b.convert("fpext", "half", "float", lanes, x)
    if d is dtypes.f8e4m3:  # times 2^-8: a half has exponent bias 15 rather than 7
        x = b.binary("fmul", "float", lanes, x, b.const("float", lanes, "0x3F70000000000000"))
    dropped = 7 if d is dtypes.f8e4m3 else 8
    half = b.convert("bitcast", "half", "i16", lanes, truncate_to_odd(b, "float", "half", lanes, x))
    magnitude = b.binary("and", "i16", lanes, half, b.const("i16", lanes, 0x7FFF))
    last = b.binary(
        "and", "i16", lanes, b.binary("lshr", "i16", lanes, magnitude, b.const("i16", lanes, dropped)), b.const("i16", lanes, 1)
    )
    up = b.binary(
        "add", "i16", lanes, b.binary("add", "i16", lanes, magnitude, b.const("i16", lanes, (1 << dropped - 1) - 1)), last
    )
    top = b.binary("lshr", "i16", lanes, up, b.const("i16", lanes, dropped))
    if d is dtypes.f8e4m3:  # it has no infinity: too large values become NaN
        top = b.intrinsic("umin", "i16", lanes, top, b.const("i16", lanes, 0x7F))
    nan = b.compare("uno", "float", lanes, x, x)
    top = b.select(nan, "i16", lanes, b.const("i16", lanes, 0x7F if d is dtypes.f8e4m3 else 0x7E), top)
    sign = b.binary(
        "and", "i16", lanes, b.binary("lshr", "i16", lanes, half, b.const("i16", lanes, 8)), b.const("i16", lanes, 0x80)
    )
    return b.convert("trunc", "i16", "i8", lanes, b.binary("or", "i16", lanes, sign, top))


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
        return b.compare("une", base, lanes, x, b.const(base, lanes, "0.0" if base != "half" else "0xH0000"))
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
            x = _sticky(b, s, lanes, x)
        return narrow(b, "double", t, lanes, b.convert(op, source, "double", lanes, x))
    if t.bits <= 16:  # exact in a float if the result is finite, below 2^16
        return narrow(b, "float", t, lanes, b.convert(op, source, "float", lanes, x))
    return b.convert(op, source, type_of(t), lanes, x)


def _sticky(b: Builder, s: DType, lanes: int, x: str) -> str:
    """`x`; if its magnitude is above 2^53, with its last 12 bits replaced by a sticky bit (1 if any of them is 1)."""
    low = b.binary("and", "i64", lanes, x, b.const("i64", lanes, 0xFFF))
    high = b.binary("and", "i64", lanes, x, b.const("i64", lanes, -0x1000))
    some = b.compare("ne", "i64", lanes, low, b.const("i64", lanes, 0))
    bit = b.select(some, "i64", lanes, b.const("i64", lanes, 0x800), b.const("i64", lanes, 0))
    short = b.binary("or", "i64", lanes, high, bit)
    magnitude = b.intrinsic_abs("i64", lanes, x) if s.is_signed else x
    large = b.compare("ugt", "i64", lanes, magnitude, b.const("i64", lanes, 1 << 53))
    return b.select(large, "i64", lanes, short, x)


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
