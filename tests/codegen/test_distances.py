"""Addresses at constant distances: one sum an access less, and the same places."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_lists import Listing, c

from morok.codegen.llvm import render
from morok.codegen.llvm.distances import apart, distances
from morok.ir.dtype import DType, dtypes
from morok.ir.uop import UOp
from morok.runtime.buffer import NUMPY, Buffer
from morok.runtime.device import device

i32 = dtypes.i32
LEAST = i32.min


def tile(dtype: DType) -> list[UOp]:
    """out[4 * i + k] = x[4 * i + 3 - k] for k < 4."""
    b = Listing()
    out, x = b.buffer(0, dtype, 64), b.buffer(1, dtype, 64)
    r = b.range(16)
    places = [r * 4, r * 4 + 1, r * 4 + 2, r * 4 + 3]
    for to, source in zip(places, reversed(places), strict=True):
        b.store(out, b.add(to), b.load(x, b.add(source)))
    b.end(r)
    return b.list


def run(program: list[UOp], *arrays: np.ndarray) -> None:
    cpu = device("CPU")
    cpu.compile(program, "tile").launch([Buffer.wrap(cpu, a) for a in arrays])


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64, dtypes.i8, dtypes.bool, dtypes.f16])
def test_a_tile_is_read_and_written_where_it_lies(dtype: DType) -> None:
    x = (np.arange(64) % 7 % 3).astype(NUMPY[dtype])
    out = np.zeros_like(x)
    run(tile(dtype), out, x)
    np.testing.assert_array_equal(out, x.reshape(16, 4)[:, ::-1].reshape(-1))


def test_accesses_of_a_tile_share_an_address_and_need_no_sums() -> None:
    text = render(tile(dtypes.f32), "k").text
    assert text.count("getelementptr float, ") == 2
    assert text.count("getelementptr i8, ") == 6
    assert text.count(" add nsw ") == 0


def test_a_sum_that_is_a_value_too_is_computed() -> None:
    b = Listing()
    out, r = b.buffer(0, i32, 64), b.range(63)
    at = b.add(r + 1)
    b.store(out, at, at)
    b.end(r)
    assert distances(b.list) == set()
    found = np.full(64, -1, np.int32)
    run(b.list, found)
    np.testing.assert_array_equal(found[1:], np.arange(1, 64))


def test_a_sum_that_wraps_stays_a_sum() -> None:
    """out[i] = x[at[i] + the least number], where at[i] is the least number and a little more."""
    b = Listing()
    out, x, at = b.buffer(0, i32, 8), b.buffer(1, i32, 8), b.buffer(2, i32, 8)
    r = b.range(8)
    place = b.add(b.load(at, r) + c(LEAST, i32))
    assert apart(place) == (place, 0)
    b.store(out, r, b.load(x, place))
    b.end(r)
    order = np.array([3, 1, 7, 0, 2, 6, 5, 4], np.int32)
    found, given = np.zeros(8, np.int32), np.arange(8, dtype=np.int32) * 10
    run(b.list, found, given, order + np.int32(LEAST))
    np.testing.assert_array_equal(found, given[order])
