"""Pointwise ops in LLVM IR, by their names in the op table.

A function takes the builder, the node and its operands' names, and returns the result's name. No code traps: a divisor that may
be 0 (or -1 for the least dividend) is replaced by 1, since a Where may ignore the quotient.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import Final

from morok.codegen.llvm import conversions
from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.conversions import INTEGER_OF, ONE, WORK, ZERO, narrow, sum_to_odd, widen
from morok.codegen.llvm.lane_arithmetic import Lanes
from morok.codegen.llvm.types import type_of
from morok.codegen.overflow_flags import amount_fits, cannot_wrap, may_be_zero, may_overflow
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp

Emit = Callable[..., str]
OPS: dict[str, Emit] = {}


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


def in_double(b: Builder, d: DType, operands: tuple[str, ...], f: Callable[..., Lanes]) -> str:
    """`f(*operands)` in double, rounded once to `d`."""
    scalar, lanes = d.scalar(), d.count
    wide = [Lanes(b, widen(b, scalar, lanes, x), WORK[scalar], lanes).convert("fpext", "double") for x in operands]
    return narrow(b, "double", scalar, lanes, f(*wide).name)


def lanes_of(b: Builder, d: DType, x: str) -> Lanes:
    """The value `x` of the integer dtype `d`."""
    return Lanes(b, x, type_of(d.scalar()), d.count)


# Sums, products, signs.


def _arithmetic(integer: str, b: Builder, u: UOp, x: str, y: str) -> str:
    d = u.dtype
    if d.is_float:
        return in_float(b, d, (x, y), lambda b, base, n, x, y: b.floating(f"f{integer}", base, n, x, y))
    # with nsw LLVM can fold a sum into the address of a load
    op = integer + (" nsw" if d.is_signed and cannot_wrap(u) else "")
    return b.emit(f"{op} {type_of(d)} {x}, {y}")


OPS |= {name: partial(_arithmetic, name) for name in ("add", "sub", "mul")}


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
    return b.binary(
        "xor", type_of(d.scalar()), d.count, x, b.const(type_of(d.scalar()), d.count, "true" if d.is_bool else -1)
    )


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
    if d.is_bool:
        return x
    value = lanes_of(b, d, x)
    positive = value.compare("sgt" if d.is_signed else "ugt", 0).convert("zext", value.base)
    return (positive - value.compare("slt", 0).convert("zext", value.base)).name if d.is_signed else positive.name


def _float_sign(b: Builder, base: str, n: int, x: str) -> str:
    value = Lanes(b, x, base, n)
    unit = value.constant(ONE[base]).intrinsic("copysign", value)
    return value.compare("one", ZERO[base]).select(unit, value).name


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
    return in_double(b, d, (x, y, z), lambda x, y, z: sum_to_odd(x * y, z))


# Division.


def _safe_divisor(b: Builder, u: UOp, x: str, y: str) -> str:
    """The divisor, or 1 in lanes where the division would trap: by 0, and of the least number by -1."""
    dividend, divisor = lanes_of(b, u.dtype, x), lanes_of(b, u.dtype, y)
    traps: list[Lanes] = []
    if may_be_zero(u.src[1]):
        traps.append(divisor.compare("eq", 0))
    if may_overflow(*u.src):
        traps.append(dividend.compare("eq", int(u.dtype.min)) & divisor.compare("eq", -1))
    return reduce(operator.or_, traps).select(divisor.constant(1), divisor).name if traps else y


def _divide(b: Builder, u: UOp, x: str, y: str, op: str) -> str:
    return b.emit(f"{'s' if u.dtype.is_signed else 'u'}{op} {type_of(u.dtype)} {x}, {y}")


@emits("idiv")
def idiv(b: Builder, u: UOp, x: str, y: str) -> str:
    return _divide(b, u, x, _safe_divisor(b, u, x, y), "div")


@emits("mod")
def mod(b: Builder, u: UOp, x: str, y: str) -> str:
    return _divide(b, u, x, _safe_divisor(b, u, x, y), "rem")


def _rounds_down(remainder: Lanes, divisor: Lanes) -> Lanes:
    """True, as i1, if the truncated quotient is the floor plus one: the remainder is not zero, and its sign not the divisor's."""
    return (remainder ^ divisor).compare("slt", 0) & remainder.compare("ne", 0)


@emits("floordiv")
def floordiv(b: Builder, u: UOp, x: str, y: str) -> str:
    y = _safe_divisor(b, u, x, y)
    quotient = _divide(b, u, x, y, "div")
    if not u.dtype.is_signed:
        return quotient
    truncated = lanes_of(b, u.dtype, quotient)
    down = _rounds_down(lanes_of(b, u.dtype, _divide(b, u, x, y, "rem")), lanes_of(b, u.dtype, y))
    return (truncated + down.convert("sext", truncated.base)).name


