"""The laws that proofs at every size rest on: each a function from terms to the instance of the law there.

Lists of axes are opaque, and so are iterations (which give every axis its present value). Of a list a of axes, the last of which
runs fastest, `width(a)` is the product of its lengths, `block(a, e)` the number of its present block of lanes at the iteration e,
`moved(a, k, e)` the iteration e with the axes of a at their places in block k. An axis has the same length wherever it occurs.
`tests/prove/test_parametric.py` tries every law at all lists of axes, blocks and iterations of small sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

from morok.prove import smt
from morok.prove.parametric.polynomials import INT, TIMES, Integer, integer, within
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

VALUE: Final = smt.DeclareSort("Value")  # what a lane holds: a value of any dtype, Invalid, or that it has none
AXES: Final = smt.DeclareSort("Axes")
ITERATION: Final = smt.DeclareSort("Iteration")
BOOL: Final = smt.BoolSort()

QUOTIENT: Final = smt.Function(Symbol("function", "quotient"), INT, INT, INT)  # rounded down
QUOTIENT_BY_NEGATIVE: Final = smt.Function(Symbol("function", "quotient by a negative number"), INT, INT, INT)
REMAINDER: Final = smt.Function(Symbol("function", "remainder"), INT, INT, INT)
WIDTH: Final = smt.Function(Symbol("function", "width"), AXES, INT)
SINGLE: Final = smt.Function(Symbol("function", "axis"), INT, INT, AXES)  # one axis, by its id and its length
LENGTH: Final = smt.Function(Symbol("function", "length"), AXES, INT)  # how many axes there are
BLOCK: Final = smt.Function(Symbol("function", "block"), AXES, ITERATION, INT)
MOVED: Final = smt.Function(Symbol("function", "moved"), AXES, INT, ITERATION, ITERATION)
# every axis of the one is one of the other's
AMONG: Final = smt.Function(Symbol("function", "among"), AXES, AXES, BOOL)
APART: Final = smt.Function(Symbol("function", "apart"), AXES, AXES, BOOL)  # no axis is in both
DISTINCT: Final = smt.Function(Symbol("function", "distinct"), AXES, BOOL)  # no axis is in it twice

NUMBER: Final = smt.Function(Symbol("function", "number", "index"), INT, VALUE)  # an integer as a value of dtype index
TRUTH: Final = smt.Function(Symbol("function", "truth", "bool"), BOOL, VALUE)  # a truth as a value of dtype bool
INDEX_OF: Final = smt.Function(Symbol("function", "index of"), VALUE, INT)  # the integer that such a value is
SUM: Final = smt.Function(Symbol("op", "Add", "index", "index"), VALUE, VALUE, VALUE)
# the place, in row-major order, of an index vector
FLAT: Final = smt.Function(Symbol("function", "flat"), VALUE, VALUE, INT)
# the index, along an axis, of such a place
DIGIT: Final = smt.Function(Symbol("function", "digit"), VALUE, INT, INT, INT)
SIZE: Final = smt.Function(Symbol("function", "elements"), VALUE, INT)  # how many elements a shape has
ONLY: Final = smt.Function(Symbol("op", "sequence of one"), VALUE, VALUE)  # a sequence of one item, as a value
INVALID: Final = smt.Const(Symbol("op", "Invalid"), VALUE)
NOWHERE: Final = smt.Const(Symbol("fixed", "nowhere"), VALUE)  # the place at Invalid
NONE: Final = smt.Const(Symbol("fixed", "no value"), VALUE)  # what a lane holds that has no value
UNSAID: Final = smt.Const(Symbol("fixed", "unsaid"), VALUE)  # the place behind a gate without a value
LANES_OF: Final = smt.Function(Symbol("function", "lanes of elements"), VALUE, INT)  # of storage that may hold vectors
# a place that so many come before
BEHIND: Final = smt.Function(Symbol("function", "elements behind"), VALUE, INT, VALUE)
OFFSET: Final = smt.Function(Symbol("function", "offset"), VALUE, INT)  # the index that a place was made of


def width(a: Expr) -> Integer:
    return integer(a.args[1] if a.head == "apply" and a.data is SINGLE else WIDTH(a))


def block(a: Expr, e: Expr) -> Integer:
    return integer(BLOCK(a, e))


def moved(a: Expr, k: Integer, e: Expr) -> Expr:
    return MOVED(a, k.term, e)


# integers


def small(r: Integer, n: Integer) -> Expr:
    """0 <= r < n: r // n is 0, and r % n is r. n <= r < 2 * n: r // n is 1, and r % n is r - n."""
    q, rest = QUOTIENT(r.term, n.term), REMAINDER(r.term, n.term)
    first = smt.Implies(within(r, 0, n), smt.And(q == 0, rest == r.term))
    return smt.And(first, smt.Implies(within(r, n, n + n), smt.And(q == 1, rest == (r - n).term)))


