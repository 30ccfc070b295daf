"""The laws of folds over axes, and of axes that are left out: each tried at all tensors of small sizes."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import random
from collections.abc import Callable, Iterator, Sequence

import pytest

from morok.dsl import values
from morok.ir.dtype import dtypes
from morok.ir.interpret import tensor
from morok.ir.morok_dialect import MOROK
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove import smt
from morok.prove.answers import Answer
from morok.prove.parametric import fold_laws, folds, kept_axes, laws, reductions
from morok.prove.parametric.number_ops import has_value
from morok.prove.parametric.polynomials import Integer, integer
from morok.prove.parametric.rule_values import Folding, Remaining
from morok.prove.parametric.sequences import listed
from morok.prove.parametric.setting import Setting
from morok.prove.solve import DEFAULT_BUDGET, ask
from morok.prove.symbol import Symbol

Element = int | None  # one without a value is None
OPS: dict[str, tuple[Callable[[int, int], int], int]] = {
    "Add": (lambda a, b: (a + b) % 8, 0),
    "Mul": (lambda a, b: a * b % 8, 1),
    "Max": (max, 0),
    "Min": (min, 7),
    "Or": (operator.or_, 0),
    "And": (operator.and_, 7),
}
SHAPES = [s for rank in range(4) for s in itertools.product(range(3), repeat=rank)]


def combined(op: str, a: Element, b: Element) -> Element:
    return None if a is None or b is None else OPS[op][0](a, b)


def folded(op: str, elements: Sequence[Element]) -> Element:
    return functools.reduce(lambda a, b: combined(op, a, b), elements, OPS[op][1])


def indices(shape: Sequence[int]) -> list[tuple[int, ...]]:
    return list(itertools.product(*map(range, shape)))


def some_tensor(shape: Sequence[int], rng: random.Random) -> dict[tuple[int, ...], Element]:
    return {i: rng.choice((None, *range(8))) if rng.random() < 0.2 else rng.randrange(8) for i in indices(shape)}


def axis_lists(rank: int) -> Iterator[tuple[int, ...]]:
    for count in range(rank + 1):
        yield from itertools.permutations(range(rank), count)


def along(shape: Sequence[int], axes: Sequence[int]) -> list[tuple[int, ...]]:
    """The indices along some axes, 0 along the others."""
    return indices([n if k in axes else 1 for k, n in enumerate(shape)])


@pytest.mark.parametrize("op", OPS)
def test_folds_of_nothing_of_one_and_of_equal_elements(op: str) -> None:
    assert all(folded(op, [OPS[op][1]] * n) == OPS[op][1] for n in range(5))
    for x in (None, *range(8)):
        assert folded(op, [x]) == x
        if op in ("Max", "Min", "Or", "And"):
            assert all(folded(op, [x] * n) == x for n in range(1, 5))


@pytest.mark.parametrize("op", OPS)
def test_folds_are_the_same_in_any_order_and_in_parts(op: str) -> None:
    for elements in itertools.product((None, 0, 3, 5), repeat=3):
        whole = folded(op, elements)
        assert all(folded(op, p) == whole for p in itertools.permutations(elements))
        for n in range(4):
            assert combined(op, folded(op, elements[:n]), folded(op, elements[n:])) == whole
        for others in itertools.product((None, 2, 7), repeat=3):
            both = [combined(op, a, b) for a, b in zip(elements, others, strict=True)]
            assert folded(op, both) == combined(op, whole, folded(op, others))


UNARY = [
    (d, op, g, of)
    for d, kind in (("bool", "bool"), ("i8", "int"), ("u16", "int"), ("f16", "float"), ("f64", "float"))
    for op, taken in folds.TAKEN_OUT[kind].items()
    for g, of in taken.items()
    if len(MOROK.ops[g].params) == 1
]


@pytest.mark.parametrize(("dtype", "op", "g", "of"), UNARY)
def test_what_is_computed_of_elements_may_be_computed_of_a_fold(dtype: str, op: str, g: str, of: str) -> None:
    """The fold of no element included."""
    d = getattr(dtypes, dtype)
    values = (
        [False, True] if d.is_bool else [0.0, -0.0, math.nan, -math.inf, 2.5] if d.is_float else [0, 1, d.min, d.max]
    )
    for n in range(3):
        x = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), 0), UOp.new(Op.Device, (), "CPU")), n, d)
        one = UOp.new(Op.ReduceAxis, (UOp.new(Op[g], (x,)),), (Op[op], (0,)))
        other = UOp.new(Op[g], (UOp.new(Op.ReduceAxis, (x,), (Op[of], (0,))),))
        for elements in itertools.product(values, repeat=n):
            (a,), (b,) = (tensor(t, {x: list(elements)})[0] for t in (one, other))
            assert repr(a) == repr(b)


@pytest.mark.parametrize("op", OPS)
def test_a_fold_of_what_adds_nothing_outside_of_a_box_is_that_of_the_box(op: str) -> None:
    rng = random.Random(7)
    for shape in (s for s in SHAPES if 0 not in s):
        x = some_tensor(shape, rng)
        for begin in indices(shape):
            for end in itertools.product(*(range(b, n + 1) for b, n in zip(begin, shape, strict=True))):
                within = {i for i in x if all(b <= k < e for b, k, e in zip(begin, i, end, strict=True))}
                whole = folded(op, [e if i in within else OPS[op][1] for i, e in x.items()])
                assert whole == folded(op, [e for i, e in x.items() if i in within])


@pytest.mark.parametrize(("rows", "columns", "one"), [(1, 3, True), (-1, -3, False)])
def test_folds_of_all_elements_are_one_in_every_shape_that_is_one(rows: int, columns: int, one: bool) -> None:
    """The product of two negative sizes is no number of elements: there is nothing to be folded."""
    s = Setting()
    add = smt.Function(Symbol("op", "Add", "i32", "i32"), laws.VALUE, laws.VALUE, laws.VALUE)
    nothing, element = (smt.Const(Symbol("fixed", name), laws.VALUE) for name in ("nothing", "element"))
    shapes = ((3,), (rows, columns))
    for shape in shapes:
        s.sides = frozenset({str(shape)})
        sizes = listed([integer(n) for n in shape])
        all_gone = kept_axes.last_of(integer(len(shape)), integer(0))
        t = reductions.fold(s, Folding("Add", "i32", nothing, add), all_gone, sizes.at, lambda at: element)
        s.premise(has_value(s, t))  # it is spoken of
    fold_laws.about(s, {})
    differ = smt.Not(functools.reduce(operator.eq, s.folded))
    found = ask([*s.premises, *s.laws, differ], DEFAULT_BUDGET, None, False)
    assert (found.answer is Answer.UNSAT) == one


@pytest.mark.parametrize("op", ["Or", "And"])
def test_folds_of_truths_are_combined_where_they_have_values(op: str) -> None:
    """Or and And may have a value where an operand has none: a fold does not."""
    deciding = op == "Or"

    def joined(a: bool | None, b: bool | None) -> bool | None:
        return deciding if deciding in (a, b) else None if None in (a, b) else not deciding

    def fold(elements: Sequence[bool | None]) -> bool | None:
        return None if None in elements else functools.reduce(joined, elements, not deciding)

    other = 0
    for one, two in itertools.product(itertools.product((None, False, True), repeat=2), repeat=2):
        whole, apart = fold([*map(joined, one, two)]), joined(fold(one), fold(two))
        assert whole == apart or None in (fold(one), fold(two))
        other += whole != apart
        assert fold([*one, *two]) == apart or fold([*one, *two]) is None
        assert fold([*one, *two]) is None or None not in (fold(one), fold(two))
    assert other


@pytest.mark.parametrize("op", OPS)
def test_a_fold_of_folds_is_one_over_the_axes_of_both(op: str) -> None:
    rng = random.Random(1)
    for shape in SHAPES:
        x = some_tensor(shape, rng)
        for axes in axis_lists(len(shape)):
            left = [k for k in range(len(shape)) if k not in axes]
            rest = {
                i: folded(op, [x[_sum(j, _spread(i, left, len(shape)))] for j in along(shape, axes)])
                for i in _left(shape, left)
            }
            for outer in axis_lists(len(left)):
                among = [*axes, *(left[k] for k in outer)]
                for i in _left(shape, [k for k in range(len(shape)) if k not in among]):
                    at = _spread(i, [k for k in range(len(shape)) if k not in among], len(shape))
                    inner = [rest[tuple(_sum(j, at)[k] for k in left)] for j in along(shape, [left[k] for k in outer])]
                    assert folded(op, inner) == folded(op, [x[_sum(j, at)] for j in along(shape, among)])


def _left(shape: Sequence[int], left: Sequence[int]) -> list[tuple[int, ...]]:
    return indices([shape[k] for k in left])


def _spread(i: Sequence[int], left: Sequence[int], rank: int) -> tuple[int, ...]:
    return tuple(i[left.index(k)] if k in left else 0 for k in range(rank))


def _sum(i: Sequence[int], j: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(operator.add, i, j))


def test_products_with_sums() -> None:
    """c * sum(x) is sum(c * x) unless nothing is summed; then it is 0, where it has a value. So are sums of such products."""
    choices = (None, 0, 1, 3, 4, 6)
    for length in range(4):
        for elements in itertools.product(choices, repeat=length):
            for c in choices:
                product = combined("Mul", c, folded("Add", elements))
                if length:
                    assert product == folded("Add", [combined("Mul", c, x) for x in elements])
                else:
                    assert product in (0, None)
    for rows, columns in itertools.product(range(3), repeat=2):
        for x in itertools.product((None, 0, 3), repeat=rows * columns):
            for factors in itertools.product((None, 2, 5), repeat=rows):
                table = [x[k * columns : (k + 1) * columns] for k in range(rows)]
                total = folded(
                    "Add", [combined("Mul", c, folded("Add", row)) for c, row in zip(factors, table, strict=True)]
                )
                if columns:
                    assert total == folded(
                        "Add", [combined("Mul", c, e) for c, row in zip(factors, table, strict=True) for e in row]
                    )
                else:
                    assert total in (0, None)


def test_a_product_of_sums_is_the_sum_of_all_products() -> None:
    for m, n in itertools.product(range(1, 4), repeat=2):
        rng = random.Random(m * 4 + n)
        for _ in range(20):
            x, y = [[rng.choice((None, *range(8))) for _ in range(k)] for k in (m, n)]
            products = [combined("Mul", a, b) for a in x for b in y]
            assert combined("Mul", folded("Add", x), folded("Add", y)) == folded("Add", products)


def test_rings() -> None:
    for a, b, c in itertools.product((None, *range(8)), repeat=3):
        assert combined("Mul", combined("Mul", a, b), c) == combined("Mul", a, combined("Mul", b, c))
        products = combined("Add", combined("Mul", a, c), combined("Mul", b, c))
        assert combined("Mul", combined("Add", a, b), c) == products
        assert (combined("Mul", a, b) is None) == (None in (a, b))
        assert combined("Add", a, 0) == a
        assert combined("Mul", a, 0) == (None if a is None else 0)


# axes that are left


def chosen(rank: int, gone: Sequence[int]) -> Remaining:
    """The axes left of so many, calculated."""
    left = [k for k in range(rank) if k not in gone]
    return Remaining(
        integer(rank),
        lambda p: smt.BoolVal(_value(p) in gone),
        integer(len(left)),
        lambda j: integer(left[_value(j)]),
        lambda p: integer(left.index(_value(p)) if _value(p) in left else 0),
    )


def _value(n: Integer) -> int:
    assert n.known is not None
    return n.known


def _is(kept: Remaining, rank: int, gone: Sequence[int]) -> None:
    left = [k for k in range(rank) if k not in gone]
    assert kept.rank.known == rank
    assert kept.count.known == len(left)
    for j, p in enumerate(left):
        assert smt.simplify(kept.axis(integer(j)).term) is smt.IntVal(p)
        assert smt.simplify(kept.place(integer(p)).term) is smt.IntVal(j)
    for p in range(rank):
        assert smt.simplify(kept.gone(integer(p))) is smt.BoolVal(p in gone)


@pytest.mark.parametrize("rank", range(5))
def test_axes_left_of_axes_left(rank: int) -> None:
    """Choices after one another are one choice; lists of the same axes leave the same ones, in order; `others` gives these."""
    for gone in axis_lists(rank):
        left = [k for k in range(rank) if k not in gone]
        assert list(values.others(gone, rank)) == left
        for more in axis_lists(len(left)):
            among = [*gone, *(left[k] for k in more)]
            found = kept_axes.through(chosen(rank, gone), chosen(len(left), more))
            _is(found, rank, among)


@pytest.mark.parametrize("rank", range(5))
def test_the_first_axes_and_the_last_and_all_but_one(rank: int) -> None:
    for count in range(rank + 1):
        _is(kept_axes.first_of(integer(rank), integer(count)), rank, range(count, rank))
        _is(kept_axes.last_of(integer(rank), integer(count)), rank, range(rank - count))
    for k in range(rank):
        _is(kept_axes.all_but(integer(rank), integer(k)), rank, [k])


def test_what_are_no_axes_has_no_others() -> None:
    for axes, rank in (((0, 0), 2), ((2,), 2), ((-1,), 2), ((), -1)):
        with pytest.raises(values.FAILURES):
            values.others(axes, rank)


def test_places_do_not_depend_on_axes_of_one() -> None:
    for shape in SHAPES:
        for gone in itertools.chain.from_iterable(
            itertools.combinations(range(len(shape)), n) for n in range(len(shape) + 1)
        ):
            if all(shape[k] == 1 for k in gone):
                left = [k for k in range(len(shape)) if k not in gone]
                short = [shape[k] for k in left]
                assert math.prod(shape) == math.prod(short)
                places = {i: p for p, i in enumerate(indices(shape))}
                for p, i in enumerate(indices(short)):
                    assert places[_spread(i, left, len(shape))] == p
