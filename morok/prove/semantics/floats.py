"""Floats: IEEE 754 by the solver's own theory, or real numbers where a rule assumes `reassoc`.

The theory has one NaN and two zeros, and its plain equality is the language's: NaN equals NaN, -0.0 differs from +0.0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from morok.prove import smt
from morok.prove.semantics.term import Operators, Unsupported, World, both
from morok.prove.smt import NEAREST, Expr
from morok.prove.smt.ieee import Format
from morok.prove.symbol import Symbol

# exponent bits, mantissa bits with the hidden one
FORMATS: Final = {"f8e4m3": (5, 4), "f8e5m2": (5, 3), "f16": (5, 11), "bf16": (8, 8), "f32": (8, 24), "f64": (11, 53)}
# and zero before them, the least normal number behind them
E4M3_SUBNORMALS: Final = tuple(k * 2.0**-9 for k in range(9))


@dataclass(frozen=True, slots=True)
class Floats:
    """The arithmetic of one float dtype."""

    world: World
    name: str

    @property
    def sort(self) -> Any:
        if self.name not in FORMATS:
            raise Unsupported(f"bits of {self.name}")
        return smt.FPSort(*FORMATS[self.name])

    def const(self, value: float) -> Expr:
        return smt.FPVal(value, self.sort)

    def variable(self, name: Symbol) -> Expr:
        return smt.Const(name, self.sort)

    def read(self, value: Expr) -> float:
        """The Python value of a numeral."""
        form, bits = Format(*FORMATS[self.name]), smt.simplify(value).data
        if form.is_nan(bits):
            return math.nan
        size = math.inf if form.is_infinite(bits) else float(abs(form.exact(bits)))
        return -size if form.negative(bits) else size

    def add(self, a: Expr, b: Expr) -> Expr:
        return smt.fpAdd(NEAREST, a, b)

    def sub(self, a: Expr, b: Expr) -> Expr:
        return smt.fpSub(NEAREST, a, b)

    def mul(self, a: Expr, b: Expr) -> Expr:
        return smt.fpMul(NEAREST, a, b)

    def neg(self, a: Expr) -> Expr:
        return smt.fpNeg(a)

    def fdiv(self, a: Expr, b: Expr) -> Expr:
        return smt.fpDiv(NEAREST, a, b)

    def fdividable(self, b: Expr) -> Expr:
        return both()

    def fma(self, a: Expr, b: Expr, c: Expr) -> Expr:
        return smt.fpFMA(NEAREST, a, b, c)

    def sqrt(self, a: Expr) -> Expr:
        return smt.fpSqrt(NEAREST, a)

    def round_to(self, mode: str, a: Expr) -> Expr:
        modes = {"trunc": smt.TO_ZERO, "floor": smt.DOWN, "ceil": smt.UP, "round": NEAREST}
        return smt.fpRoundToIntegral(modes[mode], a)

    def _pick(self, a: Expr, b: Expr, least: bool) -> Expr:
        nan = smt.Or(smt.fpIsNaN(a), smt.fpIsNaN(b))
        tie = smt.If(smt.fpIsNegative(a), a, b) if least else smt.If(smt.fpIsNegative(a), b, a)
        ordered = smt.fpLT(a, b) if least else smt.fpGT(a, b)
        return smt.If(nan, self.const(math.nan), smt.If(smt.fpEQ(a, b), tie, smt.If(ordered, a, b)))

    def maximum(self, a: Expr, b: Expr) -> Expr:
        return self._pick(a, b, least=False)

    def minimum(self, a: Expr, b: Expr) -> Expr:
        return self._pick(a, b, least=True)

    def absolute(self, a: Expr) -> Expr:
        return smt.fpAbs(a)

    def sign(self, a: Expr) -> Expr:
        one = smt.If(smt.fpIsNegative(a), self.const(-1.0), self.const(1.0))
        return smt.If(smt.Or(smt.fpIsNaN(a), smt.fpIsZero(a)), a, one)

    def lt(self, a: Expr, b: Expr) -> Expr:
        return smt.fpLT(a, b)

    def le(self, a: Expr, b: Expr) -> Expr:
        return smt.fpLEQ(a, b)

    def eq(self, a: Expr, b: Expr) -> Expr:
        return smt.fpEQ(a, b)

    def from_bool(self, a: Expr) -> Expr:
        return smt.If(a, self.const(1.0), self.const(0.0))

    def truth(self, a: Expr) -> Expr:
        return smt.Not(smt.fpIsZero(a))

    def convert(self, a: Expr, source: Any) -> Expr:
        return a if source.name == self.name else smt.fpFPToFP(NEAREST, a, self.sort)

    def converted(self, a: Expr) -> Expr:
        """The value of this dtype that a number is which was rounded to the sort."""
        return a

    def is_nan(self, a: Expr) -> Expr:
        return smt.fpIsNaN(a)

    def is_inf(self, a: Expr) -> Expr:
        return smt.fpIsInf(a)

    def is_zero(self, a: Expr) -> Expr:
        return smt.fpIsZero(a)

    def is_negative(self, a: Expr) -> Expr:
        return smt.fpIsNegative(a)


@dataclass(frozen=True, slots=True)
class E4M3(Floats):
    """The float dtype f8e4m3, which has no infinity: the values of a wider sort that it holds.

    IEEE 754's format of as many bits ends at 240, where this one has numbers up to 448 and one NaN. The sort has one bit of
    exponent more, and with it numbers that are too great and too fine for the dtype: nothing here makes one.
    """

    def variable(self, name: Symbol) -> Expr:
        v = smt.Const(name, self.sort)
        self.world.assume(v == self.of_bits(smt.BitVec(Symbol("bits", name), 8)))
        return v

    def of_bits(self, bits: Expr) -> Expr:
        """The number that a pattern of 8 bits stands for: a sign, 4 bits of exponent and 3 of mantissa."""
        sign, size = smt.Extract(7, 7, bits), smt.Extract(6, 0, bits)
        # exponents are biased by 15, not 7
        value = smt.fpBVToFP(smt.Concat(sign, smt.ZeroExt(1, size) + (8 << 3)), self.sort)
        for k, number in enumerate(E4M3_SUBNORMALS[:-1]):
            value = smt.If(size == k, smt.If(sign == 1, self.const(-number), self.const(number)), value)
        return smt.If(size == 0x7F, self.const(math.nan), value)

    def convert(self, a: Expr, source: Any) -> Expr:
        if source.name == self.name:
            return a
        size = smt.fpAbs(a)
        fine = self.const(E4M3_SUBNORMALS[-1])
        for k, number in reversed([*enumerate(E4M3_SUBNORMALS[:-1])]):
            # from which the even one of two neighbours is as near
            middle = source.const(number + E4M3_SUBNORMALS[1] / 2)
            fine = smt.If(smt.fpLEQ(size, middle) if k % 2 == 0 else smt.fpLT(size, middle), self.const(number), fine)
        small = smt.fpLT(size, source.const(E4M3_SUBNORMALS[-1]))
        wide = self.converted(smt.fpFPToFP(NEAREST, a, self.sort))
        return smt.If(small, smt.If(smt.fpIsNegative(a), smt.fpNeg(fine), fine), wide)

    def converted(self, a: Expr) -> Expr:
        """`a` where the dtype holds numbers of its size, else NaN."""
        return smt.If(smt.fpLEQ(smt.fpAbs(a), self.const(448.0)), a, self.const(math.nan))


@dataclass(frozen=True, slots=True)
class Reals(Operators):
    """Floats read as real numbers: NaN, infinities and every rounding of a result forgotten. A proof here is labelled as one.

    What would tell them from real numbers is not read: a comparison, which decides by them, and a conversion, which is there to
    round.
    """

    world: World
    name: str

    @property
    def sort(self) -> Any:
        return smt.RealSort()

    def const(self, value: float) -> Expr:
        if not math.isfinite(value):
            raise Unsupported("infinities and NaN are no real numbers")
        f = Fraction(value)
        return smt.RealVal(f)

    def variable(self, name: Symbol) -> Expr:
        return smt.Real(name)

    def read(self, value: Expr) -> float:
        return float(value.data)

    def fdiv(self, a: Expr, b: Expr) -> Expr:
        return a / b

    def fdividable(self, b: Expr) -> Expr:
        return b != 0

    def fma(self, a: Expr, b: Expr, c: Expr) -> Expr:
        return a * b + c

    def sqrt(self, a: Expr) -> Expr:
        root = self.world.opaque("sqrt", self.sort, a)
        self.world.assume(smt.Implies(a >= 0, smt.And(root >= 0, root * root == a)))
        return root

    def round_to(self, mode: str, a: Expr) -> Expr:
        down = smt.ToReal(smt.ToInt(a))
        up = -smt.ToReal(smt.ToInt(-a))
        if mode == "round":
            raise Unsupported("round half to even over real numbers")
        return down if mode == "floor" else up if mode == "ceil" else smt.If(a >= 0, down, up)

    def maximum(self, a: Expr, b: Expr) -> Expr:
        return smt.If(a >= b, a, b)

    def minimum(self, a: Expr, b: Expr) -> Expr:
        return smt.If(a <= b, a, b)

    def absolute(self, a: Expr) -> Expr:
        return smt.If(a >= 0, a, -a)

    def sign(self, a: Expr) -> Expr:
        return smt.If(a > 0, self.const(1.0), smt.If(a < 0, self.const(-1.0), self.const(0.0)))

    def from_bool(self, a: Expr) -> Expr:
        return smt.If(a, self.const(1.0), self.const(0.0))

    def truth(self, a: Expr) -> Expr:
        raise Unsupported("comparisons over real numbers")

    def lt(self, a: Expr, b: Expr) -> Expr:
        raise Unsupported("comparisons over real numbers")

    le = eq = lt

    def convert(self, a: Expr, source: Any) -> Expr:
        if source.name != self.name:
            raise Unsupported("conversions over real numbers")
        return a

    def is_nan(self, a: Expr) -> Expr:
        return smt.BoolVal(False)

    is_inf = is_nan

    def is_zero(self, a: Expr) -> Expr:
        return a == 0

    def is_negative(self, a: Expr) -> Expr:
        return a < 0
