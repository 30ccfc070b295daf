"""Pointwise ops in LLVM IR, by their names in the op table.

A function takes the builder, the node and its operands' names, and returns the result's name. No code traps: a divisor that may
be 0 (or -1 for the least dividend) is replaced by 1, since a Where may ignore the quotient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from morok.codegen.llvm import conversions
from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.conversions import WORK, narrow, widen
from morok.codegen.llvm.types import type_of
from morok.codegen.overflow_flags import amount_fits, cannot_wrap, may_be_zero, may_overflow
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp

Emit = Callable[..., str]
OPS: Final[dict[str, Emit]] = {}


def emits(name: str) -> Callable[[Emit], Emit]:
    """Register the function that renders the ops whose `OpDef.llvm` is `name`."""

    def register(f: Emit) -> Emit:
        OPS[name] = f
        return f

    return register


def in_float(b: Builder, d: DType, operands: tuple[str, ...], f: Callable[..., str]) -> str:
    """`f(b, base, lanes, *operands)` in the LLVM type in which `d` is computed, rounded to `d`."""
    scalar, lanes = d.scalar(), d.count
    base = WORK[scalar]
    if scalar is dtypes.bf16:
        return narrow(b, base, scalar, lanes, f(b, base, lanes, *[widen(b, scalar, lanes, x) for x in operands]))
    return f(b, base, lanes, *operands)


def in_double(b: Builder, d: DType, operands: tuple[str, ...], f: Callable[..., str]) -> str:
    """`f(b, lanes, *operands)` in double, rounded once to `d`."""
    scalar, lanes = d.scalar(), d.count
    base = WORK[scalar]
    wide = [b.convert("fpext", base, "double", lanes, widen(b, scalar, lanes, x)) for x in operands]
    return narrow(b, "double", scalar, lanes, f(b, lanes, *wide))


# Sums, products, signs.

_WRAPS: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul"}


def _arithmetic(name: str) -> None:
    floating = _WRAPS[name]

    def emit(b: Builder, u: UOp, x: str, y: str) -> str:
        d = u.dtype
        if d.is_float:
            return in_float(b, d, (x, y), lambda b, base, n, x, y: b.floating(floating, base, n, x, y))
        # with nsw LLVM can fold a sum into the address of a load
        op = name + (" nsw" if d.is_signed and cannot_wrap(u) else "")
        return b.emit(f"{op} {type_of(d)} {x}, {y}")

    OPS[name] = emit


for _name in _WRAPS:
    _arithmetic(_name)


@emits("neg")
def neg(b: Builder, u: UOp, x: str) -> str:
    d = u.dtype
    if d.scalar() is dtypes.bf16:
        return b.binary("xor", "i16", d.count, x, b.const("i16", d.count, -0x8000))
    if d.is_float:
        return b.emit(f"fneg {type_of(d)} {x}")
    return b.binary("sub", type_of(d.scalar()), d.count, b.const(type_of(d.scalar()), d.count, 0), x)


@emits("not")
def bit_not(b: Builder, u: UOp, x: str) -> str:
    d = u.dtype
    return b.binary("xor", type_of(d.scalar()), d.count, x, b.const(type_of(d.scalar()), d.count, "true" if d.is_bool else -1))


@emits("abs")
def absolute(b: Builder, u: UOp, x: str) -> str:
    d = u.dtype
    if d.is_float:
        return in_float(b, d, (x,), lambda b, base, n, x: b.intrinsic("fabs", base, n, x))
    return b.intrinsic_abs(type_of(d.scalar()), d.count, x) if d.is_signed else x


@emits("sign")
def sign(b: Builder, u: UOp, x: str) -> str:
    d = u.dtype
    if d.is_float:
        return in_float(b, d, (x,), _float_sign)
    base, n = type_of(d.scalar()), d.count
    zero = b.const(base, n, 0)
    positive = (
        b.convert("zext", "i1", base, n, b.compare("sgt" if d.is_signed else "ugt", base, n, x, zero)) if base != "i1" else x
    )
    if not d.is_signed:
        return positive
    negative = b.convert("zext", "i1", base, n, b.compare("slt", base, n, x, zero))
    return b.binary("sub", base, n, positive, negative)


def _zero(base: str) -> str:
    return "0xH0000" if base == "half" else "0.0"


def _one(base: str) -> str:
    return "0xH3C00" if base == "half" else "1.0"


def _float_sign(b: Builder, base: str, n: int, x: str) -> str:
    unit = b.intrinsic("copysign", base, n, b.const(base, n, _one(base)), x)
    ordered = b.compare("one", base, n, x, b.const(base, n, _zero(base)))
    return b.select(ordered, base, n, unit, x)


@emits("square")
def square(b: Builder, u: UOp, x: str) -> str:
    d = u.dtype
    if d.is_float:
        return in_float(b, d, (x,), lambda b, base, n, x: b.floating("fmul", base, n, x, x))
    return b.emit(f"mul {type_of(d)} {x}, {x}")


@emits("mulacc")
def mulacc(b: Builder, u: UOp, x: str, y: str, z: str) -> str:
    """x * y + z, rounded once: by the target's instruction, else in double with the sum rounded to odd."""
    d = u.dtype
    scalar, n = d.scalar(), d.count
    if not d.is_float:
        return b.emit(f"add {type_of(d)} {b.emit(f'mul {type_of(d)} {x}, {y}')}, {z}")
    if scalar is dtypes.f64 or (scalar is dtypes.f32 and b.target.fma) or (scalar is dtypes.f16 and b.target.half_fma):
        return b.intrinsic("fma", WORK[scalar], n, x, y, z, flags=b.fast)
    return in_double(b, d, (x, y, z), lambda b, n, x, y, z: conversions.sum_to_odd(b, n, b.binary("fmul", "double", n, x, y), z))


