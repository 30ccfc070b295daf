"""Tensors joined along an axis: one op, against NumPy and the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreted import compute

from morok import Tensor, UOp, Variable, dtypes
from morok.codegen.machines import host
from morok.errors import IRTypeError
from morok.ir.op import Op
from morok.passes.pipeline import lower
from morok.tensor import schedule
from tests.codegen.cuda_runner import Program, build

Array = np.ndarray[Any, Any]


def data(*shape: int, seed: int = 0, dtype: str = "float32") -> Array:
    return np.random.default_rng([*shape, seed]).integers(-5, 6, shape).astype(dtype)


def same(t: Tensor, x: Array) -> None:
    got = t.numpy()
    assert got.dtype == x.dtype
    assert got.shape == x.shape
    np.testing.assert_array_equal(got, x)


A, B, C = data(3, 4), data(2, 4, seed=1), data(3, 2, seed=2)
Y, W, X = data(5, 4, seed=3), data(4, 6, 3, 3), data(1, 3, 6, 5)
# each with concat or concatenate, and with tensors or arrays
PROGRAMS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "rows": lambda join, of: join([of(A), of(B)]),
    "columns": lambda join, of: join([of(A), of(C)], axis=1),
    "from the end": lambda join, of: join([of(A), of(C)], axis=-1),
    "flattened": lambda join, of: join([of(A), of(B), of(C)], axis=None),
    "one thing often": lambda join, of: join([of(A), of(B), of(A), of(A)]),
    "sizes 0 and 1": lambda join, of: join([of(A[:0]), of(A[:1]), of(A[2:2]), of(B)]),
    "nothing": lambda join, of: join([of(A[:0]), of(B[:0])]),
    "a part of nothing": lambda join, of: join([of(A[:0]), of(B)]),
    "no columns": lambda join, of: join([of(A[:, :0]), of(B[:, :0])]),
    "of joined ones": lambda join, of: join([join([of(A), of(B)]), join([of(B), join([of(A), of(Y)], axis=0)])]),
    "across": lambda join, of: join([join([of(A), of(B)]), of(Y)], axis=1),
    "a sum of products": lambda join, of: (join([of(A), of(B)]) * of(Y)).sum(1),
    "a sum along the axis": lambda join, of: (join([of(A), of(B)]) * of(Y)).sum(0),
    "the greatest": lambda join, of: join([of(A) * 2, of(B) - 9]).max(),
    "sums": lambda join, of: join([of(A).sum(0), of(B).max(0), of(B)[0]]),
    "a matrix": lambda join, of: join([of(A), of(B)]) @ of(Y).T,
    "views of it": lambda join, of: join([of(A), of(B)])[::-2, 1:].T.reshape(-1),
    "views of its parts": lambda join, of: join([of(Y)[1:4].T, of(A)[:, ::-1].T, of(Y).T[:, 2:]], axis=1),
    "what it surrounds": lambda join, of: join([of(A), of(B), of(Y)])[3:5],
    "turned round": lambda join, of: join([of(A)[1:], of(A)[:1]]) + of(A),
    "a scan": lambda join, of: join([of(A), of(B)]).cumsum(0),
    "beside itself": lambda join, of: join([of(A), of(B)]) + join([of(B), of(A)]) * 2,
    "read twice": lambda join, of: (lambda x: x - x.sum(0))(join([of(A), of(B)])),
    "promoted": lambda join, of: join([of(A), of(B.astype(np.int16)), of(B > 0)]),
    "bools": lambda join, of: join([of(A > 0), of(B > 1)]),
    "integers": lambda join, of: join([of(A.astype(np.int8)), of(B.astype(np.uint8))]),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    wanted = PROGRAMS[name](np.concatenate, np.asarray)
    same(PROGRAMS[name](Tensor.concat, Tensor), wanted)
    np.testing.assert_array_equal(compute(PROGRAMS[name](Tensor.concat, Tensor)), wanted)


@pytest.mark.long
def test_a_convolution_reads_it_from_one_row() -> None:
    t = Tensor.concat([Tensor(X), Tensor(X) + 1], 1).conv2d(Tensor(W))
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([X, X + 1], 1), (3, 3), axis=(2, 3))
    wanted = np.einsum("nchwij,ocij->nohw", windows, W)
    (item,) = t.schedule()
    assert sum(1 for n in item.ast.toposort() if n.op is Op.DefineLocal) == 1
    same(t, wanted)
    np.testing.assert_array_equal(compute(Tensor.concat([Tensor(X), Tensor(X) + 1], 1).conv2d(Tensor(W))), wanted)


def test_few_are_read_where_they_lie() -> None:
    for t in (
        Tensor.concat([Tensor(A), Tensor(B)]),
        (Tensor.concat([Tensor(A), Tensor(B), Tensor(A)])[3:] * 2).sum(1),
        Tensor.stack([Tensor(A), Tensor(A) + 1], -1),
    ):
        assert len(t.schedule()) == 1
    (item,) = (Tensor.concat([Tensor(A), Tensor(B)])[3:] * 2).schedule()
    assert len(item.buffers) == 2, "what is not read of it is no argument"


@pytest.mark.parametrize("size", [1, 2, 3])
def test_sizes_known_later(size: int) -> None:
    n = Variable("n", 1, 3)
    part = Tensor(A).shrink([(0, n.bind(size)), None])
    same(Tensor.concat([part, Tensor(B)]), np.concatenate([A[:size], B]))
    same(Tensor.concat([Tensor(B), part, Tensor(B), part]), np.concatenate([B, A[:size], B, A[:size]]))
    same(Tensor.concat([part, part * 2], 1), np.concatenate([A[:size], A[:size] * 2], 1))
    same((Tensor.concat([part, Tensor(B)]) + 1).sum(0), (np.concatenate([A[:size], B]) + 1).sum(0))
    same(Tensor.concat([part, Tensor(B)]) @ Tensor(Y).T, np.concatenate([A[:size], B]) @ Y.T)


@pytest.mark.long
@settings(max_examples=40)
@given(st.data())
def test_parts_of_chance(data_: st.DataObject) -> None:
    draw = data_.draw
    ndim = draw(st.integers(1, 3))
    axis = draw(st.integers(-ndim, ndim - 1))
    shape = [draw(st.sampled_from([1, 2, 3, 5])) for _ in range(ndim)]
    tensors, arrays = [], []
    for k in range(draw(st.integers(1, 7))):
        shape[axis] = draw(st.sampled_from([0, 1, 1, 2, 4, 7]))
        x = data(*shape, seed=k, dtype=draw(st.sampled_from(["int8", "int16", "float32", "bool"])))
        t = Tensor(x)
        if draw(st.booleans()):
            turned = draw(st.integers(0, ndim - 1))
            x, t = np.flip(x, turned), t.flip(turned)
        if arrays and draw(st.booleans()):
            x, t = arrays[0], tensors[0]
        arrays.append(x)
        tensors.append(t)
    t, x = Tensor.concat(tensors, axis), np.concatenate(arrays, axis)
    same(t, x)
    along = draw(st.integers(0, ndim - 1))
    np.testing.assert_array_equal(Tensor.concat(tensors, axis).sum(along).numpy(), x.sum(along, dtype=np.float64))
    if x.size:
        key = tuple(slice(draw(st.integers(0, n - 1)), None, draw(st.sampled_from([1, 2, -1]))) for n in x.shape)
        same(Tensor.concat(tensors, axis)[key], x[key])


@pytest.mark.parametrize("widths", [[64] * 5, [40, 64, 33, 50]])
def test_each_part_is_copied_in_vectors(widths: list[int]) -> None:
    """Each in a loop nest of its own. Where one had vectors alone, LLVM's vectorizer took a second for the others."""
    arrays = [data(200, w, seed=k) for k, w in enumerate(widths)]
    t = Tensor.concat([Tensor(x) for x in arrays], 1)
    (kernel,) = t.prepare().kernels
    assert not kernel.kernel.rendered.scalar_loops
    same(t, np.concatenate(arrays, 1))


