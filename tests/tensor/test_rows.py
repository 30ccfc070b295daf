"""Kernels that reduce a row and use what came of it while the row is near: softmax, layernorm and their like."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok import Tensor, dtypes
from morok.codegen.machines import host
from morok.errors import OptError
from morok.ir.dtype import AddrSpace
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes import pipeline, rangeify
from morok.passes.rangeify import row_buffers
from morok.passes.rangeify.cost import CPU
from tests.tensor.interpreted import compute

Array = np.ndarray[Any, Any]


def data(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(x: Array, axis: int = -1) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    out: Array = e / e.sum(axis, keepdims=True)
    return out


def normed(x: Array) -> Array:
    wide = x.astype(np.float64)
    out: Array = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    return out


SHAPES = ((1, 1), (1, 7), (7, 1), (3, 16), (5, 31), (2, 64), (3, 97), (2, 211), (1, 1000), (2, 3, 131), (0, 8))
PROGRAMS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "softmax": (lambda t: t.softmax(-1), softmax),
    "layernorm": (Tensor.layernorm, normed),
    "centred": (lambda t: t - t.mean(-1, keepdim=True), lambda x: x - x.astype(np.float64).mean(-1, keepdims=True)),
    "log_softmax": (lambda t: t.log_softmax(-1), lambda x: np.log(softmax(x))),
}


def test_exponentials_of_what_is_not_above_0_have_code_of_their_own() -> None:
    """The general one halves the exponent of its power of two, which may be too large for a float."""
    halves = [
        any(u.op is Op.Shr for k in t.schedule() for u in pipeline.lower(k.ast, host()))
        for t in (Tensor(data(4, 64)).softmax(), Tensor(data(4, 64)).exp())
    ]
    assert halves == [False, True]


def test_softmax_at_the_edges() -> None:
    inf, most = np.inf, np.finfo(np.float32).max
    x = np.array(
        [[0, -inf, -88, -103, -104, -3e38], [most, -most, 0, most, 1, most], [-inf] * 6, [inf, 0, 1, 2, 3, 4]],
        np.float32,
    )
    odd = np.array([[0x7FC00001, 0, 0, 0, 0, 0], [0xFFFFFFFF, 0, 0, 0, 0, 0]], np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        expected = softmax(np.concatenate([x, odd]))
    found = Tensor(np.concatenate([x, odd])).softmax(-1).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=2e-45)
    assert np.isnan(found[2:]).all()


@pytest.mark.sampled(20)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_one_kernel_a_row(program: str, shape: tuple[int, ...]) -> None:
    ours, theirs = PROGRAMS[program]
    x = data(*shape)
    assert len(ours(Tensor(x)).kernels()) == (1 if x.size else 0)
    if x.size:
        np.testing.assert_allclose(ours(Tensor(x)).numpy(), theirs(x), rtol=2e-5, atol=2e-6)
    assert ours(Tensor(x)).shape == shape


@pytest.mark.parametrize("program", PROGRAMS)
def test_interpreted(program: str) -> None:
    ours, theirs = PROGRAMS[program]
    for shape in ((2, 5), (1, 3), (2, 1, 4)):
        np.testing.assert_allclose(compute(ours(Tensor(data(*shape)))), theirs(data(*shape)), rtol=1e-5, atol=1e-6)


def test_specials() -> None:
    x = data(6, 70)
    x[0, 3], x[1, 69], x[2, 0], x[3, :] = np.nan, np.inf, -np.inf, -1e30
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(Tensor(x).softmax(-1).numpy(), softmax(x), rtol=1e-5, atol=1e-7)


@pytest.mark.long
def test_rows_along_another_axis() -> None:
    x = data(37, 5, 19)
    for axis in (0, 1):
        np.testing.assert_allclose(Tensor(x).softmax(axis).numpy(), softmax(x, axis), rtol=1e-5, atol=1e-7)
    turned = Tensor(x).permute(2, 1, 0).softmax(-1)
    np.testing.assert_allclose(turned.numpy(), softmax(x.transpose(2, 1, 0)), rtol=1e-5, atol=1e-7)


def test_a_whole_array_is_one_row() -> None:
    x = data(50)
    assert len(Tensor(x).softmax(0).kernels()) == 1
    np.testing.assert_allclose(Tensor(x).softmax(0).numpy(), softmax(x), rtol=1e-5)


def test_several_axes() -> None:
    x = data(3, 9, 23)
    t = Tensor(x)
    e = (t - t.max((1, 2), keepdim=True)).exp()
    out = e / e.sum((1, 2), keepdim=True)
    assert len(out.kernels()) == 1
    np.testing.assert_allclose(out.numpy().reshape(3, -1), softmax(x.reshape(3, -1)), rtol=1e-5)


def test_what_two_kernels_need_is_stored() -> None:
    """A row's maximum that another result uses as well is computed once, for both."""
    x = data(4, 33)
    t = Tensor(x)
    most = t.max(-1, keepdim=True)
    a, b = t - most, most * 2
    assert len(Tensor.schedule(a)) == 1
    Tensor.realize(a, b)
    np.testing.assert_array_equal(a.numpy(), x - x.max(-1, keepdims=True))
    np.testing.assert_array_equal(b.numpy(), x.max(-1, keepdims=True) * 2)


