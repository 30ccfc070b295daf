"""Scalar arithmetic: the ops that work lane by lane (ops.md, Scalars)."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from morok.ir import bounds as B
from morok.ir.dtype import FLOATS, INTS, NUMBERS, SCALARS, VALUES, DType, dtypes
from morok.ir.number import NAN, coerce, round_float, round_fraction, wrap
from morok.ir.op import TABLE, Op, OpDef, Operand, Signature, Undefined
from morok.ir.ops import transcendental as T

Value = Any
BITS: Final = (dtypes.bool, *INTS)
INTEGRAL: Final = (*INTS, dtypes.index)


# Values: one lane; `d` is the dtype of the operands (for casts, of the result).


def _exact(d: DType, v: Value) -> Value:
    return round_float(d, v) if d.is_float else wrap(d, v)


def neg(d: DType, a: Value) -> Value:
    return -a if d.is_float else wrap(d, -a)


def bit_not(d: DType, a: Value) -> Value:
    return (not a) if d.is_bool else wrap(d, ~a)


def add(d: DType, a: Value, b: Value) -> Value:
    return _exact(d, a + b)


def sub(d: DType, a: Value, b: Value) -> Value:
    return _exact(d, a - b)


def mul(d: DType, a: Value, b: Value) -> Value:
    return _exact(d, a * b)


def _check_division(d: DType, a: int, b: int) -> None:
    if b == 0:
        raise Undefined("division by zero")
    if d.is_signed and b == -1 and a == d.min:
        raise Undefined(f"{d.min} divided by -1 does not fit {d}")


def idiv(d: DType, a: int, b: int) -> int:
    _check_division(d, a, b)
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def mod(d: DType, a: int, b: int) -> int:
    return a - idiv(d, a, b) * b


def floordiv(d: DType, a: int, b: int) -> int:
    _check_division(d, a, b)
    return a // b


def floormod(d: DType, a: int, b: int) -> int:
    _check_division(d, a, b)
    return a % b


def fdiv(d: DType, a: float, b: float) -> float:
    if b == 0.0:
        if a == 0.0 or a != a:
            return NAN
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return round_float(d, a / b)


def maximum(d: DType, a: Value, b: Value) -> Value:
    if d.is_float:
        if a != a or b != b:
            return NAN
        if a == b:  # +0 is greater than -0
            return a if math.copysign(1.0, a) > 0 else b
    return max(a, b)


def minimum(d: DType, a: Value, b: Value) -> Value:
    if d.is_float:
        if a != a or b != b:
            return NAN
        if a == b:
            return a if math.copysign(1.0, a) < 0 else b
    return min(a, b)


def power(d: DType, a: Value, b: Value) -> Value:
    if d.is_float:
        return T.power(d, a, b)
    if b < 0:
        raise Undefined("a negative exponent has no integer power")
    return wrap(d, pow(a, b, 1 << d.bits) if d.is_int else a**b)


def bit_and(d: DType, a: Value, b: Value) -> Value:
    return a & b


def bit_or(d: DType, a: Value, b: Value) -> Value:
    return a | b


def bit_xor(d: DType, a: Value, b: Value) -> Value:
    return a ^ b


def _check_shift(d: DType, b: int) -> None:
    if not 0 <= b < d.bits:
        raise Undefined(f"a shift of {d} by {b}")


def shl(d: DType, a: int, b: int) -> int:
    _check_shift(d, b)
    return wrap(d, a << b)


def shr(d: DType, a: int, b: int) -> int:
    _check_shift(d, b)
    return a >> b


def lt(d: DType, a: Value, b: Value) -> bool:
    return bool(a < b)


def le(d: DType, a: Value, b: Value) -> bool:
    return bool(a <= b)


def gt(d: DType, a: Value, b: Value) -> bool:
    return bool(a > b)


def ge(d: DType, a: Value, b: Value) -> bool:
    return bool(a >= b)


def eq(d: DType, a: Value, b: Value) -> bool:
    return bool(a == b)


def ne(d: DType, a: Value, b: Value) -> bool:
    return bool(a != b)


def where(d: DType, c: bool, t: Value, f: Value) -> Value:
    return t if c else f


def mulacc(d: DType, a: Value, b: Value, c: Value) -> Value:
    if not d.is_float:
        return wrap(d, a * b + c)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        if math.isfinite(a) and math.isfinite(b):
            return c  # the product is finite, even where a double cannot hold it
        return NAN if (v := a * b + c) != v else v
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:  # the sign of an exact zero is that of the rounded sum
        product_negative = (math.copysign(1.0, a) < 0) != (math.copysign(1.0, b) < 0)
        both_zero = (a == 0 or b == 0) and c == 0
        return -0.0 if both_zero and product_negative and math.copysign(1.0, c) < 0 else 0.0
    return round_fraction(d, exact)


def sqrt(d: DType, a: float) -> float:
    if a < 0 or a != a:
        return NAN
    return round_float(d, math.sqrt(a))  # sqrt of a double rounds innocuously to every narrower format


def reciprocal(d: DType, a: float) -> float:
    return fdiv(d, 1.0, a)


def _round_with(f: Callable[[float], int]) -> Callable[[DType, Value], Value]:
    def rounded(d: DType, a: Value) -> Value:
        if not d.is_float or not math.isfinite(a):
            return a
        return math.copysign(float(f(a)), a)

    return rounded


def absolute(d: DType, a: Value) -> Value:
    return abs(a) if d.is_float else wrap(d, abs(a))


def sign(d: DType, a: Value) -> Value:
    if d.is_float:
        return a if a == 0 or a != a else math.copysign(1.0, a)
    return (a > 0) - (a < 0)


def square(d: DType, a: Value) -> Value:
    return mul(d, a, a)


def cast(d: DType, a: Value, source: DType) -> Value:
    if source.is_float and d.is_int:
        if not math.isfinite(a) or not d.min <= int(a) <= d.max:
            raise Undefined(f"{a} does not fit {d}")
    elif source.is_float and d.is_index and not math.isfinite(a):
        raise Undefined(f"{a} is no integer")
    elif source.is_index and d.is_int and not d.min <= a <= d.max:
        raise Undefined(f"{a} does not fit {d}")
    if d.is_bool:
        return bool(a != 0)
    return coerce(d, a)


# The table.

_X: Final = (Operand("x"),)
_XY: Final = (Operand("x"), Operand("y"))


def _define(
    op: Op,
    operands: tuple[Operand, ...],
    params: str,
    result: str,
    domain: tuple[DType, ...],
    evaluate: Callable[..., Any] | None,
    bounds: Any,
    **more: Any,
) -> None:
    low = op.name.lower()
    TABLE.define(
        OpDef(
            op,
            operands,
            signature=Signature(params, result, {"T": domain}),
            evaluate=evaluate,
            bounds=bounds,
            solver=f"morok.prove.semantics:{low}_" if keyword.iskeyword(low) else f"morok.prove.semantics:{low}",
            llvm=low,
            cuda=low,
            **more,
        )
    )


def _unary(op: Op, domain: tuple[DType, ...], evaluate: Callable[..., Any], bounds: Any = None) -> None:
    _define(op, _X, "T", "T", domain, evaluate, bounds)


def _binary(
    op: Op, domain: tuple[DType, ...], evaluate: Callable[..., Any], bounds: Any = None, commutative: bool = False
) -> None:
    _define(op, _XY, "T T", "T", domain, evaluate, bounds, commutative=commutative)


def _compare(
    op: Op, domain: tuple[DType, ...], evaluate: Callable[..., Any], bounds: Any, commutative: bool = False
) -> None:
    _define(op, _XY, "T T", "bool", domain, evaluate, bounds, commutative=commutative, comparison=True)


_unary(Op.Neg, NUMBERS, neg, B.neg)
_unary(Op.Not, BITS, bit_not, B.bit_not)
_unary(Op.Sqrt, FLOATS, sqrt)
_unary(Op.Reciprocal, FLOATS, reciprocal)
_unary(Op.Trunc, NUMBERS, _round_with(math.trunc), B.same)
_unary(Op.Floor, NUMBERS, _round_with(math.floor), B.same)
_unary(Op.Ceil, NUMBERS, _round_with(math.ceil), B.same)
_unary(Op.Round, NUMBERS, _round_with(round), B.same)
_unary(Op.Abs, NUMBERS, absolute, B.absolute)
_unary(Op.Sign, NUMBERS, sign, B.sign)
_unary(Op.Square, NUMBERS, square, B.square)
for _op, _function in T.UNARY.items():
    _unary(_op, FLOATS, _function)

_binary(Op.Add, NUMBERS, add, B.add, commutative=True)
_binary(Op.Sub, NUMBERS, sub, B.sub)
_binary(Op.Mul, NUMBERS, mul, B.mul, commutative=True)
_binary(Op.Idiv, INTEGRAL, idiv, B.idiv)
_binary(Op.Mod, INTEGRAL, mod, B.mod)
_binary(Op.FloorDiv, INTEGRAL, floordiv, B.floordiv)
_binary(Op.FloorMod, INTEGRAL, floormod, B.floormod)
_binary(Op.Fdiv, FLOATS, fdiv)
_binary(Op.Max, NUMBERS, maximum, B.maximum, commutative=True)
_binary(Op.Min, NUMBERS, minimum, B.minimum, commutative=True)
_binary(Op.Pow, (*INTS, *FLOATS), power)
_binary(Op.And, BITS, bit_and, B.bit_and, commutative=True)
_binary(Op.Or, BITS, bit_or, B.bit_or, commutative=True)
_binary(Op.Xor, BITS, bit_xor, B.bit_xor, commutative=True)
_binary(Op.Shl, INTS, shl, B.shl)
_binary(Op.Shr, INTS, shr, B.shr)
_binary(Op.Threefry, (dtypes.u64,), T.threefry)

_compare(Op.Lt, NUMBERS, lt, B.lt)
_compare(Op.Le, NUMBERS, le, B.le)
_compare(Op.Gt, NUMBERS, gt, B.gt)
_compare(Op.Ge, NUMBERS, ge, B.ge)
_compare(Op.Eq, SCALARS, eq, B.eq, commutative=True)
_compare(Op.Ne, SCALARS, ne, B.ne, commutative=True)

_define(
    Op.Where, (Operand("cond", holds="condition"), Operand("t"), Operand("f")), "bool T T", "T", VALUES, where, B.where
)
_define(Op.MulAcc, (Operand("a"), Operand("b"), Operand("c")), "T T T", "T", NUMBERS, mulacc, B.mulacc)
TABLE.define(
    OpDef(
        Op.Cast,
        _X,
        signature=Signature("S", "T", {"S": VALUES, "T": VALUES}),
        evaluate=cast,
        bounds=B.cast,
        solver="morok.prove.semantics:cast",
        llvm="cast",
        cuda="cast",
    )
)
