"""One function per op: its meaning to the solver, as `ops.md` gives it.

Each takes the world (the encoding), the dtype that `evaluate` takes too (the operands', for casts the result's), and operands.
Written once for every encoding: a world's `arithmetic(d)` is bit vectors, integers, floats or real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from morok.ir.ops.transcendental import threefry_words
from morok.prove import smt
from morok.prove.semantics.bits import Bits
from morok.prove.semantics.floats import E4M3, FORMATS, Floats, Reals
from morok.prove.semantics.integers import Integers
from morok.prove.semantics.term import Term, Unsupported, both, choose, comparison, either, negation, plain, strict
from morok.prove.smt import FALSE, TRUE, Expr

W = Any  # a MorokWorld
D = Any  # a scalar DType
Unary = Callable[[W, D, Term], Term]


def neg(w: W, d: D, a: Term) -> Term:
    return strict(w.arithmetic(d).neg(a.value), a)


def not_(w: W, d: D, a: Term) -> Term:
    return strict(negation(a.value) if d.is_bool else w.arithmetic(d).bit_not(a.value), a)


def add(w: W, d: D, a: Term, b: Term) -> Term:
    return strict(w.arithmetic(d).add(a.value, b.value), a, b)


def sub(w: W, d: D, a: Term, b: Term) -> Term:
    return strict(w.arithmetic(d).sub(a.value, b.value), a, b)


def mul(w: W, d: D, a: Term, b: Term) -> Term:
    return strict(w.arithmetic(d).mul(a.value, b.value), a, b)


def square(w: W, d: D, a: Term) -> Term:
    return mul(w, d, a, a)


def idiv(w: W, d: D, a: Term, b: Term) -> Term:
    n = w.arithmetic(d)
    return strict(n.tdiv(a.value, b.value), a, b, when=n.divisible(a.value, b.value))


def mod(w: W, d: D, a: Term, b: Term) -> Term:
    n = w.arithmetic(d)
    return strict(n.tmod(a.value, b.value), a, b, when=n.divisible(a.value, b.value))


def floordiv(w: W, d: D, a: Term, b: Term) -> Term:
    n = w.arithmetic(d)
    return strict(n.floordiv(a.value, b.value), a, b, when=n.divisible(a.value, b.value))


def floormod(w: W, d: D, a: Term, b: Term) -> Term:
    n = w.arithmetic(d)
    return strict(n.floormod(a.value, b.value), a, b, when=n.divisible(a.value, b.value))


def fdiv(w: W, d: D, a: Term, b: Term) -> Term:
    n = w.arithmetic(d)
    return strict(n.fdiv(a.value, b.value), a, b, when=n.fdividable(b.value))


def reciprocal(w: W, d: D, a: Term) -> Term:
    n = w.arithmetic(d)
    return strict(n.fdiv(n.const(1.0), a.value), a, when=n.fdividable(a.value))


def mulacc(w: W, d: D, a: Term, b: Term, c: Term) -> Term:
    n = w.arithmetic(d)
    value = n.fma(a.value, b.value, c.value) if d.is_float else n.add(n.mul(a.value, b.value), c.value)
    return strict(value, a, b, c)


def _pick(w: W, d: D, a: Term, b: Term, least: bool) -> Term:
    n = w.arithmetic(d)
    if d.is_float:
        return strict(n.minimum(a.value, b.value) if least else n.maximum(a.value, b.value), a, b)
    less = n.lt(a.value, b.value)
    return strict(smt.If(less, a.value, b.value) if least else smt.If(less, b.value, a.value), a, b)


def max(w: W, d: D, a: Term, b: Term) -> Term:
    return _pick(w, d, a, b, least=False)


def min(w: W, d: D, a: Term, b: Term) -> Term:
    return _pick(w, d, a, b, least=True)


def and_(w: W, d: D, a: Term, b: Term) -> Term:
    if not d.is_bool:
        return strict(w.arithmetic(d).bit_and(a.value, b.value), a, b)
    return _decided(smt.And(a.value, b.value), negation(a.value), negation(b.value), a, b)


def or_(w: W, d: D, a: Term, b: Term) -> Term:
    if not d.is_bool:
        return strict(w.arithmetic(d).bit_or(a.value, b.value), a, b)
    return _decided(smt.Or(a.value, b.value), a.value, b.value, a, b)


def _decided(value: Expr, by_a: Expr, by_b: Expr, a: Term, b: Term) -> Term:
    """A connective that one operand may decide alone; the other then need not have a value."""
    return Term(value, either(both(a.defined, b.defined), both(a.defined, by_a), both(b.defined, by_b)))


def xor(w: W, d: D, a: Term, b: Term) -> Term:
    return strict(smt.Xor(a.value, b.value) if d.is_bool else w.arithmetic(d).bit_xor(a.value, b.value), a, b)


def _amount(w: W, n: Bits | Integers, b: Term) -> None:
    """Note an amount of which nothing is known but its dtype, so that each is tried; what is no amount has no result."""
    if w.shifts and b.value.head == "const":
        w.amounts[b.value.number] = b.value, tuple([n.const(k) for k in range(n.bits)])


def shl(w: W, d: D, a: Term, b: Term) -> Term:
    n = w.arithmetic(d)
    _amount(w, n, b)
    return strict(n.shl(a.value, b.value), a, b, when=n.shiftable(b.value))


def shr(w: W, d: D, a: Term, b: Term) -> Term:
    n = w.arithmetic(d)
    _amount(w, n, b)
    return strict(n.shr(a.value, b.value), a, b, when=n.shiftable(b.value))


def lt(w: W, d: D, a: Term, b: Term) -> Term:
    return comparison(w.arithmetic(d).lt(a.value, b.value), a, b)


def le(w: W, d: D, a: Term, b: Term) -> Term:
    return comparison(w.arithmetic(d).le(a.value, b.value), a, b)


def gt(w: W, d: D, a: Term, b: Term) -> Term:
    return lt(w, d, b, a)


def ge(w: W, d: D, a: Term, b: Term) -> Term:
    return le(w, d, b, a)


def _same(w: W, d: D, a: Term, b: Term) -> Expr:
    if d.is_float:
        equal: Expr = w.arithmetic(d).eq(a.value, b.value)
        return equal
    return a.value == b.value


def eq(w: W, d: D, a: Term, b: Term) -> Term:
    return comparison(_same(w, d, a, b), a, b)


def ne(w: W, d: D, a: Term, b: Term) -> Term:
    return comparison(smt.Not(_same(w, d, a, b)), a, b)


def where(w: W, d: D, c: Term, t: Term, f: Term) -> Term:
    """Only the chosen branch need be defined."""
    return Term(
        choose(c.value, t.value, f.value),
        both(c.defined, choose(c.value, t.defined, f.defined)),
        choose(c.value, t.invalid, f.invalid),
    )


def _rounding(mode: str) -> Unary:
    def rounded(w: W, d: D, a: Term) -> Term:
        return strict(w.arithmetic(d).round_to(mode, a.value) if d.is_float else a.value, a)

    return rounded


trunc = _rounding("trunc")
floor = _rounding("floor")
ceil = _rounding("ceil")
round = _rounding("round")


def abs(w: W, d: D, a: Term) -> Term:
    n = w.arithmetic(d)
    if d.is_float:
        return strict(n.absolute(a.value), a)
    if d.is_unsigned:
        return a
    return strict(smt.If(n.lt(a.value, n.const(0)), n.neg(a.value), a.value), a)


def sign(w: W, d: D, a: Term) -> Term:
    n = w.arithmetic(d)
    if d.is_float:
        return strict(n.sign(a.value), a)
    positive = smt.If(n.lt(n.const(0), a.value), n.const(1), n.const(0))
    return strict(positive if d.is_unsigned else smt.If(n.lt(a.value, n.const(0)), n.const(-1), positive), a)


def sqrt(w: W, d: D, a: Term) -> Term:
    n = w.arithmetic(d)
    return strict(n.sqrt(a.value), a, when=TRUE if isinstance(n, Floats) else a.value >= 0)


# Transcendentals: the value is any within the op's tolerance, so to the solver a function of which only the special cases, which
# are exact, are known.


def _transcendental(name: str, cases: Callable[[Floats, Expr], list[tuple[Expr, Expr]]]) -> Unary:
    def apply(w: W, d: D, a: Term) -> Term:
        n = w.arithmetic(d)
        value = w.approximation(name, d.name, n.sort, a.value)
        if isinstance(n, Floats):
            for condition, result in reversed(cases(n, a.value)):
                value = smt.If(condition, result, value)
            value = smt.If(n.is_nan(a.value), n.const(float("nan")), value)
        return strict(value, a)

    return apply


_INF = float("inf")
_NAN = float("nan")


def _at_infinities(n: Floats, a: Expr, minus: float, plus: float) -> list[tuple[Expr, Expr]]:
    negative = n.is_negative(a)
    return [
        (smt.And(n.is_inf(a), negative), n.const(minus)),
        (smt.And(n.is_inf(a), smt.Not(negative)), n.const(plus)),
    ]


def _exponential(n: Floats, a: Expr) -> list[tuple[Expr, Expr]]:
    return [*_at_infinities(n, a, 0.0, _INF), (n.is_zero(a), n.const(1.0))]


def _logarithm(n: Floats, a: Expr) -> list[tuple[Expr, Expr]]:
    return [
        (n.is_zero(a), n.const(-_INF)),
        (n.is_negative(a), n.const(_NAN)),
        (n.is_inf(a), n.const(_INF)),
        (a == n.const(1.0), n.const(0.0)),
    ]


def _odd_wave(n: Floats, a: Expr) -> list[tuple[Expr, Expr]]:
    return [*_at_infinities(n, a, _NAN, _NAN), (n.is_zero(a), a)]


def _even_wave(n: Floats, a: Expr) -> list[tuple[Expr, Expr]]:
    return [*_at_infinities(n, a, _NAN, _NAN), (n.is_zero(a), n.const(1.0))]


def _sigmoid_like(n: Floats, a: Expr) -> list[tuple[Expr, Expr]]:
    return [*_at_infinities(n, a, -1.0, 1.0), (n.is_zero(a), a)]


def _inverse_root(n: Floats, a: Expr) -> list[tuple[Expr, Expr]]:
    at_zero = smt.If(n.is_negative(a), n.const(-_INF), n.const(_INF))
    return [(n.is_zero(a), at_zero), (n.is_negative(a), n.const(_NAN)), (n.is_inf(a), n.const(0.0))]


exp2 = _transcendental("Exp2", _exponential)
exp = _transcendental("Exp", _exponential)
log2 = _transcendental("Log2", _logarithm)
log = _transcendental("Log", _logarithm)
sin = _transcendental("Sin", _odd_wave)
tan = _transcendental("Tan", _odd_wave)
cos = _transcendental("Cos", _even_wave)
tanh = _transcendental("Tanh", _sigmoid_like)
erf = _transcendental("Erf", _sigmoid_like)
rsqrt = _transcendental("Rsqrt", _inverse_root)

_UNROLLED = 16  # integer powers up to this literal exponent are products


def pow(w: W, d: D, a: Term, b: Term) -> Term:
    n = w.arithmetic(d)
    if d.is_float:
        return _float_pow(w, d, n, a, b)
    exponent = _literal(b.value)
    allowed = TRUE if d.is_unsigned else smt.Not(n.lt(b.value, n.const(0)))
    if exponent is not None and 0 <= exponent <= _UNROLLED:
        value = n.const(1)
        for _ in range(exponent):
            value = n.mul(value, a.value)
        return strict(value, a, b)
    value = w.opaque(f"pow.{d.name}", n.sort, a.value, b.value)
    value = smt.If(b.value == n.const(0), n.const(1), smt.If(b.value == n.const(1), a.value, value))
    return strict(value, a, b, when=allowed)


def _literal(a: Expr) -> int | None:
    a = smt.simplify(a)
    return smt.signed(a.data, a.sort.width) if a.head == "value" and a.sort.width else plain(a)


def _float_pow(w: W, d: D, n: Floats | Reals, a: Term, b: Term) -> Term:
    """Within 1 ulp, so that the exact power, and its rounding, are among the values. It may be taken for them, at the exponents 1
    and 2, where no application is left whose value is another: of real numbers, and where the rule keeps no power.
    """
    value = w.approximation("Pow", d.name, n.sort, a.value, b.value)
    one = n.const(1.0)
    if isinstance(n, Floats):
        value = smt.If(smt.Or(n.is_nan(a.value), n.is_nan(b.value)), n.const(_NAN), value)
    if "Pow" not in w.apart or not isinstance(n, Floats):
        value = smt.If(b.value == n.const(2.0), n.mul(a.value, a.value), value)
        value = smt.If(b.value == one, a.value, value)
    value = smt.If(smt.Or(n.is_zero(b.value), a.value == one), one, value)
    return strict(value, a, b)


def threefry(w: W, d: D, a: Term, b: Term) -> Term:
    if not isinstance(w.arithmetic(d), Bits):
        raise Unsupported("the random generator over integers")

    def halves(v: Expr) -> tuple[Expr, Expr]:
        return smt.Extract(31, 0, v), smt.Extract(63, 32, v)

    def number(k: int) -> Expr:
        return smt.BitVecVal(k, 32)

    x0, x1 = threefry_words(halves(a.value), halves(b.value), number, smt.RotateLeft)
    return strict(smt.Concat(x1, x0), a, b)


# Conversions.


def cast(w: W, d: D, a: Term, source: D) -> Term:
    if d is source:
        return a
    if d.is_bool:
        return comparison(_truth(w, source, a.value), a)
    n = w.arithmetic(d)
    if source.is_bool:
        return strict(n.from_bool(a.value), a)
    s = w.arithmetic(source)
    if d.is_float:
        if source.is_float:
            return strict(n.convert(a.value, s), a)
        return comparison(_int_to_float(w, n, s, source, a.value), a)
    if source.is_float:
        return _float_to_int(w, n, s, d, a)
    if source.is_index:
        return comparison(a.value, replace_defined(a, n.fits(a.value)))
    return strict(n.convert(a.value, s), a)


def replace_defined(a: Term, also: Expr) -> Term:
    """`a`, defined only where `also` holds too."""
    return Term(a.value, both(a.defined, also), a.invalid)


def _truth(w: W, d: D, a: Expr) -> Expr:
    n = w.arithmetic(d)
    if d.is_float:
        nonzero: Expr = n.truth(a)
        return nonzero
    zero: Expr = n.const(0)
    return a != zero


def _int_to_float(w: W, n: Floats | Reals, s: Bits | Integers, source: D, a: Expr) -> Expr:
    if isinstance(s, Bits) and isinstance(n, Floats):
        convert = smt.fpSignedToFP if s.signed else smt.fpUnsignedToFP
        return n.converted(convert(smt.NEAREST, a, n.sort))
    if isinstance(s, Integers) and isinstance(n, Floats):
        return _float_of_integer(w, n, source, smt.simplify(a))
    raise Unsupported(f"{source} as real numbers")


def float_of_number(w: W, n: Floats | Reals, a: Expr) -> Expr:
    """The nearest float to a number of the guards, as Cast gives it for an integer of that value."""
    if isinstance(n, Reals):
        raise Unsupported("a computed integer as a real number")
    if w.integers:
        return _float_of_integer(w, n, None, smt.simplify(a))
    return n.converted(smt.fpSignedToFP(smt.NEAREST, a, n.sort))


def _float_of_integer(w: W, n: Floats, source: D | None, a: Expr) -> Expr:
    """A function of the integer alone, whatever dtype holds it, if one does: known at numerals, else finite where that fits, and
    exact where all integers of the dtype are.
    """
    v = plain(a)
    if v is not None:
        return smt.simplify(n.converted(smt.fpRealToFP(smt.NEAREST, smt.RealVal(v), n.sort)))
    if a.head == "ite":
        return smt.If(a.args[0], _float_of_integer(w, n, source, a.args[1]), _float_of_integer(w, n, source, a.args[2]))
    f: Expr = w.opaque(f"float.{n.name}", n.sort, a)
    if source is not None and w.safe_cast(source.name, n.name):
        held = w.arithmetic(source).fits(a)  # what has no value at the dtype may still be an integer elsewhere
        w.assume(smt.Implies(held, smt.And(smt.Not(n.is_nan(f)), smt.Not(n.is_inf(f)))))
        _, before = w.known.get(("exact float", f.number), (a, FALSE))
        w.known["exact float", f.number] = a, either(before, held)
    return f


def _integer_of_float(w: W, s: Floats, a: Expr) -> Expr:
    """The integer toward zero: known at numerals and of floats that were integers that fit; else any function of it."""
    a = smt.simplify(a)
    if a.head == "value":
        v = s.read(a)
        return smt.IntVal(int(v) if math.isfinite(v) else 0)
    if a.head == "ite":
        return smt.If(a.args[0], _integer_of_float(w, s, a.args[1]), _integer_of_float(w, s, a.args[2]))
    wide = smt.fpRoundToIntegral(
        smt.TO_ZERO, smt.fpFPToFP(smt.NEAREST, a, smt.FPSort(*FORMATS["f64"])) if s.name != "f64" else a
    )
    integer: Expr = w.opaque("integer", smt.IntSort(), wide)
    exact: tuple[Expr, Expr] | None = w.known.get(("exact float", a.number))
    return integer if exact is None else choose(exact[1], exact[0], integer)


def _float_to_int(w: W, n: Bits | Integers, s: Floats | Reals, d: D, a: Term) -> Term:
    if isinstance(s, Reals):
        raise Unsupported("integers of real numbers")
    finite = smt.Not(smt.Or(s.is_nan(a.value), s.is_inf(a.value)))
    if d.is_index:
        return strict(_integer_of_float(w, s, a.value), a, when=finite)
    whole = smt.fpRoundToIntegral(smt.TO_ZERO, a.value)
    # 2^bits may round to infinity in a narrow format, which is right: every finite value lies below it
    low = s.const(-float(2 ** (d.bits - 1))) if d.is_signed else s.const(0.0)
    high = s.const(float(2 ** (d.bits - 1 if d.is_signed else d.bits)))
    inside = smt.And(finite, smt.fpLEQ(low, whole), smt.fpLT(whole, high))
    if isinstance(n, Bits):
        v = smt.fpToSBV(smt.TO_ZERO, a.value, n.sort) if d.is_signed else smt.fpToUBV(smt.TO_ZERO, a.value, n.sort)
    else:
        v = _integer_of_float(w, s, a.value)
        w.assume(smt.Implies(inside, smt.And(v >= n.low, v <= n.high)))
    return strict(v, a, when=inside)


def bitcast(w: W, d: D, a: Term, source: D) -> Term:
    if d is source:
        return a
    if d.is_bool or source.is_bool or d.is_index or source.is_index:
        # nothing says what these bits are: some function, of some of the values
        bits = w.opaque(f"bits.{source.name}.{d.name}", w.sort(d), a.value)
        return strict(bits, a, when=w.opaque(f"bits.{source.name}.{d.name}.defined", smt.BoolSort(), a.value))
    n, s = w.arithmetic(d), w.arithmetic(source)
    if isinstance(n, (Integers, Reals)) or isinstance(s, (Integers, Reals)):
        raise Unsupported("bits over integers and real numbers")
    if isinstance(n, E4M3) or isinstance(s, E4M3):
        raise Unsupported("bits of f8e4m3")
    if d.is_float:
        if source.is_float:
            raise Unsupported("a float's bits as another float")
        return strict(smt.fpBVToFP(a.value, n.sort), a)
    if not source.is_float:
        return strict(a.value, a)

    def read() -> Term:
        if a.value.args:  # nodes that are built alike are one node, which is not known here
            w.exact = False
        pattern = w.fresh("pattern", n.sort)
        w.assume(smt.fpBVToFP(pattern, s.sort) == a.value)
        return Term(pattern, a.defined, FALSE, lambda v: smt.fpBVToFP(v, s.sort) == a.value)

    # Any NaN pattern may come of a NaN, and everything else has one. The bits of one node are the same in pattern and target, and
    # those of nodes that are equal may differ, as NaN + 0 may from NaN: the operand counts, not its value.
    term: Term = w.once(("bits", id(a), d.name, w.stage), read)
    return term
