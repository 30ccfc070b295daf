"""Tensors from data of Python, NumPy and other libraries, and tensors such as full() and eye() without data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from morok import config
from morok.arguments import device_name
from morok.caller import caller
from morok.errors import DeviceError, DTypeError, MorokError, OutOfMemoryError, RangeError, ShapeError
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.shape import Shape
from morok.ir.uop import UOp
from morok.runtime.buffer import BITS, NUMPY, Buffer, cast_array
from morok.runtime.device import device as find_device
from morok.tensor import registry
from morok.tensor.base import (
    DEFAULT_FLOAT,
    DEFAULT_INT,
    UNKNOWN_TO_NUMPY,
    AnyTensor,
    as_dtype,
    element_count,
    iota,
    numpy_name,
)
from morok.tensor.casts import cast_to, run_time_number
from morok.tensor.describing import current, read_array
from morok.tensor.scalars import constant, natural_dtype, python_number
from morok.tensor.stored import stored_buffer
from morok.tensor.view_methods import expanded, held, reshaped
from morok.tensor.viewed import MOVED

if TYPE_CHECKING:
    import numpy as np

    from morok.optimize.opts import Opt

    Array = np.ndarray[Any, Any]


# NumPy's kinds of what no tensor holds, in words.
_KINDS: Final = {"U": "texts", "S": "bytes", "O": "objects", "c": "complex numbers", "M": "dates", "m": "times"}


def default_device(name: str | None) -> str:
    """The name of a device, checked; None: the device of MOROK_DEVICE. DeviceError for an unknown name."""
    return config.DEVICE.value if name is None else device_name(name)


def from_data(data: Any, dtype: Any, device: str, floats: DType = DEFAULT_FLOAT) -> UOp:
    """The node of `data`: a number, a nested sequence, an ndarray (not copied if its layout allows), or another library's array.

    floats  the dtype of Python's floats in sequences, if `dtype` is None
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if (number := python_number(data)) is not None:
        return constant(number, wanted or natural_dtype(number), device)
    if isinstance(data, UOp):
        return cast_to(run_time_number(data), wanted or DEFAULT_INT)
    if isinstance(data, np.generic):
        return _numpy_number(data, wanted, device)
    if isinstance(data, np.ndarray):
        return from_array(data, wanted, device)
    if isinstance(data, (list, tuple, range)):
        return from_array(_as_array(data, wanted, floats), wanted, device)
    if is_array_of_a_library(data):
        return from_array(foreign_array(data), wanted, device)
    if isinstance(data, complex):
        raise DTypeError(
            f"{data} is complex", place=caller(), expected="a real number", hint="use its .real or its .imag"
        )
    raise DTypeError(
        f"a tensor cannot be made of {type(data).__name__}", place=caller(), expected="numbers, nested lists or arrays"
    )


def _numpy_number(value: np.generic[Any], wanted: DType | None, device: str) -> UOp:
    """The node of a NumPy scalar, cast to `wanted` if given."""
    natural = as_dtype(value.dtype)
    return cast_to(constant(value.item(), natural, device), wanted or natural)


def _as_array(data: Any, wanted: DType | None, floats: DType) -> Array:
    """Nested lists as an ndarray. For an integer dtype `wanted` each number is converted once; RangeError if one does not fit."""
    try:
        array = np.asarray(read_array(data))
    except MorokError:  # raised by a tensor in `data`
        raise
    except (ValueError, OverflowError) as problem:
        raise ShapeError(f"{problem}", place=caller(), expected="nested lists of one shape") from None
    except REFUSALS as problem:  # raised by another library's array in `data`
        raise refusal(data, problem) from None
    except MemoryError:
        raise OutOfMemoryError(
            f"no memory for the elements of a {type(data).__name__}", place=caller(), expected="fewer elements"
        ) from None
    whole = array.dtype == object and all(type(v) is int for v in array.flat)  # integers beyond u64
    if array.dtype.kind not in "biuf" and not whole:
        raise DTypeError(
            f"a tensor cannot hold {_KINDS.get(array.dtype.kind, array.dtype)}",
            place=caller(),
            expected="bools, integers or floats",
        )
    if wanted is None:
        if whole:
            raise RangeError("some integers fit neither i64 nor u64", place=caller(), expected="-2^63..2^64")
        # Python's floats get the default width, NumPy's keep theirs
        return (
            cast_array(array, numpy_name(floats)) if array.dtype.kind == "f" and not _has_numpy_float(data) else array
        )
    if whole or (wanted.is_int and array.dtype.kind in "iuf"):
        d = dtypes.f64 if wanted in UNKNOWN_TO_NUMPY else wanted
        try:
            with np.errstate(all="ignore"):
                return np.asarray(data, numpy_name(d))
        except (OverflowError, ValueError) as problem:
            raise RangeError(f"{problem}", place=caller(), expected=f"numbers that fit {wanted}") from None
    return array


def _has_numpy_float(data: Any) -> bool:
    """True if the first number of a nested list is a NumPy scalar, whose width is deliberate."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return hasattr(data, "dtype")


def from_array(array: Array, wanted: DType | None, device: str) -> UOp:
    """A Buffer node over an ndarray's memory, in its shape; the array is converted first for another dtype `wanted`."""
    array = np.asarray(array)  # a class of arrays may understand its methods otherwise: the elements count
    natural, given = as_dtype(array.dtype), array
    if wanted is not None and wanted is not natural and wanted not in UNKNOWN_TO_NUMPY:
        array = cast_array(array, numpy_name(wanted))
        natural = wanted
    if natural in BITS:  # a dtype of ml_dtypes
        array = array.view(NUMPY[natural])
    memory = Buffer.wrap(find_device(device), array, natural)
    buffer = registry.new_buffer(natural, array.size, device, memory)
    if (description := current()) is not None:
        description.arrays[buffer] = (given, array.dtype, memory.address != given.ctypes.data)
    node = reshaped(buffer, tuple(array.shape))
    return node if wanted is None else cast_to(node, wanted)


