"""Proofs at every size: the laws they rest on, tried at all small sizes; what they show, and what they must not."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.prove import smt
from morok.prove.encoding.obligation import Choices
from morok.prove.obligations import by_numbers, prove_instances, theory_of
from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import INT, TIMES, Integer, integer
from morok.prove.parametric.proof import parametric_proof, question
from morok.prove.parametric.setting import TooMany
from morok.prove.progress import Progress
from morok.prove.smt import Expr
from morok.prove.solve import ask
from morok.prove.symbol import Symbol
from morok.prove.trust.mutants import mutants
from morok.rewrite.library import rules_dir
from tests.prove.every_size import BUDGET, shown

# The laws, in the model of axes as pairs of an id and a length, and of iterations as one number for every id.

LENGTHS = {0: 2, 1: 3, 2: 1}
LISTS = [tuple((i, LENGTHS[i]) for i in ids) for k in range(3) for ids in itertools.product(LENGTHS, repeat=k)]
ITERATIONS = list(itertools.product(*(range(n) for n in LENGTHS.values())))
NUMBERS = range(-3, 7)


def width(a: Any) -> int:
    return math.prod(n for _, n in a)


def block(a: Any, e: Any) -> int:
    out = 0
    for i, n in a:
        out = out * n + e[i]
    return out


def moved(a: Any, k: int, e: Any) -> Any:
    out = list(e)
    for i, n in reversed(a):
        out[i] = k % n
        k //= n
    return tuple(out)


MEANINGS: dict[Any, Callable[..., Any]] = {
    TIMES: lambda a, b: a * b,
    laws.QUOTIENT: lambda a, b: a // b if b else 99,  # whatever it is: no law speaks of it
    laws.REMAINDER: lambda a, b: a % b if b else 98,
    laws.WIDTH: width,
    laws.SINGLE: lambda i, n: ((i, n),),
    laws.LENGTH: len,
    laws.BLOCK: block,
    laws.MOVED: moved,
    laws.AMONG: lambda a, b: {i for i, _ in a} <= {i for i, _ in b},
    laws.APART: lambda a, b: {i for i, _ in a}.isdisjoint(i for i, _ in b),
    laws.DISTINCT: lambda a: len({i for i, _ in a}) == len(a),
}
OPERATORS: dict[str, Callable[..., Any]] = {
    "and": lambda *a: all(a),
    "or": lambda *a: any(a),
    "not": lambda a: not a,
    "=>": lambda a, b: not a or b,
    "=": lambda a, b: a == b,
    "+": lambda *a: sum(a),
    "-": lambda a, *b: a - b[0] if b else -a,
    "*": lambda a, b: a * b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "ite": lambda c, a, b: a if c else b,
}


def valued(e: Expr, unknowns: dict[Expr, Any]) -> Any:
    """The value of a term where its unknowns have these."""
    if e.head == "value":
        return e.value
    if e.head == "const":
        return unknowns[e]
    meaning = MEANINGS[e.data] if e.head == "apply" else OPERATORS[e.head]
    return meaning(*(valued(a, unknowns) for a in e.args))


def of_kind(kind: str) -> list[Any]:
    return {"Integer": list(NUMBERS), "a": LISTS, "e": ITERATIONS}[kind]


def kinds(law: Callable[..., Expr]) -> list[str]:
    """The kind of each operand of a law: an integer, a list of axes (a, b, c), an iteration (e, f)."""
    found = []
    for name, p in inspect.signature(law).parameters.items():
        found.append("Integer" if p.annotation == "Integer" else "e" if name in "ef" else "a")
    return found


LAWS = [
    laws.small, laws.division, laws.quotient_of_sum, laws.quotient_below, laws.division_in_steps, laws.parts_below,
    laws.positive_product,
    laws.positive_width,
    laws.block_in_range, laws.there_and_back, laws.back_and_there, laws.moved_wholly, laws.unmoved, laws.among_itself,
    laws.among_through, laws.apart_through, laws.sign_of_product, laws.single_width, laws.single_distinct,
]  # fmt: skip
JOINED = [laws.joined_width, laws.joined_block, laws.joined_distinct]
NO_LAWS = {"width", "block", "moved", "integer", "within", "product_with", "out_of_order"}
OF_THEIR_OWN = {  # with models of their own, below
    "inside_its_part", "part_of_lane", "place_told", "part_begins", "next_begins", "ends_of_all", "behind_alike",
    "number_of_items", "items_at_most", "folded_in_any_order", "turned",
    "sum_of_differences", "moved_in_turn", "in_another_order",
    "elements_in_parts", "place_in_parts", "one_shape", "permuted_elements", "digits_of_permuted", "place_of_permuted",
    "digits_backwards", "sum_of_row", "greatest_of_row", "least_of_row",
}  # fmt: skip


def test_every_law_is_tried() -> None:
    functions = {n for n, f in vars(laws).items() if inspect.isfunction(f)}
    assert functions - NO_LAWS - OF_THEIR_OWN == {f.__name__ for f in (*LAWS, *JOINED)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("law", LAWS, ids=lambda f: f.__name__)
def test_a_law_holds_at_all_small_sizes(law: Callable[..., Expr]) -> None:
    smt.forget()
    sorts = {"Integer": INT, "a": laws.AXES, "e": laws.ITERATION}
    names = [(k, smt.Const(Symbol("fixed", str(at)), sorts[k])) for at, k in enumerate(kinds(law))]
    instance = law(*(integer(c) if k == "Integer" else c for k, c in names))
    met = 0
    for values in itertools.product(*(of_kind(k) for k, _ in names)):
        unknowns = dict(zip((c for _, c in names), values, strict=True))
        assert valued(instance, unknowns), values
        met += instance.head != "=>" or valued(instance.args[0], unknowns)
    assert met > len(names)  # its premise is met


@pytest.mark.parametrize("law", JOINED, ids=lambda f: f.__name__)
def test_a_law_of_lists_of_lists_holds(law: Callable[..., Expr]) -> None:
    smt.forget()
    a, b, whole = (smt.Const(Symbol("fixed", n), laws.AXES) for n in ("a", "b", "whole"))
    e = smt.Const(Symbol("fixed", "e"), laws.ITERATION)
    instance = law((a, b), whole, e) if law is laws.joined_block else law((a, b), whole)
    for x, y, at in itertools.product(LISTS, LISTS, ITERATIONS):
        assert valued(instance, {a: x, b: y, whole: x + y, e: at}), (x, y, at)


@pytest.mark.long
def test_axes_that_are_moved_at_once_are_moved_in_turn() -> None:
    """The law for lists without an axis in common: of axes in both, the one list would move back what the other has moved."""
    smt.forget()
    a, b, whole = (smt.Const(Symbol("fixed", n), laws.AXES) for n in ("a", "b", "whole"))
    e = smt.Const(Symbol("fixed", "e"), laws.ITERATION)
    k, i, j = (integer(smt.Int(Symbol("fixed", n))) for n in "kij")
    instance = laws.moved_in_turn((a, b), whole, k, (i, j), e)
    met = differ = 0
    for x, y, at in itertools.product(LISTS, LISTS, ITERATIONS):
        for first, second in itertools.product(range(width(x)), range(width(y))):
            block_of_both = first * width(y) + second
            given = {a: x, b: y, whole: x + y, e: at, k.term: block_of_both, i.term: first, j.term: second}
            assert valued(instance, given), given
            met += MEANINGS[laws.DISTINCT](x + y)
            differ += moved(x + y, block_of_both, at) != moved(y, second, moved(x, first, at))
    assert met > 100
    assert differ > 100


def test_folds_take_their_items_in_any_order() -> None:
    """The law at all maps of few items: where it has no exception, what is folded is the same."""
    smt.forget()
    n, wide, its, early, one, late, two, unlike = (integer(smt.Int(Symbol("fixed", str(k)))) for k in range(8))
    there = (smt.Const(Symbol("fixed", "a"), laws.VALUE), smt.Const(Symbol("fixed", "b"), laws.VALUE))
    same = smt.Bool(Symbol("fixed", "same"))
    instance = laws.in_another_order(n, (wide, its), ((early, one), (late, two)), unlike, there, same)
    together = 0
    for length in range(4):
        for to in itertools.product(range(-1, length + 1), repeat=length):
            for items in itertools.product(range(2), repeat=length):
                others = [items[p] if 0 <= p < length else 7 for p in to]
                others_wrong = [7, *others[1:]] if length else others
                for folded in (others, others_wrong):
                    alike = sorted(folded) == sorted(items)
                    excused = any(
                        valued(
                            instance,
                            {
                                n.term: length,
                                wide.term: i, its.term: to[i],
                                early.term: j, one.term: to[j], late.term: k, two.term: to[k],
                                unlike.term: i, there[0]: items[to[i]] if 0 <= to[i] < length else 7, there[1]: folded[i],
                                same: False,
                            },
                        )
                        for i, j, k in itertools.product(range(length), repeat=3)
                    )  # fmt: skip
                    assert alike or excused
                    together += alike and not excused
    assert together > 10


def test_a_table_goes_by_rows_through_what_it_has_by_columns() -> None:
    """Each once: where the items of all places are those of the places turned, all are folded."""
    rows, columns, place = (integer(smt.Int(Symbol("fixed", n))) for n in ("rows", "columns", "place"))
    one, other = (smt.Const(Symbol("fixed", n), laws.VALUE) for n in ("one", "other"))
    instance = laws.turned(rows, columns, place, one, other, smt.Bool(Symbol("fixed", "same")))
    told = {rows.term: 2, columns.term: 3, place.term: 4, one: 0, smt.Bool(Symbol("fixed", "same")): False}
    assert valued(instance, told | {other: 1})  # one item that differs is enough
    assert not valued(instance, told | {other: 0})
    for n, m in itertools.product(range(1, 6), repeat=2):
        turned = [p % m * n + p // m for p in range(n * m)]
        assert sorted(turned) == list(range(n * m)), (n, m)


def test_lists_of_the_same_axes_have_the_same_iterations() -> None:
    """And each as often, in whichever order."""
    a, b = (smt.Const(Symbol("fixed", n), laws.AXES) for n in "ab")
    folds = [smt.Const(Symbol("fixed", f"by {n}"), laws.VALUE) for n in "ab"]
    instance = laws.folded_in_any_order(a, b, *folds)
    met = 0
    for x, y, e in itertools.product(LISTS, LISTS, ITERATIONS):
        unknowns = {a: x, b: y} | {
            f: sorted(moved(z, k, e) for k in range(width(z))) for f, z in zip(folds, (x, y), strict=True)
        }
        assert valued(instance, unknowns), (x, y, e)
        met += x != y and valued(instance.args[0], unknowns)
    assert met


SHAPES = [shape for rank in range(3) for shape in itertools.product(range(4), repeat=rank)]


def row_major(shape: tuple[int, ...], vector: tuple[int, ...]) -> int:
    place = 0
    for n, i in zip(shape, vector, strict=True):
        place = place * n + i
    return place


def test_the_place_in_a_shape_of_parts_is_that_of_its_parts() -> None:
    """Two parts of up to two axes with one axis between them, at all sizes up to 3 and at some index vectors, also outside."""
    smt.forget()
    MEANINGS.update({laws.SIZE: math.prod, laws.FLAT: row_major})
    whole, a, b, at, v, w = (smt.Const(Symbol("fixed", n), laws.VALUE) for n in ("whole", "a", "b", "at", "v", "w"))
    n, i = smt.Int(Symbol("fixed", "n")), smt.Int(Symbol("fixed", "i"))
    lengths = tuple(integer(smt.Int(Symbol("fixed", f"l{k}"))) for k in range(2))
    elements = laws.elements_in_parts(whole, (laws.SIZE(a), n, laws.SIZE(b)), lengths)
    digits = ((laws.SIZE(a), laws.FLAT(a, v)), (n, i), (laws.SIZE(b), laws.FLAT(b, w)))
    place = laws.place_in_parts(laws.FLAT(whole, at), digits, lengths)
    for one, two, size, index in itertools.product(SHAPES, SHAPES, range(4), (-1, 0, 2)):
        first, last = tuple(range(len(one))), tuple(2 - k for k in range(len(two)))
        known = {
            whole: (*one, size, *two),
            a: one,
            b: two,
            n: size,
            i: index,
            v: first,
            w: last,
            at: (*first, index, *last),
        }
        known |= {lengths[0].term: len(one), lengths[1].term: len(two)}
        assert valued(elements, known), known
        assert valued(place, known), known


def test_digits_from_the_last_place_on_are_those_from_the_last_digits_on() -> None:
    smt.forget()
    MEANINGS.update({laws.SIZE: math.prod})
    of = smt.Const(Symbol("fixed", "of"), laws.VALUE)
    rank, k, size, one, other, first, second = (
        smt.Int(Symbol("fixed", n)) for n in ("rank", "k", "size", "one", "other", "first", "second")
    )
    places = integer(one), integer(other)
    law = laws.digits_backwards((of, integer(rank)), (integer(k), integer(size)), places, (first, second))

    met = 0
    for shape in (s for n in range(4) for s in itertools.product(range(4), repeat=n)):
        many = math.prod(shape)
        for axis, place, again in itertools.product(
            range(-1, len(shape) + 1), range(-1, many + 1), range(-1, many + 1)
        ):
            known = {of: shape, rank: len(shape), k: axis, one: place, other: again}
            known[size] = shape[axis] if 0 <= axis < len(shape) else 99
            known[first], known[second] = (digit(shape, p, axis) for p in (place, again))
            assert valued(law, known), known
            met += valued(law.args[0], known)
    assert met > 100


@pytest.mark.long
def test_shapes_of_one_number_of_elements_are_one_or_differ_twice() -> None:
    smt.forget()
    MEANINGS.update({laws.SIZE: math.prod})
    a, b = (smt.Const(Symbol("fixed", n), laws.VALUE) for n in "ab")
    sizes = [smt.Function(Symbol("function", f"size {n}"), INT, INT) for n in "ab"]
    ranks = [integer(smt.Int(Symbol("fixed", f"rank {n}"))) for n in "ab"]
    unlike = integer(smt.Int(Symbol("fixed", "d"))), integer(smt.Int(Symbol("fixed", "e")))
    none = integer(smt.Int(Symbol("fixed", "none")))
    one, other = ((x, r, lambda k, f=f: integer(f(k.term))) for x, r, f in zip((a, b), ranks, sizes, strict=True))
    law = laws.one_shape(one, other, unlike, none)
    met = 0
    for x, y in itertools.product([*SHAPES, *itertools.product(range(1, 4), repeat=3)], repeat=2):
        MEANINGS.update({f: lambda k, s=s: s[k] if 0 <= k < len(s) else 9 for f, s in zip(sizes, (x, y), strict=True)})
        known = {a: x, b: y, ranks[0].term: len(x), ranks[1].term: len(y)}
        places = range(max(len(x), 1))
        found = [
            valued(law, known | {unlike[0].term: d, unlike[1].term: e, none.term: k})
            for d, e, k in itertools.product(places, repeat=3)
        ]
        assert any(found), (x, y)  # the unknowns of the law may be these
        met += x != y and len(x) == len(y) and math.prod(x) == math.prod(y)
    assert met


def digit(shape: tuple[int, ...], place: int, axis: int) -> int:
    """Whatever it is outside of the shape: no law speaks of it."""
    if not 0 <= axis < len(shape) or 0 in shape:
        return 97
    below = math.prod(shape[axis + 1 :])
    return place // below % shape[axis]


@pytest.mark.parametrize("rank", range(4))
def test_places_do_not_depend_on_where_axes_of_length_1_stand(rank: int) -> None:
    """All permutations of shapes of sizes up to 3, or 2 of three axes: at all places, and at index vectors inside."""
    smt.forget()
    MEANINGS.update({laws.SIZE: math.prod, laws.FLAT: row_major, laws.DIGIT: digit})
    one, other, v, w = (smt.Const(Symbol("fixed", n), laws.VALUE) for n in ("one", "other", "v", "w"))
    size, its_size, to = (smt.Function(Symbol("function", n), INT, INT) for n in ("size", "its size", "to"))
    n, early, late, place, k, axis = (integer(smt.Int(Symbol("fixed", f"m{i}"))) for i in range(6))
    a, b = (one, n, lambda k: integer(size(k.term))), (other, n, lambda k: integer(its_size(k.term)))

    def there(k: Integer) -> Integer:
        return integer(to(k.term))

    turned = laws.out_of_order(a, there, (early, late))
    elements = laws.permuted_elements(a, b, smt.TRUE)
    digits = laws.digits_of_permuted(a, b, there, (early, late), (place, k, axis))
    places = laws.place_of_permuted(a, there, (early, late), (laws.FLAT(one, v), laws.FLAT(other, w)))
    met, axes_and_more = 0, range(-1, rank + 1)
    sizes = itertools.product(range(4 if rank < 3 else 3), repeat=rank)
    for shape, axes in itertools.product(sizes, itertools.permutations(range(rank))):
        permuted = tuple(shape[j] for j in axes)
        for f, known in ((size, shape), (its_size, permuted), (to, axes)):
            MEANINGS[f] = lambda k, known=known: known[k] if 0 <= k < len(known) else 9
        unknowns = {one: shape, other: permuted, n.term: rank}
        pairs = [unknowns | {early.term: i, late.term: j} for i, j in itertools.product(axes_and_more, repeat=2)]
        # of two unknown axes nothing more is said
        told = next((pair for pair in pairs if valued(turned, pair)), pairs[0])
        assert valued(elements, told)
        for p, j, x in itertools.product(range(-1, math.prod(shape) + 1), axes_and_more, range(rank)):
            assert valued(digits, told | {place.term: p, k.term: j, axis.term: x}), (shape, axes, p, j, x)
        for i in itertools.product(*map(range, shape)):
            assert valued(places, told | {v: i, w: tuple(i[j] for j in axes)}), (shape, axes, i)
        met += math.prod(shape) > 1 and axes != tuple(range(rank)) and not valued(turned, told)
    assert met or rank < 2


@pytest.mark.long
def test_where_vectors_behind_one_another_begin() -> None:
    """All rows of up to three vectors of up to three lanes, at all lanes around them."""
    smt.forget()
    lane, k, length, total, count, *told = (integer(smt.Int(Symbol("fixed", f"n{i}"))) for i in range(8))
    for counts in (c for n in range(4) for c in itertools.product(range(4), repeat=n)):
        firsts = list(itertools.accumulate(counts, initial=0))
        for at in range(-2, sum(counts) + 2):
            of = next((q for q, n in enumerate(counts) if firsts[q] <= at < firsts[q] + n), 99)
            begin = firsts[of] if of != 99 else 99
            known = {lane: at, length: len(counts), total: sum(counts)}
            its = {told[0]: of, told[1]: begin, count: counts[of] if of != 99 else 99}
            law = laws.inside_its_part(lane, length, total, told[0], told[1], count)
            assert valued(law, {n.term: v for n, v in (known | its).items()})
            for q in range(-1, len(counts) + 1):
                mine = {k: q, told[0]: of, told[1]: begin}
                mine |= {told[2]: firsts[q], count: counts[q]} if 0 <= q < len(counts) else {told[2]: 97, count: 97}
                law = laws.part_of_lane(lane, k, length, total, count, tuple(told))
                assert valued(law, {n.term: v for n, v in (known | mine).items()}), (counts, at, q)


def holds(instance: Expr, values: dict[Integer, int]) -> bool:
    return bool(valued(instance, {n.term: v for n, v in values.items()}))


@pytest.mark.long
def test_where_vectors_begin_behind_those_before() -> None:
    """All rows of up to four vectors of up to three lanes. What the law says of some other vector holds of one at least."""
    smt.forget()
    lane, k, length, total, count, start, first, following, each, other = (
        integer(smt.Int(Symbol("fixed", f"n{i}"))) for i in range(10)
    )
    for counts in (c for n in range(5) for c in itertools.product(range(4), repeat=n)):
        firsts = dict(enumerate(itertools.accumulate(counts, initial=0)))
        known = {length: len(counts), total: sum(counts)}
        assert holds(
            laws.ends_of_all(length, total, first, following), known | {first: 0, following: firsts[len(counts)]}
        )
        for q in range(-1, len(counts) + 2):
            its = known | {
                k: q,
                first: firsts.get(q, 97),
                following: firsts.get(q + 1, 96),
                count: dict(enumerate(counts)).get(q, 95),
            }
            assert holds(laws.next_begins(k, length, count, first, following), its), (counts, q)
            for n in range(4):
                law = laws.behind_alike(k, length, each, first, other, count)
                others = range(-1, len(counts) + 1)
                assert any(
                    holds(law, its | {each: n, other: j, count: dict(enumerate(counts)).get(j, 95)}) for j in others
                ), (
                    counts,
                    q,
                    n,
                )
        for at in range(-2, sum(counts) + 2):
            of = next((q for q, n in enumerate(counts) if firsts[q] <= at < firsts[q] + n), 99)
            its = known | {lane: at, start: firsts.get(of, 94), first: firsts.get(of, 93)}
            assert holds(laws.part_begins(lane, total, start, first), its)


def test_vectors_begin_where_a_sequence_is_whose_differences_their_lanes_are() -> None:
    k, length, first, then, before = (
        integer(smt.Int(Symbol("fixed", n))) for n in ("k", "length", "first", "then", "before")
    )
    instance = laws.sum_of_differences(k, length, first, then, before)
    for c in itertools.product(range(4), repeat=4):
        counts = [b - a for a, b in itertools.pairwise(c)]
        for at in range(-1, 6):
            begin = sum(counts[:at]) if 0 <= at <= 3 else 99
            assert holds(
                instance, {k: at, length: 3, first: begin, then: c[at] if 0 <= at <= 3 else 0, before: c[0]}
            ), (c, at)


def test_vectors_behind_others_of_the_same_lanes_are_not_said_to_begin_elsewhere() -> None:
    """Where no vector before has other lanes, the law leaves no way out: a wrong first lane is excluded."""
    smt.forget()
    k, length, first, other = (integer(smt.Int(Symbol("fixed", f"n{i}"))) for i in range(4))
    law = laws.behind_alike(k, length, integer(3), first, other, integer(3))
    values = {k: 2, length: 4, first: 7}
    assert not any(holds(law, values | {other: j}) for j in range(-1, 5))
    assert any(holds(law, values | {first: 6, other: j}) for j in range(-1, 5))


@pytest.mark.parametrize(
    ("law", "fold"),
    [(laws.sum_of_row, sum), (laws.greatest_of_row, max), (laws.least_of_row, min)],
    ids=["sum", "greatest", "least"],
)
def test_a_row_of_numbers_is_folded_to_one_number(law: Callable[..., Expr], fold: Callable[..., int]) -> None:
    """At rows of up to six numbers: the law admits what the fold is, and no other number."""
    smt.forget()
    many, first, step, folded = (integer(smt.Int(Symbol("fixed", f"n{i}"))) for i in range(4))
    instance = law(many, first, step, folded)
    for n, a, b in itertools.product(range(0 if fold is sum else 1, 7), range(-2, 3), range(-2, 3)):
        right = fold(a + b * k for k in range(n))
        admitted = [m for m in range(-60, 61) if holds(instance, {many: n, first: a, step: b, folded: m})]
        assert admitted == [right], (n, a, b)


@pytest.mark.long
def test_how_many_items_are_at_most_a_number() -> None:
    """All sequences of up to four items: of an ordered one the law tells the number, of any other it says nothing."""
    smt.forget()
    n, count, length, last, following, other, one, next_one = (
        integer(smt.Int(Symbol("fixed", f"n{i}"))) for i in range(8)
    )
    for xs in (c for m in range(5) for c in itertools.product(range(3), repeat=m)):
        for most in range(-1, 4):
            true = sum(x <= most for x in xs)
            for c in range(-1, len(xs) + 2):
                known = {n: most, count: c, length: len(xs)}
                known |= {last: xs[c - 1] if 0 < c <= len(xs) else 97, following: xs[c] if 0 <= c < len(xs) else -97}

                counted = holds(laws.number_of_items(count, length), known)
                law = laws.items_at_most(n, count, length, (last, following), other, (one, next_one))
                at = dict(enumerate(xs))
                others = ({other: j, one: at.get(j, 95), next_one: at.get(j + 1, 94)} for j in range(-1, len(xs) + 1))
                meets = counted and any(holds(law, known | its) for its in others)
                assert meets or c != true, (xs, most, c)
                if list(xs) == sorted(xs):
                    assert meets == (c == true), (xs, most, c)


def test_a_place_tells_its_index() -> None:
    smt.forget()
    at = smt.Function(Symbol("op", "place"), laws.VALUE, INT, laws.VALUE)
    buffer, i = smt.Const(Symbol("fixed", "b"), laws.VALUE), smt.Int(Symbol("fixed", "i"))
    MEANINGS.update({at: lambda b, i: (b, i), laws.OFFSET: lambda place: place[1]})
    assert all(valued(laws.place_told(at(buffer, i), integer(i)), {buffer: "b", i: k}) for k in NUMBERS)


def test_products_with_numbers() -> None:
    smt.forget()
    a, b = (smt.Int(Symbol("fixed", n)) for n in "ab")
    for x, y, n in itertools.product(NUMBERS, NUMBERS, NUMBERS):
        assert valued(laws.product_with(n, a, b), {a: x, b: y})


def test_polynomials_are_what_their_terms_are() -> None:
    smt.forget()
    unknowns = {smt.Int(Symbol("fixed", n)): v for n, v in zip("abc", (2, -3, 5), strict=True)}
    a, b, c = map(integer, unknowns)
    for p, value in (
        ((a + b) * (a - c * 2 + 1), (2 - 3) * (2 - 10 + 1)),
        (-(a * b * b) + 7, -18 + 7),
        (a - a, 0),
        ((a + b) * (a + b) - a * a - b * b - a * b * 2, 0),
    ):
        assert valued(p.term, unknowns) == value
    q, r = (a * b * c + a * b * 4 + c).split((next(iter(a.terms))[0],))
    assert q.same(b * c + b * 4)
    assert r.same(c)
    assert isinstance(q, Integer)
    for dividend, divisor in (
        ((a * b - a + c), (b - 1)),
        (a * b * b - c, b * b),
        (a + b, c),
        (a * b, a + b),
        (a * b, b * 2),
    ):
        q, r = dividend.divided_by(divisor)
        assert (q * divisor + r).same(dividend)
    assert (a * b - a).divided_by(b - 1)[0].same(a)
    assert not (a * b).divided_by(a + b)[0].terms  # neither of its monomials is the greatest


# What is shown, and what must not be.


def rule(text: str) -> CheckedRule:
    return next(
        iter(check_text(f'{AXES}\ngroup g "a group"\n@context AxisOrder;\n\nr: {text}\n    "a rule"\n').rules())
    )


AXES = """helpers "morok.passes.axis_expansion"

