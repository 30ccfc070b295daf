"""Buffers: whose memory they are, how long it lives, and what comes back for reuse."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from morok.errors import DeviceError, DTypeError, OutOfMemoryError, ShapeError, UsageError
from morok.ir.dtype import dtypes
from morok.runtime import buffer as B
from morok.runtime.buffer import Buffer, Pool
from morok.runtime.device import device

CPU = device("CPU")
f32 = dtypes.f32


def test_an_ndarray_is_used_as_it_lies() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = Buffer.wrap(CPU, x)
    assert b.address == x.ctypes.data
    assert (b.dtype, b.size, b.nbytes) == (f32, 6, 24)
    b.numpy()[0] = 9.0
    assert x[0, 0] == 9.0


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
        np.arange(6, dtype=np.float32)[::2],
        np.arange(6, dtype=">f4"),
        np.frombuffer(b"\0" + np.arange(6, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32),
    ],
    ids=["transposed", "strided", "big-endian", "unaligned"],
)
def test_other_layouts_are_copied_in_c_order(array: np.ndarray) -> None:
    b = Buffer.wrap(CPU, array)
    assert b.address != array.ctypes.data
    assert b.numpy().tolist() == array.reshape(-1).tolist()


def test_what_may_not_be_written_is_copied() -> None:
    x = np.arange(4, dtype=np.int64)
    x.flags.writeable = False
    assert Buffer.wrap(CPU, x).address != x.ctypes.data


def test_an_ndarray_without_a_dtype_of_ours() -> None:
    with pytest.raises(DTypeError, match="complex64"):
        Buffer.wrap(CPU, np.zeros(2, np.complex64))
    with pytest.raises(DTypeError):
        Buffer.wrap(CPU, np.zeros(2, np.float32), dtypes.f64)


def test_an_ndarray_of_another_dtype_than_the_given_one() -> None:
    with pytest.raises(DTypeError, match="bool does not hold NumPy's float32") as caught:
        Buffer.wrap(device("CPU"), np.ones(3, np.float32), dtypes.bool)
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_bf16_bits() -> None:
    b = Buffer.wrap(CPU, np.array([0x3F80, 0x4000], np.uint16), dtypes.bf16)
    assert (b.dtype, b.nbytes) == (dtypes.bf16, 4)


@pytest.mark.parametrize("nbytes", [1 << 17, (1 << 20) + 4, (1 << 24) + 64])
def test_large_memory_begins_a_page(nbytes: int) -> None:
    """No later than an array of NumPy's does: what is stored in the same place of another page delays no load behind it."""
    blocks = [B.Block(nbytes) for _ in range(3)]
    assert [b.address % (1 << 12) for b in blocks] == [0, 0, 0]
    assert all(b.array().nbytes == nbytes for b in blocks)


def test_memory_is_aligned_and_allocated_late() -> None:
    b = Buffer(CPU, dtypes.i8, 3)
    assert not b.is_allocated
    assert b.address % 64 == 0
    assert b.is_allocated


def test_a_view_shares_memory() -> None:
    whole = Buffer.wrap(CPU, np.arange(10, dtype=np.float32))
    part = whole.view(2, 4)
    inner = part.view(1, 2)
    assert part.address == whole.address + 8
    assert inner.numpy().tolist() == [3.0, 4.0]
    assert whole.view(2, 4, dtypes.u32).numpy().dtype == np.uint32
    with pytest.raises(ShapeError):
        whole.view(8, 4)


def test_a_view_of_a_view_lies_where_its_bytes_are() -> None:
    x = np.arange(16, dtype=np.uint8)
    inner = Buffer.wrap(CPU, x).view(4, 12)
    assert inner.view(1, 2, dtypes.i32).numpy().tolist() == x[8:16].view(np.int32).tolist()
    with pytest.raises(ShapeError, match="byte 3"):
        Buffer.wrap(CPU, x).view(3, 8).view(0, 2, dtypes.i32)