def test_each_part_has_its_own_source_alone() -> None:
    """Loop nests of twice as many parts are twice as much when they are cut, not four times: compiling would take long."""
    sizes = []
    for count in (7, 14):
        (step,) = Tensor.concat([Tensor(data(4, 1 + k, seed=k)) for k in range(count)], 1).schedule()

        def keep(number: int, name: str, before: Any, after: Any) -> None:
            if name == "Split store":
                sizes.append(len(after.toposort()))

        lower(step.ast, host(), keep)
    assert sizes[1] < 3 * sizes[0]


@pytest.mark.long
@pytest.mark.parametrize("count", [17, 33, 300, 1000])
def test_many(count: int) -> None:
    """Joined a few at a time by kernels that are alike."""
    arrays = [data(2, 3, seed=k) for k in range(count)]
    lowered = schedule.COUNTERS.kernels_lowered
    same(Tensor.concat([Tensor(x) for x in arrays]), np.concatenate(arrays))
    assert schedule.COUNTERS.kernels_lowered <= lowered + 8
    same(Tensor.concat([Tensor(x) for x in arrays]).sum(0), np.concatenate(arrays).sum(0))
    if count < 100:
        np.testing.assert_array_equal(compute(Tensor.stack([Tensor(x) for x in arrays], 1)), np.stack(arrays, 1))