def division(t: Integer, n: Integer) -> Expr:
    """n > 0: t = (t // n) * n + t % n, and 0 <= t % n < n."""
    q, r = integer(QUOTIENT(t.term, n.term)), integer(REMAINDER(t.term, n.term))
    return smt.Implies(n.term > 0, smt.And(t.term == (q * n + r).term, within(r, 0, n)))


def quotient_of_sum(q: Integer, n: Integer, r: Integer) -> Expr:
    """n > 0: (q * n + r) // n = q + r // n, and (q * n + r) % n = r % n."""
    t = (q * n + r).term
    same = smt.And(
        QUOTIENT(t, n.term) == (q + integer(QUOTIENT(r.term, n.term))).term,
        REMAINDER(t, n.term) == REMAINDER(r.term, n.term),
    )
    return smt.Implies(n.term > 0, same)


def quotient_below(t: Integer, m: Integer, n: Integer) -> Expr:
    """0 <= t < m * n, n > 0: 0 <= t // n < m."""
    premise = smt.And(within(t, 0, m * n), n.term > 0)
    return smt.Implies(premise, within(integer(QUOTIENT(t.term, n.term)), 0, m))


def division_in_steps(t: Integer, m: Integer, n: Integer) -> Expr:
    """m > 0, n > 0: (t // n) // m = t // (m * n), (t // n) % m = t % (m * n) // n, and t % n = t % (m * n) % n."""
    q, r, whole = QUOTIENT(t.term, n.term), REMAINDER(t.term, n.term), (m * n).term
    rest = REMAINDER(t.term, whole)
    same = smt.And(
        QUOTIENT(q, m.term) == QUOTIENT(t.term, whole),
        REMAINDER(q, m.term) == QUOTIENT(rest, n.term),
        r == REMAINDER(rest, n.term),
    )
    return smt.Implies(smt.And(m.term > 0, n.term > 0), same)


def parts_below(q: Integer, m: Integer, r: Integer, n: Integer) -> Expr:
    """0 <= q < m, 0 <= r < n: 0 <= q * n + r < m * n."""
    return smt.Implies(smt.And(within(q, 0, m), within(r, 0, n)), within(q * n + r, 0, m * n))


def positive_product(m: Integer, n: Integer) -> Expr:
    """m > 0, n > 0: m * n > 0."""
    return smt.Implies(smt.And(m.term > 0, n.term > 0), (m * n).term > 0)


def sign_of_product(m: Integer, d: Integer) -> Expr:
    """m > 0: m * d has the sign of d."""
    product = (m * d).term
    return smt.Implies(m.term > 0, smt.And((product > 0) == (d.term > 0), (product < 0) == (d.term < 0)))


def product_with(n: int, a: Expr, b: Expr) -> Expr:
    """A product with a number is that multiple."""
    product = TIMES(a, b)
    return smt.And(*(smt.Implies(x == n, product == smt.IntVal(n) * y) for x, y in ((a, b), (b, a))))


# vectors behind one another, of which the functions `part`, `start` and `first` tell where each begins


def inside_its_part(
    lane: Integer, length: Integer, total: Integer, part: Integer, start: Integer, count: Integer
) -> Expr:
    """0 <= lane < total: the lane is of one of the vectors, within its lanes."""
    here = smt.And(within(part, 0, length), within(lane - start, 0, count))
    return smt.Implies(within(lane, 0, total), here)


def part_of_lane(
    lane: Integer, k: Integer, length: Integer, total: Integer, count: Integer, told: tuple[Integer, ...]
) -> Expr:
    """0 <= k < length, and where vector k begins makes it that of the lane: it is. `told`: part, start, first of k."""
    part, start, first = told
    here = smt.And(within(k, 0, length), within(lane - first, 0, count))
    found = smt.And(part.term == k.term, start.term == first.term, within(lane, 0, total))
    return smt.Implies(here, found)


