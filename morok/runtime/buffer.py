"""Memory that kernels read and write.

A block of memory is alive as long as anything sees it: a Buffer, a view of it, or an ndarray made from it. Then it goes back
to its pool, which hands it out again for the next request of that size.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from morok.caller import caller
from morok.errors import DTypeError, OutOfMemoryError, ShapeError
from morok.ir.dtype import DType, dtypes
from morok.runtime.available import available

if TYPE_CHECKING:
    from morok.runtime.device import Device

ALIGNMENT: Final = 64
_POOL_BYTES: Final = 1 << 30
_LARGE: Final = 1 << 28  # bytes from which on it is asked beforehand whether there are as many

# How NumPy holds each dtype; it has no bf16 and no 8-bit floats, so their bits stand for them.
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
BITS: Final = frozenset({dtypes.bf16, dtypes.f8e4m3, dtypes.f8e5m2})  # those whose bits NumPy holds
FROM_NUMPY: Final[dict[np.dtype[Any], DType]] = {n: d for d, n in NUMPY.items() if d not in BITS}


class Pool:
    """Freed memory of the CPU, by size, for reuse: at most `limit` bytes, the longest unused goes first."""

    def __init__(self, limit: int = _POOL_BYTES) -> None:
        self.limit = limit
        self.held = 0
        self.allocated = 0
        self.reused = 0
        self._free: OrderedDict[int, tuple[int, np.ndarray[Any, Any]]] = OrderedDict()
        self._by_size: dict[int, list[int]] = {}
        self._ticket = 0
        # a garbage collection inside these methods may give back a block in the same thread
        self._lock = threading.RLock()

    def take(self, nbytes: int) -> np.ndarray[Any, Any]:
        """`nbytes` bytes, aligned; their contents are arbitrary. OutOfMemoryError if there are not as many."""
        size = max(-(-nbytes // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        with self._lock:
            tickets = self._by_size.get(size)
            if tickets:
                self.reused += 1
                self.held -= size
                return self._free.pop(tickets.pop())[1]
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

    def give_back(self, memory: np.ndarray[Any, Any]) -> None:
        size = memory.nbytes
        if size > self.limit:
            return
        with self._lock:
            self._ticket += 1
            self._free[self._ticket] = (size, memory)
            self._by_size.setdefault(size, []).append(self._ticket)
            self.held += size
            while self.held > self.limit:
                ticket, (old, _) = self._free.popitem(last=False)
                self._by_size[old].remove(ticket)
                self.held -= old

    def clear(self) -> None:
        """Hand all held memory back to the system."""
        with self._lock:
            self._free.clear()
            self._by_size.clear()
            self.held = 0


def _aligned(size: int) -> np.ndarray[Any, Any]:
    """New memory; MemoryError if there is not as much, also where the system would promise it all the same."""
    if size >= _LARGE and (most := available()) is not None and size > most:
        raise MemoryError
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


CPU_POOL: Final = Pool()


class Block:
    """Memory of the CPU pool, given back when nothing sees it any more."""

    __slots__ = ("memory", "address", "nbytes", "__weakref__")

    def __init__(self, nbytes: int) -> None:
        self.memory = CPU_POOL.take(nbytes)
        self.address: int = self.memory.ctypes.data
        self.nbytes = nbytes

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "typestr": "|u1", "shape": (self.nbytes,), "data": (self.address, False), "strides": None}

    def array(self) -> np.ndarray[Any, Any]:
        """The bytes as an ndarray that keeps this block alive."""
        return np.asarray(self)

    def __del__(self) -> None:
        memory = getattr(self, "memory", None)
        if memory is not None and CPU_POOL is not None:  # at exit the module may be gone
            CPU_POOL.give_back(memory)


class Buffer:
    """`size` elements of `dtype` on a device; memory is allocated when it is first needed.

    address   of the first element, on the device; allocates
    memory    what keeps it alive: a Block, an ndarray, or a CuPy allocation
    base      the buffer that this one is a view of, or None
    """

    __slots__ = ("device", "dtype", "size", "base", "offset", "_memory", "_address", "__weakref__")

    def __init__(self, device: Device, dtype: DType, size: int, base: Buffer | None = None, offset: int = 0) -> None:
        self.device = device
        self.dtype = dtype
        self.size = size
        self.base = base
        self.offset = offset
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
        """Make sure that there is memory behind this buffer; OutOfMemoryError. Returns itself."""
        if self._memory is None:
            if self.base is not None:
                self._memory = self.base.memory
                self._address = self.base.address + self.offset * self.dtype.itemsize
            else:
                self._memory, self._address = self.device.allocate(self.nbytes)
        return self

    def view(self, offset: int, size: int, dtype: DType | None = None) -> Buffer:
        """`size` elements of this memory from element `offset` (of the view's dtype) on."""
        dtype = dtype or self.dtype
        if offset < 0 or (offset + size) * dtype.itemsize > self.nbytes:
            raise ShapeError(f"elements {offset}..{offset + size} of {dtype} do not lie in {self.nbytes} bytes")
        if self.base is not None:
            return Buffer(self.device, dtype, size, self.base, offset + self.offset * self.dtype.itemsize // dtype.itemsize)
        return Buffer(self.device, dtype, size, self, offset)

    @staticmethod
    def wrap(device: Device, array: np.ndarray[Any, Any], dtype: DType | None = None) -> Buffer:
        """A buffer over `array`'s own memory where the device can use it as it lies (CPU, C order, native byte order, aligned,
        writable), else over a copy. `dtype` says what the elements are where NumPy cannot (bf16 as uint16).
        """
        native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        dtype = dtype or FROM_NUMPY.get(native.dtype)
        if dtype is None or NUMPY[dtype] != native.dtype:
            raise DTypeError(f"no dtype holds NumPy's {array.dtype}", expected=", ".join(d.name for d in FROM_NUMPY.values()))
        buffer = Buffer(device, dtype, native.size)
        usable = native.flags.c_contiguous and native.flags.aligned and native.flags.writeable and native.size > 0
        if device.shares_host_memory and usable:
            buffer._memory = native
            buffer._address = native.ctypes.data
        else:
            buffer.copy_in(native)
        return buffer

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a flat ndarray: a view of this memory on the CPU, a copy elsewhere; it stays valid by itself."""
        self.allocate()
        kind = NUMPY[self.dtype]
        if not self.device.shares_host_memory:
            return np.frombuffer(self.device.copy_out(self), kind)
        start = self._address - _start(self._memory)
        return _bytes(self._memory)[start : start + self.nbytes].view(kind)

    def copy_in(self, array: np.ndarray[Any, Any]) -> None:
        """Replace the elements by those of `array`, in C order; ShapeError if there are not as many."""
        kind = NUMPY[self.dtype]
        if array.size != self.size:
            raise ShapeError(f"{array.size} elements do not fill a buffer of {self.size}")
        self.allocate()
        if self.device.shares_host_memory:
            self.numpy()[:] = np.ascontiguousarray(array).astype(kind, copy=False).reshape(-1)
        else:
            self.device.copy_in(self, np.ascontiguousarray(array).astype(kind, copy=False).reshape(-1))


def _start(memory: Any) -> int:
    return memory.address if isinstance(memory, Block) else int(memory.ctypes.data)


def _bytes(memory: Any) -> np.ndarray[Any, Any]:
    return memory.array() if isinstance(memory, Block) else memory.reshape(-1).view(np.uint8)
