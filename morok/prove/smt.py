"""What the prover builds of terms, under the library's own names: each function builds the same node as the library's does.

Arguments are terms, kept or not, or Python's numbers and truths where the library takes them.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import z3

from morok.prove.kept import (
    BOOL,
    CTX,
    FALSE,
    INT,
    MANY,
    NUMERALS,
    REAL,
    TRUE,
    Address,
    Built,
    Expr,
    Sort,
    adopted,
    bound,
    made,
    made_of_many,
    made_of_two,
    once,
    sort,
)
from morok.prove.symbol import Symbol, symbol

# sorts


def BoolSort() -> Any:
    return BOOL.ref


def IntSort() -> Any:
    return INT.ref


def RealSort() -> Any:
    return REAL.ref


@functools.cache
def _bits(width: int) -> Sort:
    return sort(z3.BitVecSort(width))


def BitVecSort(width: int) -> Any:
    return _bits(width).ref


@functools.cache
def FPSort(exponent: int, mantissa: int) -> Any:
    return sort(z3.FPSort(exponent, mantissa)).ref


# constants, numerals and functions

_symbol = bound("mk_string_symbol", ctypes.c_char_p)
_constant = bound("mk_const", Address, Address)
_applied = bound("mk_app", Address, *MANY)


@functools.lru_cache(maxsize=1 << 16)
def _name(name: Symbol, of: tuple[Sort, ...]) -> str:
    """What a symbol is called in the solver at a sort, or with a signature: by its name alone two of them would be one word."""
    return f"{name}: {' '.join(s.ref.sexpr() for s in of)}"


def Const(name: Symbol, ref: Any) -> Expr:
    of = sort(ref)
    called = _name(symbol(name), (of,))
    return once(("constant", called), lambda: _constant(CTX, _symbol(CTX, called.encode()), of.at), of=of)


def Bool(name: Symbol) -> Expr:
    return Const(name, BOOL.ref)


def Int(name: Symbol) -> Expr:
    return Const(name, INT.ref)


def Real(name: Symbol) -> Expr:
    return Const(name, REAL.ref)


def BitVec(name: Symbol, width: int) -> Expr:
    return Const(name, BitVecSort(width))


def BoolVal(value: bool) -> Expr:
    return TRUE if value else FALSE


def IntVal(value: int) -> Expr:
    return INT.take(int(value))


def BitVecVal(value: int, width: Any) -> Expr:
    """The numeral of a width, or of a sort of bit vectors; a number that it does not hold is taken modulo 2^width."""
    return (_bits(width) if isinstance(width, int) else sort(width)).take(int(value))


class Applicable:
    """An uninterpreted function: to be applied."""

    __slots__ = ("at", "declaration", "domain", "range")

    def __init__(self, name: Symbol, signature: tuple[Sort, ...]) -> None:
        self.declaration = z3.Function(_name(name, signature), *(of.ref for of in signature))
        self.at: int = self.declaration.ast.value
        *self.domain, self.range = signature

    def __call__(self, *arguments: Any) -> Expr:
        operands = [of.take(a) for of, a in zip(self.domain, arguments, strict=True)]
        at = tuple([o.at for o in operands])
        array = (Address * len(at))(*at)
        return once(("applied", self.at, at), lambda: _applied(CTX, self.at, len(at), array), self, operands, of=self.range)


@functools.lru_cache(maxsize=1024)
def _function(name: Symbol, signature: tuple[Sort, ...]) -> Applicable:
    return Applicable(name, signature)


def Function(name: Symbol, *signature: Any) -> Applicable:
    """The function of a symbol, from these sorts to the last of them."""
    return _function(symbol(name), tuple(map(sort, signature)))


# logic

_and, _or = (bound(f"mk_{name}", *MANY) for name in ("and", "or"))
_implies, _xor = (bound(f"mk_{name}", Address, Address) for name in ("implies", "xor"))
_not = bound("mk_not", Address)
_if = bound("mk_ite", Address, Address, Address)


def _each(given: Sequence[Any]) -> Sequence[Any]:
    """Operands given one by one or together."""
    return given if len(given) != 1 or isinstance(given[0], (bool, z3.ExprRef)) else list(given[0])


def And(*conditions: Any) -> Expr:
    return made_of_many(_and, BOOL, *map(BOOL.take, _each(conditions)))


def Or(*conditions: Any) -> Expr:
    return made_of_many(_or, BOOL, *map(BOOL.take, _each(conditions)))


def Not(condition: Any) -> Expr:
    return made(_not, BOOL, BOOL.take(condition))


def Implies(premise: Any, conclusion: Any) -> Expr:
    return made_of_two(_implies, BOOL, BOOL.take(premise), BOOL.take(conclusion))


def Xor(a: Any, b: Any) -> Expr:
    return made_of_two(_xor, BOOL, BOOL.take(a), BOOL.take(b))


def If(condition: Any, yes: Any, no: Any) -> Expr:
    """One of two terms of the same sort, or of what becomes so."""
    first, second = _alike(yes, no)
    if first is None or second is None:
        return adopted(z3.If(condition, yes, no))
    return made(_if, first.of, BOOL.take(condition), first, second)


def _alike(a: Any, b: Any) -> tuple[Built | None, Built | None]:
    """Two terms of one sort; None where only the library knows how."""
    if isinstance(a, z3.ExprRef):
        first = adopted(a)
        return first, first.same(b)
    if isinstance(b, z3.ExprRef):
        second = adopted(b)
        return second.same(a), second
    return INT.number(a), INT.number(b)


# numbers

_sum, _product = (bound(f"mk_{name}", *MANY) for name in ("add", "mul"))
_to_real, _to_int = (bound(f"mk_{name}", Address) for name in ("int2real", "real2int"))


def Sum(*terms: Any) -> Any:
    """Of integers or of real numbers; of none the number 0."""
    return _folded(_sum, z3.Sum, _each(terms))


def Product(*terms: Any) -> Any:
    """Of integers or of real numbers; of none the number 1."""
    return _folded(_product, z3.Product, _each(terms))


def _folded(function: Any, library: Callable[..., Any], terms: Sequence[Any]) -> Any:
    kept = [adopted(t) for t in terms if isinstance(t, z3.ExprRef)]
    if len(kept) == len(terms) == 1:
        return kept[0]  # SMT-LIB's sums and products have two operands at least
    if kept and len(kept) == len(terms) and kept[0].of in (INT, REAL) and all(t.of is kept[0].of for t in kept):
        return made_of_many(function, kept[0].of, *kept)
    there = library(terms)
    return adopted(there) if isinstance(there, z3.ExprRef) else there


def ToReal(a: Expr) -> Expr:
    return made(_to_real, REAL, INT.take(a))


def ToInt(a: Expr) -> Expr:
    return made(_to_int, INT, REAL.take(a))


# bit vectors

_concat = bound("mk_concat", Address, Address)
_sign_extended, _extended = (bound(f"mk_{name}", ctypes.c_uint, Address) for name in ("sign_ext", "zero_ext"))
_extracted = bound("mk_extract", ctypes.c_uint, ctypes.c_uint, Address)


def _on_bits(name: str, truth: bool = False) -> Callable[[Any, Any], Expr]:
    """A function of two bit vectors of one width; one of them may be a number."""
    function = bound(f"mk_{name}", Address, Address)

    def make(a: Any, b: Any) -> Built:
        first, second = _alike(a, b)
        if first is None or second is None:
            raise z3.Z3Exception(f"bit vectors of one width, not {a} and {b}")
        return made_of_two(function, BOOL if truth else first.of, first, second)

    return make


UDiv = _on_bits("bvudiv")
URem = _on_bits("bvurem")
SRem = _on_bits("bvsrem")
LShR = _on_bits("bvlshr")
RotateLeft = _on_bits("ext_rotate_left")
ULT = _on_bits("bvult", truth=True)
ULE = _on_bits("bvule", truth=True)


def _wider(function: Any, n: int, a: Expr) -> Expr:
    a = adopted(a)
    return once((id(function), n, a.at), lambda: function(CTX, n, a.at), a, of=_bits(a.of.width + n))


def SignExt(n: int, a: Expr) -> Expr:
    return _wider(_sign_extended, n, a)


def ZeroExt(n: int, a: Expr) -> Expr:
    return _wider(_extended, n, a)


def Extract(high: int, low: int, a: Expr) -> Expr:
    a = adopted(a)
    return once(("extracted", high, low, a.at), lambda: _extracted(CTX, high, low, a.at), a, of=_bits(high - low + 1))


def Concat(a: Expr, b: Expr) -> Expr:
    a, b = adopted(a), adopted(b)
    return made_of_two(_concat, _bits(a.of.width + b.of.width), a, b)


# floats

Rounding = Any  # a mode of the library's
NEAREST: Final = z3.RNE()
TO_ZERO: Final = z3.RTZ()
DOWN: Final = z3.RTN()
UP: Final = z3.RTP()


def _predicate(name: str, operands: int) -> Callable[..., Expr]:
    function = bound(f"mk_fpa_{name}", *([Address] * operands))

    def make(*floats: Expr) -> Built:
        return made(function, BOOL, *map(adopted, floats))

    return make


def _rounding(name: str, operands: int) -> Callable[..., Expr]:
    function = bound(f"mk_fpa_{name}", *([Address] * (operands + 1)))

    def make(mode: Rounding, *floats: Expr) -> Built:
        kept = [adopted(f) for f in floats]
        return made(function, kept[0].of, adopted(mode), *kept)

    return make


fpIsNaN = _predicate("is_nan", 1)
fpIsInf = _predicate("is_infinite", 1)
fpIsZero = _predicate("is_zero", 1)
fpIsNegative = _predicate("is_negative", 1)
fpLT = _predicate("lt", 2)
fpLEQ = _predicate("leq", 2)
fpGT = _predicate("gt", 2)
fpEQ = _predicate("eq", 2)
fpAdd = _rounding("add", 2)
fpSub = _rounding("sub", 2)
fpMul = _rounding("mul", 2)
fpDiv = _rounding("div", 2)
fpFMA = _rounding("fma", 3)
fpSqrt = _rounding("sqrt", 1)
fpRoundToIntegral = _rounding("round_to_integral", 1)
_negated, _absolute = (bound(f"mk_fpa_{name}", Address) for name in ("neg", "abs"))
_converted = bound("mk_fpa_to_fp_float", Address, Address, Address)


def fpNeg(a: Expr) -> Expr:
    a = adopted(a)
    return made(_negated, a.of, a)


def fpAbs(a: Expr) -> Expr:
    a = adopted(a)
    return made(_absolute, a.of, a)


def fpFPToFP(mode: Rounding, a: Expr, ref: Any) -> Expr:
    """A float of another format."""
    a, mode, of = adopted(a), adopted(mode), sort(ref)
    return once(("converted", mode.at, a.at, of.at), lambda: _converted(CTX, mode.at, a.at, of.at), a, mode, of=of)


# terms as such

_simplified = bound("simplify", Address)


def simplify(e: Expr) -> Expr:
    """What the solver makes of a term by rewriting alone."""
    e = adopted(e)
    return e if isinstance(e, NUMERALS) else once(("simplified", e.at), lambda: _simplified(CTX, e.at), e)
