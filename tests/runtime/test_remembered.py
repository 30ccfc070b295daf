"""A remembering table: at most so many entries, and so many bytes together."""

from __future__ import annotations

import random

import numpy as np
import pytest

from morok import Tensor
from morok.ir.graph import toposort
from morok.remembered import NODE, Remembered
from morok.tensor import schedule


def test_the_longest_unused_leave_first() -> None:
    table: Remembered[str] = Remembered(entries=3, nbytes=100)
    for k in range(3):
        table.put(k, str(k), 10)
    assert table.get(0) == "0"
    table.put(3, "3", 10)
    assert [table.get(k) for k in range(4)] == ["0", None, "2", "3"]
    table.put(4, "4", 85)  # only one more fits beside it
    assert [table.get(k) for k in range(5)] == [None, None, None, "3", "4"]
    table.put(5, "5", 1000)  # the last one stays, whatever it holds
    assert [table.get(k) for k in range(6)] == [None] * 5 + ["5"]
    assert len(table) == 1


def test_what_is_held_is_the_sum_of_the_entries() -> None:
    rng, table, sizes = random.Random(0), Remembered[int](entries=8, nbytes=60), dict[int, int]()
    for _ in range(3000):
        key, size = rng.randrange(12), rng.randrange(20)
        table.put(key, key, size)
        sizes[key] = size
        kept = [k for k in range(12) if k in table._entries]
        assert table.held == sum(sizes[k] for k in kept) <= 60
        assert len(table) == len(kept) <= 8
        assert table.get(key) == key
    table.clear()
    assert (len(table), table.held, table.get(0)) == (0, 0, None)


@pytest.mark.long
def test_large_programs_take_the_place_of_many_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    table: Remembered[schedule.Schedule] = Remembered(nbytes=1000 * NODE)
    monkeypatch.setattr(schedule, "_schedules", table)
    for n in range(1, 8):
        t = Tensor(np.ones((3, n), np.float32))
        for _ in range(40):
            t = (t.softmax(-1) * 2).contiguous()
        t.realize()
        found = [s for s, _ in table._entries.values()]
        nodes = sum(len(toposort([*s.roots, *[step.kernel for step in s.steps]])) for s in found)
        assert table.held == NODE * nodes
        assert nodes <= 1000 or len(found) == 1
    assert len(table) < 7
