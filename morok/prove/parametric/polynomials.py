"""Unknown integers as polynomials, so that what is equal by the laws of rings is the same term."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from morok.prove import smt
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

INT: Final = smt.IntSort()
TIMES: Final = smt.Function(Symbol("function", "times"), INT, INT, INT)

COMPARISONS: Final[Mapping[str, Callable[[Expr, Expr], Expr]]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: smt.Not(a == b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
DIVISIONS: Final = 3  # of a polynomial by another, at most: by one monomial more would not come to an end
Monomial = tuple[Expr, ...]


class Integer:
    """A polynomial over unknowns: the coefficients, by the unknowns that they are multiplied with."""

    __slots__ = ("_term", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {m: c for m, c in terms.items() if c}
        self._term: Expr | None = None

    @property
    def known(self) -> int | None:
        """The number that it is; None where something in it is unknown."""
        return self.terms.get((), 0) if not self.terms or self.terms.keys() == {()} else None

    @property
    def product(self) -> Monomial | None:
        """The factors of a product of unknowns; None of a sum, or where there is another coefficient than 1."""
        ((factors, coefficient), *others) = self.terms.items() if self.terms else [((), 0)]
        return factors if factors and coefficient == 1 and not others else None

    def __add__(self, other: Integer | int) -> Integer:
        terms = dict(self.terms)
        for m, c in integer(other).terms.items():
            terms[m] = terms.get(m, 0) + c
        return Integer(terms)

    def __neg__(self) -> Integer:
        return Integer({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Integer | int) -> Integer:
        return self + -integer(other)

    def __mul__(self, other: Integer | int) -> Integer:
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in integer(other).terms.items():
                key = tuple(sorted((*m, *n), key=_order))
                terms[key] = terms.get(key, 0) + c * d
        return Integer(terms)

    def where(self, unknown: Expr, value: Integer) -> Integer:
        """The same number, where an unknown has this value."""
        total = Integer({})
        for factors, coefficient in self.terms.items():
            product = integer(coefficient)
            for f in factors:
                product = product * (value if f is unknown else integer(f))
            total = total + product
        return total

    def same(self, other: Integer | int) -> bool:
        """True if both are the same polynomial."""
        return self.terms == integer(other).terms

    def split(self, factors: Monomial) -> tuple[Integer, Integer]:
        """(q, r) with self = q * the product of the factors + r, where no monomial of r has all the factors."""
        q: dict[Monomial, int] = {}
        r: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms.items():
            rest = without(monomial, factors)
            if rest is None:
                r[monomial] = coefficient
            else:
                q[rest] = coefficient
        return Integer(q), Integer(r)

    def divided_by(self, n: Integer) -> tuple[Integer, Integer]:
        """(q, r) with self = q * n + r, by the greatest monomial of n; q is 0 where that is none that can be divided by."""
        lead = max(n.terms, key=len, default=())
        if not lead or abs(n.terms[lead]) != 1 or sum(len(m) == len(lead) for m in n.terms) > 1:
            return Integer({}), self
        q, r = Integer({}), self
        for _ in range(DIVISIONS):
            more, _rest = r.split(lead)
            if not more.terms:
                break
            more = more * n.terms[lead]
            q, r = q + more, r - more * n
        return q, r

    @property
    def term(self) -> Expr:
        """The term of a sum of products."""
        if self.known is not None:  # not kept: numbers may outlive the terms of a question
            return smt.IntVal(self.known)
        if self._term is None:
            self._term = self._sum()
        return self._term

    def _sum(self) -> Expr:
        summands = []
        for factors, coefficient in sorted(self.terms.items(), key=lambda p: [_order(a) for a in p[0]]):
            term: Expr | None = None
            for f in reversed(factors):
                term = f if term is None else TIMES(f, term)
            if term is None:
                summands.append(smt.IntVal(coefficient))
            else:
                summands.append(term if coefficient == 1 else smt.IntVal(coefficient) * term)
        return smt.Sum(summands)


def _order(unknown: Expr) -> int:
    return unknown.number


def without(monomial: Monomial, factors: Iterable[Expr]) -> Monomial | None:
    """The other factors of a monomial; None if it lacks one of these."""
    rest = list(monomial)
    for f in factors:
        at = next((k for k, r in enumerate(rest) if r is f), None)
        if at is None:
            return None
        del rest[at]
    return tuple(rest)


def integer(value: Integer | Expr | int) -> Integer:
    """A number or a term as a polynomial."""
    if isinstance(value, Integer):
        return value
    if isinstance(value, int):
        return Integer({(): value})
    return Integer({(): value.value}) if value.head == "value" else Integer({(value,): 1})


def least(a: Integer, b: Integer) -> Integer:
    """The lesser of two numbers: of numbers as far apart, by the same unknown."""
    d = a - b
    if d.known is not None:
        return a if d.known < 0 else b
    if d.terms[min(d.terms, key=lambda m: (-len(m), [_order(f) for f in m]))] < 0:
        d, b = -d, a
    return b + integer(smt.If(d.term < 0, d.term, 0))


def within(t: Integer, low: Integer | int, end: Integer) -> Expr:
    """The condition low <= t < end."""
    return smt.And(integer(low).term <= t.term, t.term < end.term)
