"""How addresses are put together: what moves a pointer, what is added to it where, and the same places as before."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_lists import Listing, c

from morok.codegen.llvm import render
from morok.codegen.llvm.strength_reduction import Addresses, addresses
from morok.codegen.survey import survey
from morok.ir.dtype import DType, dtypes
from morok.ir.op import AxisType
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


def plan(program: list[UOp]) -> Addresses:
    return addresses(program, survey(program), (), (), ())


def run(program: list[UOp], *arrays: np.ndarray, **values: int) -> None:
    cpu = device("CPU")
    cpu.compile(program, "addresses").launch([Buffer.wrap(cpu, a) for a in arrays], values)


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
    assert text.count(" mul ") == 0
    assert text.count(" add ") == 2  # the counter, and four times the counter


def test_a_sum_that_is_a_value_too_is_computed() -> None:
    b = Listing()
    out, r = b.buffer(0, i32, 64), b.range(63)
    at = b.add(r + 1)
    b.store(out, at, at)
    b.end(r)
    assert at not in plan(b.list).unneeded
    found = np.full(64, -1, np.int32)
    run(b.list, found)
    np.testing.assert_array_equal(found[1:], np.arange(1, 64))


def test_a_sum_that_wraps_stays_a_sum() -> None:
    """out[i] = x[at[i] + the least number], where at[i] is the least number and a little more."""
    b = Listing()
    out, x, at = b.buffer(0, i32, 8), b.buffer(1, i32, 8), b.buffer(2, i32, 8)
    r = b.range(8)
    place = b.add(b.load(at, r) + c(LEAST, i32))
    b.store(out, r, b.load(x, place))
    b.end(r)
    found = plan(b.list)
    assert found.steps[place] == (None, place)
    assert place not in found.sums
    order = np.array([3, 1, 7, 0, 2, 6, 5, 4], np.int32)
    result, given = np.zeros(8, np.int32), np.arange(8, dtype=np.int32) * 10
    run(b.list, result, given, order + np.int32(LEAST))
    np.testing.assert_array_equal(result, given[order])


def matrices(rows: UOp | int = 6, axis: AxisType = AxisType.Loop, dtype: DType = dtypes.f32) -> list[UOp]:
    """out[i, j] = x[j, i] + y[5 * i + j] over rows i and 5 columns j."""
    b = Listing()
    out, x, y = [b.buffer(k, dtype, 30) for k in range(3)]
    i = b.range(rows if isinstance(rows, int) else b.add(rows), axis)
    row = b.add(i * 5)
    j = b.range(5)
    at = b.add(row + j)
    b.store(out, at, b.add(b.load(x, b.add(j * 6 + i)) + b.load(y, at)))
    b.end(j)
    b.end(i)
    return b.list


def test_what_stands_still_in_a_loop_is_added_outside() -> None:
    """Of rows the outer loop moves the pointers; the inner one adds the counter to two, and moves the pointer to a column."""
    program = matrices()
    found = plan(program)
    moved = {loop.arg[0]: [(base.arg, step) for base, _, step in walks] for loop, walks in found.walks.items()}
    assert moved == {0: [(0, 5), (2, 5)], 1: [(1, 6)]}
    assert found.multiples == {}
    text = render(program, "k").text
    assert text.count(" phi ptr ") == 3
    assert text.count(" mul ") == 0
    assert text.count("getelementptr float, ptr %data1, i64 ") == 1  # where a column begins: outside of the inner loop
    assert text.index("getelementptr float, ptr %data1, i64 ") < text.rindex("loop")


N = UOp.var("n", i32, 0, 6)


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.i8, dtypes.f64])
@pytest.mark.parametrize(
    ("rows", "axis"), [(6, AxisType.Loop), (N, AxisType.Loop), (6, AxisType.Thread), (N, AxisType.Thread)]
)
def test_pointers_that_loops_move_are_where_they_should_be(rows: UOp | int, axis: AxisType, dtype: DType) -> None:
    x, y = [(np.arange(30) * k % 50).astype(NUMPY[dtype]) for k in (3, 7)]
    for n in (6, 3, 0) if isinstance(rows, UOp) else (6,):
        out = np.zeros(30, NUMPY[dtype])
        run(matrices(rows, axis, dtype), out, x, y, n=n)
        wanted = x.reshape(5, 6).T + y.reshape(6, 5)
        wanted[n:] = 0
        np.testing.assert_array_equal(out.reshape(6, 5), wanted)


def test_a_number_of_another_dtype_is_an_offset_too() -> None:
    """out[i] = x[3 - at[i]], by i64 and i16 and u8."""
    for d in (dtypes.i64, dtypes.i16, dtypes.u8):
        b = Listing()
        out, x, at = b.buffer(0, i32, 4), b.buffer(1, i32, 4), b.buffer(2, d, 4)
        r = b.range(4)
        b.store(out, r, b.load(x, b.add(c(3, d) - b.load(at, r))))
        b.end(r)
        order, given, found = np.array([2, 0, 3, 1], NUMPY[d]), np.arange(4, dtype=np.int32) * 10, np.zeros(4, np.int32)
        run(b.list, found, given, order)
        np.testing.assert_array_equal(found, given[3 - order])


def test_memory_that_is_known_later_than_the_number() -> None:
    """The local buffer is listed behind the offset into it."""
    b = Listing()
    out = b.buffer(0, i32, 12)
    r = b.range(4)
    at = b.add(r * 3)
    kept = b.local(0, i32, 12)
    b.store(kept, at, r)
    b.store(out, at, b.load(kept, at))
    b.end(r)
    found = np.full(12, -1, np.int32)
    run(b.list, found)
    np.testing.assert_array_equal(found[::3], np.arange(4))


def test_nothing_is_computed_that_nothing_needs() -> None:
    b = Listing()
    out, x = b.buffer(0, i32, 8), b.buffer(1, i32, 8)
    r = b.range(8)
    v = b.load(x, r)
    b.add(v * 3)
    b.store(out, r, v)
    b.end(r)
    assert " mul " not in render(b.list, "k").text