@emits("floormod")
def floormod(b: Builder, u: UOp, x: str, y: str) -> str:
    y = _safe_divisor(b, u, x, y)
    remainder, divisor = lanes_of(b, u.dtype, _divide(b, u, x, y, "rem")), lanes_of(b, u.dtype, y)
    return (
        (remainder + _rounds_down(remainder, divisor).select(divisor, 0)).name if u.dtype.is_signed else remainder.name
    )


@emits("fdiv")
def fdiv(b: Builder, u: UOp, x: str, y: str) -> str:
    return in_float(b, u.dtype, (x, y), lambda b, base, n, x, y: b.floating("fdiv", base, n, x, y))


@emits("reciprocal")
def reciprocal(b: Builder, u: UOp, x: str) -> str:
    return in_float(b, u.dtype, (x,), lambda b, base, n, x: b.floating("fdiv", base, n, b.const(base, n, ONE[base]), x))


# Roots, rounding to integers, extremes.


def _function(intrinsic: str, b: Builder, u: UOp, x: str) -> str:
    """A float op that is an intrinsic; it is the identity on integers."""
    if not u.dtype.is_float:
        return x
    return in_float(b, u.dtype, (x,), lambda b, base, n, x: b.intrinsic(intrinsic, base, n, x))


OPS |= {name: partial(_function, name) for name in ("sqrt", "trunc", "floor", "ceil")}
OPS["round"] = partial(_function, "rint")  # in the current mode, half to even; unlike `roundeven`, every libm has it


def _extreme(floating: str, letters: str, beyond: str, wrong_zero: float, b: Builder, u: UOp, x: str, y: str) -> str:
    """Max or Min. One comparison suffices if the second operand is a constant, neither NaN nor the zero `wrong_zero`."""
    d = u.dtype
    if not d.is_float:
        return b.intrinsic(("s" if d.is_signed else "u") + letters, type_of(d.scalar()), d.count, x, y)
    c = u.src[1]
    if c.op is Op.Const and c.arg == c.arg and not (c.arg == 0 and math.copysign(1.0, c.arg) == wrong_zero):
        return in_float(
            b, d, (x, y), lambda b, base, n, x, y: b.select(b.compare(beyond, base, n, x, y), base, n, y, x)
        )
    return in_float(b, d, (x, y), lambda b, base, n, x, y: _float_extreme(b, floating, base, n, x, y))


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
    integer = INTEGER_OF[base]
    one, other = Lanes(b, x, base, n), Lanes(b, y, base, n)
    first, second = (p.compare(beyond, q).select(p, q).bits(integer) for p, q in ((one, other), (other, one)))
    if name == "minimum":
        return (first | second).bits(base).name
    width = int(integer[1:])
    unsigned = first.constant(2 ** (width - 1) - 1)
    if b.target.avx512 and n * width == 512:
        return first.made(b.ternary_logic(n, _MAJORITY, (first.name, second.name, unsigned.name))).bits(base).name
    return (first & (second | unsigned) | second & unsigned).bits(base).name


# x <= +0 ? +0 : x gives +0 for -0 and NaN for NaN; against -0 it would turn +0 into -0
OPS["max"] = partial(_extreme, "maximum", "max", "ole", -1.0)
OPS["min"] = partial(_extreme, "minimum", "min", "oge", 1.0)


# Bits.


def _bitwise(name: str, b: Builder, u: UOp, x: str, y: str) -> str:
    return b.emit(f"{name} {type_of(u.dtype)} {x}, {y}")


OPS |= {name: partial(_bitwise, name) for name in ("and", "or", "xor")}


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


def _comparison(floating: str, signed: str, unsigned: str, b: Builder, u: UOp, x: str, y: str) -> str:
    d = u.src[0].dtype
    scalar, n = d.scalar(), d.count
    if d.is_float:
        return b.compare(floating, WORK[scalar], n, widen(b, scalar, n, x), widen(b, scalar, n, y))
    return b.compare(signed if d.is_signed else unsigned, type_of(scalar), n, x, y)


OPS |= {name: partial(_comparison, f"o{name}", f"s{name}", f"u{name}") for name in ("lt", "le", "gt", "ge")}
OPS["eq"] = partial(_comparison, "oeq", "eq", "eq")
OPS["ne"] = partial(_comparison, "une", "ne", "ne")


@emits("where")
def where(b: Builder, u: UOp, c: str, t: str, f: str) -> str:
    return b.select(c, type_of(u.dtype.scalar()), u.dtype.count, t, f, u.src[0].dtype.count)


@emits("cast")
def cast(b: Builder, u: UOp, x: str) -> str:
    return conversions.cast(b, u.src[0].dtype, u.dtype, x)


@emits("bitcast")
def bitcast(b: Builder, u: UOp, x: str) -> str:
    return conversions.bitcast(b, u.src[0].dtype, u.dtype, x)