@pytest.mark.long
def test_a_product_of_normalised_rows() -> None:
    """A tile of a matrix product has no place for the rows' own sums: they are computed before."""
    x, w = data(12, 40), data(40, 24, seed=1)
    out = (Tensor(x) - Tensor(x).mean(-1, keepdim=True)) @ Tensor(w)
    assert len(out.kernels()) == 2
    np.testing.assert_allclose(out.numpy(), (x - x.mean(-1, keepdims=True)) @ w, rtol=1e-4, atol=1e-4)


@pytest.mark.long
def test_integers_and_bools() -> None:
    x = (data(5, 45) * 100).astype(np.int32)
    np.testing.assert_array_equal((Tensor(x) - Tensor(x).max(-1, keepdim=True)).numpy(), x - x.max(-1, keepdims=True))
    near = Tensor(x) == Tensor(x).max(-1, keepdim=True)
    np.testing.assert_array_equal(near.numpy(), x == x.max(-1, keepdims=True))
    half = Tensor(data(3, 50).astype(np.float16)).softmax(-1)
    assert half.dtype is dtypes.f16
    np.testing.assert_allclose(half.numpy(), softmax(data(3, 50).astype(np.float16)), rtol=6e-4)


def local_buffers(t: Tensor) -> int:
    return sum(1 for item in t.schedule() for n in item.ast.toposort() if n.op is Op.DefineLocal)


def test_a_costly_row_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exponentials of a softmax's row are computed once, for their sum and for the result; cheap terms are computed anew."""
    assert local_buffers(Tensor(data(4, 100)).softmax(-1)) == 1
    assert local_buffers(Tensor(data(4, 100)).layernorm()) == 0
    monkeypatch.setattr(row_buffers, "ROW_BYTES", 400)
    assert local_buffers(Tensor(data(3, 100)).softmax(-1)) == 1
    assert local_buffers(Tensor(data(3, 101)).softmax(-1)) == 0


def test_local_rows_are_no_kernels() -> None:
    seen: list[AddrSpace] = []

    def look(name: str, state: rangeify.State) -> None:
        if state.sink is not None and name == "core rangeify":
            seen.extend(n.arg[1] for n in state.sink.toposort() if n.op is Op.Bufferize)
            assert len(list(rangeify.stored(state.sink))) == 1

    rangeify.rangeify([Tensor(data(4, 8)).softmax(-1).uop], "CPU", look, target=CPU.target)
    assert set(seen) == {AddrSpace.LOCAL, AddrSpace.GLOBAL}


def test_threads_of_a_gpu_share_nothing() -> None:
    """Where each output is a thread, a row's reductions are kernels of their own: before and after the CPU has run them."""
    t = Tensor(data(8, 16)).softmax(-1)
    assert len(t.kernels()) == 1
    assert len(t.kernels(device="CUDA")) == 3
    t.realize()
    assert len(t.kernels()) == 1
    assert len(t.kernels(device="CUDA")) == 3


