"""The instances of the laws of folds over axes. `tests/prove/test_reductions.py` tries each law by brute force at small sizes.

That two folds are one holds of any, of floats too; all else of integers that wrap, and of truths, whose order means nothing. An
element may have no value: a fold of such has none.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Final

from morok.prove import smt
from morok.prove.parametric import equal_items, kept_axes, laws, views
from morok.prove.parametric.element_rules import relate
from morok.prove.parametric.number_ops import JOINING, decided, has_value, is_valid, number
from morok.prove.parametric.polynomials import INT, Integer, integer, within
from morok.prove.parametric.quantified import every, exception
from morok.prove.parametric.reductions import fold
from morok.prove.parametric.rule_values import Folded, Indices, Items
from morok.prove.parametric.sequences import chosen
from morok.prove.parametric.setting import Setting, occurs
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.smt.term_graphs import subterms

MOST: Final = 16  # folds that are compared
DEEPEST: Final = 2  # folds within folds are compared so deep
PRODUCT: Final = "A product with a sum is the sum of the products."


def about(s: Setting, said: dict[object, bool]) -> None:
    """Add the instances at the folds that are spoken of. `said`: of which it was done; true of those taken apart."""
    for t in list(s.terms()):
        if t in said:
            continue
        if t.head == "apply" and t.data in s.algebra.rings:
            said |= dict.fromkeys((x for x in t.args if x in s.folded), True)
    for t in list(s.terms()):
        if t in said:
            continue
        if t in s.folded:
            s.within, s.sides = s.folded[t].within, frozenset(s.folded[t].sides)
            if s.folded[t].by.dtype == "index" and s.folded[t].kept.rank.known == 1:
                _of_a_row(s, t, s.folded[t])
            said[t] = s.folded[t].by.combine is not None and _taken_apart(s, t, s.folded[t])
            s.within, s.sides = (), frozenset()
        elif t.head == "apply" and t.data in s.algebra.rings:
            said[t] = True
            s.sides = frozenset(side for x in t.args if x in s.folded for side in s.folded[x].sides)
            _product(s, t)
            s.sides = frozenset()
        elif t.head == "apply" and t.data in s.algebra.sums:
            said[t] = True
            _sum(s, t, s.algebra.sums[t.data])
    whole = [(t, f) for t, f in s.folded.items() if not said.get(t, True)]
    if len(whole) > MOST:
        raise Unsupported("more folds than can be compared")
    for (t, f), (u, g) in itertools.combinations(whole, 2):
        alike = (f.by.op, f.by.dtype, f.within) == (g.by.op, g.by.dtype, g.within) and len(f.sides | g.sides) > 1
        if (t, u) not in said and alike and len(f.within) < DEEPEST:
            said[t, u] = True
            _compare(s, (t, f), (u, g))


def full(s: Setting, f: Folded) -> Expr:
    """The truth of no axis that is folded being empty."""
    return every(s, f.kept.rank, lambda p: smt.Implies(f.kept.gone(p), f.size(p).term > 0))


# two folds


def _compare(s: Setting, one: tuple[Expr, Folded], other: tuple[Expr, Folded]) -> None:
    """Folds of the same elements: at the same indices or, where an order means nothing, with the axes in another order, or some
    of them backwards.
    """
    _equal(s, one, other, lambda p: p, lambda w: w)
    if one[1].by.combine is None:
        return
    for rank, to, _, only_if in s.views.permuted:
        if rank.same(one[1].kept.rank) and rank.same(other[1].kept.rank):
            for a, b in ((one, other), (other, one)):
                _equal(s, a, b, to, _moved(to), only_if)
    for flags in s.views.flipped:
        if flags.length.same(other[1].kept.rank):
            _equal(s, one, other, lambda p: p, _backwards(flags, other[1].size))
    _of_all(s, one, other)


def _of_all(s: Setting, one: tuple[Expr, Folded], other: tuple[Expr, Folded]) -> None:
    """Folds of all elements of tensors of several shapes: as these are in row-major order. A target may ask for sizes that are
    negative: the product of two of these is no number of elements.
    """
    (t, f), (u, g) = one, other
    ranks = f.kept.rank, g.kept.rank
    reshaped = any(t.head == "apply" and t.data is laws.SIZE for t in s.terms())
    if ranks[0].same(ranks[1]) or not (reshaped or all(r.known is not None for r in ranks)):
        return
    left = smt.Or(*(exception(s, x.kept.rank, x.kept.gone) for x in (f, g)))
    negative = smt.Or(*(_negative(s, x) for x in (f, g)))
    many, its = (views.elements(s, x.kept.rank, x.size) for x in (f, g))
    place = s.unknown("place")
    inside = within(place, 0, integer(many))
    s.within = (*f.within, inside)
    here, there = (x.element(views.digits(s, x.kept.rank, x.size, place)) for x in (f, g))
    s.within = ()
    differ = smt.And(inside, smt.Not(here == there))
    s.instance(
        "Folds of all elements of tensors that have the same ones in row-major order are one.",
        smt.Or(left, negative, smt.Not(many == its), differ, t == u),
    )


def _negative(s: Setting, f: Folded) -> Expr:
    """The condition that a size of what is folded is negative."""
    return exception(s, f.kept.rank, lambda p: f.size(p).term >= 0)


def _moved(to: Indices) -> Callable[[Indices], Indices]:
    return lambda w: lambda p: w(to(p))


def _backwards(flags: Items, size: Indices) -> Callable[[Indices], Indices]:
    return lambda w: lambda p: chosen(flags.at(p), size(p) - 1 - w(p), w(p))


def _equal(
    s: Setting,
    one: tuple[Expr, Folded],
    other: tuple[Expr, Folded],
    to: Indices,
    index: Callable[[Indices], Indices],
    only_if: Expr = smt.TRUE,
) -> None:
    """Two folds are one, or there is an axis or an index at which they differ.

    to     the axis of the other that an axis is
    index  of an index vector of the other that of the one
    """
    (t, f), (u, g) = one, other
    w, inside = _index(s, g)
    p = s.unknown("axis")
    same_size = smt.Implies(f.kept.gone(p), f.size(p).term == g.size(to(p)).term)
    unlike = smt.And(within(p, 0, f.kept.rank), smt.Not(smt.And(f.kept.gone(p) == g.kept.gone(to(p)), same_size)))
    s.within, s.sides = (*f.within, inside), frozenset(f.sides)
    here = f.element(index(w))
    s.sides = frozenset(g.sides)
    there = g.element(w)
    differ = smt.And(inside, smt.Not(here == there))
    s.within, s.sides = (), frozenset()
    for (whole, a), b in (((t, here), there), ((u, there), here)):
        if "pattern" in (f if a is here else g).sides and relate(s, f.by.dtype, a, b):
            s.instance(
                "A fold has a value where each of its elements has one.",
                smt.Implies(smt.And(inside, has_value(s, whole)), has_value(s, a)),
            )
    ranks = smt.Not(f.kept.rank.term == g.kept.rank.term)
    s.instance(
        "Folds of the same elements over the same indices are one.",
        smt.Implies(only_if, smt.Or(ranks, unlike, differ, t == u)),
    )


# one fold


def _taken_apart(s: Setting, t: Expr, f: Folded) -> bool:
    """Add what a fold is made of; truth of it being made of other folds."""
    if s.few_elements or f.by.times in s.algebra.rings:
        _of_nothing(s, t, f)
    if s.few_elements:
        several = exception(s, f.kept.rank, lambda p: smt.Implies(f.kept.gone(p), f.size(p).term == 1))
        s.instance("A fold of one element is that element.", smt.Or(several, t == f.element(lambda p: integer(0))))
    if s.few_elements and (f.by.idempotent or f.by.combine in s.algebra.repeated):
        _of_equals(s, t, f)
    before = len(s.laws)
    with s.indices() as b:
        element = f.element(b)
    if element.head == "apply" and element.data is f.by.combine:
        parts = [fold(s, f.by, f.kept, f.size, _operand(s, f, k)) for k in range(2)]
        s.instance("A fold of combinations is the combination of the folds.", _combination(s, t, f, parts))
        if f.by.combine not in JOINING:
            s.combined[t] = f.by.combine(*parts)
    elif element.head == "apply" and element.data in _together(s, f):
        parts = [fold(s, f.by, f.kept, f.size, _operand(s, f, k)) for k in range(2)]
        s.instance("A sum of differences is the difference of the sums.", t == element.data(*parts))
    if element.head == "apply" and element.data in f.by.outward:
        inner = fold(s, f.by.outward[element.data](), f.kept, f.size, _operand(s, f, 0))
        one = _one_value(s, f, t, element.data(inner))
        s.instance("What is computed of elements may be computed of their fold.", one)
    if element.head == "apply" and element.data is f.by.times:
        _product_with_sums(s, t, f, element)
    if _is_fold(s, element, f):
        there, flat = _flattened(s, f, lambda at: (f.element(at), lambda e: e))
        s.instance("A fold of folds is the fold of all that they fold.", smt.Implies(there, t == flat))
    if element.head == "apply" and element.data is f.by.times:
        k = next((k for k, x in enumerate(element.args) if _is_fold(s, x, f)), None)
        if k is not None:
            _distributed(s, t, f, k)
    chosen_folds = _chooses_folds(s)
    for rank, axis, starts in () if f.part or chosen_folds else s.views.cuts:
        if rank.same(f.kept.rank):
            _cut(s, t, f, axis, starts)
    chosen_elements = element.head == "ite" or (element.head == "apply" and element.data in s.selections)
    for rank, begin, length in s.views.boxes if chosen_elements and not f.part else ():
        if rank.same(f.kept.rank) and not _all_of(s, f, length):
            _in_a_box(s, t, f, begin, length)
    apart = len(s.laws) > before
    if element.head == "ite" and chosen_folds:
        _of_what_adds_nothing(s, t, f)
    return apart


def _chooses_folds(s: Setting) -> bool:
    """True if it is claimed what a choice between a fold and something else is."""
    return any(t.head == "ite" and not s.folded.keys().isdisjoint(t.args[1:]) for t in subterms(s.claims))


def _of_nothing(s: Setting, t: Expr, f: Folded) -> None:
    nothing = smt.And(t == f.by.nothing, has_value(s, t))
    s.instance("A fold of nothing is the identity of its op.", smt.Or(full(s, f), nothing))


def _is_fold(s: Setting, t: Expr, f: Folded) -> bool:
    """True if a term is a fold by the same op."""
    return t in s.folded and (s.folded[t].by.op, s.folded[t].by.dtype) == (f.by.op, f.by.dtype)


def _together(s: Setting, f: Folded) -> frozenset[Applicable]:
    """The functions of which the folds are taken together."""
    return frozenset() if f.by.combine is None else s.algebra.together.get(f.by.combine, frozenset())


def _operand(s: Setting, f: Folded, k: int) -> Callable[[Indices], Expr]:
    def at(b: Indices) -> Expr:
        element = f.element(b)
        known = (f.by.combine, f.by.times, *f.by.outward, *_together(s, f))
        if element.head != "apply" or element.data not in known:
            raise Unsupported("elements that are computed otherwise at other indices")
        operand: Expr = element.args[k]
        return operand

    return at


def _flattened(
    s: Setting, f: Folded, inner: Callable[[Indices], tuple[Expr, Callable[[Expr], Expr]]]
) -> tuple[Expr, Expr]:
    """The fold of what folds fold that are folded: over axes of the inner tensor, where the outer ones are of those that are left
    of it; else over the axes of both. And the condition that there are such axes.

    inner   a fold that is folded, and what is folded instead of its elements
    """
    with s.indices() as b:
        g = s.folded[inner(b)[0]]
    kept, first = g.kept, f.kept.rank

    def size(p: Integer) -> Integer:
        found: Integer = chosen(kept.gone(p), g.size(p), f.size(kept.place(p)))
        return found

    def element(at: Indices) -> Expr:
        one, instead = inner(lambda j: at(kept.axis(j)))
        return instead(s.folded[one].element(at))

    def size_of_both(p: Integer) -> Integer:
        found: Integer = chosen(p.term < first.term, f.size(p), g.size(p - first))
        return found

    def element_of_both(at: Indices) -> Expr:
        one, instead = inner(at)
        return instead(s.folded[one].element(lambda p: at(p + first)))

    if first.same(kept.count):
        return kept.so, fold(s, f.by, kept_axes.through(kept, f.kept), size, element)
    return smt.TRUE, fold(s, f.by, kept_axes.beside(f.kept, kept), size_of_both, element_of_both)


def _of_what_adds_nothing(s: Setting, t: Expr, f: Folded) -> None:
    """A fold of elements that add nothing."""
    w, inside = _index(s, f)
    s.within = (*f.within, inside)
    more = smt.And(inside, smt.Not(f.element(w) == f.by.nothing))
    s.within = ()
    s.instance("A fold of the identity of its op is that.", smt.Or(more, smt.And(t == f.by.nothing, has_value(s, t))))


def _index(s: Setting, f: Folded) -> tuple[Indices, Expr]:
    """An index along the axes that a fold is over, of which nothing else is known; and whether there is one."""
    at, inside = smt.Function(s.symbol("index"), INT, INT), smt.Bool(s.symbol("inside"))

    def w(p: Integer) -> Integer:
        return integer(at(p.term))

    s.for_all(
        f.kept.rank, lambda p: smt.Implies(f.kept.gone(p), within(w(p), 0, f.size(p))), inside, lambda p: w(p).term == 0
    )
    return w, inside


def _product_with_sums(s: Setting, t: Expr, f: Folded, element: Expr) -> None:
    """A sum of products, of which a factor is a sum at every index: two sums of products."""
    times, combine = f.by.times, f.by.combine
    assert times is not None
    assert combine is not None
    k = next((k for k, x in enumerate(element.args) if x.head == "apply" and x.data is combine), None)
    if k is None:
        return

    def summand(j: int) -> Callable[[Indices], Expr]:
        def at(b: Indices) -> Expr:
            product: Expr = times(_summand(_operand(s, f, k)(b), combine, j), _operand(s, f, 1 - k)(b))
            return product

        return at

    s.combined[t] = combine(*(fold(s, f.by, f.kept, f.size, summand(j)) for j in range(2)))
    s.instance(PRODUCT, t == s.combined[t])


def _summand(t: Expr, combine: Applicable, k: int) -> Expr:
    if t.head != "apply" or t.data is not combine:
        raise Unsupported("elements that are computed otherwise at other indices")
    found: Expr = t.args[k]
    return found


def _distributed(s: Setting, t: Expr, f: Folded, k: int) -> None:
    """A sum of products with sums."""
    times = f.by.times
    assert times is not None

    def inner(at: Indices) -> tuple[Expr, Callable[[Expr], Expr]]:
        factors = [_operand(s, f, 0)(at), _operand(s, f, 1)(at)]
        return factors[k], lambda e: times(*(e if j == k else x for j, x in enumerate(factors)))

    with s.indices() as b:
        some = full(s, s.folded[inner(b)[0]])
    there, flat = _flattened(s, f, inner)
    s.instance(PRODUCT, smt.Implies(smt.And(some, there), t == flat))
    s.instance(PRODUCT, smt.Implies(smt.And(smt.Not(some), has_value(s, t)), t == f.by.nothing))


def _product(s: Setting, t: Expr) -> None:
    """A product with a sum; and with other products, and with 0."""
    nothing = s.algebra.rings[t.data]
    x, y = t.args
    found = next(((u, v) for u, v in ((x, y), (y, x)) if u in s.folded and s.folded[u].by.times is t.data), None)
    if found is not None:
        of, factor = found
        g = s.folded[of]
        _of_nothing(s, of, g)
        some = full(s, g)
        product = fold(s, g.by, g.kept, g.size, lambda at: t.data(factor, g.element(at)))
        s.instance(PRODUCT, smt.Implies(some, t == product))
        s.instance(PRODUCT, smt.Implies(smt.And(smt.Not(some), has_value(s, t)), t == nothing))
    if x.head == "apply" and x.data is t.data:
        s.instance(
            "A product of three is one of the first, and of the others.", t == t.data(x.args[0], t.data(x.args[1], y))
        )
    s.instance(
        "A product has a value where both factors have one.",
        smt.Implies(smt.And(has_value(s, x), has_value(s, y)), has_value(s, t)),
    )
    zero = smt.Or(x == nothing, y == nothing)
    s.instance("A product with 0 is 0.", smt.Implies(smt.And(zero, has_value(s, t)), t == nothing))


def _sum(s: Setting, t: Expr, nothing: Expr) -> None:
    x, y = t.args
    s.instance(
        "A sum with 0 is the other number.",
        smt.And(smt.Implies(x == nothing, t == y), smt.Implies(y == nothing, t == x)),
    )


def _of_equals(s: Setting, t: Expr, f: Folded) -> None:
    """A fold of one value: by an op that makes no more of it, or a sum over a known number of axes, or one."""
    w, inside = _index(s, f)
    s.within = (*f.within, inside)
    one = f.element(lambda p: integer(0))
    differ = smt.And(inside, smt.Not(f.element(w) == one))
    s.within = ()
    if f.by.idempotent:
        same = smt.Or(smt.Not(full(s, f)), differ, t == one)
        s.instance("The greatest, or least, of equal values is that value.", same)
    elif (many := _how_many(f)) is not None:
        equal_items.about(s, f.by.combine, t, one, many, smt.Or(smt.Not(full(s, f)), differ))


def _how_many(f: Folded) -> Integer | None:
    """The number of elements that are folded; None where they are along any number of axes."""
    if f.kept.alone is not None:
        return f.size(f.kept.alone)
    if f.kept.rank.known is None:
        return None
    many = integer(1)
    for p in map(integer, range(f.kept.rank.known)):
        many = many * chosen(f.kept.gone(p), f.size(p), integer(1))
    return many


def _of_a_row(s: Setting, t: Expr, f: Folded) -> None:
    """A fold of numbers that grow by as much from each to the next."""
    if s.may_be_invalid or s.invalid_named or f.by.op not in _ROWS:
        return
    with s.anywhere() as place:
        step, first = number(s, f.element(lambda p: place)).split((place.term,))
    if occurs(place, step) or occurs(place, first):
        return

    def is_number(k: Integer) -> Expr:
        one = f.element(lambda p: k)
        return smt.And(has_value(s, one), is_valid(s, one))

    many, numbers = f.size(integer(0)), smt.Not(exception(s, f.size(integer(0)), is_number))
    s.law(_ROWS[f.by.op], many, first, step, number(s, t), where=numbers)
    some = many.term >= (0 if f.by.op == "Add" else 1)
    said = "A sum of numbers is a number, and so is the greatest, or least, of some."
    s.instance(said, smt.Implies(smt.And(some, numbers), has_value(s, t)))


_ROWS: Final = {"Add": laws.sum_of_row, "Max": laws.greatest_of_row, "Min": laws.least_of_row}


def _cut(s: Setting, t: Expr, f: Folded, axis: Integer, starts: list[Integer]) -> None:
    """A fold along an axis, taken apart where tensors begin behind one another."""
    edges = [integer(0), *starts, f.size(axis)]
    behind = (edges[-1] - edges[-2]).terms
    if behind and all(c < 0 for c in behind.values()):  # of sizes: it ends before the last one begins
        return
    parts = []
    for begin, end in itertools.pairwise(edges):

        def size(p: Integer, length: Integer = end - begin) -> Integer:
            found: Integer = chosen(p.term == axis.term, length, f.size(p))
            return found

        def element(at: Indices, begin: Integer = begin) -> Expr:
            return f.element(lambda p: chosen(p.term == axis.term, at(p) + begin, at(p)))

        parts.append(fold(s, f.by, f.kept, size, element, part=True))
    there = smt.And(within(axis, 0, f.kept.rank), f.kept.gone(axis))
    in_order = smt.And(*(a.term <= b.term for a, b in itertools.pairwise(edges)))
    s.instance(
        "A fold is that of its first elements, combined with that of the others.",
        smt.Implies(smt.And(there, in_order), _combination(s, t, f, parts, of_all=True)),
    )


def _all_of(s: Setting, f: Folded, length: Indices) -> bool:
    """True if a box is seen to be as long as what is folded, along any axis."""
    with s.anywhere() as axis:
        return length(axis).same(f.size(axis))


def _in_a_box(s: Setting, t: Expr, f: Folded, begin: Indices, length: Indices) -> None:
    """A fold of elements that add nothing outside of a part of the tensor."""
    kept = f.kept

    def inside_of(w: Indices, p: Integer) -> Expr:
        return smt.Implies(kept.gone(p), within(w(p) - begin(p), 0, length(p)))

    def fits(p: Integer) -> Expr:
        at_most = (begin(p) + length(p)).term <= f.size(p).term
        return smt.Implies(kept.gone(p), smt.And(begin(p).term >= 0, at_most))

    part = fold(s, f.by, kept, length, lambda at: f.element(lambda p: at(p) + begin(p)), part=True)
    w, inside = _index(s, f)
    outside = exception(s, kept.rank, lambda p: inside_of(w, p))
    s.within = (*f.within, inside)
    more = smt.And(inside, outside, smt.Not(f.element(w) == f.by.nothing))
    s.within = ()
    s.instance(
        "A fold of elements that are the identity of its op outside of a box is that of the elements in the box.",
        smt.Implies(every(s, kept.rank, fits), smt.Or(more, _one_value(s, f, t, part))),
    )


def _combination(s: Setting, t: Expr, f: Folded, parts: list[Expr], of_all: bool = False) -> Expr:
    """The condition that a fold is the combination of others.

    A fold of truths has a value where each of them has one, and what combines two where one decides: they are one where the folds
    that are combined have values, as they have if the whole has one, where all their elements are the whole's.
    """
    combine = f.by.combine
    assert combine is not None
    whole = functools.reduce(lambda a, b: combine(b, a), reversed(parts))
    if combine not in JOINING:
        return t == whole
    have = smt.And(*(has_value(s, p) for p in parts))
    one = smt.Implies(have, _one_value(s, f, t, whole))
    return smt.And(one, smt.Implies(has_value(s, t), have) if of_all else smt.TRUE)


def _one_value(s: Setting, f: Folded, t: Expr, other: Expr) -> Expr:
    """The condition that a fold is another value, as which truth, too."""
    if f.by.dtype != "bool":
        return t == other
    same_truth = smt.Implies(has_value(s, t), decided(s, t) == decided(s, other))
    return smt.And(t == other, has_value(s, t) == has_value(s, other), same_truth)