def float_or(dtype: Any) -> DType:
    """A dtype, by default that of floats."""
    return DEFAULT_FLOAT if dtype is None else as_dtype(dtype)


def full(shape: Shape, value: Any, dtype: Any, device: str) -> UOp:
    """A node of `shape` with `value` in every place, without memory."""
    if python_number(value) is None and not isinstance(value, complex) and not hasattr(value, "dtype"):
        raise DTypeError(f"full() of {type(value).__name__}", place=caller(), expected="a number")
    return expanded(from_data(value, dtype, device), shape)


def empty(shape: Shape, dtype: Any, device: str) -> UOp:
    """A Buffer node in `shape`, with arbitrary contents."""
    size = element_count(shape)
    room = int(size.vmax) if isinstance(size, UOp) else size
    return held(registry.new_buffer(float_or(dtype), room, device), shape)


def eye(rows: int, columns: int, dtype: Any) -> UOp:
    """The node of a matrix [rows, columns] with 1 on the diagonal and 0 elsewhere."""
    d = float_or(dtype)
    if rows == 0 or columns == 0:
        return expanded(UOp.const(0, d), (rows, columns))
    i = reshaped(iota(rows, dtypes.i32), (rows, 1))
    j = reshaped(iota(columns, dtypes.i32), (1, columns))
    shape = (rows, columns)
    return expanded(i, shape).eq(expanded(j, shape)).where(UOp.const(1, d), UOp.const(0, d))


def same_device(devices: Sequence[str]) -> str:
    if len(set(devices)) != 1:
        raise DeviceError(
            f"a tensor cannot be made of tensors on {' and '.join(dict.fromkeys(devices))}",
            place=caller(),
            expected="one device",
            hint="use .to()",
        )
    return devices[0]


def full_like(self: AnyTensor, value: bool | int | float, dtype: Any = None) -> AnyTensor:
    """A tensor of self's shape, device and dtype (or `dtype`) with `value` in every place.

    >>> Tensor([1, 2]).full_like(7).tolist()
    [7, 7]
    """
    return self._like(full(self.shape, value, self.dtype if dtype is None else dtype, self.device))


def zeros_like(self: AnyTensor, dtype: Any = None) -> AnyTensor:
    """A tensor of self's shape, device and dtype (or `dtype`) with 0 in every place.

    >>> Tensor([1, 2]).zeros_like().tolist()
    [0, 0]
    """
    return self.full_like(0, dtype)


def ones_like(self: AnyTensor, dtype: Any = None) -> AnyTensor:
    """A tensor of self's shape, device and dtype (or `dtype`) with 1 in every place.

    >>> Tensor([1, 2]).ones_like("f32").tolist()
    [1.0, 1.0]
    """
    return self.full_like(1, dtype)


def contiguous(self: AnyTensor, *opts: Opt) -> AnyTensor:
    """The same elements, stored in row-major order by a kernel of their own; without a kernel if they are in memory already.

    `opts` are the optimizations of that kernel, in order, instead of automatically chosen ones. ConfigError for anything but
    Opts; OptError, when the kernel is compiled, if one of them is illegal for it.

    >>> len((Tensor([1, 2]) + 1).contiguous().sum().kernels())
    2
    """
    if opts:
        from morok.optimize.strategy import optimizations  # lazy: few programs choose optimizations themselves

        given = optimizations(opts)
        uop = self.uop.src[0] if self.uop.op is Op.Contiguous else self.uop
    else:
        given, uop = None, self.uop
    if stored_buffer(uop) is None:
        return self._like(UOp.new(Op.Contiguous, (uop,), given))
    made = self._same()
    made._viewed = tuple([v for v in made._viewed if v[2] is not MOVED])
    return made


# The errors of libraries that do not export an array.
REFUSALS: Final = (BufferError, RuntimeError, TypeError, ValueError, AttributeError)


def is_array_of_a_library(data: Any) -> bool:
    """True if an object offers its elements by a protocol for arrays."""
    return any(hasattr(data, name) for name in ("__array__", "__array_interface__", "__dlpack__"))


def foreign_array(data: Any) -> Array:
    """Another library's array as an ndarray, without a copy if possible; DTypeError if the library refuses."""
    try:
        return (
            np.asarray(data) if hasattr(data, "__array__") or not hasattr(data, "__dlpack__") else np.from_dlpack(data)
        )
    except REFUSALS as problem:
        raise refusal(data, problem) from None


def dlpack_array(source: Any) -> Array:
    """Another library's array as an ndarray, through DLPack; DTypeError if either library refuses."""
    try:
        return np.from_dlpack(source)
    except REFUSALS as problem:
        raise refusal(source, problem) from None


def refusal(data: Any, problem: Exception) -> DTypeError:
    """The error for an array that its library does not export."""
    gradients = getattr(data, "requires_grad", None) is True
    reason = " ".join(str(problem).split()) or type(problem).__name__
    kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
    return DTypeError(
        f"a tensor cannot be made of this {kind.removeprefix('builtins.')}: {reason}",
        place=caller(),
        expected="an array in the host's memory, of a dtype that NumPy has, without gradients",
        hint="detach() it first" if gradients else "convert it to float32 on the CPU first",
    )
