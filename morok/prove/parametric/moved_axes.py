"""Shapes with permuted axes, and the row-major places in them: axes of length 1 may stand anywhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import Integer, within
from morok.prove.parametric.quantified import every, exception
from morok.prove.parametric.rule_values import Indices
from morok.prove.parametric.setting import Setting
from morok.prove.smt import And, Expr, Not

OF_SHAPES: Final = (laws.SIZE, laws.FLAT, laws.DIGIT)


class Moved(NamedTuple):
    """Two shapes, of which the other one has the axes of the one as a permutation says, where that is one.

    turned  two axes, which have changed their order if any have that are longer than 1
    """

    one: laws.Shape
    other: laws.Shape
    to: Indices
    back: Indices
    so: Expr
    turned: tuple[Integer, Integer]


def about(s: Setting) -> None:
    """Add what shapes with permuted axes have to do with each other: the number of elements, the digits of places, places."""
    if not s.views.permuted:
        return
    applied = [t for t in s.terms() if t.head == "apply" and t.data in OF_SHAPES and t.args[0] not in s.pieces]
    for m in _pairs(s, list(dict.fromkeys(t.args[0] for t in applied))):
        s.law(laws.permuted_elements, m.one, m.other, m.so)
        for t in applied:
            for k, p in _axes(s, m, t) if t.data is laws.DIGIT else ():
                place = s.polynomial(t.args[1])
                s.law(laws.digits_of_permuted, m.one, m.other, m.to, m.turned, (place, k, p), where=m.so)
        places = [t for t in applied if t.data is laws.FLAT]
        for one, other in itertools.product(places, places):
            if one.args[0] is m.one[0] and other.args[0] is m.other[0]:
                _places(s, m, one, other)


def _pairs(s: Setting, shapes: list[Expr]) -> Iterator[Moved]:
    for (one, a), (other, b) in itertools.permutations([(t, s.sequences[t]) for t in shapes], 2):
        for number, (rank, to, back, so) in enumerate(s.views.permuted):
            if rank.same(a[0]) and rank.same(b[0]):
                size, its_size = _numbers(s, a[1]), _numbers(s, b[1])
                with s.anywhere() as place, s.inside(place, rank):
                    permuted = its_size(place).same(size(to(place)))
                if permuted:
                    if (one, other, number) not in s.views.turned:
                        s.views.turned[one, other, number] = s.unknown("turned"), s.unknown("turned")
                    pair = s.views.turned[one, other, number]
                    yield Moved((one, rank, size), (other, rank, its_size), to, back, so, pair)


def _numbers(s: Setting, of: Callable[[Integer], Expr]) -> Indices:
    return lambda k: s.number_of(of(k))


def _axes(s: Setting, m: Moved, digit: Expr) -> Iterator[tuple[Integer, Integer]]:
    """An axis of the other shape, and the one's that it is, where a digit is along either."""
    shape, _, axis = digit.args
    if axis.head != "apply":
        return
    inner = s.polynomial(axis.args[0])
    if shape is m.other[0] and m.back(inner).term is axis:
        yield s.polynomial(axis), inner
    if shape is m.one[0] and m.to(inner).term is axis:
        yield inner, s.polynomial(axis)


def _places(s: Setting, m: Moved, one: Expr, other: Expr) -> None:
    """The places of index vectors that are permuted as the shapes are."""
    _, rank, size = m.one
    i, j = (_numbers(s, s.sequences[x.args[1]][1]) for x in (one, other))

    def alike(k: Integer) -> Expr:
        return j(k).term == i(m.to(k)).term

    inside = every(s, rank, lambda k: within(i(k), 0, size(k)))
    where = And(m.so, inside, Not(exception(s, rank, alike)))
    s.law(laws.place_of_permuted, m.one, m.to, m.turned, (one, other), where=where)


__all__ = ["about"]
