"""Integers as mathematical integers: dtype index exactly, fixed widths by wrapping what leaves the range.

Wrapping is said exactly (the value and an integer multiple of 2^bits make the exact result), so that a model of this encoding is
a counterexample, and an intermediate that overflows is never taken for one that does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from morok.prove import smt
from morok.prove.semantics.term import Operators, Unsupported, World, both, choose, plain
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol


@dataclass(frozen=True, slots=True)
class Integers(Operators):
    """The arithmetic of dtype index (`bits` is 0), or of one fixed width.

    builtin   division by the solver's own operators, not by axioms on an uninterpreted quotient
    """

    world: World
    bits: int
    signed: bool
    builtin: bool = False

    @property
    def sort(self) -> Any:
        return smt.IntSort()

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    def const(self, value: int) -> Expr:
        return smt.IntVal(value)

    def variable(self, name: Symbol) -> Expr:
        v = smt.Int(name)
        if self.bits:
            self.world.assume(v >= self.low, v <= self.high)
        return v

    def read(self, value: Expr) -> int:
        return int(value.data)

    def fits(self, a: Expr) -> Expr:
        return both() if not self.bits else smt.And(self.low <= a, a <= self.high)

    def wrap(self, a: Expr) -> Expr:
        """`a` modulo 2^bits, in range."""
        if not self.bits:
            return a
        size = 1 << self.bits
        v = plain(smt.simplify(a))
        if v is not None:
            v %= size
            return self.const(v - size if v > self.high else v)

        def make() -> Expr:
            wrapped, times = self.world.fresh("wrap", self.sort), self.world.fresh("turns", self.sort)
            self.world.assume(wrapped == a - size * times, wrapped >= self.low, wrapped <= self.high)
            return wrapped

        return self.world.once(("wrap", self.bits, self.signed, a), make)

    def wrap_once(self, a: Expr) -> Expr:
        """`a` wrapped, where it is at most one turn out of range: sums and differences of two values."""
        if not self.bits:
            return a
        if plain(smt.simplify(a)) is not None:
            return self.wrap(a)
        size = 1 << self.bits
        return smt.If(a > self.high, a - size, smt.If(a < self.low, a + size, a))

    def add(self, a: Expr, b: Expr) -> Expr:
        return self.wrap_once(a + b)

    def sub(self, a: Expr, b: Expr) -> Expr:
        return self.wrap_once(a - b)

    def mul(self, a: Expr, b: Expr) -> Expr:
        return self.wrap(a * b)

    def neg(self, a: Expr) -> Expr:
        return self.wrap_once(-a)

    def divisible(self, a: Expr, b: Expr) -> Expr:
        if self.bits and self.signed:
            return smt.And(b != 0, smt.Not(smt.And(b == -1, a == self.low)))
        return b != 0

    def tdiv(self, a: Expr, b: Expr) -> Expr:
        return truncated(self.world, a, b, self.builtin)

    def tmod(self, a: Expr, b: Expr) -> Expr:
        return self._remainder("tmod", a, b, self.tdiv(a, b))

    def floordiv(self, a: Expr, b: Expr) -> Expr:
        return floored(self.world, a, b, self.builtin)

    def floormod(self, a: Expr, b: Expr) -> Expr:
        return self._remainder("floormod", a, b, self.floordiv(a, b))

    def _remainder(self, name: str, a: Expr, b: Expr, quotient: Expr) -> Expr:
        """a - b * quotient; where quotients are functions a function itself, so that equal operands show equal remainders."""
        if self.builtin or self.world.witnesses:
            return a - b * quotient
        r = smt.Function(Symbol("function", name), self.sort, self.sort, self.sort)(a, b)
        self.world.assume(r == a - b * quotient)
        return r

    def shiftable(self, b: Expr) -> Expr:
        return smt.And(b >= 0, b < self.bits)

    def _power(self, b: Expr) -> Expr:
        """2^b for every amount that has a meaning: an enumeration, and complete."""
        v = plain(smt.simplify(b))
        if v is not None:
            return self.const(1 << v if 0 <= v < self.bits else 1)
        power = self.const(1 << (self.bits - 1))
        for k in range(self.bits - 2, -1, -1):
            power = smt.If(b == k, self.const(1 << k), power)
        return power

    def shl(self, a: Expr, b: Expr) -> Expr:
        return self.wrap(a * self._power(b))

    def shr(self, a: Expr, b: Expr) -> Expr:
        return floored(self.world, a, self._power(b), self.builtin)

    def bit_and(self, a: Expr, b: Expr) -> Expr:
        """Only with a mask of low bits, which is a remainder."""
        for value, mask in ((a, b), (b, a)):
            m = plain(smt.simplify(mask))
            if m is not None and m >= 0 and (m + 1) & m == 0:
                return value - (m + 1) * floored(self.world, value, smt.IntVal(m + 1), self.builtin)
        raise Unsupported("bitwise operations over integers")

    def bit_or(self, a: Expr, b: Expr) -> Expr:
        raise Unsupported("bitwise operations over integers")

    bit_xor = bit_or

    def bit_not(self, a: Expr) -> Expr:
        return -1 - a if self.signed else self.high - a

    def from_bool(self, a: Expr) -> Expr:
        return smt.If(a, self.const(1), self.const(0))

    def convert(self, a: Expr, source: Integers) -> Expr:
        if self.bits and source.bits and not (self.low <= source.low and source.high <= self.high):
            if self.bits == source.bits:
                size = 1 << self.bits
                return smt.If(a > self.high, a - size, smt.If(a < self.low, a + size, a))
            return self.wrap(a)
        return a


def _signs(a: Expr, b: Expr, r: Expr) -> tuple[Expr, ...]:
    """The remainder of a division that truncates: smaller than the divisor, with the dividend's sign."""
    return (
        smt.Implies(smt.And(b > 0, a >= 0), smt.And(r >= 0, r < b)),
        smt.Implies(smt.And(b > 0, a < 0), smt.And(-b < r, r <= 0)),
        smt.Implies(smt.And(b < 0, a >= 0), smt.And(r >= 0, r < -b)),
        smt.Implies(smt.And(b < 0, a < 0), smt.And(b < r, r <= 0)),
    )


