"""Stage 6 by its rules: nests cut in one and in two dimensions, and those that stay whole."""

from __future__ import annotations

import numpy as np
import pytest

from morok import Tensor
from morok.ir import interpret
from morok.ir.op import Op
from morok.ir.uop import UOp
from tests.passes import kernels as K
from tests.passes.lowering import stage


def test_a_loop_is_cut_where_its_condition_changes() -> None:
    """for i < 100: if i < 50: two stores over ranges of 50, nothing is chosen any more; the values are those of one loop."""
    r = K.loop(100, 0)
    chosen = r.lt(50).where(K.buffer(1, 100).index(r), K.buffer(2, 100).index(r))
    ast = K.kernel(K.buffer(0, 100).index(r).store(chosen).end(r))
    cut = stage(6, ast)
    assert [[int(x.src[0].arg) for x in end.src[1:]] for end in cut.src] == [[50], [50]]
    assert not any(n.op is Op.Where for n in stage(8, cut).toposort())
    held = []
    for program in (ast, cut, stage(8, cut)):
        buffers: dict[int, list[float]] = {
            0: [0.0] * 100,
            1: [float(i) for i in range(100)],
            2: [-float(i) for i in range(100)],
        }
        interpret.run(program, buffers)
        held.append(buffers[0])
    assert held[0] == held[1] == held[2]


def test_a_nest_is_cut_in_two_dimensions_and_no_range_is_in_two_pieces() -> None:
    """Rows for which nothing else is decided stay whole."""
    i, j = K.loop(6, 0), K.loop(8, 1)
    inside = i.ge(2) & j.lt(5)
    ast = K.kernel(
        K.buffer(0, 48).index(i * 8 + j).store(inside.where(K.buffer(1, 48).index(i * 8 + j), UOp.const(0.0))).end(i, j)
    )
    cut = stage(6, ast)
    assert sorted([int(x.src[0].arg) for x in end.src[1:]] for end in cut.src) == [[2, 8], [4, 3], [4, 5]]
    ranges = [x for end in cut.src for x in end.src[1:]]
    assert len(set(ranges)) == len({x.arg[0] for x in ranges}) == 6
    held = []
    for program in (ast, cut):
        buffers: dict[int, list[float]] = {0: [9.0] * 48, 1: [float(i) for i in range(48)]}
        interpret.run(program, buffers)
        held.append(buffers[0])
    assert held[0] == held[1]


@pytest.mark.parametrize("conditions", [3, 4, 9])
def test_loops_are_numbered_from_piece_to_piece(conditions: int) -> None:
    """In whatever order a loop is cut: optimizations name loops by their order."""
    i, j = K.loop(4, 0), K.loop(100, 1)
    chosen = UOp.const(0.0)
    for k in range(conditions):
        chosen = j.lt(10 * (conditions - k)).where(K.buffer(k + 1, 400).index(i * 100 + j), chosen)
    cut = stage(6, K.kernel(K.buffer(0, 400).index(i * 100 + j).store(chosen * 2.0).end(i, j)))
    assert len(cut.src) == conditions + 1
    for depth in (1, 2):
        ids = [end.src[depth].arg[0] for end in cut.src]
        assert ids == sorted(ids)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("parts", [5, 12, 16])
def test_one_loop_is_cut_into_as_many_parts_as_a_kernel_joins(parts: int) -> None:
    width = [3 + k % 5 for k in range(parts)]
    x = [np.random.default_rng(k).integers(-9, 10, (4, n)).astype(np.float32) for k, n in enumerate(width)]
    t = Tensor(x[0]).cat(*map(Tensor, x[1:]), axis=1)
    (item,) = t.schedule()
    cut = stage(6, item.ast)
    assert sorted(int(end.src[-1].src[0].arg) for end in cut.src) == sorted(width)
    np.testing.assert_array_equal(t.numpy(), np.concatenate(x, 1))


def test_a_loop_over_a_reduction_is_left_whole() -> None:
    r, k = K.loop(10, 0), K.fold(4, 1)
    total = K.buffer(1, 40).index(r * 4 + k).reduce(Op.Add, k)
    ast = K.kernel(K.buffer(0, 10).index(r).store(r.lt(5).where(total, UOp.const(0.0))).end(r))
    assert stage(6, ast) is ast


def test_a_loop_whose_iterations_are_not_independent_is_left_whole() -> None:
    """Each adds to what the one before it has left, or stores over it."""
    r, place = K.loop(10, 0), K.buffer(0, 1)
    chosen = r.lt(5).where(UOp.const(1.0), UOp.const(2.0))
    for value in (place.after(r).index(0) + chosen, chosen):
        ast = K.kernel(place.index(0).store(value).end(r))
        assert stage(6, ast) is ast


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ones", [(), (1,), (1, 1)])
def test_a_loop_that_fills_a_buffer_inside_is_left_whole(ones: tuple[int, ...]) -> None:
    """Rows of joined tensors, gathered from a local buffer: pieces of the outer loop would share the one that fills it."""
    x = np.random.default_rng(0).integers(-9, 10, (3, 17, 2, *ones)).astype(np.int32)
    places = np.random.default_rng(1).integers(0, 17, (6, 2, 2, *ones))
    t = Tensor(x).cat(Tensor(x + 1), axis=0).take_along_axis(Tensor(places), 1)
    np.testing.assert_array_equal(t.numpy(), np.take_along_axis(np.concatenate([x, x + 1]), places, 1))


@pytest.mark.long
def test_any_loop_of_a_deep_nest_is_cut() -> None:
    """The innermost of eight loops, which a rule for each place would have to count up to."""
    loops = [K.loop(2 if i < 7 else 4, i) for i in range(8)]
    at = loops[0]
    for r in loops[1:]:
        at = at * int(r.vmax + 1) + r
    ast = K.kernel(
        K.buffer(0, 512).index(at).store(loops[7].lt(1).where(K.buffer(1, 512).index(at), UOp.const(0.0))).end(*loops)
    )
    cut = stage(6, ast)
    assert [[int(x.src[0].arg) for x in end.src[1:]] for end in cut.src] == [[2] * 7 + [1], [2] * 7 + [3]]
    held = []
    for program in (ast, cut):
        buffers: dict[int, list[float]] = {0: [9.0] * 512, 1: [float(i) for i in range(512)]}
        interpret.run(program, buffers)
        held.append(buffers[0])
    assert held[0] == held[1]
