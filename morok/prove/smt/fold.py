"""The value of one function of SMT-LIB at numerals; None where the standard leaves it open, as for a division by 0."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from morok.prove.smt.ieee import Format, whole
from morok.prove.smt.sorts import Sort
from morok.prove.smt.terms import Expr, Value


def value_of(e: Expr, values: tuple[Any, ...]) -> Value | None:
    """The value of `e` where its operands have these, as `Expr.value` has them; None where SMT-LIB leaves it open."""
    found = _FUNCTIONS.get(e.head)
    return None if found is None else found(e, *values)


def signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> (width - 1) else bits


@functools.cache
def form_of(sort: Sort) -> Format:
    return Format(sort.exponent, sort.significand)


def _euclidean(a: int, b: int) -> int:
    """The quotient of integers whose remainder is not negative."""
    return a // b if b > 0 else -(a // -b)


def _truncated(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


# Bit vectors: the divisions by 0 have values in SMT-LIB.


def _bv_udiv(width: int, a: int, b: int) -> int:
    return a // b if b else (1 << width) - 1


def _bv_urem(width: int, a: int, b: int) -> int:
    return a % b if b else a


def _bv_sdiv(width: int, a: int, b: int) -> int:
    x, y = signed(a, width), signed(b, width)
    return _truncated(x, y) if y else (1 if x < 0 else -1)


def _bv_srem(width: int, a: int, b: int) -> int:
    x, y = signed(a, width), signed(b, width)
    return x - y * _truncated(x, y) if y else x


def _bv_smod(width: int, a: int, b: int) -> int:
    x, y = signed(a, width), signed(b, width)
    return x % y if y else x


def _shl(width: int, a: int, b: int) -> int:
    return a << b if b < width else 0


def _lshr(width: int, a: int, b: int) -> int:
    return a >> b if b < width else 0


def _ashr(width: int, a: int, b: int) -> int:
    return signed(a, width) >> min(b, width)


def _rotated(e: Expr, a: int) -> int:
    width = e.sort.width
    by: int = e.data % width
    return (a << by | a >> (width - by)) % (1 << width)


def _bits(function: Callable[[int, int, int], int]) -> Callable[..., Value]:
    return lambda e, a, b: function(e.sort.width, a, b) % (1 << e.sort.width)


def _order_of_bits(compare: Callable[[Any, Any], bool], has_sign: bool) -> Callable[..., Value]:
    def order(e: Expr, a: int, b: int) -> bool:
        width = e.args[0].sort.width
        return compare(signed(a, width), signed(b, width)) if has_sign else compare(a, b)

    return order


# Floats


def _float(name: str) -> Callable[..., Value]:
    """A function of floats: with the rounding mode first where it has one."""
    function = getattr(Format, name)

    def apply(e: Expr, *values: int) -> Value:
        form = form_of(e.args[0].sort)
        found: Value = function(form, *values) if e.data is None else function(form, e.data, *values)
        return found

    return apply


def _to_float(e: Expr, a: Any) -> Value:
    form, source = form_of(e.sort), e.args[0].sort
    if source.kind == "Real":
        return form.rounded(a, e.data)
    if source.kind == "Float":
        return form_of(source).converted(e.data, a, form)
    if e.data is None:
        return form.canonical(a)
    return form.rounded(Fraction(signed(a, source.width)), e.data)


def _to_bits(e: Expr, a: int) -> Value | None:
    form = form_of(e.args[0].sort)
    if not form.is_finite(a):
        return None
    n, width = whole(form.exact(a), e.data), e.sort.width
    low, high = (0, 1 << width) if e.head == "fp.to_ubv" else (-(1 << (width - 1)), 1 << (width - 1))
    return n % (1 << width) if low <= n < high else None


def _is_negative(e: Expr, a: int) -> Value:
    form = form_of(e.args[0].sort)
    return form.negative(a) and not form.is_nan(a)


def _to_real(e: Expr, a: int) -> Value | None:
    form = form_of(e.args[0].sort)
    return form.exact(a) if form.is_finite(a) else None


def _sum(e: Expr, *values: Any) -> Value:
    total: Value = sum(values[1:], values[0])
    return total


def _difference(e: Expr, *values: Any) -> Value:
    rest: Value = -values[0] if len(values) == 1 else values[0] - sum(values[1:])
    return rest


def _by(function: Callable[[Any, Any], Any]) -> Callable[..., Value | None]:
    """A division, which has no value by 0."""
    return lambda e, a, b: function(a, b) if b else None


def _plain(function: Callable[..., Any]) -> Callable[..., Value]:
    return lambda e, *values: function(*values)


_FUNCTIONS: Final[dict[str, Callable[..., Value | None]]] = {
    "and": _plain(lambda *values: all(values)),
    "or": _plain(lambda *values: any(values)),
    "not": _plain(operator.not_),
    "=>": _plain(lambda a, b: not a or b),
    "xor": _plain(operator.ne),
    "ite": _plain(lambda c, a, b: a if c else b),
    "=": _plain(operator.eq),
    "distinct": _plain(operator.ne),
    "+": _sum,
    "-": _difference,
    "*": _plain(lambda *values: math.prod(values)),
    "div": _by(_euclidean),
    "mod": _by(lambda a, b: a - b * _euclidean(a, b)),
    "/": _by(operator.truediv),
    "<": _plain(operator.lt),
    "<=": _plain(operator.le),
    ">": _plain(operator.gt),
    ">=": _plain(operator.ge),
    "to_real": _plain(Fraction),
    "to_int": _plain(math.floor),
    "bvneg": lambda e, a: -a % (1 << e.sort.width),
    "bvnot": lambda e, a: ~a % (1 << e.sort.width),
    "bvadd": _bits(lambda w, a, b: a + b),
    "bvsub": _bits(lambda w, a, b: a - b),
    "bvmul": _bits(lambda w, a, b: a * b),
    "bvudiv": _bits(_bv_udiv),
    "bvurem": _bits(_bv_urem),
    "bvsdiv": _bits(_bv_sdiv),
    "bvsrem": _bits(_bv_srem),
    "bvsmod": _bits(_bv_smod),
    "bvand": _bits(lambda w, a, b: a & b),
    "bvor": _bits(lambda w, a, b: a | b),
    "bvxor": _bits(lambda w, a, b: a ^ b),
    "bvshl": _bits(_shl),
    "bvlshr": _bits(_lshr),
    "bvashr": _bits(_ashr),
    "bvult": _order_of_bits(operator.lt, False),
    "bvule": _order_of_bits(operator.le, False),
    "bvslt": _order_of_bits(operator.lt, True),
    "bvsle": _order_of_bits(operator.le, True),
    "bvsgt": _order_of_bits(operator.gt, True),
    "bvsge": _order_of_bits(operator.ge, True),
    "rotate_left": _rotated,
    "zero_extend": _plain(lambda a: a),
    "sign_extend": lambda e, a: signed(a, e.args[0].sort.width) % (1 << e.sort.width),
    "extract": lambda e, a: (a >> e.data[1]) % (1 << e.sort.width),
    "concat": lambda e, a, b: a << e.args[1].sort.width | b,
    "fp.isNaN": _float("is_nan"),
    "fp.isInfinite": _float("is_infinite"),
    "fp.isZero": _float("is_zero"),
    "fp.isNegative": _is_negative,
    "fp.lt": _float("less"),
    "fp.leq": _float("less_equal"),
    "fp.gt": lambda e, a, b: form_of(e.args[0].sort).less(b, a),
    "fp.geq": lambda e, a, b: form_of(e.args[0].sort).less_equal(b, a),
    "fp.eq": _float("equal"),
    "fp.add": _float("add"),
    "fp.sub": _float("sub"),
    "fp.mul": _float("mul"),
    "fp.div": _float("div"),
    "fp.fma": _float("fma"),
    "fp.sqrt": _float("sqrt"),
    "fp.roundToIntegral": _float("round_to_integral"),
    "fp.neg": _float("neg"),
    "fp.abs": _float("abs"),
    "to_fp": _to_float,
    "to_fp_unsigned": lambda e, a: form_of(e.sort).rounded(Fraction(a), e.data),
    "fp.to_sbv": _to_bits,
    "fp.to_ubv": _to_bits,
    "fp.to_real": _to_real,
}