def part_begins(lane: Integer, total: Integer, start: Integer, first: Integer) -> Expr:
    """0 <= lane < total: its vector begins where that vector does."""
    return smt.Implies(within(lane, 0, total), start.term == first.term)


def next_begins(k: Integer, length: Integer, count: Integer, first: Integer, following: Integer) -> Expr:
    """0 <= k < length: the next vector begins behind the lanes of vector k."""
    return smt.Implies(within(k, 0, length), following.term == (first + count).term)


def ends_of_all(length: Integer, total: Integer, first: Integer, last: Integer) -> Expr:
    """The first vector begins with lane 0, and behind the last one there are all lanes."""
    return smt.And(first.term == 0, last.term == total.term)


def behind_alike(k: Integer, length: Integer, each: Integer, first: Integer, other: Integer, count: Integer) -> Expr:
    """0 <= k <= length: one of the vectors before k has not so many lanes, or it begins with lane k * so many."""
    unlike = smt.And(within(other, 0, k), smt.Not(count.term == each.term))
    return smt.Implies(within(k, 0, length + 1), smt.Or(unlike, first.term == (k * each).term))


def sum_of_differences(k: Integer, length: Integer, first: Integer, then: Integer, before: Integer) -> Expr:
    """0 <= k <= length: vectors whose lanes are the differences of a sequence begin where this is more than at first."""
    return smt.Implies(within(k, 0, length + 1), first.term == (then - before).term)


def number_of_items(count: Integer, length: Integer) -> Expr:
    """The number of counted items of a sequence is at most its length."""
    return smt.Implies(length.term >= 0, within(count, 0, length + 1))


def items_at_most(
    n: Integer,
    count: Integer,
    length: Integer,
    around: tuple[Integer, Integer],
    other: Integer,
    less: tuple[Integer, Integer],
) -> Expr:
    """Items are at most n up to the number of those that are, and greater from there on; or one is less than the one before.

    around   the last one that is counted, and the one behind it
    other    an item, and `less` it and the next one
    """
    last, following = around
    unlike = smt.And(within(other, 0, length - 1), less[0].term > less[1].term)
    before = smt.Implies(smt.And(count.term > 0, count.term <= length.term), last.term <= n.term)
    behind = smt.Implies(within(count, 0, length), following.term > n.term)
    return smt.Or(unlike, smt.And(before, behind))


def turned(rows: Integer, columns: Integer, place: Integer, one: Expr, other: Expr, same: Expr) -> Expr:
    """A table is folded row by row, and so column by column; or at one place there is one item for another."""
    inside = within(place, 0, rows * columns)
    return smt.Implies(smt.And(rows.term > 0, columns.term > 0), smt.Or(smt.And(inside, smt.Not(one == other)), same))


def in_another_order(
    length: Integer,
    wide: tuple[Integer, Integer],
    twice: tuple[tuple[Integer, Integer], tuple[Integer, Integer]],
    unlike: Integer,
    there: tuple[Expr, Expr],
    same: Expr,
) -> Expr:
    """Folds of as many items are one, where those of one are those of the other at other places, each of which is taken once.

    wide, twice  a place and where it is in the other, outside of it; two places that are at one
    unlike, there  a place at which the items are not one, and these
    """
    outside = smt.And(within(wide[0], 0, length), smt.Not(within(wide[1], 0, length)))
    (early, its), (late, others) = twice
    at_one = smt.And(within(early, 0, late), within(late, 0, length), its.term == others.term)
    differ = smt.And(within(unlike, 0, length), smt.Not(there[0] == there[1]))
    return smt.Or(outside, at_one, differ, same)


def sum_of_row(many: Integer, first: Integer, step: Integer, total: Integer) -> Expr:
    """many >= 0: twice the sum of numbers, each so much more than the one before: 2 * first * many + step * many * (many - 1)."""
    twice = first * many * 2 + step * (many * many - many)
    return smt.Implies(many.term >= 0, (total * 2).term == twice.term)


def greatest_of_row(many: Integer, first: Integer, step: Integer, most: Integer) -> Expr:
    """many > 0: the greatest of so many numbers, each so much more than the one before, is the last one, or the first."""
    last = first + step * (many - 1)
    return smt.Implies(many.term > 0, most.term == smt.If(step.term >= 0, last.term, first.term))


