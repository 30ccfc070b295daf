"""Memory that kernels read and write.

A block of memory lives as long as a Buffer, a view of it, or an ndarray made from it refers to it. Then it returns to its pool,
which uses it for the next request of that size.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from morok.arguments import instance, mistyped, whole
from morok.caller import caller
from morok.errors import DeviceError, DTypeError, OutOfMemoryError, ShapeError
from morok.ir.dtype import DType, dtypes
from morok.locks import MEMORY
from morok.reference_queue import OwnerReference, ReferenceQueue
from morok.runtime.available import available

if TYPE_CHECKING:
    from morok.runtime.abstract_device import Device

ALIGNMENT: Final = 64  # bytes
# Memory of at least _PAGED bytes begins at a page (NumPy's large arrays begin 16 bytes after one). It avoids 4K aliasing: a load
# waits for an earlier store at the same offset in its page. Measured with offsets that differ by 48 bytes, as alignment to cache
# lines alone gives them, against equal offsets: a running sum takes 3.1 times as long, exp 1.9, gelu 1.3.
_PAGED: Final = 1 << 17
_PAGE: Final = 1 << 12
_POOL_BYTES: Final = 1 << 30
_LARGE: Final = 1 << 28  # least bytes of a request that checks the available memory first

# NumPy's dtype for each dtype. NumPy has no bf16 and no 8-bit floats: unsigned integers hold their bits.
NUMPY: Final[dict[DType, np.dtype[Any]]] = {
    dtypes.bool: np.dtype(np.bool_),
    dtypes.i8: np.dtype(np.int8),
    dtypes.i16: np.dtype(np.int16),
    dtypes.i32: np.dtype(np.int32),
    dtypes.i64: np.dtype(np.int64),
    dtypes.u8: np.dtype(np.uint8),
    dtypes.u16: np.dtype(np.uint16),
    dtypes.u32: np.dtype(np.uint32),
    dtypes.u64: np.dtype(np.uint64),
    dtypes.f8e4m3: np.dtype(np.uint8),
    dtypes.f8e5m2: np.dtype(np.uint8),
    dtypes.f16: np.dtype(np.float16),
    dtypes.bf16: np.dtype(np.uint16),
    dtypes.f32: np.dtype(np.float32),
    dtypes.f64: np.dtype(np.float64),
}
BITS: Final = frozenset({dtypes.bf16, dtypes.f8e4m3, dtypes.f8e5m2})  # dtypes that NumPy holds as bits
FROM_NUMPY: Final[dict[np.dtype[Any], DType]] = {n: d for d, n in NUMPY.items() if d not in BITS}


class Pool:
    """Freed memory of the CPU, by size, for reuse: at most `limit` bytes; the least recently used is dropped first.

    Memory freed since the last take() is not counted yet: at most `limit` bytes for each power of two of sizes.
    """

    def __init__(self, limit: int = _POOL_BYTES) -> None:
        self.limit = limit
        self.held = 0
        self.allocated = 0
        self.reused = 0
        self._free: OrderedDict[int, tuple[int, np.ndarray[Any, Any]]] = OrderedDict()
        self._by_size: dict[int, dict[int, None]] = {}
        self._ticket = 0
        self._freed: dict[int, ReferenceQueue[np.ndarray[Any, Any]]] = {}  # by bit length of the size

    def take(self, nbytes: int) -> np.ndarray[Any, Any]:
        """At least `nbytes` bytes, aligned, with arbitrary contents. OutOfMemoryError if there is not enough memory."""
        size = _rounded(nbytes)
        with MEMORY:
            for freed in list(self._freed.values()):
                for reference in freed.drain():
                    self.give_back(reference.resource)
            tickets = self._by_size.get(size)
            if tickets:
                self.reused += 1
                return self._forget(next(reversed(tickets)))
            self.allocated += 1
        try:
            return _aligned(size)
        except (MemoryError, ValueError):
            self.clear()
        try:
            return _aligned(size)
        except (MemoryError, ValueError):
            raise OutOfMemoryError(
                f"{nbytes} bytes cannot be allocated on CPU", place=caller(), hint="free tensors, or compute in parts"
            ) from None

    def lend(self, block: Block, memory: np.ndarray[Any, Any]) -> OwnerReference[np.ndarray[Any, Any]] | None:
        """A reference that returns `memory` to the pool when `block` dies, if the block keeps it; None above `limit` bytes."""
        power = memory.nbytes.bit_length()
        if memory.nbytes > self.limit:
            return None
        freed = self._freed.get(power)
        if freed is None:
            freed = self._freed.setdefault(power, ReferenceQueue(max(self.limit >> power, 1)))
        return freed.watch(block, memory)

    def give_back(self, memory: np.ndarray[Any, Any]) -> None:
        size = memory.nbytes
        if size > self.limit:
            return
        with MEMORY:
            self._ticket += 1
            self._free[self._ticket] = (size, memory)
            self._by_size.setdefault(size, {})[self._ticket] = None
            self.held += size
            while self.held > self.limit:
                self._forget(next(iter(self._free)))

    def _forget(self, ticket: int) -> np.ndarray[Any, Any]:
        """The memory of this ticket, removed from the pool, with its size's entry if that is empty."""
        size, memory = self._free.pop(ticket)
        self.held -= size
        tickets = self._by_size[size]
        del tickets[ticket]
        if not tickets:
            del self._by_size[size]
        return memory

    def clear(self) -> None:
        """Return all held memory to the system."""
        with MEMORY:
            self._freed.clear()
            self._free.clear()
            self._by_size.clear()
            self.held = 0


