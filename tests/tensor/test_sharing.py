"""A tensor is a value: nothing that is assigned to another one changes it, however its memory came about."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok import Tensor
from morok.errors import IRError, UsageError
from morok.tensor import schedule

SAME: list[Callable[[Tensor], Tensor]] = [
    lambda x: Tensor(x),
    lambda x: x + 0,
    lambda x: x * 1,
    lambda x: +x,
    lambda x: x.cast(x.dtype),
    lambda x: x.maximum(x),
    lambda x: x.reshape(1, -1),
    lambda x: x.flip(0),
    lambda x: x.T,
    lambda x: x[...],
    lambda x: x[0:1],
    lambda x: x.contiguous(),
    lambda x: (x + 0).contiguous(),
    lambda x: x.detach(),
    lambda x: x.to("CPU"),
    lambda x: x.roll(1, 0),
    lambda x: x.cumsum(0),
    lambda x: x.round(),
    lambda x: x.pad(((1, 1), (0, 0))).shrink(((1, 2), (0, 1))),
    lambda x: x.clone(),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("make", SAME, ids=[str(n) for n in range(len(SAME))])
def test_what_equals_a_tensor_keeps_its_elements(make: Callable[[Tensor], Tensor]) -> None:
    for realized in (False, True):
        for lazy in (False, True):
            x = Tensor(np.array([[3]], np.int64)) + 2 if lazy else Tensor(np.array([[5]], np.int64))
            copy = make(x)
            if realized:
                copy.realize()
            x.assign(x * 10).realize()
            assert copy.numpy().reshape(()) == 5
            assert x.item() == 50


def test_equal_expressions_are_assigned_to_apart() -> None:
    x = Tensor([1.0, 2.0])
    a, b, c = x + 1, x + 1, (x + 1).reshape(2, 1)
    a.realize()
    a.assign(a * 0).realize()
    assert (a.tolist(), b.tolist(), c.tolist()) == ([0, 0], [2, 3], [[2], [3]])
    b.assign(b * 10).realize()
    assert (a.tolist(), b.tolist(), c.tolist()) == ([0, 0], [20, 30], [[2], [3]])


def test_an_array_that_was_computed_is_no_view_of_what_it_came_from() -> None:
    x = Tensor(np.ones(4, np.float32))
    same, flat = (x + 0).numpy(), x.reshape(2, 2).numpy()
    x.assign(x * 5).realize()
    assert same.tolist() == [1] * 4
    assert flat.tolist() == [[5, 5], [5, 5]]  # on the CPU a view of the memory, which x still has


def test_a_reshaped_tensor_is_copied_only_where_its_memory_is_assigned_to() -> None:
    x = Tensor(np.ones(6, np.float32))
    kernels = schedule.COUNTERS.schedules
    flat = x.reshape(2, 3).realize()
    assert flat.buffer is x.buffer
    assert schedule.COUNTERS.schedules == kernels
    x.assign(x + 1)
    assert [len(i.buffers) for i in x.schedule()] == [2, 1]  # the copy, and the assignment in place
    x.realize()
    assert flat.buffer is not x.buffer
    assert flat.tolist() == [[1] * 3] * 2
    x.assign(x + 1)
    assert len(x.schedule()) == 1


def test_preparing_an_assignment_keeps_what_it_will_overwrite() -> None:
    x = Tensor(np.ones(3, np.float32))
    flat, twice = x.reshape(3, 1), x * 2
    x.assign(x + 1)
    plan = x.prepare()
    assert len(plan.kernels) == 1  # no reader is computed again and again
    for k in range(3):
        assert plan.execute().numpy().tolist() == [2.0 + k] * 3
    assert flat.tolist() == [[1]] * 3
    assert twice.tolist() == [2] * 3


def test_an_array_is_the_memory_of_its_tensor() -> None:
    array = np.arange(4, dtype=np.float32)
    frozen, wide, copied = array.copy(), array.reshape(2, 2).T, array.copy()
    frozen.flags.writeable = False
    x = Tensor(array)
    array[0] = 9.0
    assert x.tolist() == [9, 1, 2, 3]
    x.assign(x * 2).realize()
    x[1] = 5.0
    x.realize()
    assert array.tolist() == [18, 5, 4, 6]
    for other in (
        Tensor(frozen),
        Tensor(wide),
        Tensor(copied, dtype="f64"),
        Tensor(copied.copy()),
        Tensor(copied).clone(),
    ):
        other.assign(other * 0).realize()
    assert (frozen.tolist(), copied.tolist()) == ([0, 1, 2, 3], [0, 1, 2, 3])
    assert array.tolist() == [18, 5, 4, 6]


def test_tensors_over_one_array_are_not_read_and_written_together() -> None:
    array = np.arange(4, dtype=np.float32)
    x, y = Tensor(array), Tensor(array[1:])
    assert (x[:3] + y).tolist() == [1, 3, 5]
    x.assign(y.sum() + x)
    with pytest.raises(UsageError, match="over the same array"):
        x.realize()
    assert array.tolist() == [0, 1, 2, 3]


def test_a_plan_of_a_constant() -> None:
    assert Tensor.ones(3).prepare().execute().numpy().tolist() == [1, 1, 1]


OPS: dict[str, Callable[[Any], Any]] = {
    "flip": lambda x: x[::-1],
    "reverse": lambda x: x[:, ::-1],
    "turn": lambda x: x.T,
    "whole": lambda x: x[:, :],
    "flat": lambda x: x.reshape(1, -1),
    "zero": lambda x: x + 0,
    "one": lambda x: x * 1,
    "next": lambda x: x + 1,
}


@pytest.mark.sampled(30)
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_are_numpy_with_copies(seed: int) -> None:
    """Views, values and assignments between realizations; each tensor is what it would be if every step copied."""
    rng = random.Random(seed)
    shape = rng.choice([(1, 1), (1, 3), (3, 1), (2, 2)])
    arrays = [np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape) + 10 * k for k in range(2)]
    tensors = [Tensor(a.copy()) for a in arrays]
    try:
        for number in range(12):
            step(rng, number, tensors, arrays)
        for k in rng.sample(range(len(tensors)), len(tensors)):
            np.testing.assert_array_equal(tensors[k].numpy(), arrays[k])
    except IRError as problem:
        if "circle" not in str(problem):  # two assignments, each of which reads what the other overwrites
            raise


def step(rng: random.Random, number: int, tensors: list[Tensor], arrays: list[Any]) -> None:
    """One more tensor, or another value of one."""
    k, other = (rng.randrange(len(tensors)) for _ in range(2))
    what = rng.choice([*OPS, "assign", "assign", "assign", "write", "realize", "together", "same", "contiguous"])
    x, a = tensors[k], arrays[k]
    if what in OPS:
        tensors.append(OPS[what](x))
        arrays.append(OPS[what](a).copy())
    elif what in ("assign", "write"):
        fits = arrays[other].shape == a.shape
        wanted = (arrays[other] if fits else a) * 3 + number if what == "assign" else a.copy()
        try:
            if what == "assign":
                x.assign((tensors[other] if fits else x) * 3 + number)
            else:
                x[0] = wanted[0] = number
        except UsageError:
            return  # a view, and everything is as it was
        arrays[k] = wanted
    elif what in ("same", "contiguous"):
        tensors.append(Tensor(x) if what == "same" else x.contiguous())
        arrays.append(a)
    else:
        x.realize(*[tensors[other]] * (what == "together"))
