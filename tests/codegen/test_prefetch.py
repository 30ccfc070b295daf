"""Fetching the next row while this one is read again: which loads say so, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_lists import Listing

from morok.codegen.llvm import render
from morok.codegen.llvm.prefetch import LEAST_BYTES, ROW_BYTES, loads_ahead
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.device import device

f32 = dtypes.f32
ROW = 256
ROWS = LEAST_BYTES // 4 // ROW


def rows(passes: int = 2, rows: int = ROWS, row: int = ROW, step: int | None = None, lanes: int = 16) -> list[UOp]:
    """out[i, j] = passes * x[i, j], the row i of x read in so many loops, each of which adds it to out."""
    b = Listing()
    out, x = b.buffer(0, f32, rows * row), b.buffer(1, f32, rows * row)
    i = b.range(rows)
    for n in range(passes):
        j = b.range(row // lanes)
        at = b.add(i * (row if step is None else step) + j * lanes)
        v = b.load(x, at, f32.vec(lanes))
        if n:
            v = b.add(v + b.load(out, at, f32.vec(lanes)))
        b.store(out, at, v)
        b.end(j)
    b.end(i)
    return b.list


def ahead(program: list[UOp], slot: int) -> list[tuple[int, int]]:
    """Of the loads of a buffer that fetch what is next: which one it is, and how far that lies."""
    found = loads_ahead(program)
    loads = [u for u in program if u.op is Op.Load and u.src[0].src[0].arg == slot]
    return [(at, found[u]) for at, u in enumerate(loads) if u in found]


def test_the_second_loop_over_a_row_fetches_the_next() -> None:
    assert ahead(rows(2), 1) == [(1, ROW)]
    assert ahead(rows(3), 1) == [(1, ROW)]
    assert render(rows(3), "k").text.count("call void @llvm.prefetch") == 2  # of x, and of out, which three loops read


@pytest.mark.parametrize(
    "program",
    [
        rows(1),  # read once: memory is busy with it
        rows(2, rows=ROWS // 2),  # in a cache
        rows(2, row=ROW_BYTES // 2),  # two of them are not
        rows(2, step=ROW // 2),  # half of the next was read already
        rows(2, step=0),
        rows(2, lanes=1),
        rows(2, lanes=8, row=8 * 33),  # of which every second one begins a line, which one is not known
    ],
)
def test_other_loops_fetch_nothing(program: list[UOp]) -> None:
    assert not ahead(program, 1)
    assert "prefetch" not in render(program, "k").text


def test_parts_of_a_line_fetch_it_once() -> None:
    b = Listing()
    x = b.buffer(1, f32, ROW * ROWS)
    i = b.range(ROWS)
    for _ in range(2):
        j = b.range(ROW // 16)
        for part in (0, 8):
            b.load(x, b.add(i * ROW + j * 16 + part), f32.vec(8))
        b.end(j)
    b.end(i)
    assert ahead(b.list, 1) == [(2, ROW)]


def test_the_last_row_fetches_what_is_not_there() -> None:
    cpu = device("CPU")
    x = np.arange(ROW * ROWS, dtype=np.float32)
    out = np.zeros_like(x)
    cpu.compile(rows(3), "rows").launch([Buffer.wrap(cpu, a) for a in (out, x)])
    np.testing.assert_array_equal(out, 3 * x)
