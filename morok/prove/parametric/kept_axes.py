"""The axes that a tensor is left with, in order, when some are gone: they are folded, or left out because they have length 1."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

from morok.prove import smt
from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import INT, Integer, integer, within
from morok.prove.parametric.quantified import exception
from morok.prove.parametric.rule_values import Items, Remaining
from morok.prove.parametric.rule_values import number as as_number
from morok.prove.parametric.sequences import chosen
from morok.prove.parametric.setting import Setting
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.smt.term_graphs import subterms
from morok.prove.symbol import Symbol

ANYWHERE: Final = smt.Int(Symbol("fixed", "any item"))
DEEPEST: Final = 3  # places that so many choices of axes give, of one another's, are not gone into
LEFT_OUT: Final = "Places do not depend on axes of length 1."
MOST: Final = 10  # choices of axes that are compared


def key_of(s: Setting, rank: Integer, axes: Items) -> tuple[Expr, ...]:
    """A choice of axes, by what the list of those that are gone has at any place."""
    if axes.length.known == 0:
        return rank.term, axes.length.term
    with s.anywhere() as place:
        named = as_number(axes.at(place)).term
    return rank.term, axes.length.term, smt.substitute(named, (place.term, ANYWHERE))


def without(s: Setting, rank: Integer, axes: Items, parts: Sequence[Items], only_if: Expr) -> Remaining:
    """The axes that are left of so many without those of a list. Where `only_if` holds, it names axes, each once.

    parts  the lists that this one consists of, one behind the other
    """
    found_before = known(s, rank, axes, parts)
    if found_before is not None:
        return found_before
    if axes.length.known == 0:
        return s.kept.setdefault(key_of(s, rank, axes), last_of(rank, rank))
    if axes.length.known == 1:
        return s.kept.setdefault(key_of(s, rank, axes), all_but(rank, as_number(axes.at(integer(0)))))
    if key_of(s, rank, axes)[-1] is ANYWHERE:  # the first axes, as they are
        return s.kept.setdefault(key_of(s, rank, axes), last_of(rank, rank - axes.length))
    gone = smt.Function(s.symbol("gone"), INT, laws.BOOL)
    slot, axis, place = (
        smt.Function(s.symbol(what), INT, INT) for what in ("item of the list", "axis left", "place left")
    )
    count = rank - axes.length
    made = s.kept[key_of(s, rank, axes)] = Remaining(
        rank, lambda p: gone(p.term), count, lambda j: integer(axis(j.term)), lambda p: integer(place(p.term)), only_if
    )
    s.premise(smt.Implies(only_if, smt.And(axes.length.term >= 0, count.term >= 0)))

    def found(p: Integer) -> Expr:
        k, j = integer(slot(p.term)), integer(place(p.term))
        listed = smt.And(within(k, 0, axes.length), as_number(axes.at(k)).term == p.term)
        return smt.If(gone(p.term), listed, smt.And(within(j, 0, count), axis(j.term) == p.term))

    def left(j: Integer) -> Expr:
        p = integer(axis(j.term))
        return smt.And(within(p, 0, rank), smt.Not(gone(p.term)), place(p.term) == j.term)

    s.for_all(rank, found, only_if, lambda p: gone(p.term), unless=axis, deepest=DEEPEST)
    s.for_all(count, left, only_if, lambda j: axis(j.term) == 0, unless=place, deepest=DEEPEST)
    start = integer(0)
    for part in parts:
        _each_is_gone(s, part, start, (gone, slot), only_if)
        start = start + part.length
    return made


def known(s: Setting, rank: Integer, axes: Items, parts: Sequence[Items]) -> Remaining | None:
    """The axes left without those of a list that is read already, or consists of one that is and of some that this one leaves."""
    found = s.kept.get(key_of(s, rank, axes))
    if found is not None or len(parts) != 2:
        return found
    for one, other in (parts, reversed(parts)):
        inner = s.kept.get(key_of(s, rank, one))
        if inner is None:
            continue
        with s.anywhere() as place:
            named, axis = as_number(other.at(place)).term, inner.axis(place).term
            among = named.args[0] if named.head == axis.head == "apply" and named.data is axis.data else None
        if among is None:
            continue
        outer = s.kept.get((inner.count.term, other.length.term, smt.substitute(among, (place.term, ANYWHERE))))
        if outer is not None:
            return through(inner, outer)
    return None


def _each_is_gone(s: Setting, part: Items, start: Integer, told: tuple[Applicable, Applicable], only_if: Expr) -> None:
    """Each axis of a list, which begins with so many before it, is gone, and listed at its place alone."""
    gone, slot = told

    def listed(k: Integer) -> Expr:
        p = as_number(part.at(k)).term
        return smt.And(gone(p), slot(p) == (start + k).term)

    if part.length.known is not None:
        for k in map(integer, range(part.length.known)):
            s.premise(smt.Implies(only_if, listed(k)))
        return
    with s.anywhere() as place:
        direct = any(
            place.term is a for t in subterms([as_number(part.at(place)).term]) if t.head == "apply" for a in t.args
        )
    s.for_all(part.length, listed, only_if, None if direct else lambda k: gone(k.term), unless=slot, deepest=DEEPEST)


def through(inner: Remaining, outer: Remaining) -> Remaining:
    """The axes that are left of a tensor when others of those that are left are gone, too."""
    return Remaining(
        inner.rank,
        lambda p: smt.Or(inner.gone(p), outer.gone(inner.place(p))),
        outer.count,
        lambda j: inner.axis(outer.axis(j)),
        lambda p: outer.place(inner.place(p)),
        smt.And(inner.so, outer.so, outer.rank.term == inner.count.term),
    )


def beside(first: Remaining, second: Remaining) -> Remaining:
    """The axes of two tensors behind one another, of which only is asked which are gone."""

    def gone(p: Integer) -> Expr:
        return smt.If(p.term < first.rank.term, first.gone(p), second.gone(p - first.rank))

    def none(p: Integer) -> Integer:
        raise Unsupported("the axes left of two tensors")

    return Remaining(first.rank + second.rank, gone, first.count + second.count, none, none, smt.FALSE)


def first_of(rank: Integer, count: Integer) -> Remaining:
    """The first axes, so many."""
    return Remaining(rank, lambda p: p.term >= count.term, count, lambda j: j, lambda p: p, within(count, 0, rank + 1))


def last_of(rank: Integer, count: Integer) -> Remaining:
    """The last axes, so many."""
    start = rank - count
    if count.known == 0:
        return Remaining(rank, lambda p: smt.TRUE, count, lambda j: j, lambda p: p)
    return Remaining(
        rank, lambda p: p.term < start.term, count, lambda j: j + start, lambda p: p - start, within(count, 0, rank + 1)
    )


def all_but(rank: Integer, k: Integer) -> Remaining:
    """All axes but one."""
    return Remaining(
        rank,
        lambda p: smt.TRUE if rank.known == 1 else p.term == k.term,
        rank - 1,
        lambda j: chosen(j.term < k.term, j, j + 1),
        lambda p: chosen(p.term < k.term, p, p - 1),
        within(k, 0, rank),
        k,
    )


def choices(s: Setting) -> list[Remaining]:
    """The choices of axes of a rule, and those that two of them after one another are."""
    found = list(s.kept.values())
    for inner, outer in itertools.permutations(found, 2):
        if outer.rank.same(inner.count):
            found.append(through(inner, outer))
    return found


def between(s: Setting, rank: Integer, count: Integer) -> list[Remaining]:
    """The choices of so many axes of so many of which something is known; where there are none, the first and the last ones."""
    if not s.kept or rank.same(count):
        return []
    found = [k for k in choices(s) if k.rank.same(rank) and k.count.same(count)]
    if not found and min((rank - count).terms.values()) > 0:
        return [first_of(rank, count), last_of(rank, count)]
    return found


def left_out(s: Setting, kept: Remaining, size: Callable[[Integer], Expr], its_size: Callable[[Integer], Expr]) -> Expr:
    """The condition that one shape is another without the axes that are gone, which have length 1."""
    others = exception(s, kept.rank, lambda p: smt.Implies(kept.gone(p), s.number_of(size(p)).term == 1))
    unlike = exception(s, kept.count, lambda j: s.number_of(its_size(j)).term == s.number_of(size(kept.axis(j))).term)
    return smt.And(smt.Not(others), smt.Not(unlike), kept.so)


def compare(s: Setting) -> None:
    """The equalities of two choices of axes, if these are the same axes."""
    found = choices(s)
    if len(found) > MOST:
        raise Unsupported("more choices of axes than can be compared")
    for a, b in itertools.combinations(found, 2):
        if not (a.rank.same(b.rank) and a.count.same(b.count)):
            continue
        p = s.unknown("axis gone for one alone")
        so = smt.Bool(s.symbol("same axes"))
        unlike = smt.And(within(p, 0, a.rank), smt.Not(a.gone(p) == b.gone(p)))
        alike = "Where the same axes are gone, as many are left, in the same order."
        s.instance(alike, smt.Or(so, smt.Not(smt.And(a.so, b.so, a.rank.term == b.rank.term)), unlike))
        s.instance(alike, smt.Implies(so, a.count.term == b.count.term))
        _same_order(s, a, b, so)


def _same_order(s: Setting, a: Remaining, b: Remaining, so: Expr) -> None:
    def places(p: Integer) -> Expr:
        return smt.Or(a.gone(p), a.place(p).term == b.place(p).term)

    def axes(j: Integer) -> Expr:
        return a.axis(j).term == b.axis(j).term

    s.for_all(a.rank, places, so, lambda p: smt.And(a.place(p).term == 0, b.place(p).term == 0), deepest=DEEPEST)
    s.for_all(a.count, axes, so, deepest=DEEPEST)