def least_of_row(many: Integer, first: Integer, step: Integer, least: Integer) -> Expr:
    """many > 0: the least of so many numbers, each so much more than the one before, is the first one, or the last."""
    last = first + step * (many - 1)
    return smt.Implies(many.term > 0, least.term == smt.If(step.term >= 0, first.term, last.term))


# row-major order


def elements_in_parts(shape: Expr, parts: tuple[Expr, ...], lengths: tuple[Integer, ...]) -> Expr:
    """A shape of parts behind one another has the product of their elements."""
    product = parts[0]
    for n in parts[1:]:
        product = TIMES(product, n)  # as it stands: what is equal to a factor can take its place
    return smt.Implies(smt.And(*(n.term >= 0 for n in lengths)), SIZE(shape) == product)


def place_in_parts(place: Expr, digits: tuple[tuple[Expr, Expr], ...], lengths: tuple[Integer, ...]) -> Expr:
    """The place of an index vector of parts behind one another has the places in the parts as its digits."""
    number = digits[0][1]
    for n, digit in digits[1:]:
        number = TIMES(number, n) + digit
    return smt.Implies(smt.And(*(n.term >= 0 for n in lengths)), place == number)


Shape = tuple[Expr, Integer, Callable[[Integer], Integer]]  # as one value, its rank, its sizes


def one_shape(a: Shape, b: Shape, unlike: tuple[Integer, Integer], none: Integer) -> Expr:
    """Shapes of one rank and of one number of elements are one, or differ at two axes, or have an axis without elements."""
    (shape, rank, size), (other, its_rank, its_size) = a, b
    differ = [smt.And(within(k, 0, rank), smt.Not(size(k).term == its_size(k).term)) for k in unlike]
    twice = smt.And(*differ, smt.Not(unlike[0].term == unlike[1].term))
    empty = smt.And(within(none, 0, rank), size(none).term <= 0)
    alike = smt.And(SIZE(shape) == SIZE(other), rank.term == its_rank.term)
    return smt.Implies(alike, smt.Or(shape == other, twice, empty))


def digits_backwards(
    shape: tuple[Expr, Integer],
    axis: tuple[Integer, Integer],
    places: tuple[Integer, Integer],
    digits: tuple[Expr, Expr],
) -> Expr:
    """Of places that are as far from the first as from the last the digits are so, too, along every axis.

    shape, axis   the shape and its rank, an axis and its size
    """
    (of, rank), (k, size), (one, other) = shape, axis, places
    last = integer(SIZE(of)) - 1
    there = smt.And(within(k, 0, rank), within(one, 0, last + 1), (one + other).term == last.term)
    return smt.Implies(there, (integer(digits[0]) + integer(digits[1])).term == (size - 1).term)


def permuted_elements(a: Shape, b: Shape, permuted: Expr) -> Expr:
    """Shapes of which one has the axes of the other, permuted, have as many elements."""
    return smt.Implies(permuted, SIZE(a[0]) == SIZE(b[0]))


def out_of_order(a: Shape, to: Callable[[Integer], Integer], axes: tuple[Integer, Integer]) -> Expr:
    """The condition that two axes of a permuted shape have changed their order, and neither has length 1."""
    (_, rank, size), (j, k) = a, (to(axis) for axis in axes)
    places = smt.And(within(axes[0], 0, axes[1]), within(axes[1], 0, rank))
    return smt.And(places, smt.Not(j.term < k.term), smt.Not(size(j).term == 1), smt.Not(size(k).term == 1))


def digits_of_permuted(
    a: Shape,
    b: Shape,
    to: Callable[[Integer], Integer],
    turned: tuple[Integer, Integer],
    digit: tuple[Integer, Integer, Integer],
) -> Expr:
    """A place has the same digits in a permuted shape, or two axes that are longer than 1 have changed their order.

    digit  the place, an axis of the permuted shape, and which one of the shape that is
    """
    place, k, axis = digit
    fits = smt.And(within(place, 0, integer(SIZE(a[0]))), within(k, 0, b[1]), to(k).term == axis.term)
    same = DIGIT(a[0], place.term, axis.term) == DIGIT(b[0], place.term, k.term)
    return smt.Implies(fits, smt.Or(out_of_order(a, to, turned), same))


def place_of_permuted(
    a: Shape, to: Callable[[Integer], Integer], turned: tuple[Integer, Integer], places: tuple[Expr, Expr]
) -> Expr:
    """An index vector inside, permuted as its shape is, has the same place, or two axes that are longer than 1 have changed their
    order.
    """
    return smt.Or(out_of_order(a, to, turned), places[0] == places[1])