# Division.


def _safe_divisor(b: Builder, u: UOp, x: str, y: str) -> str:
    """The divisor, or 1 in lanes where the division would trap: by 0, and of the least number by -1."""
    d = u.dtype
    base, n = type_of(d.scalar()), d.count
    dividend, divisor = u.src
    trap = ""
    if may_be_zero(divisor):
        trap = b.compare("eq", base, n, y, b.const(base, n, 0))
    if may_overflow(dividend, divisor):
        least = b.compare("eq", base, n, x, b.const(base, n, int(d.min)))
        overflow = b.binary("and", "i1", n, least, b.compare("eq", base, n, y, b.const(base, n, -1)))
        trap = b.binary("or", "i1", n, trap, overflow) if trap else overflow
    return b.select(trap, base, n, b.const(base, n, 1), y) if trap else y


def _divide(b: Builder, u: UOp, x: str, y: str, op: str) -> str:
    return b.emit(f"{'s' if u.dtype.is_signed else 'u'}{op} {type_of(u.dtype)} {x}, {y}")


@emits("idiv")
def idiv(b: Builder, u: UOp, x: str, y: str) -> str:
    return _divide(b, u, x, _safe_divisor(b, u, x, y), "div")


@emits("mod")
def mod(b: Builder, u: UOp, x: str, y: str) -> str:
    return _divide(b, u, x, _safe_divisor(b, u, x, y), "rem")


def _rounds_down(b: Builder, u: UOp, remainder: str, y: str) -> str:
    """An i1, true if the truncated quotient is the floor plus one: the remainder is not zero, and its sign not the divisor's."""
    base, n = type_of(u.dtype.scalar()), u.dtype.count
    zero = b.const(base, n, 0)
    signs = b.compare("slt", base, n, b.binary("xor", base, n, remainder, y), zero)
    return b.binary("and", "i1", n, signs, b.compare("ne", base, n, remainder, zero))


