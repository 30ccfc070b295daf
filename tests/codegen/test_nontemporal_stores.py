"""Stores past the caches: where they are said, and that they write what plain ones would, aligned or not."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_lists import Listing, c

from morok.codegen.llvm import render
from morok.codegen.llvm.nontemporal_stores import LEAST_BYTES, streamed
from morok.codegen.survey import survey
from morok.ir.dtype import dtypes
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.device import device

f32 = dtypes.f32
MANY = LEAST_BYTES // 4


def scaled(n: int, lanes: int = 16, step: int = 16, first: int = 0, in_place: bool = False) -> list[UOp]:
    """out[step * i + first ..] = 2 * x[the same], `lanes` at a time."""
    b = Listing()
    out, x = b.buffer(0, f32, n), b.buffer(1, f32, n)
    r = b.range(n // step - 1)
    at = b.add(r * step + first)
    v = b.load(out if in_place else x, at, f32.vec(lanes))
    b.store(out, at, b.add(v * c(2.0, f32.vec(lanes))))
    b.end(r)
    return b.list


@pytest.mark.parametrize(
    ("program", "streams"),
    [
        (scaled(MANY), True),
        (scaled(MANY, 16, 32, 16), True),
        (scaled(MANY, 8, 8), False),  # half a line
        (scaled(MANY // 2), False),  # the next kernel may find it in a cache
        (scaled(MANY, in_place=True), False),  # its lines are there already
        (scaled(MANY, 16, 16, 4), False),  # across two lines each
        (scaled(MANY, 16, 24), False),
        (scaled(MANY, 3, 3), False),
        (scaled(MANY, 1, 1), False),
    ],
)
def test_large_outputs_in_whole_vectors_are_streamed(program: list[UOp], streams: bool) -> None:
    assert set(streamed(survey(program).accesses).values()) == ({0} if streams else set())
    text = render(program, "k").text
    assert ("!nontemporal" in text) is streams
    assert text.count("define ") == 1
    assert text.count("fmul ") == 1  # computed once, whether the buffer turns out to be aligned or not


def test_parts_of_a_line_written_together_are_whole() -> None:
    b = Listing()
    out, x = b.buffer(0, f32, MANY), b.buffer(1, f32, MANY)
    r = b.range(MANY // 32)
    for part in (0, 16, 8, 24):
        at = b.add(r * 32 + part)
        b.store(out, at, b.load(x, at, f32.vec(8)))
    b.end(r)
    assert set(streamed(survey(b.list).accesses).values()) == {0}


@pytest.mark.parametrize("offset", [0, 1, 4])
def test_any_alignment_gives_the_same(offset: int) -> None:
    cpu = device("CPU")
    x = np.arange(MANY, dtype=np.float32)
    raw = np.zeros(MANY + 64, np.float32)
    start = -raw.ctypes.data // 4 % 16 + offset
    out = raw[start : start + MANY]
    cpu.compile(scaled(MANY), "scaled").launch([Buffer.wrap(cpu, a) for a in (out, x)])
    np.testing.assert_array_equal(out[:-16], 2 * x[:-16])
    assert not out[-16:].any()
    assert not raw[:start].any()


def test_what_a_loop_leaves_over_is_stored_as_usual() -> None:
    """Three elements behind a loop that fills lines."""
    n = MANY + 3
    b = Listing()
    out, x = b.buffer(0, f32, n), b.buffer(1, f32, n)
    r = b.range(MANY // 16)
    at = b.add(r * 16)
    b.store(out, at, b.load(x, at, f32.vec(16)))
    b.end(r)
    left = b.add(UOp.const(MANY, dtypes.i32))
    b.store(out, left, b.load(x, left, f32.vec(3)))
    assert [s.src[1].dtype.count for s in streamed(survey(b.list).accesses)] == [16]
    text = render(b.list, "k").text
    assert text.count("!nontemporal") == 1
    cpu = device("CPU")
    data, result = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    cpu.compile(b.list, "k").launch([Buffer.wrap(cpu, a) for a in (result, data)])
    np.testing.assert_array_equal(result, data)


def test_what_is_stored_once_is_no_stream() -> None:
    b = Listing()
    out, x = b.buffer(0, f32, MANY), b.buffer(1, f32, MANY)
    at = b.add(UOp.const(16, dtypes.i32))
    b.store(out, at, b.load(x, at, f32.vec(16)))
    assert not streamed(survey(b.list).accesses)