@pytest.mark.long
def test_one_after_the_other() -> None:
    """What is joined to what has been joined is joined with its parts, at once."""
    arrays = [data(1 + k % 2, 3, seed=k) for k in range(100)]
    t = Tensor(arrays[0])
    for x in arrays[1:]:
        t = t.cat(Tensor(x))
    assert len(t.schedule()) == 8
    same(t, np.concatenate(arrays))
    first = Tensor.concat([Tensor(A), Tensor(B)])
    second = first.cat(Tensor(Y))
    Tensor.realize_batch([first, second])
    same(first, np.concatenate([A, B]))
    same(second, np.concatenate([A, B, Y]))


def test_few_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel uses more buffers than it may."""
    monkeypatch.setenv("MOROK_MAX_BUFFERS", "5")
    arrays = [data(2, 3, seed=k) for k in range(40)]
    t = Tensor.concat([Tensor(x) for x in arrays], 1) * 2
    assert max(len(item.buffers) for item in t.schedule()) <= 5
    same(t, np.concatenate(arrays, 1) * 2)


@pytest.mark.long
def test_on_cuda(tmp_path: Path) -> None:
    p = Program.of(
        "joined", Tensor.concat([Tensor(A), Tensor(B), Tensor(A) + 1]), Tensor.concat([Tensor(A), Tensor(C)], 1).sum(1)
    )
    found = p.run(build(p.texts, tmp_path))
    for got, wanted in zip(found, [np.concatenate([A, B, A + 1]), np.concatenate([A, C], 1).sum(1)], strict=True):
        np.testing.assert_array_equal(got.reshape(wanted.shape), wanted)


def test_what_cannot_be_joined() -> None:
    name, device = UOp.new(Op.Unique, (), 0), UOp.new(Op.Device, (), "CPU")

    def tensor(*shape: int, dtype: Any = dtypes.f32) -> UOp:
        buffer = UOp.new(Op.Buffer, (name, device), int(np.prod(shape)), dtype)
        return UOp.new(Op.Reshape, (buffer, *(UOp.const(n, dtypes.index) for n in shape)))

    joined = UOp.new(Op.Concat, (tensor(2, 3), tensor(2, 5)), 1)
    assert joined.shape == (2, 8)
    for sources, axis in [
        ((), 0),
        ((tensor(2, 3),), 2),
        ((tensor(2, 3),), -1),
        ((tensor(2, 3), tensor(3, 3)), 1),
        ((tensor(2, 3), tensor(6)), 0),
        ((tensor(2, 3), tensor(2, 3, dtype=dtypes.i32)), 0),
    ]:
        with pytest.raises(IRTypeError):
            UOp.new(Op.Concat, sources, axis)


def test_joined_and_rolled_rows_that_were_written_at_places() -> None:
    """The gate of a read implies clauses that it does not have: these are not put there again and again."""
    t, a = Tensor.zeros((17, 1, 7), dtype="u8"), np.zeros((17, 1, 7), np.uint8)
    t[-4, np.array([0]), ::3], a[-4, np.array([0]), ::3] = 3, 3
    np.testing.assert_array_equal(
        Tensor.concat([t] * 3, 2).roll(-1, 1).numpy(), np.roll(np.concatenate([a] * 3, 2), -1, 1)
    )
