"""Every row of the feature table's part 1.9: what a tensor does, row by row."""

from __future__ import annotations

import gc
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morok import OptimizerConfig, Tensor, Variable, dtypes
from morok.errors import ShapeError
from morok.tensor import registry, schedule

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_inputs() -> None:
    a, b = Tensor.from_slice([1.0, 2.0, 3.0, 4.0]), Tensor.from_slice([10.0, 20.0, 30.0, 40.0])
    np.testing.assert_allclose(((a + b) * 0.1).to_ndarray(), [1.1, 2.2, 3.3, 4.4], rtol=1e-6)
    assert Tensor.from_slice([1, 2, 3, 4], [2, 2]).tolist() == [[1, 2], [3, 4]]
    x = np.arange(6).reshape(2, 3)
    assert Tensor.from_ndarray(x).buffer is not None
    np.testing.assert_array_equal(Tensor.from_ndarray(x).numpy(), x)


def test_laziness() -> None:
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    c = a + b
    assert c.buffer is None
    assert c.realize() is c
    assert c.buffer is not None
    d = a * b
    assert d.realize_with(OptimizerConfig()) is d
    assert d.tolist() == [3.0, 8.0]


def test_views_share_their_buffer() -> None:
    a = Tensor([1.0, 2.0, 3.0])
    assert a.reshape(1, 3).buffer is a.buffer
    assert a.unsqueeze(0).permute(1, 0).expand(3, 2).buffer is a.buffer


def test_operators_and_their_names() -> None:
    x, y = np.array([6.0, -7.0, 2.0]), np.array([2.0, 3.0, -4.0])
    a, b = Tensor(x), Tensor(y)
    for ours, theirs in [(a + b, x + y), (a - b, x - y), (a * b, x * y), (a / b, x / y), (-a, -x)]:
        np.testing.assert_array_equal(ours.numpy(), theirs)
    for ours, theirs in [(a.try_add(b), x + y), (a.try_mul(b), x * y), (a.try_sub(b), x - y), (a.try_div(b), x / y)]:
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_shapes() -> None:
    data = Tensor.from_slice([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    matrix = data.try_reshape([2, -1])
    assert matrix.shape == (2, 3)
    assert matrix.try_transpose(0, 1).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert data.try_reshape([6, 1]).try_squeeze().try_unsqueeze(0).try_permute([1, 0]).shape == (6, 1)
    with pytest.raises(ShapeError, match=r"\(3, 2\).*\(3,\)"):
        matrix.T + Tensor([1.0, 2.0, 3.0])


@settings(max_examples=60)
@given(st.lists(st.sampled_from([1, 1, 2, 3]), max_size=4), st.lists(st.sampled_from([1, 1, 2, 3]), max_size=4))
def test_broadcasting_is_numpys(first: list[int], second: list[int]) -> None:
    a, b = Tensor.zeros(*first), Tensor.zeros(*second)
    try:
        expected = np.broadcast_shapes(tuple(first), tuple(second))
    except ValueError:
        with pytest.raises(ShapeError):
            a + b
        return
    assert (a + b).shape == expected


def test_products() -> None:
    m, n, v, w = (np.arange(k, dtype=np.float32) for k in (6, 6, 3, 2))
    m, n = m.reshape(2, 3), n.reshape(3, 2)
    for x, y in ((v, v), (m, v), (w, m), (m, n)):
        np.testing.assert_array_equal(Tensor(x).dot(Tensor(y)).numpy(), x @ y)


def test_functions() -> None:
    x = Tensor([[1.0, -2.0, 3.0], [0.0, 5.0, 5.0]])
    assert x.relu().tolist() == [[1, 0, 3], [0, 5, 5]]
    np.testing.assert_allclose(x.softmax(-1).numpy().sum(-1), 1, rtol=1e-6)
    assert x.argmax(-1).tolist() == [2, 1]
    assert x.argmax(-1).dtype is dtypes.i64
    a, b = Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 5.0, 6.0])
    assert (a + b).sum().item() == 21.0
    assert (a.mean().item(), a.max().item(), a.min().item(), a.prod().item()) == (2.0, 3.0, 1.0, 6.0)


@pytest.mark.parametrize("name", ["linear", "mnist"])
def test_networks_of_the_book(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    runpy.run_path(str(EXAMPLES / f"book_{name}.py"))["main"]()
    assert capsys.readouterr().out


def test_a_plan_compiles_once_and_sees_new_data() -> None:
    data = np.zeros(8, np.float32)
    out = Tensor(data) * 2 + 1
    plan = out.prepare()
    before = schedule.COUNTERS.kernels_lowered
    for k in range(1000):
        data[0] = k
        plan.execute()
    assert schedule.COUNTERS.kernels_lowered == before
    assert plan.buffers[plan.output_buffer_idx].numpy()[0] == 1999.0


def test_what_outputs_share_is_computed_once() -> None:
    x = Tensor(np.arange(12.0).reshape(3, 4))
    shared = x.sum(1).contiguous()
    one, two = shared + 1, shared * 2
    plan = Tensor.prepare_batch([one, two])
    assert len(plan.kernels) <= 3
    Tensor.realize_batch([one, two])
    assert shared.buffer is not None
    assert (one.tolist(), two.tolist()) == ([7.0, 23.0, 39.0], [12.0, 44.0, 76.0])


def test_looking_inside() -> None:
    a = Tensor([1.0, 2.0])
    c = a + a * 2
    assert "same as above" in c.uop.tree()
    assert (c.shape, c.dtype, c.device) == ((2,), dtypes.f32, "CPU")
    (kernel,) = c.kernels()
    assert (kernel.backend, "define void" in kernel.code) == ("LLVM", True)
    (kernel,) = c.kernels(device="CUDA")
    assert "__global__" in kernel.code
    assert kernel.name in kernel.code


def test_one_program_for_every_size() -> None:
    n = Variable("rows_of_1_9", 1, 8)
    data = np.arange(32, dtype=np.float32).reshape(8, 4)
    x = Tensor(data)
    counts = []
    for size in range(1, 9):
        out = (x.shrink([(0, n.bind(size)), None]) * 3).sum(1)
        np.testing.assert_array_equal(out.numpy(), (data[:size] * 3).sum(1))
        counts.append(schedule.COUNTERS.kernels_lowered)
    assert len(set(counts)) == 1


def test_assigning_twice_adds_twice() -> None:
    a = Tensor(np.zeros(4, np.float32))
    a.assign(a + 1)
    a.assign(a + 1)
    assert a.tolist() == [2.0] * 4


@pytest.mark.long
def test_the_registry_forgets() -> None:
    gc.collect()
    before = len(registry.tensors())
    many = [Tensor([1.0]) + k for k in range(50)]
    Tensor.realize_batch(many)
    assert len(registry.tensors()) >= before + 50
    del many
    gc.collect()
    assert len(registry.tensors()) <= before


def test_a_part_that_was_computed_is_not_computed_again() -> None:
    values, order = Tensor([3.0, 1.0, 2.0]).sort()
    values.realize()
    assert order.buffer is not None
    before = schedule.COUNTERS.schedules
    assert order.tolist() == [1, 2, 0]
    assert schedule.COUNTERS.schedules == before


def test_equal_expressions_compile_once() -> None:
    def program() -> Tensor:
        return (Tensor(np.ones((3, 7), np.float32)) * 1.75).sum(1)

    program().realize()
    before = schedule.COUNTERS.kernels_lowered
    program().realize()
    assert schedule.COUNTERS.kernels_lowered == before
