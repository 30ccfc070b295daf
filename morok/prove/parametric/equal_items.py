"""Sums of equal values: as often as these are there, their product with that number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from morok.prove import smt
from morok.prove.parametric.op_functions import constant_number, one_of
from morok.prove.parametric.polynomials import Integer
from morok.prove.parametric.setting import Setting
from morok.prove.smt import Applicable, Expr

REPEATED: Final = "A sum of equal numbers is one of them times how many there are."


def about(s: Setting, combine: Applicable | None, t: Expr, first: Expr, count: Integer, unless: Expr) -> None:
    """Add that a sum of so many values, which `unless` something holds are all the first one, is any product of it with a number
    that is as much, and such a number where the value is 1.
    """
    if combine not in s.algebra.repeated:
        return
    times, dtype = s.algebra.repeated[combine]
    one = one_of(dtype)
    for p in s.terms():
        for value, n in _products(p, times, dtype, one):
            same = smt.And(count.term == n.term, count.term > 0, first == value)
            s.instance(REPEATED, smt.Implies(same, smt.Or(unless, t == p)))


def _products(p: Expr, times: Applicable, dtype: str, one: Expr) -> Iterator[tuple[Expr, Integer]]:
    """The values, and the numbers of a dtype, of which a term is the product."""
    if (n := constant_number(p, dtype)) is not None:
        yield one, n
    if p.head == "apply" and p.data is times:
        for x, y in (p.args, p.args[::-1]):
            if (n := constant_number(y, dtype)) is not None:
                yield x, n