@pytest.mark.parametrize(
    "given", [(-1, 2), (0, 1.5), ("0", 2), (0, 2, "f32"), (0, 0, dtypes.void), (0, 2, dtypes.f32.vec(4)), (15, 2)]
)
def test_what_is_no_view_is_refused(given: tuple[object, ...]) -> None:
    with pytest.raises((UsageError, ShapeError)) as caught:
        Buffer.wrap(CPU, np.zeros(16, np.float32)).view(*given)  # type: ignore[arg-type]
    assert caught.value.expected


def test_a_view_of_what_is_not_allocated_yet() -> None:
    whole = Buffer(CPU, f32, 8)
    part = whole.view(4, 4)
    assert part.address == whole.address + 16


def test_empty_buffers() -> None:
    b = Buffer.wrap(CPU, np.zeros((0, 3), np.float32))
    assert b.size == 0
    assert b.numpy().size == 0
    assert Buffer(CPU, f32, 0).numpy().size == 0


def test_copy_in_checks_the_size() -> None:
    b = Buffer(CPU, f32, 3)
    b.copy_in(np.array([[1, 2, 3]]))
    assert b.numpy().tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ShapeError):
        b.copy_in(np.zeros(4))


@pytest.mark.long
def test_freed_memory_of_the_same_size_comes_back() -> None:
    gc.collect()
    first = Buffer(CPU, f32, 123_457).allocate()
    address, reused = first.address, B.CPU_POOL.reused
    del first
    assert Buffer(CPU, f32, 123_457).address == address
    assert B.CPU_POOL.reused == reused + 1


def test_arrays_that_all_have_sizes_of_their_own_use_the_same_memory_again() -> None:
    pool = Pool(limit=1 << 24)
    for nbytes in range(1, 40_000, 7):
        taken = pool.take(nbytes)
        assert nbytes <= taken.nbytes <= max(nbytes + 63, nbytes * 17 // 16)
        pool.give_back(taken)
    assert pool.allocated == len({b.nbytes for _, b in pool._free.values()}) < 120
    assert pool.held == sum(b.nbytes for _, b in pool._free.values())


def test_a_size_of_which_no_memory_is_left_takes_no_room_in_the_pool() -> None:
    pool = Pool(limit=5000)
    for nbytes in range(1, 5000, 3):
        pool.give_back(pool.take(nbytes))
        assert set(pool._by_size) == {b.nbytes for _, b in pool._free.values()}
    last = [pool.take(n) for n in list(pool._by_size)]
    assert last
    assert (len(pool._free), len(pool._by_size), pool.held) == (0, 0, 0)


def test_memory_that_an_ndarray_still_shows_does_not_come_back() -> None:
    b = Buffer(CPU, f32, 123_461)
    seen = b.numpy()
    seen[:] = 7.0
    address = b.address
    del b
    other = Buffer(CPU, f32, 123_461)
    assert other.address != address
    other.numpy()[:] = 0.0
    assert (seen == 7.0).all()
    tail = seen[5:]
    del seen
    third = Buffer(CPU, f32, 123_461)
    assert third.address != address
    del tail
    assert Buffer(CPU, f32, 123_461).address == address


def test_a_pool_keeps_at_most_its_limit_and_drops_the_oldest() -> None:
    pool = Pool(limit=640)
    blocks = [pool.take(64 * (k + 1)) for k in range(4)]  # 64, 128, 192, 256: 640 in all
    for b in blocks:
        pool.give_back(b)
    assert pool.held == 640
    pool.give_back(np.empty(320, np.uint8))
    assert pool.held == 256 + 320  # 64, 128 and 192, the oldest, are gone
    before = pool.allocated
    pool.take(64)
    assert pool.allocated == before + 1
    pool.take(256)
    assert pool.allocated == before + 1
    pool.give_back(np.empty(1000, np.uint8))  # larger than the whole pool
    assert pool.held == 320


def test_too_much_memory_is_an_error_of_ours() -> None:
    with pytest.raises(OutOfMemoryError, match="cannot be allocated"):
        Buffer(CPU, f32, 1 << 60).allocate()


def test_null_device_holds_nothing() -> None:
    b = Buffer(device("NULL"), f32, 4)
    b.copy_in(np.ones(4))
    with pytest.raises(DeviceError, match="NULL has no elements"):
        b.numpy()
    assert Buffer(device("NULL"), f32, 0).numpy().shape == (0,)
