"""Compile-time values: the mathematical integers of guards and `let`.

Over integers they are the solver's integers; over bit vectors they are signed bit vectors as wide as the operation needs, so that
nothing wraps in either.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from morok.dsl.extent import Extent
from morok.prove import smt
from morok.prove.semantics.bits import Bits
from morok.prove.semantics.integers import Integers, floored, truncated
from morok.prove.semantics.term import (
    Unsupported,
    World,
    both,
    choose,
    either,
    is_false,
    is_true,
    negation,
    plain,
    truth,
)
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.symbol import Symbol

WIDEST: Final = 4096  # a shift beyond this has no value (language.md), so no power of two beyond it either
POWERS: Final = 64  # exponents tried where nothing else bounds them
AMOUNTS: Final = 128  # exponents that are gone through where it is known that there are no others: sums of two amounts


@dataclass(frozen=True, slots=True)
class Num:
    """A number: its value, whether the operation that made it has one, and for bounds whether it is infinite.

    bits    the number is known to be that of a dtype of so many bits, so that a power of two among them is one of so many
    span    the least and the greatest number that it can be under the premises, where that is plain
    """

    value: Expr
    exists: Expr = TRUE
    minus_infinity: Expr = FALSE
    plus_infinity: Expr = FALSE
    bits: int = 0
    span: tuple[int, int] | None = None

    @property
    def finite(self) -> Expr:
        return both(negation(self.minus_infinity), negation(self.plus_infinity))


COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip

MONOTONE: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "min": min, "max": max,
}  # fmt: skip


def settled(a: Num) -> int | None:
    """The number, where it is plain that it is one and which; None where the solver would have to be asked."""
    v = plain(a.value)
    if v is None or not (is_true(a.exists) and is_false(a.minus_infinity) and is_false(a.plus_infinity)):
        return None
    return v


class WholeNumbers:
    """Numbers as the solver's integers."""

    def __init__(self, world: World, builtin: bool) -> None:
        self.world = world
        self.builtin = builtin

    def const(self, v: int) -> Expr:
        return smt.IntVal(v)

    def variable(self, name: Symbol, bits: int = 0) -> Expr:
        return smt.Int(name)

    def known(self, a: Expr) -> int | None:
        found = plain(a)
        return plain(smt.simplify(a)) if found is None else found

    def read(self, a: Expr) -> int:
        return int(a.data)

    def of(self, value: Expr, arithmetic: Any) -> Expr:
        return value

    def to(self, value: Expr, arithmetic: Any) -> Expr:
        assert isinstance(arithmetic, Integers)
        return arithmetic.wrap(value)

    def add(self, a: Expr, b: Expr) -> Expr:
        x, y = plain(a), plain(b)
        return a + b if x is None or y is None else smt.IntVal(x + y)

    def sub(self, a: Expr, b: Expr) -> Expr:
        x, y = plain(a), plain(b)
        return a - b if x is None or y is None else smt.IntVal(x - y)

    def mul(self, a: Expr, b: Expr) -> Expr:
        x, y = plain(a), plain(b)
        return a * b if x is None or y is None else smt.IntVal(x * y)

    def neg(self, a: Expr) -> Expr:
        x = plain(a)
        return -a if x is None else smt.IntVal(-x)

    def floordiv(self, a: Expr, b: Expr) -> Expr:
        x, y = plain(a), plain(b)
        return floored(self.world, a, b, self.builtin) if x is None or not y else smt.IntVal(x // y)

    def tdiv(self, a: Expr, b: Expr) -> Expr:
        return truncated(self.world, a, b, self.builtin)

    def eq(self, a: Expr, b: Expr) -> Expr:
        x, y = plain(a), plain(b)
        return a == b if x is None or y is None else truth(x == y)

    def lt(self, a: Expr, b: Expr) -> Expr:
        x, y = plain(a), plain(b)
        return a < b if x is None or y is None else truth(x < y)

    def choose(self, c: Expr, a: Expr, b: Expr) -> Expr:
        return choose(c, a, b)

    def bitwise(self, op: str, a: Expr, b: Expr) -> Expr:
        m = self.known(b)
        n = self.known(a)
        if m is not None and n is not None:
            return self.const({"&": n & m, "|": n | m, "^": n ^ m}[op])
        if op == "&" and m is not None and m >= 0 and (m + 1) & m == 0:
            return a - (m + 1) * self.floordiv(a, self.const(m + 1))
        raise Unsupported("bitwise operations over integers")

    def gcd(self, a: Expr, b: Expr) -> Expr:
        """The greatest common divisor, known only as a common divisor."""
        g = self.world.opaque("gcd", smt.IntSort(), a, b)
        x, y = self.world.fresh("cofactor", smt.IntSort()), self.world.fresh("cofactor", smt.IntSort())
        self.world.assume(g >= 0, a == g * x, b == g * y, (g == 0) == smt.And(a == 0, b == 0))
        for v, other in ((a, b), (b, a)):
            size = smt.If(v < 0, -v, v)
            self.world.assume(smt.Or(v == 0, g <= size), smt.Or(smt.And(v != other, other != 0), g == size))
        self.world.exact = False
        return g


class WideBits:
    """Numbers as signed bit vectors that grow with every operation."""

    def __init__(self, world: World) -> None:
        self.world = world

    def _fit(self, *values: Expr, extra: int = 0) -> tuple[Expr, ...]:
        width = max(v.sort.width for v in values) + extra
        if width > 600:
            raise Unsupported("numbers too wide for bit vectors")
        return tuple(smt.SignExt(width - v.sort.width, v) if v.sort.width < width else v for v in values)

    def const(self, v: int) -> Expr:
        return smt.BitVecVal(v, v.bit_length() + 1)

    def variable(self, name: Symbol, bits: int = 0) -> Expr:
        if not bits:
            raise Unsupported("unbounded numbers as bit vectors")
        return smt.BitVec(name, bits + 1)

    def known(self, a: Expr) -> int | None:
        a = smt.simplify(a)
        return smt.signed(a.data, a.sort.width) if a.head == "value" else None

    def read(self, a: Expr) -> int:
        return smt.signed(a.data, a.sort.width)

    def of(self, value: Expr, arithmetic: Bits) -> Expr:
        return value if arithmetic.signed else smt.ZeroExt(1, value)

    def to(self, value: Expr, arithmetic: Bits) -> Expr:
        n = value.sort.width
        if n >= arithmetic.bits:
            return value if n == arithmetic.bits else smt.Extract(arithmetic.bits - 1, 0, value)
        return smt.SignExt(arithmetic.bits - n, value)

    def add(self, a: Expr, b: Expr) -> Expr:
        a, b = self._fit(a, b, extra=1)
        return a + b

    def sub(self, a: Expr, b: Expr) -> Expr:
        a, b = self._fit(a, b, extra=1)
        return a - b

    def mul(self, a: Expr, b: Expr) -> Expr:
        total = a.sort.width + b.sort.width
        a, b = self._fit(a, b, extra=total - max(a.sort.width, b.sort.width))
        return a * b

    def neg(self, a: Expr) -> Expr:
        return -self._fit(a, extra=1)[0]

    def tdiv(self, a: Expr, b: Expr) -> Expr:
        a, b = self._fit(a, b, extra=1)
        return a / b

    def floordiv(self, a: Expr, b: Expr) -> Expr:
        a, b = self._fit(a, b, extra=1)
        q, r = a / b, smt.SRem(a, b)
        return smt.If(smt.And(r != 0, (r < 0) != (b < 0)), q - 1, q)

    def eq(self, a: Expr, b: Expr) -> Expr:
        a, b = self._fit(a, b)
        return a == b

    def lt(self, a: Expr, b: Expr) -> Expr:
        a, b = self._fit(a, b)
        return a < b

    def choose(self, c: Expr, a: Expr, b: Expr) -> Expr:
        a, b = self._fit(a, b)
        return smt.If(c, a, b)

    def bitwise(self, op: str, a: Expr, b: Expr) -> Expr:
        a, b = self._fit(a, b)
        return a & b if op == "&" else a | b if op == "|" else a ^ b

    def gcd(self, a: Expr, b: Expr) -> Expr:
        raise Unsupported("gcd over bit vectors")


class Arithmetic:
    """The operations of guards, with the premise that each has a value."""

    def __init__(self, world: World, numbers: WholeNumbers | WideBits) -> None:
        self.world = world
        self.n = numbers

    def const(self, v: int) -> Num:
        return Num(self.n.const(v))

    def infinity(self, sign: int) -> Num:
        return Num(self.n.const(0), TRUE, TRUE if sign < 0 else FALSE, TRUE if sign > 0 else FALSE)

    def _exist(self, *operands: Num) -> Expr:
        """The condition that all operands have values, and finite ones: arithmetic on an unknown bound fails its clause."""
        return both(*(o.exists for o in operands), *(o.finite for o in operands))

    def binary(self, op: str, a: Num, b: Num) -> Num:
        exist = self._exist(a, b)
        n = self.n
        if op in ("+", "-", "*"):
            compute = {"+": n.add, "-": n.sub, "*": n.mul}[op]
            return Num(compute(a.value, b.value), exist, span=self._spanned(op, a, b))
        if op in ("//", "%", "tdiv", "tmod"):
            nonzero = negation(self.eq(b.value, n.const(0)))
            q = n.floordiv(a.value, b.value) if op in ("//", "%") else n.tdiv(a.value, b.value)
            value = q if op in ("//", "tdiv") else n.sub(a.value, n.mul(q, b.value))
            return Num(value, both(exist, nonzero))
        if op in ("&", "|", "^"):
            return Num(n.bitwise(op, a.value, b.value), exist)
        if op in ("<<", ">>"):
            return self._shift(op, a, b, exist)
        if op in ("min", "max"):
            less = n.lt(a.value, b.value)
            value = n.choose(less, a.value, b.value) if op == "min" else n.choose(less, b.value, a.value)
            return Num(value, exist, span=self._spanned(op, a, b))
        if op == "gcd":
            x, y = n.known(a.value), n.known(b.value)
            if x is not None and y is not None:
                return Num(n.const(math.gcd(x, y)), exist)
            return Num(n.gcd(a.value, b.value), exist)
        raise Unsupported(f"the operator {op}")

    def eq(self, a: Expr, b: Expr) -> Expr:
        return self.n.eq(a, b)

    def _shift(self, op: str, a: Num, b: Num, exist: Expr) -> Num:
        n = self.n
        amount = n.known(b.value)
        if amount is not None:
            if not 0 <= amount <= WIDEST:
                return Num(n.const(0), FALSE)
            power = n.const(1 << amount)
            return Num(n.mul(a.value, power) if op == "<<" else n.floordiv(a.value, power), exist)
        bottom, top = 0, POWERS if not b.bits else min((1 << b.bits) - 1, POWERS)
        span = self._span(b)
        if span is not None and span[1] < AMOUNTS:
            bottom, top = (max(end, 0) for end in span)
        elif self.world.place != "values":  # the amount of a Shl, which has no value beyond its width
            self.world.tries(Extent("shift", self.world.place, 0, top))
        power = n.const(1 << top)
        for k in range(top - 1, bottom - 1, -1):
            power = n.choose(n.eq(b.value, n.const(k)), n.const(1 << k), power)
        exist = both(exist, smt.Not(n.lt(b.value, n.const(0))), smt.Not(n.lt(n.const(top), b.value)))
        return Num(n.mul(a.value, power) if op == "<<" else n.floordiv(a.value, power), exist)

    def _span(self, a: Num) -> tuple[int, int] | None:
        """The least and the greatest number that it can be, where that is plain: of a numeral, and of an amount of a shift."""
        if a.value.head == "value":
            return (self.n.read(a.value),) * 2
        return (0, a.bits - 1) if a.bits and self._shiftable(a) else a.span

    def _spanned(self, op: str, a: Num, b: Num) -> tuple[int, int] | None:
        """The same of what an operation that is monotone in each operand, where the other is one number, makes of two."""
        of_a, of_b = self._span(a), self._span(b)
        if of_a is None or of_b is None:
            return None
        ends = [MONOTONE[op](x, y) for x in of_a for y in of_b]
        return min(ends), max(ends)

    def _shiftable(self, b: Num) -> bool:
        """True if a premise is that values of the number's dtype can be shifted by it."""
        leaf = b.value.args[0] if b.value.head == "zero_extend" else b.value
        if leaf.sort.kind == "BitVec":
            return leaf.sort.width == b.bits and self.world.holds(Bits(self.world, b.bits, False).shiftable(leaf))
        return self.world.holds(Integers(self.world, b.bits, True).shiftable(leaf))

    def unary(self, op: str, a: Num) -> Num:
        exist = self._exist(a)
        if op == "neg":
            return Num(self.n.neg(a.value), exist)
        if op == "~":
            return Num(self.n.sub(self.n.const(-1), a.value), exist)
        if op == "abs":
            return Num(self.n.choose(self.n.lt(a.value, self.n.const(0)), self.n.neg(a.value), a.value), exist)
        if op == "log2":
            known = self.n.known(a.value)
            if known is not None:
                return Num(self.n.const(max(known.bit_length() - 1, 0)), both(exist, self.is_power(a)))
            value = self.n.const(0)
            for k in range(1, self._exponents(a)):
                value = self.n.choose(self.n.eq(a.value, self.n.const(1 << k)), self.n.const(k), value)
            return Num(value, both(exist, self.is_power(a)))
        raise Unsupported(f"the operator {op}")

    def _exponents(self, a: Num) -> int:
        if a.bits:
            return a.bits
        self.world.tries(Extent("power", self.world.place, 0, (1 << POWERS) - 1))
        return POWERS

    def is_power(self, a: Num) -> Expr:
        """A condition that the number is a power of two: every one that its dtype holds is enumerated."""
        v = self.n.known(a.value)
        if v is not None:
            return smt.BoolVal(v > 0 and v & (v - 1) == 0)
        exponents = range(self._exponents(a))
        leaf = a.value.args[0] if a.value.head == "zero_extend" else a.value
        if not leaf.args and a.bits:
            make = (lambda v: smt.BitVecVal(v, leaf.sort.width)) if leaf.sort.kind == "BitVec" else smt.IntVal
            self.cases(leaf, tuple(make(1 << k) for k in exponents))
        return either(*(self.n.eq(a.value, self.n.const(1 << k)) for k in exponents))

    def cases(self, leaf: Expr, values: tuple[Expr, ...]) -> None:
        self.world.cases[leaf.number] = (leaf, values)

    def compare(self, op: str, a: Num, b: Num) -> tuple[Expr, Expr]:
        """(exists, truth) of a comparison; infinite bounds compare as infinities do."""
        x, y = settled(a), settled(b)
        if x is not None and y is not None:
            return TRUE, truth(COMPARE[op](x, y))
        exist = both(a.exists, b.exists)
        if op == ">":
            a, b, op = b, a, "<"
        elif op == ">=":
            a, b, op = b, a, "<="
        less = self._with_infinities(a, b, self.n.lt)
        if op == "<":
            return exist, less
        if op == "<=":
            return exist, negation(self._with_infinities(b, a, self.n.lt))
        equal = either(
            both(a.minus_infinity, b.minus_infinity),
            both(a.plus_infinity, b.plus_infinity),
            both(a.finite, b.finite, self.n.eq(a.value, b.value)),
        )
        return exist, equal if op == "==" else negation(equal)

    def _with_infinities(self, a: Num, b: Num, less: Callable[[Expr, Expr], Expr]) -> Expr:
        low = both(a.minus_infinity, negation(b.minus_infinity))
        high = both(b.plus_infinity, negation(a.plus_infinity))
        return either(low, high, both(a.finite, b.finite, less(a.value, b.value)))