def _divide(world: World, kind: str, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """(quotient, remainder) of one kind of division, by its axioms.

    As functions they are equal for equal operands; as witnesses (one of its own for every division, which its axioms determine)
    the solver can eliminate them like any other unknown.
    """

    def make() -> tuple[Expr, Expr]:
        if world.witnesses:
            q, r = world.fresh(kind, smt.IntSort()), world.fresh("remainder", smt.IntSort())
            world.assume(smt.Implies(b != 0, a == b * q + r))
        else:
            q = smt.Function(Symbol("function", kind), smt.IntSort(), smt.IntSort(), smt.IntSort())(a, b)
            r = a - b * q
        if kind == "floordiv":
            world.assume(smt.Implies(b > 0, smt.And(r >= 0, r < b)), smt.Implies(b < 0, smt.And(b < r, r <= 0)))
        else:
            world.assume(*_signs(a, b, r))
        return q, r

    found: tuple[Expr, Expr] = world.once((kind, a, b), make)
    return found


def truncated(world: World, a: Expr, b: Expr, builtin: bool) -> Expr:
    """a / b toward zero; anything where b is 0."""
    x, y = plain(smt.simplify(a)), plain(smt.simplify(b))
    if x is not None and y:
        q = abs(x) // abs(y)
        return smt.IntVal(q if (x < 0) == (y < 0) else -q)
    if y == 1:
        return a
    if builtin:  # the solver's division is Euclidean: for a >= 0 it truncates, whatever the sign of b
        return smt.If(a >= 0, a / b, -((-a) / b))
    return _divide(world, "tdiv", a, b)[0]


def floored(world: World, a: Expr, b: Expr, builtin: bool) -> Expr:
    """a / b rounded down; anything where b is 0."""
    x, y = plain(smt.simplify(a)), plain(smt.simplify(b))
    if x is not None and y:
        return smt.IntVal(x // y)
    if y == 1:
        return a
    if builtin:
        return choose(b > 0, a / b, (-a) / (-b))
    if world.one_division:  # rounding down is truncation, one less where the signs differ and something remains
        q, r = _divide(world, "tdiv", a, b)
        return smt.If(smt.And(r != 0, (r < 0) != (b < 0)), q - 1, q)
    return _divide(world, "floordiv", a, b)[0]
