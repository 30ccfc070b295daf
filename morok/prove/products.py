"""What is said of products and quotients of unknowns in place of their definitions: a few lemmas, each proved by itself.

Interval arithmetic needs of multiplication and division only that they are monotonic, and their signs and sizes; said so, its
obligations are linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import z3

from morok.prove.semantics.term import TRUE, Expr


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
        same = z3.Or(z3.And(x > 0, y > 0), z3.And(x < 0, y < 0))
        return z3.And(
            (p == 0) == z3.Or(x == 0, y == 0),
            (p > 0) == same,
            z3.Implies(p != 0, z3.And(magnitude(p) >= magnitude(x), magnitude(p) >= magnitude(y))),
        )

    def beside(self, other: Product) -> Expr:
        """Two products with a factor in common are in the order of the others, or in the opposite one."""
        for x, y in ((self.x, self.y), (self.y, self.x)):
            for u, v in ((other.x, other.y), (other.y, other.x)):
                if x.eq(u):
                    return in_order(x, y, self.value, v, other.value)
        return TRUE


def in_order(x: Expr, y: Expr, p: Expr, v: Expr, r: Expr) -> Expr:
    """Of p = x * y and r = x * v."""
    return z3.And(
        z3.Implies(z3.And(x >= 0, y <= v), p <= r),
        z3.Implies(z3.And(x >= 0, v <= y), r <= p),
        z3.Implies(z3.And(x <= 0, y <= v), r <= p),
        z3.Implies(z3.And(x <= 0, v <= y), p <= r),
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
        return z3.Implies(b > 0, z3.And(q * b <= a, a < q * b + b))

    @property
    def size(self) -> Expr:
        """A quotient has the dividend's sign and is no larger; it is the dividend where the divisor is 1."""
        a, b, q = self.dividend, self.divisor, self.value
        positive = z3.Implies(a >= 0, z3.And(q >= 0, q <= a, z3.Implies(a < b, q == 0)))
        negative = z3.Implies(a < 0, z3.And(a <= q, q < 0, z3.Implies(-a <= b, q == -1)))
        return z3.Implies(b > 0, z3.And(positive, negative, z3.Implies(b == 1, q == a)))

    def beside(self, other: Quotient) -> Expr:
        """A smaller dividend, and a divisor that takes it no nearer to the other: no greater a quotient."""
        a, b, q, c, d, r = self.dividend, self.divisor, self.value, other.dividend, other.divisor, other.value
        return z3.Implies(z3.And(b > 0, d > 0, a <= c, z3.Implies(a >= 0, d <= b), z3.Implies(c < 0, b <= d)), q <= r)


def magnitude(v: Expr) -> Expr:
    return z3.If(v < 0, -v, v)


def sign_of_truncated(a: Expr, b: Expr, q: Expr) -> Expr:
    """The sign of a / b truncated."""
    same = z3.Or(z3.And(a >= 0, b > 0), z3.And(a <= 0, b < 0))
    other = z3.Or(z3.And(a <= 0, b > 0), z3.And(a >= 0, b < 0))
    return z3.And(z3.Implies(same, q >= 0), z3.Implies(other, q <= 0))


def lemmas() -> Iterator[tuple[str, Sequence[Expr], Expr]]:
    """(name, premises, claim)."""
    x, y, p, v, r = z3.Ints("x y p v r")
    yield "the sign of a product", [p == x * y], Product(x, y, p).sign
    yield "products with a common factor", [p == x * y, r == x * v], in_order(x, y, p, v, r)
    one, other = Quotient(*z3.Ints("a b q")), Quotient(*z3.Ints("c d r"))
    yield "the size of a quotient", [one.definition], one.size
    yield "quotients in order", [one.definition, other.definition], one.beside(other)
    a, b, q, rest = z3.Ints("a b q rest")
    truncated = [
        b != 0,
        a == b * q + rest,
        magnitude(rest) < magnitude(b),
        z3.Implies(a >= 0, rest >= 0),
        z3.Implies(a <= 0, rest <= 0),
    ]
    yield "truncation is by magnitude", truncated, Quotient(magnitude(a), magnitude(b), magnitude(q)).definition
    yield "the sign of a truncated quotient", truncated, sign_of_truncated(a, b, q)
