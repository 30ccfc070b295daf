"""Floats: IEEE 754 by the solver's own theory, or real numbers where a rule assumes `reassoc`.

The theory has one NaN and two zeros, and its plain equality is the language's: NaN equals NaN, -0.0 differs from +0.0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import z3

from morok.prove.semantics.term import Expr, Unsupported, World, both

# exponent bits, mantissa bits with the hidden one
FORMATS: Final = {"f16": (5, 11), "bf16": (8, 8), "f32": (8, 24), "f64": (11, 53)}
NEAREST: Final = z3.RNE()


@dataclass(frozen=True, slots=True)
class Floats:
    """The arithmetic of one float dtype."""

    world: World
    name: str

    @property
    def sort(self) -> Any:
        if self.name not in FORMATS:
            raise Unsupported(f"bits of {self.name}")
        return z3.FPSort(*FORMATS[self.name])

    def const(self, value: float) -> Expr:
        if value != value:
            return z3.fpNaN(self.sort)
        if math.isinf(value):
            return z3.fpPlusInfinity(self.sort) if value > 0 else z3.fpMinusInfinity(self.sort)
        if value == 0:
            return z3.fpMinusZero(self.sort) if math.copysign(1.0, value) < 0 else z3.fpPlusZero(self.sort)
        return z3.simplify(z3.fpToFP(NEAREST, z3.FPVal(value, z3.Float64()), self.sort))

    def variable(self, name: str) -> Expr:
        return z3.Const(name, self.sort)

    def read(self, value: Expr) -> float:
        """The Python value of a numeral."""
        value = z3.simplify(value)
        if z3.is_true(z3.simplify(z3.fpIsNaN(value))):
            return math.nan
        if z3.is_true(z3.simplify(z3.fpIsInf(value))):
            return math.copysign(math.inf, -1.0 if z3.is_true(z3.simplify(z3.fpIsNegative(value))) else 1.0)
        if z3.is_true(z3.simplify(z3.fpIsZero(value))):
            return -0.0 if z3.is_true(z3.simplify(z3.fpIsNegative(value))) else 0.0
        wide = z3.simplify(z3.fpToReal(value))
        return float(Fraction(wide.numerator_as_long(), wide.denominator_as_long()))

    def add(self, a: Expr, b: Expr) -> Expr:
        return z3.fpAdd(NEAREST, a, b)

    def sub(self, a: Expr, b: Expr) -> Expr:
        return z3.fpSub(NEAREST, a, b)

    def mul(self, a: Expr, b: Expr) -> Expr:
        return z3.fpMul(NEAREST, a, b)

    def neg(self, a: Expr) -> Expr:
        return z3.fpNeg(a)

    def fdiv(self, a: Expr, b: Expr) -> Expr:
        return z3.fpDiv(NEAREST, a, b)

    def fdividable(self, b: Expr) -> Expr:
        return both()

    def fma(self, a: Expr, b: Expr, c: Expr) -> Expr:
        return z3.fpFMA(NEAREST, a, b, c)

    def sqrt(self, a: Expr) -> Expr:
        return z3.fpSqrt(NEAREST, a)

    def round_to(self, mode: str, a: Expr) -> Expr:
        modes = {"trunc": z3.RTZ(), "floor": z3.RTN(), "ceil": z3.RTP(), "round": NEAREST}
        return z3.fpRoundToIntegral(modes[mode], a)

    def _pick(self, a: Expr, b: Expr, least: bool) -> Expr:
        nan = z3.Or(z3.fpIsNaN(a), z3.fpIsNaN(b))
        tie = z3.If(z3.fpIsNegative(a), a, b) if least else z3.If(z3.fpIsNegative(a), b, a)
        ordered = z3.fpLT(a, b) if least else z3.fpGT(a, b)
        return z3.If(nan, z3.fpNaN(self.sort), z3.If(z3.fpEQ(a, b), tie, z3.If(ordered, a, b)))

    def maximum(self, a: Expr, b: Expr) -> Expr:
        return self._pick(a, b, least=False)

    def minimum(self, a: Expr, b: Expr) -> Expr:
        return self._pick(a, b, least=True)

    def absolute(self, a: Expr) -> Expr:
        return z3.fpAbs(a)

    def sign(self, a: Expr) -> Expr:
        one = z3.If(z3.fpIsNegative(a), self.const(-1.0), self.const(1.0))
        return z3.If(z3.Or(z3.fpIsNaN(a), z3.fpIsZero(a)), a, one)

    def lt(self, a: Expr, b: Expr) -> Expr:
        return z3.fpLT(a, b)

    def le(self, a: Expr, b: Expr) -> Expr:
        return z3.fpLEQ(a, b)

    def eq(self, a: Expr, b: Expr) -> Expr:
        return z3.fpEQ(a, b)

    def from_bool(self, a: Expr) -> Expr:
        return z3.If(a, self.const(1.0), self.const(0.0))

    def truth(self, a: Expr) -> Expr:
        return z3.Not(z3.fpIsZero(a))

    def convert(self, a: Expr, source: Any) -> Expr:
        return a if source.name == self.name else z3.fpToFP(NEAREST, a, self.sort)

    def is_nan(self, a: Expr) -> Expr:
        return z3.fpIsNaN(a)

    def is_inf(self, a: Expr) -> Expr:
        return z3.fpIsInf(a)

    def is_zero(self, a: Expr) -> Expr:
        return z3.fpIsZero(a)

    def is_negative(self, a: Expr) -> Expr:
        return z3.fpIsNegative(a)


@dataclass(frozen=True, slots=True)
class Reals:
    """Floats read as real numbers: every rounding forgotten. A proof here is labelled as one."""

    world: World
    name: str

    @property
    def sort(self) -> Any:
        return z3.RealSort()

    def const(self, value: float) -> Expr:
        if not math.isfinite(value):
            raise Unsupported("infinities and NaN are no real numbers")
        f = Fraction(value)
        return z3.RealVal(f"{f.numerator}/{f.denominator}")

    def variable(self, name: str) -> Expr:
        return z3.Real(name)

    def read(self, value: Expr) -> float:
        if z3.is_algebraic_value(value):
            value = value.approx(20)
        return float(Fraction(value.numerator_as_long(), value.denominator_as_long()))

    def add(self, a: Expr, b: Expr) -> Expr:
        return a + b

    def sub(self, a: Expr, b: Expr) -> Expr:
        return a - b

    def mul(self, a: Expr, b: Expr) -> Expr:
        return a * b

    def neg(self, a: Expr) -> Expr:
        return -a

    def fdiv(self, a: Expr, b: Expr) -> Expr:
        return a / b

    def fdividable(self, b: Expr) -> Expr:
        return b != 0

    def fma(self, a: Expr, b: Expr, c: Expr) -> Expr:
        return a * b + c

    def sqrt(self, a: Expr) -> Expr:
        root = self.world.opaque("sqrt", self.sort, a)
        self.world.assume(z3.Implies(a >= 0, z3.And(root >= 0, root * root == a)))
        return root

    def round_to(self, mode: str, a: Expr) -> Expr:
        down = z3.ToReal(z3.ToInt(a))
        up = -z3.ToReal(z3.ToInt(-a))
        if mode == "round":
            raise Unsupported("round half to even over real numbers")
        return down if mode == "floor" else up if mode == "ceil" else z3.If(a >= 0, down, up)

    def maximum(self, a: Expr, b: Expr) -> Expr:
        return z3.If(a >= b, a, b)

    def minimum(self, a: Expr, b: Expr) -> Expr:
        return z3.If(a <= b, a, b)

    def absolute(self, a: Expr) -> Expr:
        return z3.If(a >= 0, a, -a)

    def sign(self, a: Expr) -> Expr:
        return z3.If(a > 0, self.const(1.0), z3.If(a < 0, self.const(-1.0), self.const(0.0)))

    def lt(self, a: Expr, b: Expr) -> Expr:
        return a < b

    def le(self, a: Expr, b: Expr) -> Expr:
        return a <= b

    def eq(self, a: Expr, b: Expr) -> Expr:
        return a == b

    def from_bool(self, a: Expr) -> Expr:
        return z3.If(a, self.const(1.0), self.const(0.0))

    def truth(self, a: Expr) -> Expr:
        return a != 0

    def convert(self, a: Expr, source: Any) -> Expr:
        return a

    def is_nan(self, a: Expr) -> Expr:
        return z3.BoolVal(False)

    is_inf = is_nan

    def is_zero(self, a: Expr) -> Expr:
        return a == 0

    def is_negative(self, a: Expr) -> Expr:
        return a < 0
