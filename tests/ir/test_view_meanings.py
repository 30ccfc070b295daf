"""Views are what NumPy says, read over every domain: as the interpreter reads them, and as the prover does."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok import value_domains
from morok import view_meanings as meanings
from morok.ir.dtype import dtypes
from morok.ir.interpret import evaluate, tensor
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove import smt
from morok.prove.parametric.polynomials import Integer, integer
from morok.prove.parametric.sequences import UNKNOWN
from morok.value_domains import INTEGERS, Domain

Array = np.ndarray[Any, Any]


def stored(x: Array, number: int = 0) -> tuple[UOp, dict[UOp, list[Any]]]:
    """A tensor in storage, with its elements."""
    of = UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), number), UOp.new(Op.Device, (), "CPU")), x.size, dtypes.i32)
    return UOp.new(Op.Reshape, (of, *map(UOp.const, x.shape))), {of: x.ravel().tolist()}


def shape(rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.choice((1, 2, 3, 4)) for _ in range(rng.choice((1, 2, 3))))


def filled(sizes: tuple[int, ...]) -> Array:
    return np.arange(1, 1 + int(np.prod(sizes)), dtype=np.int32).reshape(sizes)


def expand(x: Array, of: UOp, rng: random.Random) -> tuple[UOp, Array]:
    sizes = tuple(rng.choice((1, 3)) if n == 1 else n for n in x.shape)
    return UOp.new(Op.Expand, (of, *map(UOp.const, sizes))), np.broadcast_to(x, sizes)


def shrink(x: Array, of: UOp, rng: random.Random) -> tuple[UOp, Array]:
    cuts = [sorted(rng.choices(range(n + 1), k=2)) for n in x.shape]
    edges = [UOp.const(pair[j]) for j in range(2) for pair in cuts]
    return UOp.new(Op.Shrink, (of, *edges)), x[tuple(slice(b, e) for b, e in cuts)]


def pad(x: Array, of: UOp, rng: random.Random) -> tuple[UOp, Array]:
    cuts = [(rng.randrange(3), rng.randrange(3)) for _ in x.shape]
    edges = [UOp.const(pair[j]) for j in range(2) for pair in cuts]
    return UOp.new(Op.Pad, (of, *edges)), np.pad(x, cuts)


def flip(x: Array, of: UOp, rng: random.Random) -> tuple[UOp, Array]:
    axes = tuple(rng.random() < 0.5 for _ in x.shape)
    return UOp.new(Op.Flip, (of,), axes), np.flip(x, tuple(k for k, f in enumerate(axes) if f))


def permute(x: Array, of: UOp, rng: random.Random) -> tuple[UOp, Array]:
    axes = tuple(rng.sample(range(x.ndim), x.ndim))
    return UOp.new(Op.Permute, (of,), axes), np.transpose(x, axes)


def reshape(x: Array, of: UOp, rng: random.Random) -> tuple[UOp, Array]:
    sizes = tuple(rng.sample([*x.shape, 1], x.ndim + 1))
    return UOp.new(Op.Reshape, (of, *map(UOp.const, sizes))), x.reshape(sizes)


def concat(x: Array, of: UOp, rng: random.Random) -> tuple[UOp, Array]:
    axis = rng.randrange(x.ndim)
    pieces = [(of, x), *(shrink(x, of, rng) for _ in range(rng.randrange(3)))]
    fitting = [
        p for p in pieces if all(k == axis or n == m for k, (n, m) in enumerate(zip(p[1].shape, x.shape, strict=True)))
    ]
    return UOp.new(Op.Concat, tuple(p[0] for p in fitting), axis), np.concatenate([p[1] for p in fitting], axis)


VIEWS = [expand, shrink, pad, flip, permute, reshape, concat]


def differs(view: Callable[..., tuple[UOp, Array]]) -> bool:
    """True if the interpreter gives a tensor of this view, or an element of it at an index, that is not NumPy's."""
    rng = random.Random(view.__name__)
    for _ in range(40):
        x = filled(shape(rng))
        of, data = stored(x)
        node, wanted = view(x, of, rng)
        flat, sizes = tensor(node, data)
        if sizes != wanted.shape or flat != wanted.ravel().tolist():
            return True
        for at in rng.sample(list(np.ndindex(wanted.shape)), min(wanted.size, 3)):
            if evaluate(node.index(*at), buffers=data) != wanted[at]:
                return True
    return False


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_those_of_numpy(view: Callable[..., tuple[UOp, Array]]) -> None:
    assert not differs(view)