def _rounded(nbytes: int) -> int:
    """The size class for `nbytes` bytes: 16 classes between two powers of two. Arrays of similar sizes reuse the same memory; at
    most a sixteenth is unused, and its pages, in large blocks, are never touched.
    """
    step = max(1 << (nbytes - 1).bit_length() >> 5, ALIGNMENT)
    return max(-(-nbytes // step) * step, ALIGNMENT)


def _aligned(size: int) -> np.ndarray[Any, Any]:
    """New aligned memory; MemoryError if there is not enough, also for large blocks that the system would overcommit."""
    if size >= _LARGE and (most := available()) is not None and size > most:
        raise MemoryError
    begin = _PAGE if size >= _PAGED else ALIGNMENT
    raw = np.empty(size + begin, np.uint8)
    start = -raw.ctypes.data % begin
    return raw[start : start + size]


CPU_POOL: Final = Pool()


class Block:
    """Memory of the CPU pool, returned to it when no reference to the block is left."""

    __slots__ = ("memory", "address", "nbytes", "_loan", "__weakref__")

    def __init__(self, nbytes: int) -> None:
        self.memory = CPU_POOL.take(nbytes)
        self.address: int = self.memory.ctypes.data
        self.nbytes = nbytes
        self._loan = CPU_POOL.lend(self, self.memory)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "typestr": "|u1", "shape": (self.nbytes,), "data": (self.address, False), "strides": None}

    def array(self) -> np.ndarray[Any, Any]:
        """The bytes as an ndarray that keeps this block alive."""
        return np.asarray(self)


class Buffer:
    """`size` elements of `dtype` on a device; memory is allocated when it is first needed.

    address   address of the first element, on the device; allocates
    memory    the owner of the memory: a Block, an ndarray, or a CuPy allocation; allocates
    base      the buffer of which this one is a view, or None
    offset    first element of the view, in elements of `dtype`
    """

    __slots__ = ("device", "dtype", "size", "base", "offset", "_memory", "_address", "__weakref__")

    def __init__(self, device: Device, dtype: DType, size: int, base: Buffer | None = None, offset: int = 0) -> None:
        if not hasattr(device, "allocate"):
            raise mistyped(
                device, "the device of a buffer", 'a device: device("CPU") of morok.runtime.device is one', DeviceError
            )
        if dtype.__class__ is not DType or dtype not in NUMPY:
            raise mistyped(dtype, "the dtype of a buffer", "a dtype of elements, such as dtypes.f32", DTypeError)
        self.device = device
        self.dtype = dtype
        self.size = whole(size, "the size of a buffer", 0)
        self.base = base if base is None else instance(base, Buffer, "the base of a view", "a Buffer")
        self.offset = whole(offset, "the offset of a view", 0)
        self._memory: Any = None
        self._address = 0

    def __repr__(self) -> str:
        return f"Buffer({self.device.name}, {self.dtype}, {self.size}{'' if self.is_allocated else ', not allocated'})"

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_allocated(self) -> bool:
        return self._memory is not None or (self.base is not None and self.base.is_allocated)

    @property
    def memory(self) -> Any:
        self.allocate()
        return self._memory

    @property
    def address(self) -> int:
        if self._memory is None:
            self.allocate()
        return self._address

    def allocate(self) -> Buffer:
        """This buffer, with memory allocated if it had none. OutOfMemoryError."""
        if self._memory is None:
            if self.base is not None:
                self._memory = self.base.memory
                self._address = self.base.address + self.offset * self.dtype.itemsize
            else:
                self._memory, self._address = self.device.allocate(self.nbytes)
        return self

    def view(self, offset: int, size: int, dtype: DType | None = None) -> Buffer:
        """A buffer over `size` elements of this memory, from element `offset` on, counted in the view's dtype. ShapeError if they
        do not lie inside, or are misaligned.
        """
        dtype = (
            self.dtype
            if dtype is None
            else instance(dtype, DType, "the dtype of a view", "a dtype, such as dtypes.f32")
        )
        offset, size = whole(offset, "the offset of a view", 0), whole(size, "the size of a view", 0)
        if dtype not in NUMPY or (offset + size) * dtype.itemsize > self.nbytes:
            what = f"elements {offset}..{offset + size} of {dtype} do not lie in {self.nbytes} bytes"
            raise ShapeError(what, place=caller(), expected="a view inside of the buffer")
        if self.base is not None:
            begin, rest = divmod(self.offset * self.dtype.itemsize, dtype.itemsize)
            if rest:
                what = f"a view of {dtype} at byte {self.offset * self.dtype.itemsize} of a buffer"
                raise ShapeError(what, place=caller(), expected=f"a place that {dtype.itemsize} divides")
            return Buffer(self.device, dtype, size, self.base, offset + begin)
        return Buffer(self.device, dtype, size, self, offset)

    @staticmethod
    def wrap(device: Device, array: np.ndarray[Any, Any], dtype: DType | None = None) -> Buffer:
        """A buffer over `array`'s own memory if the device can use it (CPU, C order, native byte order, aligned, writable), else
        over a copy. `dtype` is the elements' dtype if NumPy lacks it (bf16 in uint16). DTypeError.
        """
        instance(array, np.ndarray, "the data of a buffer", "an ndarray", DTypeError)
        native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        dtype = (
            FROM_NUMPY.get(native.dtype)
            if dtype is None
            else instance(dtype, DType, "the dtype of a buffer", "a dtype", DTypeError)
        )
        if dtype is None or NUMPY.get(dtype) != native.dtype:
            what = f"{'no dtype holds' if dtype is None else f'{dtype} does not hold'} NumPy's {array.dtype}"
            raise DTypeError(what, place=caller(), expected=", ".join(d.name for d in FROM_NUMPY.values()))
        buffer = Buffer(device, dtype, native.size)
        usable = native.flags.c_contiguous and native.flags.aligned and native.flags.writeable and native.size > 0
        if device.shares_host_memory and usable:
            buffer._memory = native
            buffer._address = native.ctypes.data
        else:
            buffer.copy_in(native)
        return buffer

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a flat ndarray: a view that keeps this memory alive on the CPU, a copy elsewhere."""
        self.allocate()
        kind = NUMPY[self.dtype]
        if not self.device.shares_host_memory:
            return np.frombuffer(self.device.copy_out(self), kind)
        start = self._address - _start(self._memory)
        return _bytes(self._memory)[start : start + self.nbytes].view(kind)

    def copy_in(self, array: np.ndarray[Any, Any]) -> None:
        """Replace the elements by those of `array`, in C order; ShapeError for another number of elements."""
        kind = NUMPY[self.dtype]
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            raise mistyped(array, "the data of a buffer", "an ndarray of numbers", DTypeError)
        if array.size != self.size:
            raise ShapeError(
                f"{array.size} elements do not fill a buffer of {self.size}", expected=f"{self.size} elements"
            )
        self.allocate()
        if self.device.shares_host_memory:
            self.numpy()[:] = cast_array(np.ascontiguousarray(array), kind).reshape(-1)
        else:
            self.device.copy_in(self, cast_array(np.ascontiguousarray(array), kind).reshape(-1))


def cast_array(array: np.ndarray[Any, Any], kind: Any) -> np.ndarray[Any, Any]:
    """An array at another dtype of NumPy, as kernels convert it: infinite where the dtype has no number, whatever `np.seterr` and
    filters of warnings say.
    """
    with np.errstate(all="ignore"):
        return array.astype(kind, copy=False)


def _start(memory: Any) -> int:
    return memory.address if isinstance(memory, Block) else int(memory.ctypes.data)


def _bytes(memory: Any) -> np.ndarray[Any, Any]:
    return memory.array() if isinstance(memory, Block) else memory.reshape(-1).view(np.uint8)