@emits("floordiv")
def floordiv(b: Builder, u: UOp, x: str, y: str) -> str:
    y = _safe_divisor(b, u, x, y)
    quotient = _divide(b, u, x, y, "div")
    if not u.dtype.is_signed:
        return quotient
    base, n = type_of(u.dtype.scalar()), u.dtype.count
    down = _rounds_down(b, u, _divide(b, u, x, y, "rem"), y)
    return b.binary("add", base, n, quotient, b.convert("sext", "i1", base, n, down))


@emits("floormod")
def floormod(b: Builder, u: UOp, x: str, y: str) -> str:
    y = _safe_divisor(b, u, x, y)
    remainder = _divide(b, u, x, y, "rem")
    if not u.dtype.is_signed:
        return remainder
    base, n = type_of(u.dtype.scalar()), u.dtype.count
    down = _rounds_down(b, u, remainder, y)
    return b.binary("add", base, n, remainder, b.select(down, base, n, y, b.const(base, n, 0)))


@emits("fdiv")
def fdiv(b: Builder, u: UOp, x: str, y: str) -> str:
    return in_float(b, u.dtype, (x, y), lambda b, base, n, x, y: b.floating("fdiv", base, n, x, y))


@emits("reciprocal")
def reciprocal(b: Builder, u: UOp, x: str) -> str:
    return in_float(b, u.dtype, (x,), lambda b, base, n, x: b.floating("fdiv", base, n, b.const(base, n, _one(base)), x))


@emits("sqrt")
def sqrt(b: Builder, u: UOp, x: str) -> str:
    return in_float(b, u.dtype, (x,), lambda b, base, n, x: b.intrinsic("sqrt", base, n, x))


# Rounding to integers, extremes.


def _rounding(name: str, intrinsic: str) -> None:
    def emit(b: Builder, u: UOp, x: str) -> str:
        if not u.dtype.is_float:
            return x
        return in_float(b, u.dtype, (x,), lambda b, base, n, x: b.intrinsic(intrinsic, base, n, x))

    OPS[name] = emit


# `rint` rounds in the current mode, half to even; unlike `roundeven`, every libm has it
for _name, _intrinsic in (("trunc", "trunc"), ("floor", "floor"), ("ceil", "ceil"), ("round", "rint")):
    _rounding(_name, _intrinsic)


def _extreme(name: str, floating: str, letters: str, beyond: str, wrong_zero: float) -> None:
    """Register Max or Min. One comparison suffices if the second operand is a constant, neither NaN nor the zero `wrong_zero`."""

    def emit(b: Builder, u: UOp, x: str, y: str) -> str:
        d = u.dtype
        if not d.is_float:
            return b.intrinsic(("s" if d.is_signed else "u") + letters, type_of(d.scalar()), d.count, x, y)
        c = u.src[1]
        if c.op is Op.Const and c.arg == c.arg and not (c.arg == 0 and math.copysign(1.0, c.arg) == wrong_zero):
            return in_float(b, d, (x, y), lambda b, base, n, x, y: b.select(b.compare(beyond, base, n, x, y), base, n, y, x))
        return in_float(b, d, (x, y), lambda b, base, n, x, y: _float_extreme(b, floating, base, n, x, y))

    OPS[name] = emit


_MAJORITY: Final = 0xE8  # of three bits; with a 1 it is the or of the other two, with a 0 the and


