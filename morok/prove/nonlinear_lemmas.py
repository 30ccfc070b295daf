"""Lemmas about products and quotients of unknowns in place of their definitions, each proved by itself.

Interval arithmetic needs of multiplication and division only that they are monotonic, and their signs and sizes; said so, its
obligations are linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from morok.prove import smt
from morok.prove.smt import TRUE, Expr
from morok.prove.symbol import Symbol


@dataclass(frozen=True, slots=True)
class Product:
    """`value` is x * y."""

    x: Expr
    y: Expr
    value: Expr

    @property
    def definition(self) -> Expr:
        return self.value == self.x * self.y

    @property
    def sign(self) -> Expr:
        """The sign of a product, which is 0 only where a factor is, and never smaller than a factor where neither is 0."""
        x, y, p = self.x, self.y, self.value
        same = smt.Or(smt.And(x > 0, y > 0), smt.And(x < 0, y < 0))
        return smt.And(
            (p == 0) == smt.Or(x == 0, y == 0),
            (p > 0) == same,
            smt.Implies(p != 0, smt.And(magnitude(p) >= magnitude(x), magnitude(p) >= magnitude(y))),
        )

    def beside(self, other: Product) -> Expr:
        """Two products with a factor in common are in the order of the others, or in the opposite one."""
        for x, y in ((self.x, self.y), (self.y, self.x)):
            for u, v in ((other.x, other.y), (other.y, other.x)):
                if x is u:
                    return in_order(x, y, self.value, v, other.value)
        return TRUE


def in_order(x: Expr, y: Expr, p: Expr, v: Expr, r: Expr) -> Expr:
    """A condition that p = x * y and r = x * v are ordered as y and v are, by the sign of x."""
    return smt.And(
        smt.Implies(smt.And(x >= 0, y <= v), p <= r),
        smt.Implies(smt.And(x >= 0, v <= y), r <= p),
        smt.Implies(smt.And(x <= 0, y <= v), r <= p),
        smt.Implies(smt.And(x <= 0, v <= y), p <= r),
    )


@dataclass(frozen=True, slots=True)
class Quotient:
    """`value` is the dividend by the divisor, rounded down; nothing is said where the divisor is not positive."""

    dividend: Expr
    divisor: Expr
    value: Expr

    @property
    def definition(self) -> Expr:
        a, b, q = self.dividend, self.divisor, self.value
        return smt.Implies(b > 0, smt.And(q * b <= a, a < q * b + b))

    @property
    def size(self) -> Expr:
        """A quotient has the dividend's sign and is no larger; it is the dividend where the divisor is 1."""
        a, b, q = self.dividend, self.divisor, self.value
        positive = smt.Implies(a >= 0, smt.And(q >= 0, q <= a, smt.Implies(a < b, q == 0)))
        negative = smt.Implies(a < 0, smt.And(a <= q, q < 0, smt.Implies(-a <= b, q == -1)))
        return smt.Implies(b > 0, smt.And(positive, negative, smt.Implies(b == 1, q == a)))

    def beside(self, other: Quotient) -> Expr:
        """A smaller dividend, and a divisor that takes it no nearer to the other: no greater a quotient."""
        a, b, q, c, d, r = self.dividend, self.divisor, self.value, other.dividend, other.divisor, other.value
        return smt.Implies(
            smt.And(b > 0, d > 0, a <= c, smt.Implies(a >= 0, d <= b), smt.Implies(c < 0, b <= d)), q <= r
        )


def magnitude(v: Expr) -> Expr:
    return smt.If(v < 0, -v, v)


def sign_of_truncated(a: Expr, b: Expr, q: Expr) -> Expr:
    """The sign of a / b truncated."""
    same = smt.Or(smt.And(a >= 0, b > 0), smt.And(a <= 0, b < 0))
    other = smt.Or(smt.And(a <= 0, b > 0), smt.And(a >= 0, b < 0))
    return smt.And(smt.Implies(same, q >= 0), smt.Implies(other, q <= 0))


def _integers(names: str) -> tuple[Expr, ...]:
    return tuple([smt.Int(Symbol("variable", n)) for n in names.split()])


def lemmas() -> Iterator[tuple[str, Sequence[Expr], Expr]]:
    """(name, premises, claim)."""
    x, y, p, v, r = _integers("x y p v r")
    yield "the sign of a product", [p == x * y], Product(x, y, p).sign
    yield "products with a common factor", [p == x * y, r == x * v], in_order(x, y, p, v, r)
    one, other = Quotient(*_integers("a b q")), Quotient(*_integers("c d r"))
    yield "the size of a quotient", [one.definition], one.size
    yield "quotients in order", [one.definition, other.definition], one.beside(other)
    a, b, q, rest = _integers("a b q rest")
    truncated = [
        b != 0,
        a == b * q + rest,
        magnitude(rest) < magnitude(b),
        smt.Implies(a >= 0, rest >= 0),
        smt.Implies(a <= 0, rest <= 0),
    ]
    yield "truncation is by magnitude", truncated, Quotient(magnitude(a), magnitude(b), magnitude(q)).definition
    yield "the sign of a truncated quotient", truncated, sign_of_truncated(a, b, q)
