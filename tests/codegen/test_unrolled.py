"""Loops of few iterations that LLVM writes out: which, and that they compute what they did."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_lists import Listing

from morok.codegen.llvm import render
from morok.codegen.llvm.short_loops import ASKED
from morok.ir.dtype import dtypes
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.device import device

f32 = dtypes.f32


def nested(outer: int | None, inner: int, terms: int = 1) -> list[UOp]:
    """out[i, j] = `terms` times x[i, j], in two loops; in one where there is no `outer`."""
    b = Listing()
    size = (outer or 1) * inner
    out, x = b.buffer(0, f32, size), b.buffer(1, f32, size)
    rows = [] if outer is None else [b.range(outer)]
    r = b.range(inner)
    at = b.add(sum((row * inner for row in rows), r))
    v = b.load(x, at)
    total = v
    for _ in range(terms - 1):
        total = b.add(total + v)
    b.store(out, at, total)
    for loop in [r, *rows]:
        b.end(loop)
    return b.list


@pytest.mark.parametrize(
    ("outer", "inner", "terms", "loops"),
    [
        (64, 3, 1, 1),
        (64, 4, 1, 1),
        (64, 5, 1, 0),
        (64, 1, 1, 0),
        (3, 64, 1, 0),  # the outer one is around a loop
        (None, 3, 1, 0),  # run once, there is nothing to gain
        (64, 3, 400, 0),
    ],
)
def test_short_loops_inside_of_others_are_written_out(outer: int | None, inner: int, terms: int, loops: int) -> None:
    program = nested(outer, inner, terms)
    text = render(program, "k").text
    assert text.count("!llvm.loop ") == loops
    assert (ASKED in text) is bool(loops)
    size = (outer or 1) * inner
    x, out = Buffer(device("CPU"), f32, size), Buffer(device("CPU"), f32, size)
    x.numpy()[:] = np.arange(size)
    device("CPU").compile(program, "k").launch([out, x])
    np.testing.assert_array_equal(out.numpy(), np.arange(size, dtype=np.float32) * terms)


def test_each_loop_has_a_number_of_its_own() -> None:
    b = Listing()
    out, x = b.buffer(0, f32, 192), b.buffer(1, f32, 192)
    row = b.range(64)
    for _ in range(2):
        r = b.range(3)
        at = b.add(row * 3 + r)
        b.store(out, at, b.load(x, at))
        b.end(r)
    b.end(row)
    text = render(b.list, "k").text
    assert "!llvm.loop !3" in text
    assert "!llvm.loop !4" in text
    assert "!4 = distinct !{!4, !2}" in text
    buffers = [Buffer(device("CPU"), f32, 192) for _ in range(2)]
    buffers[1].numpy()[:] = np.arange(192)
    device("CPU").compile(b.list, "k").launch(buffers)
    np.testing.assert_array_equal(buffers[0].numpy(), np.arange(192))
