"""The functions that terms are built by, named as the solver's Python library names them.

Operands are terms, Python's truths and numbers where the sort is known, or expressions of that library, which are translated.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Final

from morok.prove.smt.ieee import Format
from morok.prove.smt.sorts import BOOL, INT, REAL, BitVecSort, Sort
from morok.prove.smt.terms import FALSE, TRUE, Applicable, Expr, Mode, SortError, coerced, make, numeral, term
from morok.prove.symbol import Symbol, symbol

# unknowns and numerals


def Const(name: Symbol, sort: Sort) -> Expr:
    """The unknown of a name at a sort; at another sort the name is another unknown."""
    return make("const", (), sort, symbol(name))


def Bool(name: Symbol) -> Expr:
    return Const(name, BOOL)


def Int(name: Symbol) -> Expr:
    return Const(name, INT)


def Real(name: Symbol) -> Expr:
    return Const(name, REAL)


def BitVec(name: Symbol, width: int) -> Expr:
    return Const(name, BitVecSort(width))


def BoolVal(value: bool) -> Expr:
    return TRUE if value else FALSE


def IntVal(value: int) -> Expr:
    return numeral(INT, int(value))


def RealVal(value: int | Fraction) -> Expr:
    return numeral(REAL, Fraction(value))


def BitVecVal(value: int, of: int | Sort) -> Expr:
    """The numeral of a width, or of a sort of bit vectors; a number that it does not hold is taken modulo 2^width."""
    return numeral(BitVecSort(of) if isinstance(of, int) else of, int(value))


@functools.cache
def _float_bits(exponent: int, significand: int, bits: bytes) -> int:
    (value,) = struct.unpack("d", bits)
    form = Format(exponent, significand)
    if math.isfinite(value):
        return form.rounded(Fraction(value), "RNE", math.copysign(1.0, value) < 0)
    return form.nan if value != value else form.infinity(value < 0)


def FPVal(value: float, sort: Sort) -> Expr:
    """The numeral of a Python float in a format, to the nearest."""
    return numeral(sort, _float_bits(sort.exponent, sort.significand, struct.pack("d", value)))


@functools.lru_cache(maxsize=1024)
def _function(name: Symbol, signature: tuple[Sort, ...]) -> Applicable:
    return Applicable(name, signature[:-1], signature[-1])


def Function(name: Symbol, *signature: Sort) -> Applicable:
    """The function of a name, from these sorts to the last of them; with another signature the name is another function."""
    return _function(symbol(name), signature)


# logic


def _each(given: Sequence[Any]) -> Iterable[Any]:
    """Operands given one by one or together."""
    alone = given[0] if len(given) == 1 else None
    return alone if isinstance(alone, (list, tuple)) else given


def And(*conditions: Any) -> Expr:
    return make("and", tuple([coerced(BOOL, c) for c in _each(conditions)]), BOOL)


def Or(*conditions: Any) -> Expr:
    return make("or", tuple([coerced(BOOL, c) for c in _each(conditions)]), BOOL)


def Not(condition: Any) -> Expr:
    return make("not", (coerced(BOOL, condition),), BOOL)


def Implies(premise: Any, conclusion: Any) -> Expr:
    return make("=>", (coerced(BOOL, premise), coerced(BOOL, conclusion)), BOOL)


def Xor(a: Any, b: Any) -> Expr:
    return make("xor", (coerced(BOOL, a), coerced(BOOL, b)), BOOL)


def If(condition: Any, yes: Any, no: Any) -> Expr:
    """One of two terms of the same sort; one of them, or both, may be a Python number."""
    first = term(yes) if isinstance(yes, Expr) or not isinstance(no, Expr) else coerced(no.sort, yes)
    return make("ite", (coerced(BOOL, condition), first, coerced(first.sort, no)), first.sort)


# numbers


def _folded(head: str, terms: Sequence[Any], neutral: int) -> Expr:
    operands = [term(t) for t in terms]
    if not operands:
        return IntVal(neutral)
    sort = operands[0].sort
    if sort not in (INT, REAL):
        raise SortError(f"integers or real numbers, not {sort}")
    # SMT-LIB's sums and products have two operands at least
    return operands[0] if len(operands) == 1 else make(head, tuple([coerced(sort, o) for o in operands]), sort)


def Sum(*terms: Any) -> Expr:
    """The sum of integers or of real numbers; of none the number 0."""
    return _folded("+", list(_each(terms)), 0)


def Product(*terms: Any) -> Expr:
    """The product of integers or of real numbers; of none the number 1."""
    return _folded("*", list(_each(terms)), 1)


def ToReal(a: Any) -> Expr:
    return make("to_real", (coerced(INT, a),), REAL)


def ToInt(a: Any) -> Expr:
    """The greatest integer that is not above a real number."""
    return make("to_int", (coerced(REAL, a),), INT)


# bit vectors


def _on_bits(head: str, truth: bool = False) -> Callable[[Any, Any], Expr]:
    """A function of two bit vectors of one width; one of them may be a number."""

    def build(a: Any, b: Any) -> Expr:
        sort = (a if isinstance(a, Expr) else term(b)).sort
        if sort.kind != "BitVec":
            raise SortError(f"bit vectors, not {sort}")
        return make(head, (coerced(sort, a), coerced(sort, b)), BOOL if truth else sort)

    return build


UDiv = _on_bits("bvudiv")
URem = _on_bits("bvurem")
SRem = _on_bits("bvsrem")
LShR = _on_bits("bvlshr")
ULT = _on_bits("bvult", truth=True)
ULE = _on_bits("bvule", truth=True)


def _bits(a: Any) -> Expr:
    found = term(a)
    if found.sort.kind != "BitVec":
        raise SortError(f"a bit vector, not {found.sort}")
    return found


def RotateLeft(a: Any, by: int) -> Expr:
    a = _bits(a)
    return make("rotate_left", (a,), a.sort, by)


def SignExt(n: int, a: Any) -> Expr:
    """`a` with n more bits, copies of its first."""
    a = _bits(a)
    return make("sign_extend", (a,), BitVecSort(a.sort.width + n), n)


def ZeroExt(n: int, a: Any) -> Expr:
    a = _bits(a)
    return make("zero_extend", (a,), BitVecSort(a.sort.width + n), n)


def Extract(high: int, low: int, a: Any) -> Expr:
    """The bits from `low` to `high`, both included."""
    return make("extract", (_bits(a),), BitVecSort(high - low + 1), (high, low))


def Concat(a: Any, b: Any) -> Expr:
    a, b = _bits(a), _bits(b)
    return make("concat", (a, b), BitVecSort(a.sort.width + b.sort.width))


# floats

NEAREST: Final[Mode] = "RNE"
TO_ZERO: Final[Mode] = "RTZ"
DOWN: Final[Mode] = "RTN"
UP: Final[Mode] = "RTP"


def _floats(given: Sequence[Any]) -> tuple[Expr, ...]:
    operands = tuple([term(f) for f in given])
    sort = operands[0].sort
    if sort.kind != "Float" or any(o.sort is not sort for o in operands):
        raise SortError(f"floats of one format, not {', '.join(o.sort.text for o in operands)}")
    return operands


def _predicate(head: str) -> Callable[..., Expr]:
    def build(*floats: Any) -> Expr:
        return make(head, _floats(floats), BOOL)

    return build


def _rounding(head: str) -> Callable[..., Expr]:
    def build(mode: Mode, *floats: Any) -> Expr:
        operands = _floats(floats)
        return make(head, operands, operands[0].sort, mode)

    return build


fpIsNaN = _predicate("fp.isNaN")
fpIsInf = _predicate("fp.isInfinite")
fpIsZero = _predicate("fp.isZero")
fpIsNegative = _predicate("fp.isNegative")
fpLT = _predicate("fp.lt")
fpLEQ = _predicate("fp.leq")
fpGT = _predicate("fp.gt")
fpGEQ = _predicate("fp.geq")
fpEQ = _predicate("fp.eq")
fpAdd = _rounding("fp.add")
fpSub = _rounding("fp.sub")
fpMul = _rounding("fp.mul")
fpDiv = _rounding("fp.div")
fpFMA = _rounding("fp.fma")
fpSqrt = _rounding("fp.sqrt")
fpRoundToIntegral = _rounding("fp.roundToIntegral")


def fpNeg(a: Any) -> Expr:
    (a,) = _floats((a,))
    return make("fp.neg", (a,), a.sort)


def fpAbs(a: Any) -> Expr:
    (a,) = _floats((a,))
    return make("fp.abs", (a,), a.sort)


def fpFPToFP(mode: Mode, a: Any, sort: Sort) -> Expr:
    """A float in another format."""
    return make("to_fp", _floats((a,)), sort, mode)


def fpSignedToFP(mode: Mode, a: Any, sort: Sort) -> Expr:
    """A bit vector, read as a signed number, as a float."""
    return make("to_fp", (_bits(a),), sort, mode)


def fpUnsignedToFP(mode: Mode, a: Any, sort: Sort) -> Expr:
    return make("to_fp_unsigned", (_bits(a),), sort, mode)


def fpRealToFP(mode: Mode, a: Any, sort: Sort) -> Expr:
    return make("to_fp", (coerced(REAL, a),), sort, mode)


def fpBVToFP(a: Any, sort: Sort) -> Expr:
    """The float whose bits these are."""
    a = _bits(a)
    if a.sort.width != sort.width:
        raise SortError(f"{sort.width} bits for {sort}, not {a.sort.width}")
    return make("to_fp", (a,), sort)


def fpToSBV(mode: Mode, a: Any, sort: Sort) -> Expr:
    """A float as a signed number of a width; some bits or other where it does not fit."""
    return make("fp.to_sbv", _floats((a,)), sort, mode)


def fpToUBV(mode: Mode, a: Any, sort: Sort) -> Expr:
    return make("fp.to_ubv", _floats((a,)), sort, mode)


def fpToReal(a: Any) -> Expr:
    """The number that a finite float is."""
    return make("fp.to_real", _floats((a,)), REAL)
