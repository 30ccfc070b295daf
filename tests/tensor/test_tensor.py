"""Tensors as users meet them: values, NumPy, laziness, plans, threads. Everything here is compiled and run."""

from __future__ import annotations

import contextlib
import io
import pickle
import runpy
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, Variable, dtypes
from morok.errors import DeviceError, DTypeError, ShapeError
from morok.tensor import schedule

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def data(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


# Values.


def test_values() -> None:
    t = Tensor([[1.0, 2.0], [3.0, 4.0]]) * 2
    assert t.tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert t.to_vec() == [2.0, 4.0, 6.0, 8.0]
    assert t.sum().item() == 20.0
    assert float(t.max()) == 8.0
    assert int(Tensor([7]) * 3) == 21
    assert len(t) == 2
    assert [r.tolist() for r in t] == [[2.0, 4.0], [6.0, 8.0]]
    assert [10, 20, 30][Tensor(2)] == 30
    assert (t[0, 1] + 1).item() == 5.0


def test_truth() -> None:
    assert bool(Tensor([1.0]) + 1)
    assert Tensor(2) != 3
    with pytest.raises(ShapeError, match="ambiguous"):
        bool(Tensor([1, 2]))
    with pytest.raises(ShapeError):
        Tensor([1, 2]).item()
    with pytest.raises(DTypeError):
        [1][Tensor(0.0)]


def test_numbers_on_both_sides() -> None:
    x = np.array([1.0, 2.0, 4.0], np.float32)
    t = Tensor(x)
    for ours, theirs in [
        (1 - t, 1 - x),
        (2 / t, 2 / x),
        (3 + t, 3 + x),
        (2**t, 2**x),
        (7 // t, 7 // x),
        (7 % t, 7 % x),
    ]:
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6)
    assert isinstance(x + t, Tensor)
    np.testing.assert_array_equal((x * t).numpy(), x * x)
    np.testing.assert_array_equal((x @ t).numpy(), x @ x)


def test_softmax_and_friends() -> None:
    x = data(6, 10)
    e = np.exp(x - x.max(-1, keepdims=True))
    np.testing.assert_allclose(Tensor(x).softmax(-1).numpy(), e / e.sum(-1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(Tensor(x).argmax(-1).numpy(), x.argmax(-1))
    np.testing.assert_allclose(Tensor(x).sigmoid().numpy(), 1 / (1 + np.exp(-x)), rtol=1e-6)
    np.testing.assert_allclose(Tensor(x).tanh().numpy(), np.tanh(x), rtol=1e-5)


def test_large_reductions() -> None:
    x = data(1 << 17)
    np.testing.assert_allclose(Tensor(x).sum().item(), x.sum(dtype=np.float64), rtol=1e-4)
    assert Tensor(x).max().item() == x.max()
    assert Tensor(np.ones(1 << 16, np.int32)).sum().item() == 1 << 16


@pytest.mark.parametrize(
    "sizes", [(4, 4, 4), (1, 5, 3), (17, 33, 9), pytest.param((64, 64, 64), marks=pytest.mark.long)]
)
def test_matrix_products(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = data(m, k), data(k, n)
    np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose((Tensor(a) @ Tensor(b).T.contiguous().T).numpy(), a @ b, rtol=1e-4, atol=1e-5)


def test_halves() -> None:
    x = np.arange(8, dtype=np.float16) / 4
    np.testing.assert_array_equal((Tensor(x) * 3 + 1).numpy(), x * 3 + 1)
    t = Tensor([1.0, 2.5, -3.0], dtype="bf16")
    assert t.dtype is dtypes.bf16
    assert (t + t).numpy().tolist() == [2.0, 5.0, -6.0]


# NumPy and others.


def test_arrays_are_used_as_they_lie() -> None:
    x = data(3, 4)
    t = Tensor(x)
    x[0, 0] = 42.0
    assert t.numpy()[0, 0] == 42.0
    assert np.shares_memory(t.numpy(), x)
    assert np.shares_memory(np.asarray(t), x)
    turned = Tensor(x.T)
    np.testing.assert_array_equal(turned.numpy(), x.T)
    frozen = x.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal((Tensor(frozen) + 0).numpy(), frozen)
    swapped = x.astype(">f4")
    np.testing.assert_array_equal((Tensor(swapped) + 0).numpy(), x)


@pytest.mark.long
def test_results_outlive_their_tensors() -> None:
    results = [(Tensor(data(100)) + i).numpy() for i in range(20)]
    for i, r in enumerate(results):
        np.testing.assert_allclose(r, data(100) + i, rtol=1e-6)


def test_dlpack() -> None:
    t = Tensor(data(5)) * 2
    np.testing.assert_array_equal(np.from_dlpack(t), t.numpy())
    np.testing.assert_array_equal(Tensor.from_dlpack(data(5)).numpy(), data(5))


def test_pickles_hold_values() -> None:
    t = pickle.loads(pickle.dumps(Tensor(data(3, 2)) * 2))
    np.testing.assert_array_equal(t.numpy(), data(3, 2) * 2)
    half = pickle.loads(pickle.dumps(Tensor([1.5], dtype="bf16")))
    assert half.dtype is dtypes.bf16
    assert half.numpy().tolist() == [1.5]


# Laziness.


def test_nothing_happens_before_it_must() -> None:
    t = Tensor(data(4)) + 1
    assert t.buffer is None
    assert "lazy" in repr(t)
    assert t.realize() is t
    assert t.buffer is not None
    assert "realized" in repr(t)


def test_realizing_one_serves_all() -> None:
    a = Tensor(data(4, 4))
    middle = a @ a
    x, y = middle + 1, middle * 2
    middle.realize()
    assert len(x.schedule()) == 1
    assert len(x.schedule()[0].buffers) == 2
    np.testing.assert_allclose(y.numpy(), middle.numpy() * 2)


def test_what_was_stored_on_the_way_serves_too() -> None:
    x = Tensor(data(8, 8))
    total = x.sum(1, keepdim=True)
    first, second = x / total, x * total
    first.realize()
    assert len(second.schedule()) == 1
    np.testing.assert_allclose(second.numpy(), data(8, 8) * data(8, 8).sum(1, keepdims=True), rtol=1e-5)


def test_batches_share() -> None:
    a = Tensor(data(8, 8))
    s = (a @ a).relu()
    x, y = s.sum(0), s.max(1)
    Tensor.realize_batch([x, y])
    r = np.maximum(data(8, 8) @ data(8, 8), 0)
    np.testing.assert_allclose(x.numpy(), r.sum(0), rtol=1e-4)
    np.testing.assert_allclose(y.numpy(), r.max(1), rtol=1e-4)
    assert len(x.kernels()) == 3


def test_views_of_a_realized_tensor_share_its_memory() -> None:
    t = (Tensor(data(6)) + 1).realize()
    assert t.reshape(2, 3).buffer is t.buffer
    assert np.shares_memory(t.reshape(2, 3).numpy(), t.numpy())


def test_assigning() -> None:
    a = Tensor(np.zeros(4, np.float32))
    for _ in range(2):
        a.assign(a + 1).realize()
    assert a.tolist() == [2.0] * 4
    twice = a * 2
    a.assign(a + 1)
    a.assign(a + 1)
    assert a.tolist() == [4.0] * 4
    assert twice.tolist() == [4.0] * 4
    b = Tensor.zeros(3)
    b.assign(Tensor([1.0, 2.0, 3.0]))
    assert b.tolist() == [1.0, 2.0, 3.0]
    c = Tensor([1.0, 2.0, 3.0])
    c.assign(c.flip(0))
    assert c.tolist() == [3.0, 2.0, 1.0]


# Plans and kernels.


def test_plans_run_again_on_new_data() -> None:
    x = data(16)
    t = (Tensor(x) * 2 + 1).sum()
    plan = t.prepare()
    np.testing.assert_allclose(plan.execute().numpy()[0], (x * 2 + 1).sum(), rtol=1e-5)
    before = (schedule.COUNTERS.schedules, schedule.COUNTERS.kernels_lowered)
    for k in range(50):
        x[:] = k
        assert plan.execute().numpy()[0] == 16 * (2 * k + 1)
    assert (schedule.COUNTERS.schedules, schedule.COUNTERS.kernels_lowered) == before
    assert Tensor([1.0]).prepare().execute().numpy().tolist() == [1.0]


def test_intermediate_memory_is_shared() -> None:
    t = Tensor(data(64))
    for _ in range(10):
        t = (t * 2 + 1).contiguous()
    plan = t.prepare()
    assert len(plan.kernels) == 10
    assert len({b.address if b.base is None else b.base.address for b in plan.buffers}) <= 4
    expected = data(64)
    for _ in range(10):
        expected = expected * 2 + 1
    np.testing.assert_allclose(plan.execute().numpy(), expected, rtol=1e-5)


def test_the_second_time_nothing_is_compiled() -> None:
    def program() -> Tensor:
        return (Tensor(data(7, 5)) @ Tensor(data(5, 3))).exp().sum(1)

    first = program().numpy()
    before = (schedule.COUNTERS.schedules, schedule.COUNTERS.kernels_lowered)
    np.testing.assert_array_equal(program().numpy(), first)
    assert (schedule.COUNTERS.schedules, schedule.COUNTERS.kernels_lowered) == before


def test_kernels_are_shown() -> None:
    c = Tensor([1.0, 2.0]) + Tensor([3.0, 4.0])
    (before,) = c.kernels()
    c.realize()
    (after,) = c.kernels()
    assert before == after
    assert after.backend == "LLVM"
    assert "define void" in after.code
    (gpu,) = c.kernels(device="CUDA")
    assert gpu.backend == "CUDA"
    assert "__global__" in gpu.code


def test_kernel_names_are_in_the_code() -> None:
    for k in Tensor(data(8, 16)).softmax().kernels():
        assert k.name in k.code


def test_the_null_device_runs_nothing() -> None:
    t = Tensor(data(4), device="NULL") + 1
    assert t.device == "NULL"
    assert len(t.kernels()) == 1
    for read in (
        t.numpy,
        t.tolist,
        t.sum().item,
        t.max().__float__,
        lambda: t.to("CPU"),
        lambda: np.asarray(t),
        t.clone,
    ):
        with pytest.raises(DeviceError, match="NULL has no elements"):
            read()
    with pytest.raises(DeviceError, match="NULL has no elements"):
        bool((t > 0).all())
    assert t.realize() is t
    assert t[:0].numpy().shape == (0,)
    assert Tensor.full((2,), 3.0, device="NULL").numpy().tolist() == [3.0, 3.0]  # known without being computed
    with pytest.raises(DeviceError):
        t + Tensor(data(4))
    Tensor.realize_batch([t + 1, Tensor(data(4)) + 1])
    with pytest.raises(DeviceError):
        Tensor.prepare_batch([t, Tensor(data(4))])
    with morok.settings(device="NULL"):
        assert Tensor([1.0]).device == "NULL"


def test_variables_compile_once() -> None:
    x = data(8, 4)
    n = Variable("n", 1, 8)
    t = Tensor(x)
    lowered = []
    for k in range(1, 9):
        part = t.shrink(((0, n.bind(k)), (0, 4)))
        np.testing.assert_allclose((part * 2 + 1).sum(0).numpy(), (x[:k] * 2 + 1).sum(0), rtol=1e-5)
        np.testing.assert_allclose((part + 1).numpy(), x[:k] + 1)
        lowered.append(schedule.COUNTERS.kernels_lowered)
    assert lowered[0] == lowered[-1]


# Threads.


@pytest.mark.long
def test_eight_threads() -> None:
    shared = Tensor(data(16, 16))
    wrong: list[Any] = []

    def work(i: int) -> None:
        try:
            for k in range(6):
                x = data(8, 8) + i
                out = ((Tensor(x) @ Tensor(x)) + k).relu().sum(1)
                np.testing.assert_allclose(out.numpy(), np.maximum(x @ x + k, 0).sum(1), rtol=1e-3)
                np.testing.assert_allclose((shared * k).numpy(), data(16, 16) * k, rtol=1e-5)
        except BaseException as problem:
            wrong.append(problem)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.long
def test_eight_threads_on_one_graph() -> None:
    x = data(12, 12)
    base = (Tensor(x) @ Tensor(x)).relu()
    leaves = [(base + k).sum(k % 2) for k in range(8)]
    out: list[Any] = [None] * 8

    def work(k: int) -> None:
        out[k] = leaves[k].numpy()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(8):
        np.testing.assert_allclose(out[k], (np.maximum(x @ x, 0) + k).sum(k % 2), rtol=1e-3)


# The book.


def run_example(name: str) -> str:
    out = io.StringIO()
    sys.path.insert(0, str(EXAMPLES))
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    finally:
        sys.path.remove(str(EXAMPLES))
    return out.getvalue()


def test_book_hello() -> None:
    assert run_example("book_hello.py") == "Result: [1.1, 2.2, 3.3, 4.4]\nSum: 21.0\n"


def test_book_shapes() -> None:
    assert run_example("book_shapes.py") == (
        "Original shape: [6]\nMatrix shape: [2, 3]\nTransposed shape: [3, 2]\n"
        "[[101, 204],\n [102, 205],\n [103, 206]]\n"
        "error: shapes (3, 2) and (3,) do not broadcast\n"
    )


def test_book_matmul() -> None:
    out = run_example("book_matmul.py")
    assert "Output shape: [4, 2]" in out
    assert "[[2.2, 2.8],\n [4.9, 6.4],\n [7.6, 10. ],\n [10.3, 13.6]]" in out.replace("  ", " ").replace("[ ", "[")
    assert "[4, 3] . [3, 2] -> [4, 2]" in out
    assert "[3] . [3, 2] -> [2]" in out
    assert "[4, 3] . [3] -> [4]" in out
    assert "[5, 4, 3] . [5, 3, 2] -> [5, 4, 2]" in out


def test_book_linear() -> None:
    w = (np.sin(np.arange(8) * 0.1) * 0.1).astype(np.float32).reshape(2, 4)
    expected = w @ np.array([1, 2, 3, 4], np.float32)
    assert run_example("book_linear.py") == f"Output: {np.array2string(expected, separator=', ', precision=4)}\n"


@pytest.mark.long
def test_book_mnist() -> None:
    out = run_example("book_mnist.py")
    w1 = (np.sin(np.arange(784 * 128) * 0.1) * 0.1).astype(np.float32).reshape(128, 784)
    w2 = (np.sin(np.arange(1280) * 0.1) * 0.1).astype(np.float32).reshape(10, 128)
    x = (np.arange(784) / 784.0).astype(np.float32)
    logits = w2 @ np.maximum(w1 @ x, 0)
    assert f"Predicted digit: [{int(logits.argmax())}]" in out
    assert out.startswith("Probabilities: [[")


def test_book_inspect() -> None:
    out = run_example("book_inspect.py")
    assert "Add" in out
    assert "Backend: LLVM" in out
    assert "define void" in out


@pytest.mark.long
def test_a_gather_reads_nothing_outside_its_table() -> None:
    table = np.arange(1, 1001)
    for q in (-(2**60), -1, 0, 999, 1000, 2**60):
        named = Tensor.arange(1000).eq(Tensor(np.array([q])))
        found = named.where(Tensor(table), Tensor(0)).sum()
        assert len(found.kernels()) == 1
        assert found.item() == (table[q] if 0 <= q < 1000 else 0)
