"""Fetching the next row while this one is read again, or a page further: which loads do, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_lists import Listing

from morok.codegen.llvm import render
from morok.codegen.llvm.prefetch import LEAST_BYTES, PAGE_BYTES, ROW_BYTES, STEP_BYTES, STREAM_BYTES, prefetching_loads
from morok.codegen.survey import survey
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
    found = prefetching_loads(survey(program).accesses)
    loads = [u for u in program if u.op is Op.Load and u.src[0].src[0].arg == slot]
    assert all(found[u].nearest for u in loads if u in found)
    return [(at, found[u].elements) for at, u in enumerate(loads) if u in found]


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


def stream(
    size: int = STREAM_BYTES // 4, step: int = 32, lanes: int = 16, loops: int = 1, kept: bool = True
) -> list[UOp]:
    """out[i] = x[i] in so many loops, each of which copies all of x, vector by vector; or x[i] += 1 where it is not kept."""
    b = Listing()
    out, x = b.buffer(0, f32, size), b.buffer(1, f32, size)
    for _ in range(loops):
        i = b.range(size // step)
        for at in range(0, min(step, 4 * lanes), lanes):
            place = b.add(i * step + at) if at else b.add(i * step)
            v = b.load(x, place, f32.vec(lanes) if lanes > 1 else f32)
            b.store(out if kept else x, place, v)
        b.end(i)
    return b.list


def test_a_stream_fetches_a_page_ahead_for_the_cache_behind_the_nearest() -> None:
    found = prefetching_loads(survey(stream()).accesses)
    assert list(found.values()) == [(PAGE_BYTES // 4, False)] * 2
    assert render(stream(), "k").text.count("@llvm.prefetch.p0(ptr %v") == 2
    assert len(prefetching_loads(survey(stream(lanes=8)).accesses)) == 2  # of four loads: one a line


@pytest.mark.parametrize(
    "program",
    [
        stream(size=STREAM_BYTES // 8),  # in a cache
        stream(loops=2),  # the first loop may leave it in one
        stream(kept=False),
        stream(lanes=1),
        stream(step=STEP_BYTES // 2),  # most of it is not read
    ],
)
def test_what_is_no_stream_fetches_nothing(program: list[UOp]) -> None:
    assert not prefetching_loads(survey(program).accesses)


def test_the_last_page_fetches_what_is_not_there() -> None:
    cpu = device("CPU")
    x = np.arange(STREAM_BYTES // 4, dtype=np.float32)
    out = np.zeros_like(x)
    cpu.compile(stream(), "copied").launch([Buffer.wrap(cpu, a) for a in (out, x)])
    np.testing.assert_array_equal(out, x)
