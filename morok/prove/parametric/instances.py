"""The instances of laws, and of conditions on all places, at the terms that a question speaks of."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Final

from morok.prove import smt
from morok.prove.parametric import equal_items, fold_laws, fold_orders, kept_axes, laws, loop_folds, moved_axes
from morok.prove.parametric.loops import BOUNDS, bound
from morok.prove.parametric.number_ops import decided, has_value, is_valid, number
from morok.prove.parametric.polynomials import TIMES, Integer, integer, within
from morok.prove.parametric.quantified import every, exception
from morok.prove.parametric.setting import DEEPEST, ForAll, Joined, Setting
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.smt.term_graphs import subterms

CONDITION: Final = "A condition on all places holds at each."
ROUNDS: Final = 6  # of looking for terms that instances brought
COMPARING: Final = 3  # of these rounds, those that compare sequences
MOST_TUPLES: Final = 60
DEEPEST_PLACE: Final = 4  # where axes are left out, at places that so many functions give nothing is used
DEEPEST_MOVED: Final = 2  # where axes of shapes are permuted, likewise


def close(s: Setting) -> None:
    """Add the instances of the laws at the terms that occur, and at those that these bring, so many times."""
    for c in s.counts:
        _positive(s, c, DEEPEST)
    fold_orders.about(s)
    _halve_all(s)
    _about_shapes(s)
    kept_axes.compare(s)
    said: dict[object, bool] = {}
    for q in list(s.schemas):
        _use(s, q, integer(0))
    for round_ in range(ROUNDS):
        before = len(s.laws)
        _about_tables(s)
        moved_axes.about(s)
        if round_ < COMPARING:
            fold_orders.about(s)
        if round_ < COMPARING:
            fold_laws.about(s, said)
            _about_tuples(s)
        if s.kept:
            _about_elements(s)
        _among_counts(s)
        _about_axes(s, list(s.terms()))
        _about_parts(s, list(s.terms()))
        _at_items_of_lanes(s)
        for q in list(s.schemas):
            for lane in () if q.functions else list(s.lanes):
                _use(s, q, lane)
        for t in list(s.terms()):
            if t.head == "apply":
                _about(s, t)
        if s.views.flipped:
            _about_backwards(s)
        if len(s.laws) == before:
            return


def _among_counts(s: Setting) -> None:
    """Every quotient by n, compared with every count that is a multiple of n."""
    for made in list(s.terms()):
        if made.head == "apply" and made.data is laws.QUOTIENT:
            t, n = (s.polynomial(a) for a in made.args)
            for c in s.counts:
                m, r = c.divided_by(n)
                if m.terms and not r.terms:
                    s.law(laws.quotient_below, t, m, n)
                    s.digits(t, c, DEEPEST)


def _positive(s: Setting, n: Integer, depth: int) -> None:
    """A product is positive where its factors are."""
    factors = n.product
    if factors is not None and len(factors) > 1 and depth:
        m, _ = n.split(factors[:1])
        s.law(laws.positive_product, integer(factors[0]), m)
        _positive(s, m, depth - 1)


def _about(s: Setting, t: Expr) -> None:
    """Add the instances at one term."""
    if t.data in s.algebra.commutative:
        x, y = t.args
        s.instance("A commutative op does not depend on the order of its operands.", t == t.data(y, x))
    if t.data in s.algebra.involutions and (t.args[0].head != "apply" or t.args[0].data is not t.data):
        s.instance("What is negated twice is what it was.", t.data(t) == t.args[0])
    if t.data is TIMES:
        for n in sorted(s.numbers):
            s.law(laws.product_with, n, *t.args)
    for f, axes, so in s.free:
        if t.data is f and t.args[-2].head == "apply" and t.args[-2].data is laws.MOVED and t.args[-2].args[0] is axes:
            s.instance(
                "What is free of axes is the same wherever these are moved to.",
                smt.Implies(so, t == f(*t.args[:-2], t.args[-2].args[2], t.args[-1])),
            )
    if t.data in s.algebra.taken_out:
        _about_results(s, t)
    if t.data in s.looped:
        loop_folds.about(s, t)
    if t.data in s.bounded:
        least, most = (bound(which, s.bounded[t.data]) for which in BOUNDS)
        is_between = smt.And(least <= number(s, t).term, number(s, t).term <= most)
        inside = smt.Implies(smt.And(has_value(s, t), is_valid(s, t)), is_between)
        s.instance("Bounds of a value are on both sides of it.", inside)
    if t.data in s.selections:
        condition, yes, no = t.args
        s.instance(
            "A selection is one of its two, as its condition says; it has no value where that has none.",
            t == smt.If(has_value(s, condition), smt.If(decided(s, condition), yes, no), laws.NONE),
        )
    if t.data is laws.SIZE and t.args[0] not in s.pieces:
        rank, size = s.sequences[t.args[0]]
        s.instance(
            "A shape of ones has one element.",
            smt.Implies(every(s, rank, lambda k: s.number_of(size(k)).term == 1), t == 1),
        )
    if t.data is laws.FLAT:
        _about_place_of(s, t)
    if t.data is laws.DIGIT and t.args[0] not in s.pieces:
        _about_digit(s, t)
    if t.data in s.of_numbers:
        s.law(laws.place_told, t, s.polynomial(t.args[1]))
    if t.data is laws.BEHIND:
        s.instance(
            "The place that no elements come before is where it is.", smt.Implies(t.args[1] == 0, t == t.args[0])
        )
    of = s.nested_items.get(t.data)
    for functions, holds, only_if in list(s.of_items):
        if t.data in functions:
            s.instance(CONDITION, smt.Implies(only_if, holds(*(s.polynomial(a) for a in t.args))))
    for q in list(s.schemas):
        for f, k, operands in q.functions:
            if t.data is not f or (q.at_items is not None and any(a.head == "apply" for a in subterms([t.args[k]]))):
                continue
            if all(o is None or o is a for o, a in zip(operands, t.args, strict=True)):
                _use(s, q, s.polynomial(t.args[k]))
        for f, k, whole in q.mirrored:
            if t.data is f:
                _use(s, q, whole - s.polynomial(t.args[k]))
        if of is not None and q.at_items == "lanes" and (not q.witnesses or _is_of_lanes(s, t)):
            _use(s, q, integer(t))
        elif of is not None and q.at_items == "places" and t.args[0].head == "const":
            _use(s, q, integer(of.first(t.args[0])) + s.polynomial(t.args[1]))


def _about_place_of(s: Setting, t: Expr) -> None:
    """The row-major place of an index vector: below the number of elements, and of the digits of a place that place."""
    shape, vector = t.args
    (rank, size), (_, index) = s.sequences[shape], s.sequences[vector]

    def i(k: Integer) -> Integer:
        return s.number_of(index(k))

    if shape not in s.pieces:
        inside = every(s, rank, lambda k: within(i(k), 0, s.number_of(size(k))))
        s.instance(
            "The row-major place of an index vector is below the number of elements.",
            smt.Implies(inside, within(integer(t), 0, integer(laws.SIZE(shape)))),
        )
    with s.anywhere() as place:
        digits = [d for d in subterms([i(place).term]) if d.head == "apply" and d.data is laws.DIGIT]
    for d in digits:
        if d.args[2] is place.term and not any(x is place.term for x in subterms([d.args[1]])):
            _about_place_of_digits(s, t, d.args[:2], i)


def _about_place_of_digits(s: Setting, t: Expr, of: tuple[Expr, ...], i: Callable[[Integer], Integer]) -> None:
    """The row-major place of an index vector that the digits of a place may be."""
    shape, (other, whole) = t.args[0], of
    unlike = exception(s, s.sequences[shape][0], lambda k: i(k).term == laws.DIGIT(other, whole, k.term))
    inside = within(s.polynomial(whole), 0, integer(laws.SIZE(shape)))
    s.instance(
        "The place of the digits of a place is that place.",
        smt.Implies(smt.And(other == shape, inside), smt.Or(unlike, t == whole)),
    )


def _about_shapes(s: Setting) -> None:
    """Shapes that are matched, of one number of elements: whether they are one."""
    for a, b in itertools.combinations(dict.fromkeys(s.views.shapes), 2):
        unlike, none = (s.unknown("unlike"), s.unknown("unlike")), s.unknown("without elements")
        s.law(laws.one_shape, a, b, unlike, none)
        _alike_if_one(s, a, b)


def _alike_if_one(s: Setting, a: laws.Shape, b: laws.Shape) -> None:
    """Shapes that are one have the same sizes."""
    (one, rank, size), (other, its_rank, its_size) = a, b
    s.for_all(rank, lambda k: size(k).term == its_size(k).term, smt.And(one == other, rank.term == its_rank.term))


def _about_digit(s: Setting, t: Expr) -> None:
    """A digit of a place: within its axis, and of the place of an index vector that index."""
    shape, whole, axis = t.args
    rank, size = s.sequences[shape]
    k, n = s.polynomial(axis), s.polynomial(whole)
    there = within(k, 0, rank)
    s.instance(
        "The digits of a place are within their axes.",
        smt.Implies(
            smt.And(there, within(n, 0, integer(laws.SIZE(shape)))), within(integer(t), 0, s.number_of(size(k)))
        ),
    )
    if whole.head == "apply" and whole.data is laws.FLAT:
        _about_left_out(s, t)
    if whole.head == "apply" and whole.data is laws.FLAT and whole.args[0] not in s.pieces:
        other, vector = whole.args
        _, index = s.sequences[vector]
        inside = every(s, rank, lambda j: within(s.number_of(index(j)), 0, s.number_of(size(j))))
        s.instance(
            "The digits of the place of an index vector are its indices.",
            smt.Implies(smt.And(other == shape, there, inside), t == s.number_of(index(k)).term),
        )


def _about_backwards(s: Setting) -> None:
    """Places of two index vectors in one shape, and digits of two places along one axis of one: they may be as far from the
    first and from the last.
    """
    flat = [t for t in s.terms() if t.head == "apply" and t.data is laws.FLAT and t.args[0] not in s.pieces]
    for one, other in itertools.combinations(flat, 2):
        if one.args[0] is other.args[0]:
            _about_places_backwards(s, one, other)
    digits = [t for t in s.terms() if t.head == "apply" and t.data is laws.DIGIT]
    for one, other in itertools.combinations(digits, 2):
        shape, _, axis = one.args
        if shape is other.args[0] and axis is other.args[2] and one.args[1] is not other.args[1]:
            k = s.polynomial(axis)
            places = s.polynomial(one.args[1]), s.polynomial(other.args[1])
            size = s.number_of(s.sequences[shape][1](k))
            s.law(laws.digits_backwards, (shape, s.sequences[shape][0]), (k, size), places, (one, other))


def _about_places_backwards(s: Setting, one: Expr, other: Expr) -> None:
    """The places of two index vectors of which one has every index as far from the first as the other has it from the last."""
    shape = one.args[0]
    (rank, size), (_, index), (_, its_index) = (s.sequences[a] for a in (shape, one.args[1], other.args[1]))

    def backwards(k: Integer) -> Expr:
        i, j, n = (s.number_of(of(k)) for of in (index, its_index, size))
        return smt.And(within(i, 0, n), (i + j).term == (n - 1).term)

    s.instance(
        "The place of the indices from the last ones on is as far from the last place.",
        smt.Or(
            exception(s, rank, backwards), (integer(one) + integer(other)).term == (integer(laws.SIZE(shape)) - 1).term
        ),
    )


def _about_left_out(s: Setting, t: Expr) -> None:
    """An index of a place in a shape that has some axes of length 1 more, or less: 0 along these, and else the same."""
    shape, whole, axis = t.args
    other, vector = whole.args
    (rank, size), (its_rank, its_size), (_, index) = (s.sequences[a] for a in (shape, other, vector))
    k = s.polynomial(axis)

    def i(j: Integer) -> Integer:
        return s.number_of(index(j))

    outside = exception(s, its_rank, lambda j: within(i(j), 0, s.number_of(its_size(j))))
    inside = smt.And(within(k, 0, rank), smt.Not(outside))
    for kept in kept_axes.between(s, rank, its_rank):
        more = smt.And(kept_axes.left_out(s, kept, size, its_size), inside)
        found = smt.If(kept.gone(k), smt.IntVal(0), i(kept.place(k)).term)
        s.instance(kept_axes.LEFT_OUT, smt.Implies(more, t == found))
    for kept in kept_axes.between(s, its_rank, rank):
        less = smt.And(kept_axes.left_out(s, kept, its_size, size), inside)
        s.instance(kept_axes.LEFT_OUT, smt.Implies(less, t == i(kept.axis(k)).term))


def _about_elements(s: Setting) -> None:
    """Shapes that differ by axes of length 1 have as many elements."""
    shapes = dict.fromkeys(t.args[0] for t in s.terms() if t.head == "apply" and t.data is laws.SIZE)
    for one, other in itertools.permutations(shapes, 2):
        (rank, size), (its_rank, its_size) = s.sequences[one], s.sequences[other]
        for kept in kept_axes.between(s, rank, its_rank):
            alike = kept_axes.left_out(s, kept, size, its_size)
            s.instance(kept_axes.LEFT_OUT, smt.Implies(alike, laws.SIZE(one) == laws.SIZE(other)))


def _is_of_lanes(s: Setting, t: Expr) -> bool:
    """True if the only unknowns of a term are the lanes at which the sides are compared."""
    compared = [lane.term for lane in s.lanes if lane.term not in s.origins]
    return all(any(a is c for c in compared) for a in subterms([t]) if a.head == "const")


def _use(s: Setting, q: ForAll, place: Integer) -> None:
    """An instance of a condition. One that brings unknowns is not used at those that it brought itself, nor at far ones."""
    if place.term in q.done or (q.unless is not None and place.term.head == "apply" and place.term.data is q.unless):
        return
    q.done.add(place.term)
    deepest = q.deepest or (DEEPEST_PLACE if s.kept else DEEPEST_MOVED if s.views.turned else None)
    if deepest is not None and (_depth(place.term) >= deepest or any(m and abs(c) > 1 for m, c in place.terms.items())):
        return
    origin = s.origin(place.term)
    generation = sum(o.at_items is None for o in origin)
    if generation > 1 or (
        q.witnesses and (generation or q in origin or (q.at_items is None and place.term.head == "apply"))
    ):
        return
    before, s.bringing = s.bringing, (*origin, q)
    try:
        s.instance(CONDITION, smt.Implies(smt.And(within(place, 0, q.length), q.only_if), q.holds(place)))
    finally:
        s.bringing = before


def _depth(t: Expr) -> int:
    """The number of functions that are applied to one another in a term, and of choices that are made within each other."""
    below = max(map(_depth, t.args), default=0) if t.head != "const" else 0
    return below + (t.head == "ite" or (t.head == "apply" and t.data is not TIMES))


def _at_items_of_lanes(s: Setting) -> None:
    """Use conditions on the lanes of a statement at the item of a sequence of sequences that a lane is of."""
    for f, p in s.nested_items.items():
        for lane in list(s.lanes):
            k, j = p.part(lane.term), lane - integer(p.start(lane.term))
            for q in list(s.schemas):
                if q.at_items == "lanes":
                    _use(s, q, integer(f(k, j.term)))


def _about_tuples(s: Setting) -> None:
    """Sequences are one where they have one length and the same items. Those that only comparing brings are not compared."""
    spoken_of = set(s.terms())
    several = [(t, of) for t, of in s.sequences.items() if of[0].known != 1 and t in spoken_of and t not in s.pieces]
    if len(several) > MOST_TUPLES and not s.folded:
        raise Unsupported("more sequences than can be compared")
    uses = _uses(s)
    for t, (length, item) in several:
        s.instance(
            "A sequence of one item is that of this item.",
            smt.Implies(length.term == 1, t == laws.ONLY(item(integer(0)))),
        )
    for (one, (length, item)), (other, (its_length, its_item)) in itertools.combinations(several, 2):
        apart = uses[one].isdisjoint(uses[other]) or s.contexts[one].isdisjoint(s.contexts[other])
        if (one, other) not in s.compared_tuples and not ((s.folded or s.views.permuted) and apart):
            s.compared_tuples.add((one, other))
            if length.known is not None and length.same(its_length):
                alike = smt.And(*(item(k) == its_item(k) for k in map(integer, range(length.known))))
            else:
                k = s.unknown("difference")
                alike = smt.Implies(s.below(k, length), item(k) == its_item(k))
            s.instance(
                "Sequences of one length and of the same items are one.",
                smt.Implies(smt.And(length.term == its_length.term, alike), one == other),
            )


def _uses(s: Setting) -> dict[Expr, set[object]]:
    """The functions that are applied to each sequence; to shapes those of places, all one."""
    found: dict[Expr, set[object]] = {t: set() for t in s.sequences}
    for t in s.terms():
        if t.head == "apply":
            for k, a in enumerate(t.args):
                if a in found:
                    found[a].add("shape" if t.data in (laws.FLAT, laws.DIGIT, laws.SIZE) and k == 0 else t.data)
    return found


def _about_parts(s: Setting, terms: list[Expr]) -> None:
    """The vector that a lane is of, wherever the first lane of a vector is spoken of; and where those of one length begin."""
    applied = [t for t in terms if t.head == "apply"]
    for p in s.parts.values():
        lanes = [s.polynomial(t.args[0]) for t in applied if t.data is p.part]
        vectors = [s.polynomial(t.args[0]) for t in applied if t.data is p.first]
        for lane, k in itertools.product(lanes, vectors):
            told = (integer(p.part(lane.term)), integer(p.start(lane.term)), integer(p.first(k.term)))
            s.law(laws.part_of_lane, lane, k, p.length, p.total, p.count(k), told)
        if p.differences is not None:
            _about_differences(s, p, p.differences, lanes)
        if p.alike is not None:
            _about_alike(s, p, p.alike, lanes)
            for t in applied:
                if t.data is TIMES:
                    for a, b in itertools.permutations(map(s.polynomial, t.args)):
                        for factor in (b, p.length - 1 - b, p.length - 2 - b) if a.same(p.alike) else (b,):
                            s.law(laws.sign_of_product, a, factor)


def _about_differences(s: Setting, p: Joined, c: Callable[[Integer], Integer], lanes: list[Integer]) -> None:
    """The beginnings of vectors whose lanes are the differences of a sequence."""
    s.law(laws.ends_of_all, p.length, p.total, p.begin(integer(0)), p.begin(p.length))
    for lane in lanes:
        s.law(laws.part_begins, lane, p.total, integer(p.start(lane.term)), p.begin(integer(p.part(lane.term))))
    for k in (p.length, *(integer(p.part(lane.term)) for lane in lanes)):
        s.law(laws.sum_of_differences, k, p.length, p.begin(k), c(k), c(integer(0)))


def _about_alike(s: Setting, p: Joined, each: Integer, lanes: list[Integer]) -> None:
    """The places where vectors begin, of which all but the last one may have so many lanes."""
    last = p.length - 1
    s.law(laws.ends_of_all, p.length, p.total, p.begin(integer(0)), p.begin(p.length))
    s.law(laws.next_begins, last, p.length, p.count(last), p.begin(last), p.begin(p.length))
    for k in (last, *(integer(p.part(lane.term)) for lane in lanes)):
        if k.term not in p.compared:
            p.compared.add(k.term)
            other = s.unknown("unlike")
            s.law(laws.behind_alike, k, p.length, each, p.begin(k), other, p.count(other))
    for lane in lanes:
        s.law(laws.part_begins, lane, p.total, integer(p.start(lane.term)), p.begin(integer(p.part(lane.term))))


def _halve_all(s: Setting) -> None:
    """The folds of a rule, taken apart where others end, and where vectors begin; not where nothing is combined, and two of them
    may be one in another order.
    """
    applied = [t for t in s.terms() if t.head == "apply"]
    folds = [t for t in applied if t.data in s.regrouped]
    combined = set(s.regrouped.values())
    if not folds or (any(s.reordered.values()) and not any(t.data in combined for t in applied)):
        return
    lengths = [s.sequences[t.args[0]][0] for t in folds]
    ends = [m for k, m in enumerate(lengths) if m.known != 1 and not any(m.same(n) for n in lengths[:k])]
    for t in folds:
        for m in () if s.boundaries else (integer(1), *ends):
            _halve(s, t, m)
        for k, m in enumerate(s.boundaries):
            first = _halve(s, t, m)
            if first is not None:
                for n in s.boundaries[:k]:
                    _halve(s, first, n)


def _about_fold(s: Setting, t: Expr) -> None:
    """A fold of one item is that item, and a fold of what is combined a combination of folds."""
    length, item = s.sequences[t.args[0]]
    combine = s.regrouped[t.data]
    first = item(integer(0))
    s.instance("A fold of one item is that item.", smt.Implies(length.term == 1, t == first))
    if combine in s.algebra.repeated:
        equal_items.about(s, combine, t, first, length, exception(s, length, lambda k: item(k) == first))
    if combine in s.algebra.idempotent:
        unlike = exception(s, length, lambda k: item(k) == first)
        s.instance(
            "The greatest, or least, of equal values is that value.",
            smt.Implies(length.term > 0, smt.Or(unlike, t == first)),
        )
    with s.anywhere() as place:
        one = item(place)
    if one.head == "apply" and one.data in s.algebra.together.get(combine, (combine,)):
        left = s.tuple_of(length, lambda k: item(k).args[0])
        right = s.tuple_of(length, lambda k: item(k).args[1])
        s.instance(
            "A fold of combinations, or of differences, is that of the folds.",
            smt.Implies(length.term > 0, t == one.data(t.data(left), t.data(right))),
        )


def _about_results(s: Setting, t: Expr) -> None:
    """A fold of what is computed of items, and of values that are the same for all: what is computed of a fold."""
    length, item = s.sequences[t.args[0]]
    with s.anywhere() as place:
        one = item(place)
    inner = s.algebra.taken_out[t.data].get(one.data) if one.head == "apply" else None
    if inner is None:
        return

    def operand(p: Integer, k: int) -> Expr:
        there = item(p)
        if there.head != "apply" or there.data is not one.data:
            raise Unsupported("items that are computed otherwise elsewhere")
        found: Expr = there.args[k]
        return found

    def unlike(k: int) -> Expr:
        return exception(s, length, lambda p: operand(p, k) == operand(integer(0), k))

    for k in range(len(one.args)):
        operands = [operand(integer(0), j) for j in range(len(one.args))]
        operands[k] = inner(s.tuple_of(length, functools.partial(operand, k=k)))
        differ = [unlike(j) for j in range(len(one.args)) if j != k]
        same = smt.Or(*differ, t == one.data(*operands))
        s.instance("What is computed of items may be computed of their fold.", smt.Implies(length.term > 0, same))


def _about_tables(s: Setting) -> None:
    """Folds of folds, which go through a table row by row, and the folds that may go through it column by column."""
    folds = [t for t in s.terms() if t.head == "apply" and any(t.data is table.data for table in s.tables)]
    for by_rows, by_columns in itertools.product(list(s.tables), dict.fromkeys(folds)):
        if by_rows.data is by_columns.data and by_rows is not by_columns and (by_rows, by_columns) not in s.turned:
            s.turned.add((by_rows, by_columns))
            rows, columns = s.tables[by_rows]
            (_, item), (length, its_item) = (s.sequences[t.args[0]] for t in (by_rows, by_columns))
            if length.same(rows * columns):
                place = s.unknown("turned")
                row, column = s.divided(place, columns)
                s.law(
                    laws.turned, rows, columns, place, item(place), its_item(column * rows + row), by_rows == by_columns
                )


def _halve(s: Setting, t: Expr, m: Integer) -> Expr | None:
    """A fold is one of its first m items, combined with one of the others: the first of these, where there may be others."""
    length, item = s.sequences[t.args[0]]
    rest = length - m
    combine = s.regrouped[t.data]
    if rest.known is not None and rest.known <= 0:
        return None
    parts = (
        s.tuple_of(m, lambda k: _chosen(item(k), k.term < m.term, True)),
        s.tuple_of(rest, lambda k: _chosen(item(m + k), (m + k).term < m.term, False)),
    )
    inside = smt.And(m.term > 0, m.term < length.term)
    s.instance(
        "A fold is that of its first items, combined with that of the others.",
        smt.Implies(inside, t == combine(*(t.data(p) for p in parts))),
    )
    first: Expr = t.data(parts[0])
    return first


def _chosen(t: Expr, condition: Expr, holds: bool) -> Expr:
    """A value, where this condition is known to hold, or not to."""
    while t.head == "ite" and t.args[0] is condition:
        t = t.args[1 if holds else 2]
    return t


def _about_axes(s: Setting, terms: list[Expr]) -> None:
    applied = [t for t in terms if t.head == "apply"]
    lists = list(dict.fromkeys(a for t in terms for a in (t,) if a.sort is laws.AXES))
    for a in lists:
        s.law(laws.positive_width, a, where=_is_list(s, a))
        s.law(laws.among_itself, a)
    for t in applied:
        if t.data in s.regrouped:
            _about_fold(s, t)
        if t.data is laws.SINGLE:
            i, n = (s.polynomial(a) for a in t.args)
            s.law(laws.single_width, i, n)
            s.law(laws.single_distinct, i, n)
        if t.data is laws.BLOCK:
            _about_block(s, *t.args)
    for t in applied:
        if t.data is laws.MOVED:
            b, k, e = t.args
            number = s.polynomial(k)
            s.law(laws.there_and_back, b, number, e)
            _about_turns(s, b, number, e)
            s.digits(number, _polynomial_width(s, b), DEEPEST)
    for b in lists:
        for e in s.iterations:
            s.law(laws.back_and_there, b, e, where=_is_list(s, b))
    _about_sets(s, terms)


def _about_turns(s: Setting, a: Expr, k: Integer, e: Expr) -> None:
    """The lists of a list of lists, moved one after the other."""
    parts, digits, rest = s.joined.get(a, (a,)), [], k
    if len(parts) > 1:
        for p in reversed(parts[1:]):
            rest, digit = s.divided(rest, laws.width(p))
            digits.append(digit)
        s.law(laws.moved_in_turn, parts, a, k, (rest, *reversed(digits)), e)


def _is_list(s: Setting, a: Expr) -> Expr:
    """The condition that an axis which a rule writes has iterations: until that is shown it is no axis."""
    written = [p for p in s.joined.get(a, (a,)) if p.head == "apply" and p.data is laws.SINGLE]
    return smt.And(*(p.args[1] > 0 for p in written)) if written else smt.TRUE


def _polynomial_width(s: Setting, a: Expr) -> Integer:
    product = integer(1)
    for p in s.joined.get(a, (a,)):
        product = product * laws.width(p)
    return product


def _about_block(s: Setting, a: Expr, e: Expr) -> None:
    s.law(laws.block_in_range, a, e, where=_is_list(s, a))
    parts = s.joined.get(a)
    if parts is not None:
        s.law(laws.joined_block, parts, a, e)
    if e.head == "apply" and e.data is laws.MOVED:
        b, k, f = e.args
        number = s.polynomial(k)
        s.law(laws.unmoved, a, b, number, f)
        for g in s.iterations:
            s.law(laws.moved_wholly, a, b, number, f, g)


def _about_sets(s: Setting, terms: list[Expr]) -> None:
    among = [t.args for t in terms if t.head == "apply" and t.data is laws.AMONG]
    apart = [t.args for t in terms if t.head == "apply" and t.data is laws.APART]
    for a, b in among:
        for folded in s.over_axes.get(a, {}).values():
            s.law(laws.folded_in_any_order, a, b, folded(a), folded(b))
        for c, d in among:
            if b is c and a is not b and c is not d:
                s.law(laws.among_through, a, b, d)
        for c, d in apart:
            if b is c and a is not b:
                s.law(laws.apart_through, a, b, d)
