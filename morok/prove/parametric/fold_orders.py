"""The instances of the laws of folds over lanes whose order means nothing: by an op that is associative and commutative."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Final

from morok.prove import smt
from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import Integer, integer
from morok.prove.parametric.setting import Setting, occurs
from morok.prove.smt import Applicable, Expr

MOST_ITEMS: Final = 16  # of a fold that is written out
MOST_FOLDS: Final = 8  # that are compared with one another


def about(s: Setting) -> None:
    """Add the instances at the folds that are spoken of, and at what is combined like their items."""
    applied = [t for t in s.terms() if t.head == "apply"]
    combining = set(s.regrouped.values())
    over_axes = {f.by.combine for f in s.folded.values()}
    for t in applied:
        if (
            t.data in combining
            or t.data in over_axes
            or (t.data in s.regrouped and s.sequences[t.args[0]][0].known in range(2, MOST_ITEMS + 1))
        ):
            _in_any_order(s, t)
        if t.data in combining:
            _of_two(s, t)
    folds = [t for t in dict.fromkeys(applied) if t.data in s.regrouped]
    for one, other in itertools.permutations(folds[:MOST_FOLDS], 2):
        if one.data is other.data and (one, other) not in s.reordered:
            s.reordered[one, other] = _reordered(s, one, other)
    for one, other in itertools.product(folds[:MOST_FOLDS], folds):
        if one.data is other.data and one is not other and (one, other) not in s.dealt_out:
            s.dealt_out.add((one, other))
            _dealt_out(s, one, other)


def _of_two(s: Setting, t: Expr) -> None:
    """A value combined with itself, and with what adds nothing."""
    a, b = t.args
    if t.data in s.algebra.idempotent:
        s.instance("A value combined with itself is that value, where nothing is counted.", smt.Implies(a == b, t == a))
    nothing = s.algebra.neutral.get(t.data)
    if nothing is not None:
        for x, y in ((a, b), (b, a)):
            s.instance("Nothing added leaves a value as it is.", smt.Implies(y == nothing, t == x))


def _in_any_order(s: Setting, t: Expr) -> None:
    """The things that are combined, in one of the orders."""
    combine = s.regrouped.get(t.data, t.data)
    items = sorted(_items(s, t, combine), key=lambda x: x.number)
    if 1 < len(items) <= MOST_ITEMS:
        found = items[-1]
        for x in reversed(items[:-1]):
            found = combine(x, found)
        if found is not t:
            s.instance("Values may be combined in any order and grouping.", t == found)


def _items(s: Setting, t: Expr, combine: Applicable) -> Iterator[Expr]:
    """The values that a term combines: of a fold of a known number its items."""
    if t.head == "apply" and t.data is combine:
        for a in t.args:
            yield from _items(s, a, combine)
    elif (
        t.head == "apply"
        and s.regrouped.get(t.data) is combine
        and s.sequences[t.args[0]][0].known in range(1, MOST_ITEMS + 1)
    ):
        length, item = s.sequences[t.args[0]]
        for k in range(length.known or 0):
            yield from _items(s, item(integer(k)), combine)
    elif t in s.combined and s.combined[t].data is combine:
        yield from _items(s, s.combined[t], combine)
    else:
        yield t


def _reordered(s: Setting, one: Expr, other: Expr) -> bool:
    """Add what makes two folds of as many items one, where those of the one are those of the other at places that the terms show;
    truth of their showing such.
    """
    (length, item), (its_length, its_item) = (s.sequences[t.args[0]] for t in (one, other))
    if length.known == 1:
        return False
    with s.anywhere() as place:
        found = _place_of(s, place, item(place), its_item(place))
    if found is None or found.same(place):
        return False

    def to(k: Integer) -> Integer:
        its_item(k)  # with what is known of the parts of numbers there
        return s.polynomial(smt.substitute(found.term, (place.term, k.term)))

    wide, early, late, unlike = (s.unknown(what) for what in ("outside", "early", "late", "unlike"))
    there = (item(to(unlike)), its_item(unlike))
    twice = (early, to(early)), (late, to(late))
    as_many = length.term == its_length.term
    s.law(laws.in_another_order, length, (wide, to(wide)), twice, unlike, there, one == other, where=as_many)
    return True


def _dealt_out(s: Setting, one: Expr, other: Expr) -> None:
    """A fold of which the other has every so-manieth item: that of all the folds of such items."""
    (length, item), (its_length, its_item) = (s.sequences[t.args[0]] for t in (one, other))
    with s.anywhere() as place:
        step = _step_of(s, place, item(place), its_item(place))
    if not 1 < step <= MOST_ITEMS:
        return
    combine = s.regrouped[one.data]

    def from_(first: int) -> Expr:
        found: Expr = one.data(s.tuple_of(its_length, lambda k: item(k * step + first)))
        return found

    parts = [from_(k) for k in range(step)]
    s.instance(
        "A fold is that of every n-th item, from each of the first n on, combined.",
        smt.Implies(
            smt.And(its_length.term > 0, length.term == (its_length * step).term),
            one == functools.reduce(combine, parts),
        ),
    )


def _step_of(s: Setting, place: Integer, one: Expr, other: Expr) -> int:
    """The number of items of the one between two of the other, as numbers by which terms differ show; 0 if none do."""
    if one is other:
        return 0
    if one.sort is smt.IntSort():
        a, b = (s.polynomial(t) for t in (one, other))
        step = b.terms.get((place.term,), 0)
        return step if a.same(place) and not occurs(place, b - place * step) else 0
    if (one.head, one.data, len(one.args)) != (other.head, other.data, len(other.args)):
        return 0
    differing = [(a, b) for a, b in zip(one.args, other.args, strict=True) if a is not b]
    return _step_of(s, place, *differing[0]) if len(differing) == 1 else 0


def _place_of(s: Setting, place: Integer, one: Expr, other: Expr) -> Integer | None:
    """The place, seen from a place of the other, at which the one has the same item: wherever terms differ, as the two numbers
    there say; None where nothing looks like that.
    """
    if one is other:
        return None
    if one.sort is smt.IntSort():
        a, b = s.polynomial(one), s.polynomial(other)
        rest = a - place
        if occurs(place, rest):
            return None
        return b - rest
    if (one.head, one.data, len(one.args)) != (other.head, other.data, len(other.args)):
        return None
    first, *others = [_place_of(s, place, a, b) for a, b in zip(one.args, other.args, strict=True) if a is not b]
    return first if first is not None and all(o is not None and o.same(first) for o in others) else None


__all__ = ["about"]
