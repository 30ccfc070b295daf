"""How much memory a program takes, how many buffers a kernel may use, and what a second run of the same program does."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

from morok import Tensor, config
from morok.errors import ConfigError
from morok.rewrite.trace import Trace, tracing
from morok.runtime.buffer import CPU_POOL
from morok.tensor import schedule

SIZE = 1 << 20  # elements: 4 MiB


def chain(x: Tensor, length: int) -> Tensor:
    for _ in range(length):
        x = (x * 1.0 + 1.0).contiguous()
    return x


def test_ten_stored_steps_share_four_buffers() -> None:
    x = chain(Tensor(np.zeros(1024, np.float32)), 10)
    assert len({id(b) for i in x.schedule() for b in i.buffers}) == 11
    plan = x.prepare()
    assert len(plan.kernels) == 10
    assert len({b.address for b in plan.buffers}) <= 4


@pytest.mark.long
@pytest.mark.parametrize("stored", [False, True])
def test_the_peak_of_fifty_steps_is_two_intermediates_at_most(stored: bool) -> None:
    source = np.zeros(SIZE, np.float32)
    x = Tensor(source)
    y = chain(x, 50) if stored else x
    if not stored:
        for _ in range(50):
            y = y * 1.0 + 1.0
    y.prepare()  # compiled before memory is watched
    gc.collect()
    CPU_POOL.clear()
    tracemalloc.start()
    try:
        y.realize()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (3 if stored else 1) * source.nbytes + (1 << 20)
    assert y.numpy()[0] == 50


@pytest.mark.parametrize(("most", "kernels"), [(0, 1), (31, 2), (8, 6), (4, 13)])
def test_no_kernel_uses_more_buffers_than_it_may(most: int, kernels: int) -> None:
    tensors = [Tensor(np.full(16, float(k), np.float32)) for k in range(40)]
    total = tensors[0]
    for t in tensors[1:]:
        total = total + t
    with config.settings(max_buffers=most):
        items = total.schedule()
        assert len(items) >= kernels
        assert not most or max(len(i.buffers) for i in items) <= most
        assert total.numpy().tolist() == [780.0] * 16


def test_the_limit_holds_under_reductions_and_views() -> None:
    tensors = [Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) + k) for k in range(12)]
    joined = Tensor.stack(tensors).sum(0).permute(1, 0)
    with config.settings(max_buffers=4):
        assert max(len(i.buffers) for i in joined.schedule()) <= 4
        np.testing.assert_array_equal(joined.numpy(), sum(t.numpy() for t in tensors).T)
    with pytest.raises(ConfigError, match="max_buffers"), config.settings(max_buffers=3):
        pass


@pytest.mark.parametrize("count", [3, 6])
def test_the_limit_holds_where_positions_read_the_most(count: int) -> None:
    """No memory has positions, which are of dtype index: the numbers that they are made of are stored."""
    numbers = [np.arange(k, k + 5) for k in range(count)]
    rows, table = np.arange(12), np.arange(60, dtype=np.float32).reshape(12, 5)
    with config.settings(max_buffers=4):
        places = [Tensor(a.copy()) for a in numbers]
        there = places[0]
        for place in places[1:]:
            there = there + place * 3
        wanted = sum(a * (3 if k else 1) for k, a in enumerate(numbers)) % 12
        found = Tensor(table.copy())[there % 12, Tensor(rows.copy())[(there % 12)] % 5] + places[0]
        assert max(len(i.buffers) for i in found.schedule()) <= 4
        np.testing.assert_array_equal(found.numpy(), table[wanted, rows[wanted] % 5] + numbers[0])


def test_the_same_program_again_rewrites_nothing() -> None:
    class Counted(Trace):
        def __init__(self) -> None:
            super().__init__()
            self.fired = 0

        def record(self, dialect: Any, stage: str, rule: str, before: Any, after: Any) -> None:
            self.fired += 1

    def run(seed: int) -> None:
        x = Tensor(np.random.default_rng(seed).standard_normal((5, 7)).astype(np.float32))
        (x * 2.5 + 1).sum(1).exp().realize()

    first, second = Counted(), Counted()
    with tracing(first):
        run(0)
    lowered, scheduled = schedule.COUNTERS.kernels_lowered, schedule.COUNTERS.schedules
    with tracing(second):
        run(1)
    assert second.fired == 0
    assert first.fired > 0
    assert (schedule.COUNTERS.kernels_lowered, schedule.COUNTERS.schedules) == (lowered, scheduled)


def test_a_dump_shows_the_eight_passes_and_what_each_changed(capfd: pytest.CaptureFixture[str]) -> None:
    with config.settings(debug="ir"):
        x = Tensor(np.ones((3, 11), np.float32))
        (x.permute(1, 0).pad(((0, 1), (0, 0))) - 4).sum(1).schedule()
    lines = capfd.readouterr().err.splitlines()
    titles = [line for line in lines if line.startswith("--- schedule: pass ")]
    assert [t.split(": ")[1] for t in titles] == [f"pass {k}" for k in range(1, 9)]
    assert titles[1] == "--- schedule: pass 2: split of large reductions (no change)"
    assert titles[3] == "--- schedule: pass 4: core rangeify"
    shown = "\n".join(lines)
    assigned, core = shown.split(titles[3])
    assert "stored over [Range(12, " in assigned
    assert "ReduceAxis" in assigned
    assert "ReduceAxis" not in core
    assert "Bufferize" in core
