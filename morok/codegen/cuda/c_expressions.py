"""Pointwise ops as CUDA C expressions of one lane, by their names in the op table.

Operands are variables or constants, so repeating one costs nothing. Signed integers wrap through unsigned arithmetic, except
where the bounds exclude overflow: there the compiler may assume that there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from morok.codegen.cuda.type_names import REGISTER, literal, unsigned
from morok.codegen.overflow_flags import amount_fits, cannot_wrap, may_be_zero, may_overflow
from morok.ir.dtype import DType, dtypes
from morok.ir.uop import UOp

Need = Callable[[str], None]  # adds a function of the prelude
Emit = Callable[..., str]
OPS: dict[str, Emit] = {}

_TO_FLOAT: Final = {dtypes.f16: "__half2float", dtypes.bf16: "__bfloat162float"}
_FROM_FLOAT: Final = {dtypes.f16: "__float2half_rn", dtypes.bf16: "__float2bfloat16_rn"}
_FROM_DOUBLE: Final = {dtypes.f16: "__double2half", dtypes.bf16: "__double2bfloat16"}


def emits(name: str) -> Callable[[Emit], Emit]:
    def register(f: Emit) -> Emit:
        OPS[name] = f
        return f

    return register


def _work(d: DType) -> DType:
    """The dtype to compute `d` in: f32 for 16-bit floats (+, -, *, / and sqrt then round as if once: Figueroa 1995), else `d`."""
    return dtypes.f32 if d in _TO_FLOAT else d


def _widen(d: DType, x: str) -> str:
    return f"{_TO_FLOAT[d]}({x})" if d in _TO_FLOAT else x


def _narrow(d: DType, x: str) -> str:
    return f"{_FROM_FLOAT[d]}({x})" if d in _TO_FLOAT else x


def in_float(d: DType, operands: tuple[str, ...], f: Callable[..., str]) -> str:
    """`f` of the operands, widened to the dtype of `_work`, and narrowed to `d`."""
    return _narrow(d, f(*[_widen(d, x) for x in operands]))


def _suffixed(name: str, d: DType) -> str:
    """The C function `name` for the dtype in which `d` is computed."""
    return name if d is dtypes.f64 else f"{name}f"


def wrapped(d: DType, x: str, y: str, op: str) -> str:
    """`x op y` at integer dtype `d`, modulo 2^bits."""
    u = unsigned(d)
    return f"({REGISTER[d]})(({u}){x} {op} ({u}){y})"


def _arithmetic(symbol: str, need: Need, u: UOp, x: str, y: str) -> str:
    d = u.dtype.scalar()
    if d.is_float:
        return in_float(d, (x, y), lambda x, y: f"{x} {symbol} {y}")
    plain = d.bits >= 32 and (d.is_unsigned or cannot_wrap(u))  # narrower types are promoted to int
    return f"{x} {symbol} {y}" if plain else wrapped(d, x, y, symbol)


OPS |= {name: partial(_arithmetic, symbol) for name, symbol in (("add", "+"), ("sub", "-"), ("mul", "*"))}


@emits("neg")
def neg(need: Need, u: UOp, x: str) -> str:
    d = u.dtype.scalar()
    return in_float(d, (x,), lambda x: f"-({x})") if d.is_float else wrapped(d, "0", x, "-")


@emits("not")
def bit_not(need: Need, u: UOp, x: str) -> str:
    d = u.dtype.scalar()
    return f"!{x}" if d.is_bool else f"({REGISTER[d]})~{x}"


@emits("abs")
def absolute(need: Need, u: UOp, x: str) -> str:
    d = u.dtype.scalar()
    if d.is_float:
        return in_float(d, (x,), lambda x: f"{_suffixed('fabs', d)}({x})")
    return f"{x} < 0 ? {wrapped(d, '0', x, '-')} : {x}" if d.is_signed else x


@emits("sign")
def sign(need: Need, u: UOp, x: str) -> str:
    d = u.dtype.scalar()
    if d.is_unsigned:
        return f"({REGISTER[d]})({x} != 0)"
    need("sign_of")
    return in_float(d, (x,), lambda x: f"sign_of({x})") if d.is_float else f"sign_of({x})"


@emits("square")
def square(need: Need, u: UOp, x: str) -> str:
    d = u.dtype.scalar()
    return in_float(d, (x,), lambda x: f"{x} * {x}") if d.is_float else wrapped(d, x, x, "*")


@emits("mulacc")
def mulacc(need: Need, u: UOp, x: str, y: str, z: str) -> str:
    d = u.dtype.scalar()
    if not d.is_float:
        w = unsigned(d)
        return f"({REGISTER[d]})(({w}){x} * ({w}){y} + ({w}){z})"
    return f"{'__hfma' if d in _TO_FLOAT else _suffixed('fma', d)}({x}, {y}, {z})"


def _divisor(u: UOp, x: str, y: str) -> str:
    """The divisor, or 1 where the division is undefined behaviour in C: by 0, and of the least number by -1."""
    d = u.dtype.scalar()
    dividend, divisor = u.src
    tests: list[str] = []
    if may_be_zero(divisor):
        tests.append(f"{y} == 0")
    if may_overflow(dividend, divisor):
        tests.append(f"({y} == -1 && {x} == {literal(d, d.min)})")
    return f"({' || '.join(tests)} ? {literal(d, 1)} : {y})" if tests else y


@emits("idiv")
def idiv(need: Need, u: UOp, x: str, y: str) -> str:
    return f"({REGISTER[u.dtype.scalar()]})({x} / {_divisor(u, x, y)})"


@emits("mod")
def mod(need: Need, u: UOp, x: str, y: str) -> str:
    return f"({REGISTER[u.dtype.scalar()]})({x} % {_divisor(u, x, y)})"


@emits("floordiv")
def floordiv(need: Need, u: UOp, x: str, y: str) -> str:
    by = _divisor(u, x, y)
    if not u.dtype.is_signed:
        return f"({REGISTER[u.dtype.scalar()]})({x} / {by})"
    return f"({REGISTER[u.dtype.scalar()]})({x} / {by} - ({x} % {by} != 0 && ({x} % {by} < 0) != ({by} < 0)))"


@emits("floormod")
def floormod(need: Need, u: UOp, x: str, y: str) -> str:
    by = _divisor(u, x, y)
    c = REGISTER[u.dtype.scalar()]
    if not u.dtype.is_signed:
        return f"({c})({x} % {by})"
    return f"({c})({x} % {by} + ({x} % {by} != 0 && ({x} % {by} < 0) != ({by} < 0) ? {by} : ({c})0))"


@emits("fdiv")
def fdiv(need: Need, u: UOp, x: str, y: str) -> str:
    return in_float(u.dtype.scalar(), (x, y), lambda x, y: f"{x} / {y}")


@emits("reciprocal")
def reciprocal(need: Need, u: UOp, x: str) -> str:
    d = u.dtype.scalar()
    return in_float(d, (x,), lambda x: f"{literal(_work(d), 1.0)} / {x}")


def _function(function: str, need: Need, u: UOp, x: str) -> str:
    """A float op that is a C function; it is the identity on integers."""
    d = u.dtype.scalar()
    return in_float(d, (x,), lambda x: f"{_suffixed(function, d)}({x})") if d.is_float else x


_FUNCTIONS: Final = (
    "sqrt", "trunc", "floor", "ceil", "exp2", "log2", "sin", "exp", "log", "cos", "tan", "tanh", "erf",
)  # fmt: skip
OPS |= {name: partial(_function, name) for name in _FUNCTIONS} | {"round": partial(_function, "rint")}


@emits("rsqrt")
def rsqrt(need: Need, u: UOp, x: str) -> str:
    d = u.dtype.scalar()
    return in_float(d, (x,), lambda x: f"{literal(_work(d), 1.0)} / {_suffixed('sqrt', d)}({x})")


@emits("pow")
def power(need: Need, u: UOp, x: str, y: str) -> str:
    d = u.dtype.scalar()
    if d.is_float:
        return in_float(d, (x, y), lambda x, y: f"{_suffixed('pow', d)}({x}, {y})")
    need("integer_power")
    w = unsigned(d)
    return f"({REGISTER[d]})integer_power(({w}){x}, ({w}){y})"


def _extreme(function: str, symbol: str, need: Need, u: UOp, x: str, y: str) -> str:
    d = u.dtype.scalar()
    if d.is_float:
        need(function)
        return in_float(d, (x, y), lambda x, y: f"{function}({x}, {y})")
    return f"{x} {symbol} {y} ? {x} : {y}"


OPS |= {"max": partial(_extreme, "maximum", ">"), "min": partial(_extreme, "minimum", "<")}


def _bitwise(symbol: str, need: Need, u: UOp, x: str, y: str) -> str:
    return f"({REGISTER[u.dtype.scalar()]})({x} {symbol} {y})"


OPS |= {name: partial(_bitwise, symbol) for name, symbol in (("and", "&"), ("or", "|"), ("xor", "^"))}


def _amount(u: UOp, y: str) -> str:
    """The amount of a shift, modulo the width unless it is in bounds: other amounts are undefined behaviour in C."""
    return y if amount_fits(u) else f"({y} & {u.dtype.scalar().bits - 1})"


@emits("shl")
def shl(need: Need, u: UOp, x: str, y: str) -> str:
    d = u.dtype.scalar()
    return f"({REGISTER[d]})(({unsigned(d)}){x} << {_amount(u, y)})"


@emits("shr")
def shr(need: Need, u: UOp, x: str, y: str) -> str:
    return f"({REGISTER[u.dtype.scalar()]})({x} >> {_amount(u, y)})"


@emits("threefry")
def threefry(need: Need, u: UOp, counter: str, key: str) -> str:
    need("threefry")
    return f"threefry({counter}, {key})"


def _comparison(symbol: str, need: Need, u: UOp, x: str, y: str) -> str:
    d = u.src[0].dtype.scalar()
    return f"{_widen(d, x)} {symbol} {_widen(d, y)}"


_COMPARISONS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
OPS |= {name: partial(_comparison, symbol) for name, symbol in _COMPARISONS.items()}


@emits("where")
def where(need: Need, u: UOp, c: str, t: str, f: str) -> str:
    return f"{c} ? {t} : {f}"


# Casts.

_SMALL: Final = {dtypes.f8e4m3: "e4m3", dtypes.f8e5m2: "e5m2"}


@emits("cast")
def cast(need: Need, u: UOp, x: str) -> str:
    s, t = u.src[0].dtype.scalar(), u.dtype.scalar()
    if s is t:
        return x
    if s.is_float:
        return _from_float(need, s, t, x)
    if t.is_bool:
        return f"{x} != 0"
    if t.is_float:
        return _integer_to_float(need, s, t, x)
    return f"({REGISTER[t]}){x}"


def _from_float(need: Need, s: DType, t: DType, x: str) -> str:
    if s in _SMALL:
        need(f"float_of_{_SMALL[s]}")
        x, s = f"float_of_{_SMALL[s]}({x})", dtypes.f32
    elif s in _TO_FLOAT:
        x, s = _widen(s, x), dtypes.f32
    if t.is_bool:
        return f"{x} != {literal(s, 0.0)}"
    if not t.is_float:
        need("saturate")
        c, f = REGISTER[t], REGISTER[s]
        limits = f"{literal(s, float(t.min))}, {literal(s, float(t.max + 1))}"
        return f"saturate<{c}, {f}>({x}, {limits}, {literal(t, t.min)}, {literal(t, t.max)})"
    if t in _SMALL:
        need(f"{_SMALL[t]}_of")
        if s is dtypes.f64:
            need("to_odd")
            x = f"to_odd({x})"
        return f"{_SMALL[t]}_of({x})"
    if t in _TO_FLOAT:
        return f"{(_FROM_DOUBLE if s is dtypes.f64 else _FROM_FLOAT)[t]}({x})"
    return x if s is t else f"({REGISTER[t]}){x}"


def _integer_to_float(need: Need, s: DType, t: DType, x: str) -> str:
    if t is dtypes.f16:  # exact in a float wherever the result is finite
        return f"__float2half_rn((float){x})"
    if t.bits > 16:
        return f"({REGISTER[t]}){x}"
    if s.bits == 64:
        need("wide_to_double")
        x = f"wide_to_double({x})"
    if t is dtypes.bf16:
        return f"__double2bfloat16((double){x})"
    need(f"{_SMALL[t]}_of")
    need("to_odd")
    return f"{_SMALL[t]}_of(to_odd((double){x}))"