# places


def place_told(place: Expr, i: Integer) -> Expr:
    """Places of a pointer at other indices are others."""
    return OFFSET(place) == i.term


# axes


def positive_width(a: Expr) -> Expr:
    """A list of axes has an iteration."""
    return width(a).term > 0


def block_in_range(a: Expr, e: Expr) -> Expr:
    """A block is one of as many as the width of its axes."""
    return within(block(a, e), 0, width(a))


def single_width(i: Integer, n: Integer) -> Expr:
    """The width of one axis is its length."""
    return WIDTH(SINGLE(i.term, n.term)) == n.term


def single_distinct(i: Integer, n: Integer) -> Expr:
    """One axis is no other."""
    return DISTINCT(SINGLE(i.term, n.term))


def joined_width(parts: tuple[Expr, ...], a: Expr) -> Expr:
    """The width of a list of lists is the product of theirs."""
    product = integer(1)
    for p in parts:
        product = product * width(p)
    return WIDTH(a) == product.term


def joined_block(parts: tuple[Expr, ...], a: Expr, e: Expr) -> Expr:
    """The block of a list of lists is the number that theirs are the digits of, the last one fastest."""
    number = integer(0)
    for p in parts:
        number = number * width(p) + block(p, e)
    return BLOCK(a, e) == number.term


def joined_distinct(parts: tuple[Expr, ...], a: Expr) -> Expr:
    """A list of lists has no axis twice where none of them has, and no two share one; and only there."""
    alone = [DISTINCT(p) for p in parts]
    return DISTINCT(a) == smt.And(*alone, *(APART(p, q) for p, q in itertools.permutations(parts, 2)))


def there_and_back(a: Expr, k: Integer, e: Expr) -> Expr:
    """Block k is where an iteration is that was moved there."""
    return smt.Implies(smt.And(DISTINCT(a), within(k, 0, width(a))), BLOCK(a, moved(a, k, e)) == k.term)


def back_and_there(a: Expr, e: Expr) -> Expr:
    """An iteration that is moved to its own block is where it was."""
    return smt.Implies(DISTINCT(a), moved(a, block(a, e), e) == e)


def moved_in_turn(parts: tuple[Expr, ...], a: Expr, k: Integer, digits: tuple[Integer, ...], e: Expr) -> Expr:
    """A list of different axes is moved where each of its lists is, to the digits of the block, the last one fastest."""
    number, there, fitting = integer(0), e, []
    for p, digit in zip(parts, digits, strict=True):
        number, there = number * width(p) + digit, moved(p, digit, there)
        fitting.append(within(digit, 0, width(p)))
    return smt.Implies(smt.And(DISTINCT(a), k.term == number.term, *fitting), moved(a, k, e) == there)


def moved_wholly(a: Expr, b: Expr, k: Integer, e: Expr, f: Expr) -> Expr:
    """Axes among those that were moved are where these are, whatever iteration was moved."""
    return smt.Implies(AMONG(a, b), BLOCK(a, moved(b, k, e)) == BLOCK(a, moved(b, k, f)))


def unmoved(a: Expr, b: Expr, k: Integer, e: Expr) -> Expr:
    """Axes of which none was moved are where they were."""
    return smt.Implies(APART(a, b), BLOCK(a, moved(b, k, e)) == BLOCK(a, e))


def folded_in_any_order(a: Expr, b: Expr, by_a: Expr, by_b: Expr) -> Expr:
    """Lists of the same axes, each once: what is folded over the blocks of one is folded over those of the other."""
    same = smt.And(AMONG(a, b), AMONG(b, a), DISTINCT(a), DISTINCT(b))
    return smt.Implies(same, by_a == by_b)


def among_itself(a: Expr) -> Expr:
    """A list of axes is among itself."""
    return AMONG(a, a)


def among_through(a: Expr, b: Expr, c: Expr) -> Expr:
    """A list among those that are among c is among c."""
    return smt.Implies(smt.And(AMONG(a, b), AMONG(b, c)), AMONG(a, c))


def apart_through(a: Expr, b: Expr, c: Expr) -> Expr:
    """A list among others that share nothing with c shares nothing with it."""
    return smt.Implies(smt.And(AMONG(a, b), APART(b, c)), smt.And(APART(a, c), APART(c, a)))