def _float_extreme(b: Builder, name: str, base: str, n: int, x: str, y: str) -> str:
    """The IEEE maximum or minimum of vectors.

    x86's instruction returns its second operand for NaN and for two zeros. It is used in both orders: the results differ in these
    cases alone, where they are the two operands. The or of their bits is then a NaN if one is NaN. The sign of a zero is the and
    of the signs for the maximum, the or for the minimum.
    """
    if b.target.ieee_extremes or n == 1 or base not in ("float", "double"):
        return b.intrinsic(name, base, n, x, y)
    beyond = "ogt" if name == "maximum" else "olt"
    bits = {"float": "i32", "double": "i64"}[base]
    first, second = (b.convert("bitcast", base, bits, n, _picked(b, beyond, base, n, *pair)) for pair in ((x, y), (y, x)))
    if name == "minimum":
        return b.convert("bitcast", bits, base, n, b.binary("or", bits, n, first, second))
    unsigned = b.const(bits, n, 2 ** (int(bits[1:]) - 1) - 1)
    if b.target.avx512 and n * int(bits[1:]) == 512:
        return b.convert("bitcast", bits, base, n, b.ternary_logic(n, _MAJORITY, (first, second, unsigned)))
    signs = b.binary("and", bits, n, first, b.binary("or", bits, n, second, unsigned))
    return b.convert("bitcast", bits, base, n, b.binary("or", bits, n, signs, b.binary("and", bits, n, second, unsigned)))


def _picked(b: Builder, beyond: str, base: str, n: int, x: str, y: str) -> str:
    """x in lanes where the comparison `beyond` holds of (x, y), else y."""
    return b.select(b.compare(beyond, base, n, x, y), base, n, x, y)


# x <= +0 ? +0 : x gives +0 for -0 and NaN for NaN; against -0 it would turn +0 into -0
_extreme("max", "maximum", "max", "ole", -1.0)
_extreme("min", "minimum", "min", "oge", 1.0)


# Bits.


def _bitwise(name: str) -> None:
    def emit(b: Builder, u: UOp, x: str, y: str) -> str:
        return b.emit(f"{name} {type_of(u.dtype)} {x}, {y}")

    OPS[name] = emit


for _name in ("and", "or", "xor"):
    _bitwise(_name)


def _amount(b: Builder, u: UOp, y: str) -> str:
    """The amount of a shift, modulo the width unless it is in bounds: other shifts are poison in LLVM, and so is each use of
    them, even in a connective of bools that ignores the value.
    """
    base, n = type_of(u.dtype.scalar()), u.dtype.count
    return y if amount_fits(u) else b.binary("and", base, n, y, b.const(base, n, u.dtype.scalar().bits - 1))


@emits("shl")
def shl(b: Builder, u: UOp, x: str, y: str) -> str:
    return b.emit(f"shl {type_of(u.dtype)} {x}, {_amount(b, u, y)}")


@emits("shr")
def shr(b: Builder, u: UOp, x: str, y: str) -> str:
    return b.emit(f"{'ashr' if u.dtype.is_signed else 'lshr'} {type_of(u.dtype)} {x}, {_amount(b, u, y)}")


# Comparisons and choice.


def _comparison(name: str, floating: str, signed: str, unsigned: str) -> None:
    def emit(b: Builder, u: UOp, x: str, y: str) -> str:
        d = u.src[0].dtype
        scalar, n = d.scalar(), d.count
        if d.is_float:
            return b.compare(floating, WORK[scalar], n, widen(b, scalar, n, x), widen(b, scalar, n, y))
        return b.compare(signed if d.is_signed else unsigned, type_of(scalar), n, x, y)

    OPS[name] = emit


for _row in (
    ("lt", "olt", "slt", "ult"),
    ("le", "ole", "sle", "ule"),
    ("gt", "ogt", "sgt", "ugt"),
    ("ge", "oge", "sge", "uge"),
    ("eq", "oeq", "eq", "eq"),
    ("ne", "une", "ne", "ne"),
):
    _comparison(*_row)


@emits("where")
def where(b: Builder, u: UOp, c: str, t: str, f: str) -> str:
    return b.select(c, type_of(u.dtype.scalar()), u.dtype.count, t, f, u.src[0].dtype.count)


@emits("cast")
def cast(b: Builder, u: UOp, x: str) -> str:
    return conversions.cast(b, u.src[0].dtype, u.dtype, x)


@emits("bitcast")
def bitcast(b: Builder, u: UOp, x: str) -> str:
    return conversions.bitcast(b, u.src[0].dtype, u.dtype, x)