extern union(parts: seq) -> (c: seq)
    ensures all(all(any(p == q for q in c) for p in part) for part in parts)
    ensures all(any(any(p == q for p in part) for part in parts) for q in c)
    ensures all(all(i == j or c[i][0] != c[j][0] for j in 0..len(c)) for i in 0..len(c))

extern swizzle(target: seq, source: seq, own: int) -> (ls: seq)
    ensures ls == [
        sum(at(target, i, k // own) * step(source, i) for i, _n in source) * own + k % own
        for k in 0..width(target) * own]
"""

STORE = """Store {{ index: p, value: v: f32, ranges: rs }}
    if lanes(p) == lanes(v) and len(axes(p)) + len(axes(v)) + sum(len(axes(r)) for r in rs) > 0
    let c = union([axes(p), axes(v)]), open = [r for r in rs if len(axes(r)) == 0]
    if free_of_axes(inside(p), c) and {free}all(free_of_axes(r, c) for r in open)
    ~> Store {{
        index: Gep(inside(p), swizzle(c, axes(p), lanes(p))),
        value: Gep(inside(v), swizzle(c, axes({axes}), lanes(v))),
        ranges: {ranges} }}"""
FOLD_CLOSED = """n @ Reduce { src: x, ranges: rs, op }
    if lanes(n) == 1 and any(len(axes(r)) > 0 for r in rs)
    let c = union(axes(r) for r in rs), open = [r for r in rs if len(axes(r)) == 0]"""
PAIRS = {
    "lanes of lanes": (
        "Gep { vector: Gep { vector: x, indices: inner }, indices: outer } ~> Gep(x, [inner[o] for o in outer])",
        "Gep { vector: Gep { vector: x, indices: inner }, indices: outer } ~> Gep(x, [inner[0] for o in outer])",
    ),
    "lanes of an op": (
        "Gep { vector: Mul(x: i32, y), indices: is } ~> Mul(Gep(x, is), Gep(y, is))",
        "Gep { vector: Mul(x: i32, y), indices: is } ~> Mul(Gep(x, is), Gep(y, [is[len(is) - 1 - k] for k in 0..len(is)]))",
    ),
    "operands of an op": (
        "Gep { vector: Sub(x: i32, y), indices: is } ~> Sub(Gep(x, is), Gep(y, is))",
        "Gep { vector: Sub(x: i32, y), indices: is } ~> Sub(Gep(y, is), Gep(x, is))",
    ),
    "the dtype of a conversion": (
        "Gep { vector: Cast(Cast(x: i64, i8), i32), indices: is } ~> Cast(Cast(Gep(x, is), i8), i32)",
        "Gep { vector: Cast(Cast(x: i64, i8), i32), indices: is } ~> Cast(Cast(Gep(x, is), i16), i32)",
    ),
    "every lane in its place": (
        "Gep { vector: x, indices: is } if len(is) == lanes(x) and all(is[k] == k for k in 0..lanes(x)) ~> x",
        "Gep { vector: x, indices: is } if len(is) == lanes(x) and all(is[k] == k for k in 0..min(3, lanes(x))) ~> x",
    ),
    "a loop apart from others": (
        "Reduce { src: s, ranges: [before.., t: index, rest..], op } if launched(t) and len(before) + len(rest) > 0 "
        "and all(free_of(x, t) for x in before) and all(free_of(x, t) for x in rest) "
        "~> Reduce { src: Reduce { src: s, ranges: [before.., rest..], op }, ranges: [t], op }",
        "Reduce { src: s, ranges: [before.., t: index, rest..], op } if launched(t) and len(before) + len(rest) > 0 "
        "and all(free_of(x, t) for x in before) "
        "~> Reduce { src: Reduce { src: s, ranges: [before.., rest..], op }, ranges: [t], op }",
    ),
    "as many lanes": (
        "Gep { vector: Vectorize(xs..), indices: is } ~> Vectorize(xs[i] for i in is)",
        "Gep { vector: Vectorize(xs..), indices: is } ~> Vectorize(x for x in xs)",
    ),
    "parts of equal lanes": (
        "Gep { vector: Cat(xs..), indices: is } let m = lanes(xs[0]), p = is[0] // lanes(xs[0])"
        " if all(lanes(x) == m for x in xs) and all(l // m == p for l in is) ~> Gep(xs[p], [l % m for l in is])",
        "Gep { vector: Cat(xs..), indices: is } let m = lanes(xs[0]), p = is[0] // lanes(xs[0])"
        " if all(l // m == p for l in is) ~> Gep(xs[p], [l % m for l in is])",
    ),
    "constants": (
        "Add(_a @vconst(xs): i32, _b @vconst(ys)) let vs = [eval(Add, x, y) for x, y in zip(xs, ys)] ~> VConst(vs)",
        "Add(_a @vconst(xs): i32, _b @vconst(ys)) let vs = [eval(Add, x, x) for x, y in zip(xs, ys)] ~> VConst(vs)",
    ),
    "axes of both operands": (
        "Mul(u @ Unroll { src: x: f32, axes: a }, Unroll { src: y: f32, axes: b }) let c = union([a, b])"
        " ~> Unroll { src: Mul(Gep(x, swizzle(c, a, lanes(u))), Gep(y, swizzle(c, b, lanes(u)))), axes: c }",
        "Mul(u @ Unroll { src: x: f32, axes: a }, Unroll { src: y: f32, axes: b }) let c = union([a, b])"
        " ~> Unroll { src: Mul(Gep(x, swizzle(c, a, lanes(u))), Gep(y, swizzle(c, a, lanes(u)))), axes: c }",
    ),
    "the order of axes": (
        "n @ Unroll { src: Unroll { src: x, axes: a }, axes: b } if all(all(i != j for j, _m in b) for i, _n in a)"
        " let c = union([a, b]) ~> Unroll { src: Gep(x, swizzle(c, [a.., b..], lanes(n))), axes: c }",
        "n @ Unroll { src: Unroll { src: x, axes: a }, axes: b } if all(all(i != j for j, _m in b) for i, _n in a)"
        " let c = union([a, b]) ~> Unroll { src: Gep(x, swizzle(c, [b.., a..], lanes(n))), axes: c }",
    ),
    "axes in both": (
        "Unroll { src: x, axes: [] } ~> x",
        "n @ Unroll { src: Unroll { src: x, axes: a }, axes: b }"
        " let c = union([a, b]) ~> Unroll { src: Gep(x, swizzle(c, [a.., b..], lanes(n))), axes: c }",
    ),
    "free of the axes": (
        "Contract { src: x: f32, axes: b } if free_of_axes(x, b) ~> Gep(x, swizzle(b, [], lanes(x)))",
        "Contract { src: x: f32, axes: b } ~> Gep(x, swizzle(b, [], lanes(x)))",
    ),
    "lanes that stay together": (
        "Gep { vector: u @ Unroll { src: x: f32, axes: a }, indices: is }"
        " ~> Unroll { src: Gep(x, [k // len(is) * lanes(u) + is[k % len(is)] for k in 0..width(a) * len(is)]), axes: a }",
        "Gep { vector: u @ Unroll { src: x: f32, axes: a }, indices: is }"
        " ~> Unroll { src: Gep(x, [k % len(is) * lanes(u) + is[k % len(is)] for k in 0..width(a) * len(is)]), axes: a }",
    ),
    "halves of a fold": (
        "n @ Reduce { src: s: f32, ranges: [], op: Add } if lanes(n) == 1 and lanes(s) > 2 and lanes(s) % 2 == 0"
        " let h = lanes(s) // 2"
        " ~> Reduce { src: Add(Gep(s, [i for i in 0..h]), Gep(s, [i for i in h..2 * h])), ranges: [], op: Add }",
        "n @ Reduce { src: s: f32, ranges: [], op: Add } if lanes(n) == 1 and lanes(s) > 2 and lanes(s) % 2 == 0"
        " let h = lanes(s) // 2"
        " ~> Reduce { src: Add(Gep(s, [i for i in 0..h]), Gep(s, [i for i in 0..h])), ranges: [], op: Add }",
    ),
    "all of a fold": (
        "n @ Reduce { src: s: f32, ranges: [], op: Mul } if lanes(s) == 2 * lanes(n)"
        " ~> Mul(Gep(s, [2 * i for i in 0..lanes(n)]), Gep(s, [2 * i + 1 for i in 0..lanes(n)]))",
        "n @ Reduce { src: s: f32, ranges: [], op: Mul } if lanes(s) == 3 * lanes(n)"
        " ~> Mul(Gep(s, [3 * i for i in 0..lanes(n)]), Gep(s, [3 * i + 1 for i in 0..lanes(n)]))",
    ),
    "the last of a fold": (
        "n @ Reduce { src: s: f32, ranges: [], op: Add } if lanes(s) > 2 * lanes(n) and lanes(s) % lanes(n) == 0"
        " let m = lanes(n), k = lanes(s) // lanes(n) - 1, others = Gep(s, [p // k * (k + 1) + p % k for p in 0..m * k])"
        " ~> Add(Reduce { src: others, ranges: [], op: Add, dtype: dtype(s, m) }, Gep(s, [i * (k + 1) + k for i in 0..m]))",
        "n @ Reduce { src: s: f32, ranges: [], op: Add } if lanes(s) > 2 * lanes(n) and lanes(s) % lanes(n) == 0"
        " let m = lanes(n), k = lanes(s) // lanes(n) - 1, others = Gep(s, [p // k * (k + 1) + p % k for p in 0..m * k])"
        " ~> Add(Reduce { src: others, ranges: [], op: Add, dtype: dtype(s, m) }, Gep(s, [i * (k + 1) for i in 0..m]))",
    ),
    "the op of a fold": (
        "n @ Reduce { src: s: i32, ranges: [], op: Max } if lanes(s) == 2 * lanes(n)"
        " ~> Max(Gep(s, [2 * i for i in 0..lanes(n)]), Gep(s, [2 * i + 1 for i in 0..lanes(n)]))",
        "n @ Reduce { src: s: i32, ranges: [], op: Max } if lanes(s) == 2 * lanes(n)"
        " ~> Min(Gep(s, [2 * i for i in 0..lanes(n)]), Gep(s, [2 * i + 1 for i in 0..lanes(n)]))",
    ),
    "sums that were rounded": (
        "n @ Reduce { src: s: f32, ranges: [], op: Add } if lanes(s) == 2 and lanes(n) == 1 ~> Add(Gep(s, [1]), Gep(s, [0]))",
        "Reduce { src: Add(x: f32, y), ranges: [], op: Add }"
        " ~> Add(Reduce { src: x, ranges: [], op: Add }, Reduce { src: y, ranges: [], op: Add })",
    ),
    "a sum taken apart": (
        "n @ Reduce { src: s: f32, ranges: [r, rest..], op } if lanes(s) == lanes(n) * 2"
        " ~> Reduce { src: Reduce { src: s, ranges: [r, rest..], op }, ranges: [], op }",
        "n @ Reduce { src: s: f32, ranges: [r, rest..], op } if lanes(s) == lanes(n) * 2"
        " ~> Reduce { src: Reduce { src: s, ranges: [r], op }, ranges: [], op }",
    ),
    "the loops of a fold": (
        "n @ Reduce { src: Unroll { src: x: f32, axes: a }, ranges: rs, op } if all(len(axes(r)) == 0 for r in rs)"
        " ~> Unroll { src: Reduce { src: x, ranges: rs, op, dtype: dtype(n, width(a) * lanes(n)) }, axes: a }",
        "n @ Reduce { src: Unroll { src: x: f32, axes: a }, ranges: rs, op }"
        " ~> Unroll { src: Reduce { src: x, ranges: rs, op, dtype: dtype(n, width(a) * lanes(n)) }, axes: a }",
    ),
    "a vectorized range": (
        "Range { end: @const(n): index, id, axis: Upcast, .. } if n > 0"
        " ~> Unroll { src: VConst(k for k in 0..n), axes: [[id, n]] }",
        "Range { end: @const(n): index, id, axis: Upcast, .. } if n > 0"
        " ~> Unroll { src: VConst(n - 1 - k for k in 0..n), axes: [[id, n]] }",
    ),
    "the first of several parts": (
        "Gep { vector: Cat(a: f32, _rest..), indices: is } if all(i < lanes(a) for i in is) ~> Gep(a, is)",
        "Gep { vector: Cat(a: f32, _rest..), indices: is } if any(i < lanes(a) for i in is)"
        " ~> Gep(a, [i % lanes(a) for i in is])",
    ),
    "parts of different lanes": (
        "Cast(Cat(xs..: index), i32) ~> Cat(Cast(x, i32) for x in xs)",
        "Cast(Cat(xs..: index), i32) ~> Cat(Cast(xs[len(xs) - 1 - k], i32) for k in 0..len(xs))",
    ),
    "what a condition may not look at": (
        "Vectorize(xs..: i32) if len(xs) > 1 ~> Gep(Vectorize(xs..), [k for k in 0..max(len(xs), 2)])",
        "Vectorize(xs..: i32) let t = len(xs) > 1 and lanes(xs[1]) == 1"
        " ~> Gep(Vectorize(xs..), [k for k in 0..max(len(xs), 2)])",
    ),
    "an axis of some iterations": (
        "Range { end: @const(n): index, id, axis: Unroll, .. } if n > 0"
        " ~> Unroll { src: VConst(k for k in 0..n), axes: [[id, n]] }",
        "Range { end: @const(n): index, id, axis: Unroll, .. } ~> Unroll { src: VConst(k for k in 0..n), axes: [[id, n]] }",
    ),
    "parts that there need not be": (
        "Cat(a: f32, rest..) if len(rest) > 0 ~> Gep(Cat(a, Cat(rest..)), [k for k in 0..lanes(a) + lanes(Cat(rest..))])",
        "Cat(a: f32, rest..) ~> Gep(Cat(a, Cat(rest..)), [k for k in 0..lanes(a) + lanes(Cat(rest..))])",
    ),
    "a store for every iteration": (
        STORE.format(free="free_of_axes(inside(v), c) and ", axes="v", ranges="open"),
        STORE.format(free="", axes="v", ranges="open"),
    ),
    "a store of other lanes": (
        STORE.format(free="free_of_axes(inside(v), c) and ", axes="v", ranges="open"),
        STORE.format(free="free_of_axes(inside(v), c) and ", axes="p", ranges="open"),
    ),
    "a store within its loops": (
        STORE.format(free="free_of_axes(inside(v), c) and ", axes="v", ranges="open"),
        STORE.format(free="free_of_axes(inside(v), c) and ", axes="v", ranges="[]"),
    ),
    "the end of loops": (
        "End(s: void, rs..) if any(len(axes(r)) > 0 for r in rs) ~> End(s, [r for r in rs if len(axes(r)) == 0]..)",
        "End(s: void, rs..) if any(len(axes(r)) > 0 for r in rs) ~> s",
    ),
    "a statement among others": (
        "Contract { src: s: void, axes: _b } ~> s",
        "End(End(s: void, r), q) ~> End(s, r)",
    ),
    "lanes of a gate": (
        "p @ Index { buffer: b: ptr(any), indices: [i: index], gate: Some(g) } ~> Gep(p, [k for k in 0..lanes(p)])",
        "p @ Index { buffer: b: ptr(any), indices: [i: index], gate: Some(g) } ~> Gep(p, [k for k in 0..lanes(i)])",
    ),
    "what is waited for": (
        "After(Unroll { src: x: f32, axes: a }, ds..) ~> Unroll { src: After(x, ds..), axes: a }",
        "After(Unroll { src: x: f32, axes: a }, _ds..) ~> Unroll { src: x, axes: a }",
    ),
    "a loop that runs once": (
        "End(body, a, Range { end: e, .. }, rest..) if vmin(e) == 1 and vmax(e) == 1 ~> End(body, a, rest..)",
        "End(body, a, Range { end: e, .. }, rest..) if vmin(e) == 0 and vmax(e) == 1 ~> End(body, a, rest..)",
    ),
    "a loop that never runs": (
        "End(_body, _a, Range { end: e, .. }, _rest..) if vmax(e) <= 0 ~> Noop()",
        "End(_body, _a, Range { end: e, .. }, _rest..) if vmin(e) <= 0 ~> Noop()",
    ),
    "loops in another order": (
        "End(body, r: i32, rest..) ~> End(body, rest.., r)",
        "End(body, r: i32, rest..) ~> End(body, rest..)",
    ),
    "loops around loops": (
        "End(body, r: i32, q: i32, rest..) if free_of(q, r) and all(free_of(x, r) for x in rest) ~> End(End(body, r), q, rest..)",
        "End(body, r: i32, q: i32, rest..) if free_of(q, r) ~> End(End(body, r), q, rest..)",
    ),
    "loops around loops, the outer ones inside": (
        "End(body, r: i32, q: i32) if free_of(q, r) ~> End(End(body, r), q)",
        "End(body, r: i32, q: i32) if free_of(q, r) ~> End(End(body, q), r)",
    ),
    "what the hardware runs": (
        "End(s: void, before.., r, rest..) if launched(r) ~> End(s, before.., rest..)",
        "End(s: void, before.., r, q, rest..) if launched(r) ~> End(s, before.., rest..)",
    ),
    "waiting for what the hardware runs": (
        "After(x, before.., r, rest..) if launched(r) ~> After(x, before.., rest..)",
        "After(x, before.., r, q, rest..) if launched(r) ~> After(x, before.., r, rest..)",
    ),
    "a fold of folds over loops": (
        "Reduce { src: s, ranges: [t: index, rest..], op } if launched(t) and all(free_of(x, t) for x in rest)"
        " ~> Reduce { src: Reduce { src: s, ranges: rest, op }, ranges: [t], op }",
        "Reduce { src: s, ranges: [t: index, rest..], op } if all(free_of(x, t) for x in rest)"
        " ~> Reduce { src: Reduce { src: s, ranges: rest, op }, ranges: [t], op }",
    ),
    "a loop that may be named twice": (
        "Reduce { src: s, ranges: [before.., t: index], op } if launched(t) and all(free_of(x, t) for x in before)"
        " ~> Reduce { src: Reduce { src: s, ranges: before, op }, ranges: [t], op }",
        "Reduce { src: s, ranges: [before.., t: index], op } if launched(t)"
        " ~> Reduce { src: Reduce { src: s, ranges: before, op }, ranges: [t], op }",
    ),
    "axes that a fold closes": (
        f"{FOLD_CLOSED} if all(free_of_axes(r, c) for r in open) ~> Reduce {{ src: Contract(x, c), ranges: open, op }}",
        f"{FOLD_CLOSED} ~> Reduce {{ src: Contract(x, c), ranges: open, op }}",
    ),
    "lanes that a fold has": (
        f"{FOLD_CLOSED} if all(free_of_axes(r, c) for r in open) ~> Reduce {{ src: Contract(x, c), ranges: open, op }}",
        f"{FOLD_CLOSED} if all(free_of_axes(r, c) for r in open) ~> Reduce {{ src: Contract(x, c), ranges: open, op }}".replace(
            "lanes(n) == 1 and ", ""
        ),
    ),
    "loops that are left": (
        f"{FOLD_CLOSED} if all(free_of_axes(r, c) for r in open) ~> Reduce {{ src: Contract(x, c), ranges: open, op }}",
        f"{FOLD_CLOSED} if all(free_of_axes(r, c) for r in open) ~> Reduce {{ src: x, ranges: open, op }}",
    ),
    "axes that are closed once": (
        f"{FOLD_CLOSED} if all(free_of_axes(r, c) for r in open) ~> Reduce {{ src: Contract(x, c), ranges: open, op }}",
        f"{FOLD_CLOSED} if all(free_of_axes(r, c) for r in open) ~> Reduce {{ src: Contract(x, c), ranges: rs, op }}",
    ),
    "what holds of one item": (
        "Gep { vector: x: any, indices: [i, j] } let s = sum(1 for k in 0..2) if s % 2 == i ~> Gep(x, [0, j])",
        "Gep { vector: x: any, indices: [i, j] } let s = sum(where(all(k == q for q in 0..1), 1, 0) for k in 0..2)"
        " if s % 2 == i ~> Gep(x, [0, j])",
    ),
    "an alternative, where nothing is behind a gate": (
        "Load { index: Index { buffer: b: ptr(T), indices: [i: index x 1], gate: None }, alt: Some(a: T x 1) }"
        " ~> Load { index: Index { buffer: b, indices: [i] }, alt: zero(a) }",
        "Load { index: Index { buffer: Index { buffer: b: ptr(T), indices: [i: index x 1], gate: Some(g: bool x 1) },"
        " indices: [j: index x 1], gate: None }, alt: Some(a: T x 1) }"
        " ~> Load { index: Index { buffer: Index { buffer: b, indices: [i], gate: g }, indices: [j] }, alt: zero(a) }",
    ),
    "a fold of floats that may be NaN": (
        "n @ Reduce { src: Neg(x: f32), ranges: [], op: Max } if lanes(n) == 1"
        " ~> Neg(Reduce { src: x, ranges: [], op: Min, dtype: dtype(n) })",
        "Xor(Bitcast(n @ Reduce { src: Neg(x: f32), ranges: [], op: Max }, i32), Bitcast(n, i32)) if lanes(n) == 1"
        " ~> Xor(Bitcast(n, i32), Bitcast(Neg(Reduce { src: x, ranges: [], op: Min, dtype: dtype(n) }), i32))",
    ),
    "a fold of folds by one op": (
        "Reduce { src: s, ranges: [t: index, r: index], op: Max } if launched(t) and free_of(t, r)"
        " ~> Reduce { src: Reduce { src: s, ranges: [r], op: Max }, ranges: [t], op: Max }",
        "Reduce { src: s, ranges: [t: index, r: index], op: Max } if launched(t) and free_of(t, r)"
        " ~> Reduce { src: Reduce { src: s, ranges: [r], op: Min }, ranges: [t], op: Max }",
    ),
}  # fmt: skip


@pytest.mark.sampled(18)
@pytest.mark.parametrize("name", PAIRS)
def test_a_rule_is_shown_and_its_false_twin_is_not(name: str) -> None:
    true, false = PAIRS[name]
    assert shown(rule(true))
    assert not shown(rule(false))


def test_places_and_what_is_there() -> None:
    """What a place holds is what a load of it is, at as many lanes as there are; one index is one number in any dtype."""
    place = "Index { buffer: b, indices: [i: index], gate: None }"
    gated = "Index { buffer: b: ptr(any), indices: [i: index x k], gate: Some(g: bool x k) }"
    for text in (
        f"n @ {place} ~> Load(n)",
        f"n @ {gated} ~> Load(n)",
        f"{place} if vmin(i) >= 0 and vmax(i) < 9 ~> Index {{ buffer: b, indices: [Cast(i, i8)] }}",
        f"{gated} if vmin(i) >= 0 and vmax(i) < 256 ~> Index {{ buffer: b, indices: [Cast(i, u8)], gate: g }}",
        f"Where(c: bool x 1, {place}, @zero) ~> Index {{ buffer: b, indices: [i], gate: c }}",
        "Index(b: ptr(f32), Cast(x: i16, i32)) ~> Index(b, x)",
        "Index { buffer: b, indices: [i: index x 1], gate: Some(@true) } ~> Index { buffer: b, indices: [i] }",
    ):
        assert shown(rule(text)), text
    for text in (
        f"n @ {place} if lanes(n) > 1 ~> Load(Gep(n, [0]))",
        f"{place} if vmin(i) >= 0 and vmax(i) <= 128 ~> Index {{ buffer: b, indices: [Cast(i, i8)] }}",
        f"{gated} if vmin(i) >= -1 and vmax(i) < 256 ~> Index {{ buffer: b, indices: [Cast(i, u8)], gate: g }}",
        f"{gated} if vmax(i) < 256 ~> Index {{ buffer: b, indices: [Cast(i, u8)], gate: g }}",
        f"Where(c: bool x 1, {place}, @one) ~> Index {{ buffer: b, indices: [i], gate: c }}",
        f"Where(c: bool x 1, @zero, {place}) ~> Index {{ buffer: b, indices: [i], gate: c }}",
        "Index(b: ptr(f32), Cast(x: i32, i16)) ~> Index(b, x)",
        "Index(b: ptr(f32), Cast(x: i16, u32)) ~> Index(b, x)",
        "Index(b: ptr(f32), Add(x: i32, 1)) ~> Index(b, Add(Cast(x, i64), 1))",
        f"{place} if lanes(i) > 1 ~> Index {{ buffer: b, indices: [Gep(i, [k for k in 0..1])] }}",
    ):
        assert not shown(rule(text)), text


def test_a_condition_that_a_helper_makes_has_a_value_where_its_own_has_one() -> None:
    """A helper of a node that is a condition makes a node."""
    helper = 'helpers "promised"\n\nextern holds(c: bool) -> (d: bool)\n    ensures d == c\n\ngroup g "a group"\n\nr: '
    (found,) = check_text(
        f"{helper}Gep {{ vector: Vectorize(x: i32, Cast(c: bool, i32)), indices: [0] }} let d = holds(c) ~> Where(d, x, x)\n"
    ).rules()
    assert not shown(found)
    (found,) = check_text(
        f"{helper}Gep {{ vector: Vectorize(Where(c: bool, x: i32, y), z), indices: [0] }} let d = holds(c) ~> Where(d, x, y)\n"
    ).rules()
    assert shown(found)


def shown_by_numbers(text: str) -> bool:
    """Truth of a rule being shown at every size, with what rules about its numbers show."""
    of = rule(text)
    smt.forget()
    progress = Progress(BUDGET, keep=False)
    return parametric_proof(of, progress.ask, by_numbers(of, progress)).holds


def test_products_of_matrices_are_one_value_in_every_lane() -> None:
    """Products of the same operands at one layout are one, whatever they are; any other is another."""
    product, another = "Wmma { a, b, c: c: int, meta }", "Wmma { a: p, b: q, c: d, meta: _ }"
    assert shown_by_numbers(f"Add[{product}, d] ~> Wmma {{ a, b, c: Add(c, d), meta }}")
    assert shown_by_numbers(f"Add[{product}, a] ~> Wmma {{ a, b, c: Add(c, a), meta }}")
    assert shown_by_numbers(
        "Add(Wmma { a: Neg(x: int), b, c: c: int, meta }, d) ~> Wmma { a: Neg(x), b, c: Add(d, c), meta }"
    )
    assert shown_by_numbers(
        "Add[Wmma { a, b, c: c: float, meta }, d] ~> Wmma { a, b, c: Add(c, d), meta } assuming reassoc"
    )
    for text in (
        f"Add[{product}, d] ~> Wmma {{ a: b, b: a, c: Add(c, d), meta }}",
        f"Add[{product}, d] ~> Wmma {{ a, b, c: Add(c, c), meta }}",
        f"Sub({product}, d) ~> Wmma {{ a, b, c: Sub(d, c), meta }}",
        f"Add({product}, {another}) ~> Wmma {{ a, b, c: Wmma {{ a: p, b: q, c: Add(c, d), meta }}, meta }}",
        "Add[Wmma { a, b, c: c: float, meta }, d] ~> Wmma { a, b, c: Add(c, d), meta }",
        "Max(Wmma { a, b, c: c: float, meta }, d) ~> Wmma { a, b, c: Max(c, d), meta } assuming reassoc",
    ):
        assert not shown_by_numbers(text), text
    same = another.replace("_", "meta")
    assert shown_by_numbers(
        f"Add({product}, {same}) ~> Wmma {{ a, b, c: Wmma {{ a: p, b: q, c: Add(c, d), meta }}, meta }}"
    )


def test_sums_that_are_regrouped_are_not_compared() -> None:
    """What else is computed of them may tell them apart, though no real numbers would."""
    regrouped = "n @ Add(Wmma { a, b, c: c: f32 x 1, meta }, d)"
    made = "Wmma { a, b, c: Add(c, d), meta }"
    assert not shown_by_numbers(f"Lt({regrouped}, 0.0) ~> Lt({made}, 0.0) assuming reassoc")
    assert shown_by_numbers(f"{regrouped} ~> {made} assuming reassoc")
    chosen = "Flip {{ src: Where(c, {}, w), axes: k }}"
    alike = "same_shape(x, y) and same_shape(x, z) and same_shape(x, c) and same_shape(x, w)"
    for dtype, assuming, is_shown in (
        ("int", "", True),
        ("f32", "assuming reassoc", False),
    ):  # a part of what is chosen
        before, after = chosen.format(f"Add(Add(x: {dtype}, y), z)"), chosen.format("Add(x, Add(y, z))")
        assert shown_by_numbers(f"{before} if {alike} ~> {after} {assuming}") == is_shown


def test_an_operand_that_may_be_absent_is_not_taken_to_be_there() -> None:
    """A bare name for it matches both; a rule that says which is shown."""
    assert not shown(rule("Load { index: p, alt: _ } ~> Load { index: p, alt: None }"))
    assert not shown(
        rule("Index { buffer: b, indices: [i: index], gate: _ } ~> Index { buffer: b, indices: [i], gate: None }")
    )
    place = "Index { buffer: b: ptr(any), indices: [i: index], gate: Some(g) }"
    assert shown(rule(f"PtrCat {{ sources: [x @ {place}] }} ~> x"))
    assert not shown(rule(f"PtrCat {{ sources: [x @ {place}] }} ~> x".replace("Some(g)", "_g")))


HELPED = """helpers "promised"

extern f(a: int) -> (m: int)?
    ensures a < 9
extern size(x: int) -> (m: int)
    requires x < 9
    ensures x <= m and m < 9
"""
UP_TO_EIGHT = "(rank(x) > 8 or all(not f for f in a)) => x"  # true of so many axes


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ("Gep { vector: x: i32, indices: [i] } if lanes(x) < 300 ~> Gep(x, [min(i, 299)])", True),
        (
            "Gep { vector: x: i32, indices: [i] } if i >= 0 or lanes(Gep(x, [tdiv(k, 2) for k in 0..300 - lanes(x)])) > 0"
            " ~> Gep(x, [min(i, 299)])",
            False,
        ),
        (f"Flip {{ src: x: f32, axes: a }} if f(rank(x)) != 1 and {UP_TO_EIGHT}", True),
        (f"Flip {{ src: x: f32, axes: a }} if (rank(x) > 8 or f(rank(x)) == 1) and {UP_TO_EIGHT}", False),
        (f"Flip {{ src: x: f32, axes: a }} let l = f(rank(x)) if l > 0 and {UP_TO_EIGHT}", True),
        (
            f"Flip {{ src: x: f32, axes: a }} let l = [f(rank(x)) for _k in 0..0] if len(l) == 0 and {UP_TO_EIGHT}",
            False,
        ),
        (
            f"Flip {{ src: x: f32, axes: a }} let l = [size(rank(x)) for _k in 0..0] if len(l) == 0 and {UP_TO_EIGHT}",
            False,
        ),
        (
            "Flip { src: x: f32, axes: _a } let p = Permute { src: x, axes: [0 for _k in 0..rank(x)] } if rank(x) == 0 ~> p",
            True,
        ),
    ],
)
def test_what_may_not_be_reached_leaves_nothing_behind(text: str, sound: bool) -> None:
    """A guard that is not read to its end, helpers that need not be called, items of which there are none."""
    assert (
        shown(next(iter(check_text(f'{HELPED if "=>" in text else ""}\ngroup g "g"\n\nr: {text}\n').rules()))) is sound
    )


def built_in() -> Iterator[CheckedRule]:
    """One rule of every template of the library that the proof is about."""
    for path in ("vector/expand", "vector/gep", "vector/devectorize"):
        names = set()
        for r in check_file(str(rules_dir() / f"{path}.rules")).rules():
            template = ".".join(r.name.split(".")[:2])
            if template not in names:
                names.add(template)
                yield r


@pytest.mark.long
def test_what_is_known_of_a_rule_is_no_contradiction() -> None:
    """Where it were, anything could be shown."""
    found = 0
    for r in built_in():
        smt.forget()
        if shown(r):
            smt.forget()
            try:
                conditions = question(r, Choices()).known
            except TooMany:
                conditions = question(r, Choices(), only=0).known
            assert ask(conditions, BUDGET, None, False).answer.value != "unsat", r.name
            found += 1
    assert found >= 40


@pytest.mark.long
def test_no_mutant_is_shown_that_some_size_refutes() -> None:
    tried = shown_too = 0
    for r in itertools.islice(built_in(), 0, None, 4):
        for m in mutants(r.syntax, r.dialect):
            changed = mutated(r, m.rule)
            if changed is None:
                continue
            tried += 1
            if shown(changed):
                shown_too += 1
                progress = Progress(BUDGET, False)
                smt.forget()
                prove_instances(changed, theory_of(changed), progress)
                assert progress.refuted is None, changed.syntax
    assert tried > 40
    assert shown_too > 5  # of some rules a mutant is as true


def mutated(r: CheckedRule, syntax: Any) -> CheckedRule | None:
    """A mutant as a rule of its own, where it makes sense."""
    from morok.errors import RuleError
    from morok.prove.attack.candidates import written

    try:
        return next(iter(check_text(written(r, syntax)).rules()))
    except RuleError:
        return None