@pytest.mark.long
def test_settings_change_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the optimizer, and however vectors are split, rows come out as they do otherwise."""
    x = data(3, 45)
    runs: list[Array] = []
    for settings in ({}, {"MOROK_NOOPT": "1"}, {"DEVECTORIZE": "0"}, {"DEVECTORIZE": "2"}):
        with monkeypatch.context() as m:
            for name, value in settings.items():
                m.setenv(name, value)
            runs.append(Tensor(x).softmax(-1).numpy())
    near = functools.partial(np.testing.assert_allclose, rtol=1e-6)
    for other in runs[1:]:
        near(other, runs[0])


def test_a_row_cannot_become_lanes() -> None:
    """A local buffer holds one row at a time: several rows as lanes of one vector would overwrite each other."""
    (item,) = Tensor(data(8, 40)).softmax(-1).schedule()
    scheduler = Scheduler(item.ast, host())
    assert [scheduler.fills_within(r) for r in scheduler.output_ranges] == [True, False, False]
    with pytest.raises(OptError, match="local buffer"):
        scheduler.apply(Opt(OptOp.UPCAST, 0, 4))
    scheduler.apply(Opt(OptOp.UPCAST, 1, 8))


def convolved(x: Array, w: Array, padding: int) -> Array:
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, w.shape[2:], axis=(2, 3))
    out: Array = np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float64))
    return out


@pytest.mark.sampled(8)
@pytest.mark.parametrize("size", [(1, 1, 4, 5), (2, 3, 13, 17), (1, 5, 9, 40), (3, 2, 7, 1)], ids=str)
@pytest.mark.parametrize("padding", [1, 2])
def test_a_padded_operand_is_copied_once(size: tuple[int, ...], padding: int) -> None:
    x, w = data(*size), data(11, size[1], 3, 3, seed=1)
    out = Tensor(x).conv2d(Tensor(w), padding=padding)
    assert len(out.kernels()) == 1
    assert local_buffers(out) == 1
    np.testing.assert_allclose(out.numpy(), convolved(x, w, padding), rtol=1e-4, atol=1e-4)


@pytest.mark.long
def test_what_is_padded_is_interpreted_alike() -> None:
    x, w = data(1, 2, 4, 3), data(8, 2, 3, 3, seed=1)
    out = Tensor(x).conv2d(Tensor(w), padding=1)
    assert local_buffers(out) == 1
    np.testing.assert_allclose(compute(out), convolved(x, w, 1), rtol=1e-4, atol=1e-4)


def test_a_padded_operand_that_is_large_is_read_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_buffers, "PADDED_BYTES", 400)
    x, w = data(1, 3, 9, 11), data(4, 3, 3, 3, seed=1)
    out = Tensor(x).conv2d(Tensor(w), padding=1)
    assert local_buffers(out) == 0
    np.testing.assert_allclose(out.numpy(), convolved(x, w, 1), rtol=1e-4, atol=1e-4)


def test_fills_are_cut_where_their_gates_change() -> None:
    """The loop that fills the padded copy is cut at both edges: inside no element asks whether it is padding."""
    (item,) = Tensor(data(1, 3, 9, 20)).conv2d(Tensor(data(8, 3, 3, 3, seed=1)), padding=1).schedule()
    before = pipeline.run(pipeline.STAGES[5], item.ast, host())
    assert isinstance(before, UOp)
    (barrier,) = [n for n in before.toposort() if n.op is Op.Barrier]
    assert [max(r.src[0].arg for r in piece.src[1:]) for piece in barrier.src] == [11, 20, 11]


def test_merged_ranges_keep_their_place() -> None:
    """Rows over two axes that count as one stay outside the loop over a row."""
    (item,) = Tensor(data(4, 6, 40)).softmax(-1).schedule()
    seen: list[list[int]] = []

    def look(number: int, name: str, before: object, after: object) -> None:
        if number == 6:
            assert isinstance(after, UOp)
            seen.append([r.src[0].arg for r in Scheduler(after, host()).output_ranges])

    pipeline.lower(item.ast, host(), look)
    assert seen == [[24, 40, 40]]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("operation", ["sum", "max", "cumsum", "cumprod", "cummax"])
def test_rows_whose_elements_are_all_one(operation: str) -> None:
    """What lies behind a padded or joined column repeated along its rows has one element a row."""
    a, b, y = (
        np.random.default_rng(k).integers(-3, 4, s).astype(np.float32) for k, s in enumerate([(3, 1), (2, 1), (5, 8)])
    )
    scans = {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate}
    f = scans.get(operation) or getattr(np, operation)
    column, padded = np.concatenate([a, b]), np.pad(a, [(0, 2), (0, 0)])
    ours, ours_padded = Tensor.concat([Tensor(a), Tensor(b)]), Tensor(a).pad([(0, 2), (0, 0)])
    for t, x in [
        (ours.broadcast_to((5, 8)), np.broadcast_to(column, (5, 8))),
        (ours * Tensor(y), column * y),
        (ours_padded.broadcast_to((5, 8)), np.broadcast_to(padded, (5, 8))),
        (ours_padded + Tensor(y), padded + y),
    ]:
        out = getattr(t, operation)(1)
        np.testing.assert_array_equal(compute(out), f(x, 1))
        np.testing.assert_array_equal(out.numpy(), f(x, 1))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(5, 1), (1, 1), (1, 8)], ids=str)
def test_a_softmax_of_repeated_elements(shape: tuple[int, ...]) -> None:
    """A costly row of which every element is the same one."""
    x = data(*shape)
    for axis in (0, 1):
        out = Tensor(x).expand(5, 8).softmax(axis)
        np.testing.assert_allclose(compute(out), softmax(np.broadcast_to(x, (5, 8)), axis), rtol=1e-6)
        np.testing.assert_allclose(out.numpy(), softmax(np.broadcast_to(x, (5, 8)), axis), rtol=1e-6)
