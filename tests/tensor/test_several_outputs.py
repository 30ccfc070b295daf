"""Values that one kernel stores together: which, and that they are what each is alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from codegen.cuda_runner import Program, build
from interpreted import run

from morok import Tensor, Variable, config, dtypes
from morok.codegen.machines import host
from morok.errors import DTypeError
from morok.ir.op import Op
from morok.passes.pipeline import lower
from morok.tensor.schedule import create_schedule

Array = np.ndarray[Any, Any]


def data(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


PAIRS: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "of one input": lambda x, y: (x * 2 + 1, x - 3),
    "of two inputs": lambda x, y: ((x + y) * 2, x - y),
    "of different dtypes": lambda x, y: (x + 1, x > y, y < 2),
    "four": lambda x, y: (x + y, x - y, x * y, x * 3),
    "of shared work": lambda x, y: ((x + y) * (x + y), (x + y) * (x + y) + y),
    "one of another": lambda x, y: (x + y, (x + y) * x, ((x + y) * x - y) * 2),
    "turned": lambda x, y: (x.T * 2, x.T + y.T),
}
SHAPES = ((1, 7), (13, 5), (16, 32), (3, 64), (0, 4))


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", PAIRS)
def test_one_kernel_stores_them(name: str) -> None:
    for shape in SHAPES:
        a, b = data(*shape), data(*shape, seed=1)
        ours = PAIRS[name](Tensor(a), Tensor(b))
        plan = Tensor.prepare_batch(list(ours))
        assert len(plan.kernels) == (1 if a.size else 0)
        Tensor.realize_batch(list(ours))
        for found, wanted in zip(ours, PAIRS[name](a, b), strict=True):
            np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(
    "values", [{"threads": 3}, {"noopt": True}, {"devectorize": 0}, {"cpu_backend": "interpreter"}], ids=str
)
def test_settings_change_no_value(name: str, values: dict[str, Any]) -> None:
    a, b = data(6, 37), data(6, 37, seed=1)
    with config.settings(**values):
        ours = PAIRS[name](Tensor(a), Tensor(b))
        Tensor.realize_batch(list(ours))
        for found, wanted in zip(ours, PAIRS[name](a, b), strict=True):
            np.testing.assert_array_equal(found.numpy(), wanted)


def test_they_are_interpreted_alike() -> None:
    a, b = data(3, 5), data(3, 5, seed=1)
    ours = PAIRS["four"](Tensor(a), Tensor(b))
    for found, wanted in zip(run(*ours), PAIRS["four"](a, b), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_large_ones_are_shared_by_threads() -> None:
    a = data(1 << 18)
    with config.settings(threads=2):
        x = Tensor(a)
        one, two = x * 2 + 1, x * 3
        (item,) = create_schedule([one, two])
        program = lower(item.ast, host())
        assert [n.op for n in program].count(Op.Store) >= 2
        Tensor.realize_batch([one, two])
    np.testing.assert_array_equal(one.numpy(), a * 2 + 1)
    np.testing.assert_array_equal(two.numpy(), a * 3)


@pytest.mark.long
def test_on_cuda(tmp_path: Path) -> None:
    a, b = data(9, 20), data(9, 20, seed=1)
    p = Program.of("several", *PAIRS["of different dtypes"](Tensor(a), Tensor(b)))
    (text,) = p.texts
    assert [arg.written for arg in text.args] == [True, True, True, False, False]
    for found, wanted in zip(p.run(build([text], tmp_path, "-O1")), PAIRS["of different dtypes"](a, b), strict=True):
        np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


def kernels(*ts: Tensor) -> int:
    return len(create_schedule(list(ts)))


def test_what_stays_apart() -> None:
    x, y, z = (Tensor(data(4, 6, seed=k)) for k in range(3))
    assert kernels(x + 1, y + 1) == 2  # nothing in common
    assert kernels(x + 1, x[:2] + 1) == 2  # other lengths
    assert kernels(x + 1, x.sum(0)) == 2  # a reduction
    first = (x + 1).contiguous()
    assert kernels(first, first.flip(0) * 2 + x) == 2  # one needs other elements of the other
    assert kernels(x + y, x + z, x * 2) == 1
    changed = Tensor(data(4, 6))
    old = changed * 2
    changed.assign(changed + 1)
    for item in create_schedule([old, changed]):  # what is overwritten is read before
        assert [n.op for n in item.ast.toposort()].count(Op.Store) == 1


def test_what_a_later_one_needs_must_be_there() -> None:
    """The second reads what a kernel between them makes: it cannot be stored with the first."""
    a = data(4, 6)
    x = Tensor(a)
    one = x + 1
    total = x.sum(0).contiguous()
    two = x * 2 + total
    assert kernels(one, two) in (2, 3)
    Tensor.realize_batch([one, two])
    np.testing.assert_array_equal(one.numpy(), a + 1)
    np.testing.assert_array_equal(two.numpy(), a * 2 + a.sum(0))


def test_as_many_as_a_kernel_may_use() -> None:
    a = data(5, 8)
    x = Tensor(a)
    with config.settings(max_buffers=4):
        many = [x * float(k) for k in range(2, 12)]
        items = create_schedule(many)
        assert max(len(i.buffers) for i in items) <= 4
        assert len(items) == 4
        Tensor.realize_batch(many)
    for k, t in enumerate(many, 2):
        np.testing.assert_array_equal(t.numpy(), a * k)


def test_symbolic_lengths() -> None:
    n, a = Variable("several", 1, 8), data(8, 3)
    for size in (1, 5, 8):
        part = Tensor(a).shrink([(0, n.bind(size)), None])
        one, two = part * 2, part + 1
        assert kernels(one, two) == 1
        Tensor.realize_batch([one, two])
        np.testing.assert_array_equal(one.numpy(), a[:size] * 2)
        np.testing.assert_array_equal(two.numpy(), a[:size] + 1)


@pytest.mark.long
def test_a_thousand_outputs() -> None:
    x = Tensor(data(4))
    many = [x.cast(dtypes.f64) * float(k) for k in range(2, 1002)]
    assert kernels(*many) < 150  # seven results and what they read are eight buffers


def test_a_plan_returns_the_first() -> None:
    """Also where that is memory already, or has no elements, and only others are computed."""
    a = Tensor(data(4))
    for first, second in ((a, a + 1), (a + 1, a), (Tensor(data(0, 4)), a + 1), (a[:0] * 2, a + 1)):
        found = Tensor.prepare_batch([first, second]).execute().numpy()
        np.testing.assert_array_equal(found, first.numpy().reshape(-1))


@pytest.mark.parametrize("given", [[1], [None], 3, Tensor([1.0]), [Tensor([1.0]), np.ones(1)]], ids=str)
def test_only_tensors_are_computed_together(given: Any) -> None:
    for wrong in (Tensor.realize_batch, Tensor.prepare_batch):
        with pytest.raises(DTypeError, match="expected: "):
            wrong(given)
    with pytest.raises(DTypeError, match="no tensors"):
        Tensor.prepare_batch([])
    Tensor.realize_batch([])