def moved(view: meanings.View[int, bool]) -> meanings.View[int, bool]:
    return view._replace(place=lambda k, i: max(view.place(k, i) - 1, 0))


@pytest.mark.parametrize("view", [expand, shrink, pad, flip, permute])
def test_a_wrong_meaning_is_not_that_of_numpy(
    view: Callable[..., tuple[UOp, Array]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison finds an error in the meaning that the interpreter and the prover share."""
    right = getattr(meanings, view.__name__)
    monkeypatch.setattr(meanings, view.__name__, lambda *given: moved(right(*given)))
    assert differs(view)


@pytest.mark.parametrize("name", ["row_major", "index_at"])
def test_a_wrong_order_of_elements_is_not_that_of_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from morok.ir.interpret import memory_places

    def column_major(first: Any, *given: Any) -> Any:
        if name == "row_major":
            return value_domains.row_major(first, *(list(g)[::-1] for g in given))
        return value_domains.index_at(first, given[0][::-1], given[1])[::-1]

    monkeypatch.setattr(memory_places, name, column_major)
    assert differs(reshape)


# The domains


def number(found: Any) -> Any:
    """The value of a number or a condition of proofs in which nothing is unknown."""
    if isinstance(found, Integer):
        found = found.term
    plain = smt.simplify(found)
    assert plain.head == "value", found
    return plain.data


CONDITIONS = ("equal", "below", "at_most", "inside")


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_on_numbers_are_the_same_in_both_domains(name: str) -> None:
    for a, b in itertools.product(range(-2, 4), repeat=2):
        assert number(getattr(UNKNOWN, name)(integer(a), integer(b))) is getattr(INTEGERS, name)(a, b), (a, b)


def test_connectives_and_choices_are_the_same_in_both_domains() -> None:
    for a, b in itertools.product((False, True), repeat=2):
        p, q = smt.BoolVal(a), smt.BoolVal(b)
        assert number(UNKNOWN.both(p, q)) is INTEGERS.both(a, b)
        assert number(UNKNOWN.either(p, q)) is INTEGERS.either(a, b)
        assert number(UNKNOWN.choose(p, integer(5), integer(7))) == INTEGERS.choose(a, 5, 7)
        first = INTEGERS.first(3, [a, b, False].__getitem__, int)
        assert number(UNKNOWN.first(3, [p, q, smt.FALSE].__getitem__, integer)) == first


def along_one_axis(on: Domain[Any, Any], of: Callable[[int], Any], n: int, i: int, j: int) -> list[Any]:
    """The readings of an index i along the views of an axis of n elements, with numbers up to j where a view has some."""
    size, edge = (lambda k: of(n)), (lambda k: of(j))
    flipped = on.equal(of(j), of(1))
    views = [
        meanings.expand(on, size, lambda k: of(n + j)),
        meanings.shrink(on, size, lambda k: of(0), edge),
        meanings.pad(on, size, edge, lambda k: of(1)),
        meanings.flip(on, size, lambda k: flipped),
        meanings.permute(size, lambda k: k, lambda k: k),
    ]
    found: list[Any] = []
    for view in views:
        found += [view.size(of(0)), view.place(of(0), of(i))]
        found += [view.fits(of(0))] if view.fits is not None else []
        found += [view.inside(of(0), of(i))] if view.inside is not None else []
    return [*found, value_domains.behind(on, of(i), [of(n), of(j), of(2)], lambda k, place: place + 10 * k)]


def test_views_are_the_same_in_both_domains() -> None:
    for n, i, j in itertools.product(range(4), range(4), range(3)):
        wanted = along_one_axis(INTEGERS, int, n, i, j)
        assert list(map(number, along_one_axis(UNKNOWN, integer, n, i, j))) == wanted


def test_places_are_the_same_in_both_domains() -> None:
    sizes, at = (2, 3, 4), (1, 2, 3)
    place = value_domains.row_major(0, at, sizes)
    assert place == np.ravel_multi_index(at, sizes)
    assert number(value_domains.row_major(integer(0), map(integer, at), map(integer, sizes))) == place
    assert value_domains.index_at(place, sizes, divmod) == list(at)
    begins, end = value_domains.starts(0, sizes)
    assert (begins, end) == ([0, 2, 5], 9)
    assert [number(b) for b in value_domains.starts(integer(0), map(integer, sizes))[0]] == begins
