"""The rules about views are what runs: at any rank and size the indices that they make read what numpy reads."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from morok import Tensor, UOp, Variable, dtypes
from morok.ir.interpret import INVALID, evaluate
from morok.ir.op import Op
from morok.ir.shape import shape_of
from morok.passes import index_maps
from morok.passes.regrouping import Step, step
from morok.rewrite import library
from morok.rewrite.trace import Trace, tracing


def memory(*shape: int) -> UOp:
    buffer = UOp.new(
        Op.Buffer, (UOp.new(Op.Unique, (), 0), UOp.new(Op.Device, (), "CPU")), math.prod(shape), dtypes.f32
    )
    return UOp.new(Op.Reshape, (buffer, *map(index_maps.number, shape)))


def edges(op: Op, x: UOp, begins: list[int], ends: list[int]) -> UOp:
    return UOp.new(op, (x, *map(index_maps.number, begins), *map(index_maps.number, ends)))


def reshaped(x: UOp, *shape: int) -> UOp:
    return UOp.new(Op.Reshape, (x, *map(index_maps.number, shape)))


def read(view: UOp, elements: np.ndarray) -> np.ndarray:
    """The elements that a view of memory shows, by the index vectors of its places; 0 where a gate is false."""
    shape = tuple(int(d) for d in shape_of(view))
    out = np.zeros(shape, elements.dtype)
    for place in np.ndindex(*shape):
        found, gates = index_maps.through(view, tuple(map(index_maps.number, place)))
        if all(evaluate(g) for g in gates):
            out[place] = elements[tuple(evaluate(i) for i in found)]
    return out


def some_shape(rng: random.Random, size: int) -> tuple[int, ...]:
    """A shape of so many elements, with axes of size 1 among others."""
    out: list[int] = []
    while size > 1 and rng.random() < 0.8:
        out.append(rng.choice([d for d in range(1, size + 1) if size % d == 0]))
        size //= out[-1]
    out.append(size)
    out += [1] * rng.randrange(2)
    rng.shuffle(out)
    return tuple(out)


@pytest.mark.parametrize("seed", range(40))
def test_a_reshape_reads_in_row_major_order(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.choice((0, 1, 2, 6, 12, 24, 30, 36))
    below, seen = some_shape(rng, size), some_shape(rng, size)
    elements = np.arange(size).reshape(below)
    if not size:  # nothing is read, and the way is found all the same
        view = reshaped(memory(*below), *seen, 5)
        assert len(index_maps.through(view, (index_maps.ZERO,) * (len(seen) + 1))[0]) == len(below)
    assert (read(reshaped(memory(*below), *seen), elements) == elements.reshape(seen)).all(), (below, seen)


def test_other_views_read_what_numpy_reads() -> None:
    x, elements = memory(2, 1, 3), np.arange(1, 7).reshape(2, 1, 3)
    for order in itertools.permutations(range(3)):
        assert (read(UOp.new(Op.Permute, (x,), order), elements) == elements.transpose(order)).all()
    for flags in itertools.product((False, True), repeat=3):
        flipped = np.flip(elements, [k for k, f in enumerate(flags) if f])
        assert (read(UOp.new(Op.Flip, (x,), flags), elements) == flipped).all()
    assert (read(edges(Op.Shrink, x, [1, 0, 1], [2, 1, 3]), elements) == elements[1:2, 0:1, 1:3]).all()
    assert (read(edges(Op.Pad, x, [1, 0, 2], [0, 2, 1]), elements) == np.pad(elements, [(1, 0), (0, 2), (2, 1)])).all()
    wide = UOp.new(Op.Expand, (x, *map(index_maps.number, (2, 4, 3))))
    assert (read(wide, elements) == np.broadcast_to(elements, (2, 4, 3))).all()
    assert read(reshaped(memory(1)), np.array([5])) == 5


def test_indices_that_are_expressions_are_simplified() -> None:
    i, j = UOp.var("i", dtypes.index, 0, 7), UOp.var("j", dtypes.index, 0, 2)
    assert index_maps.through(reshaped(memory(24), 8, 3), (i, j))[0] == (i * 3 + j,)
    assert index_maps.through(reshaped(memory(8, 3), 24), (i * 3 + j,))[0] == (i, j)
    assert index_maps.through(reshaped(memory(8, 1, 3), 8, 3), (i, j))[0] == (i, index_maps.ZERO, j)
    (moved,), gates = index_maps.through(edges(Op.Pad, memory(8), [2], [0]), (i + 2,))
    assert moved is i
    assert not gates, "the padding is never read"


@pytest.mark.parametrize("sizes", [(2, 3, 5, 7, 11, 13), (13, 11, 7, 5, 3, 2), (4, 9, 3, 8, 5, 6, 7, 10)])
def test_indices_are_simplified_in_the_order_of_their_axes(
    sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[UOp]] = []
    simplified = index_maps.simplified
    monkeypatch.setattr(index_maps, "simplified", lambda nodes: asked.append(list(nodes)) or simplified(nodes))
    seen = tuple(a * b for a, b in zip(sizes[::2], sizes[1::2], strict=True))
    places = tuple(UOp.var(f"i{k}", dtypes.index, 0, n - 1) for k, n in enumerate(seen))
    index_maps.through(reshaped(memory(*sizes), *seen), places)
    wanted = [x for k, i in enumerate(places) for x in (i.idiv(sizes[2 * k + 1]), i.mod(sizes[2 * k + 1]))]
    assert asked[-1] == wanted


def test_a_reshape_of_sizes_that_are_no_numbers() -> None:
    n = UOp.var("n", dtypes.index, 1, 9)
    i, j = UOp.var("i", dtypes.index, 0, 8), UOp.var("j", dtypes.index, 0, 3)
    rows = UOp.new(Op.Reshape, (memory(36), n, index_maps.number(4)))
    flat = UOp.new(Op.Reshape, (rows, n * 4))
    turned = UOp.new(Op.Reshape, (rows, index_maps.number(4), n))
    for size in (1, 3, 9):
        for a, b in itertools.product(range(size), range(4)):
            known = {"n": size, "i": a, "j": b}
            assert [evaluate(x, known) for x in index_maps.through(flat, (i * 4 + j,))[0]] == [a, b]
            at = divmod(b * size + a, 4)
            assert tuple(evaluate(x, known) for x in index_maps.through(turned, (j, i))[0]) == at


def applied(s: Step, seen: tuple[int, ...]) -> tuple[int, ...]:
    """A shape behind a step, which must be one that a rule allows."""
    k = s.k
    assert k >= 0
    if s.kind == "drop":
        assert seen[k] == 1
        return seen[:k] + seen[k + 1 :]
    if s.kind == "insert":
        return (*seen[:k], 1, *seen[k:])
    if s.kind == "merge":
        return (*seen[:k], seen[k] * seen[k + 1], *seen[k + 2 :])
    assert s.kind == "split"
    assert seen[k] == s.q * s.m
    return (*seen[:k], s.q, s.m, *seen[k + 1 :])


@pytest.mark.parametrize("size", [1, 2, 12, 36, 60, 210])
def test_steps_lead_to_the_shape_and_go_no_way_round(size: int) -> None:
    rng = random.Random(size)
    for _ in range(500):
        seen, below = some_shape(rng, size), some_shape(rng, size)
        most = 2 * (len(seen) + len(below))
        while (s := step(seen, below)) is not None:
            seen = applied(s, seen)
            most -= 1
            assert most >= 0, (seen, below)
        assert seen == below


@pytest.mark.parametrize(
    ("seen", "below", "kinds"),
    [
        ((4, 1, 6, 5), (4, 6, 5, 1), ["insert", "drop"]),
        ((4, 6), (24,), ["merge"]),
        ((24,), (4, 6), ["split"]),
        ((2, 6144), (32, 2, 64, 3), ["split", "split", "split", "merge"]),
        ((2, 6), (4, 3), ["split", "merge"]),
        ((2, 3), (3, 2), ["merge", "split"]),
    ],
)
def test_axes_are_divided_as_little_as_can_be(seen: tuple[int, ...], below: tuple[int, ...], kinds: list[str]) -> None:
    found = []
    while (s := step(seen, below)) is not None:
        found.append(s.kind)
        seen = applied(s, seen)
    assert found == kinds


def test_the_texts_example() -> None:
    i = UOp.var("i", dtypes.index, 0, 7)
    view = UOp.new(Op.Flip, (memory(8),), (True,))
    seen = library.rewrite(view.index(i), library.group("movement"))
    assert [evaluate(seen.src[1], {"i": k}) for k in range(8)] == [7, 6, 5, 4, 3, 2, 1, 0]
    padded = library.rewrite(edges(Op.Pad, memory(2), [1], [1]).index(i), library.group("movement"))
    assert [evaluate(padded.src[1], {"i": k}) for k in range(4)] == [INVALID, 0, 1, INVALID]


def test_stages_1_and_3_fire_rules() -> None:
    x = Tensor(np.arange(24, dtype=np.float32).reshape(4, 6)).realize()
    trace = Trace()
    with tracing(trace):
        out = (x.permute(1, 0).pad([(0, 0), (1, 2)])[::2].flip(1) + 1).reshape(21).contiguous().realize()
    given = np.pad(x.numpy().T, [(0, 0), (1, 2)])[::2, ::-1] + 1
    assert (out.numpy() == given.reshape(21)).all()
    fired = {stage: {f.rule for f in trace.firings if f.stage == stage} for stage in ("1", "3")}
    assert {f"movement.{view}" for view in ("permute", "pad", "shrink", "flip")} <= fired["1"]
    assert any(rule.startswith("movement.reshape_") for rule in fired["1"])
    assert any(rule.startswith("split_ranges.") for rule in fired["3"])


def test_a_size_of_another_name_is_told_from_an_axis() -> None:
    """No variable of a program is one of those that stand for indices."""
    n = Variable("axis0", 1, 4)
    x = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3)).realize()
    part = x[: n.bind(2)]
    assert float(part.sum().numpy()) == float(np.arange(6).sum())
