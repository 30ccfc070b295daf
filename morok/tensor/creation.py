"""Tensors from Python and NumPy data, and tensors described by a formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from morok import config
from morok.caller import caller
from morok.errors import DeviceError, DTypeError, ShapeError
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.shape import Shape
from morok.ir.uop import UOp
from morok.tensor import registry
from morok.tensor.base import DEFAULT_FLOAT, DEFAULT_INT, UNKNOWN_TO_NUMPY, as_dtype, dim_node, numpy_name, prod
from morok.tensor.math import cast_to
from morok.tensor.movement import expanded, reshaped

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def default_device(name: str | None) -> str:
    return config.DEVICE.value if name is None else name.upper()


def from_data(data: Any, dtype: Any, device: str) -> UOp:
    """The node of `data`: a number, a nested sequence, an ndarray (used as it lies if it can be), or anything NumPy reads."""
    wanted = None if dtype is None else as_dtype(dtype)
    if type(data) in (bool, int, float):
        return _number(data, wanted)
    if isinstance(data, UOp):
        return cast_to(data, wanted or DEFAULT_INT)
    import numpy as np

    if isinstance(data, np.generic):
        return _number(data.item(), wanted or as_dtype(data.dtype))
    if isinstance(data, np.ndarray):
        return from_array(data, wanted, device)
    if isinstance(data, (list, tuple, range)):
        return from_array(_as_array(data, wanted), wanted, device)
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        return from_array(np.from_dlpack(data), wanted, device)
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return from_array(np.asarray(data), wanted, device)
    raise DTypeError(
        f"a tensor cannot be made of {type(data).__name__}", place=caller(), expected="numbers, nested lists or arrays"
    )


def _number(value: bool | int | float, wanted: DType | None) -> UOp:
    natural = as_dtype(type(value))
    d = wanted or natural
    if d.is_int and isinstance(value, int) and not isinstance(value, bool) and not d.min <= value <= d.max:
        raise DTypeError(f"{value} does not fit {d}", place=caller(), expected=f"{d.min}..={d.max}")
    return cast_to(UOp.const(value, natural), d) if isinstance(value, float) else UOp.const(value, d)


def _as_array(data: Any, wanted: DType | None) -> Array:
    import numpy as np

    try:
        array = np.asarray(data)
    except (ValueError, OverflowError) as problem:
        raise ShapeError(f"{problem}", place=caller(), expected="nested lists of one shape") from None
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise DTypeError(f"a tensor cannot hold {array.dtype}", place=caller(), expected="bools, integers or floats")
    if wanted is None and array.dtype.kind == "f" and not _has_numpy_float(data):
        array = array.astype(np.float32)  # Python's floats say nothing about width
    return array


def _has_numpy_float(data: Any) -> bool:
    """Whether the first number of a nested list is NumPy's, so that its width was chosen."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return hasattr(data, "dtype")


def from_array(array: Array, wanted: DType | None, device: str) -> UOp:
    """A Buffer over an ndarray, in its shape; converted first if another dtype is wanted."""
    from morok.runtime.buffer import Buffer
    from morok.runtime.device import device as find_device

    natural = as_dtype(array.dtype)
    if wanted is not None and wanted is not natural and wanted not in UNKNOWN_TO_NUMPY:
        array = array.astype(numpy_name(wanted))
        natural = wanted
    memory = Buffer.wrap(find_device(device), array)
    node = reshaped(registry.new_buffer(natural, array.size, device, memory), tuple(array.shape))
    return node if wanted is None else cast_to(node, wanted)


def full(shape: Shape, value: bool | int | float, dtype: Any) -> UOp:
    """One value in every place; no memory."""
    return expanded(_number(value, None if dtype is None else as_dtype(dtype)), shape)


def empty(shape: Shape, dtype: Any, device: str) -> UOp:
    """Memory of arbitrary contents."""
    size = prod(shape)
    if isinstance(size, UOp):
        node = registry.new_buffer(as_dtype(dtype or DEFAULT_FLOAT), int(size.vmax), device)
        front = UOp.new(Op.Shrink, (node, UOp.const(0, dtypes.index), size))
        return UOp.new(Op.Reshape, (front, *map(dim_node, shape)))
    return reshaped(registry.new_buffer(as_dtype(dtype or DEFAULT_FLOAT), size, device), shape)


def arange(start: float, stop: float | None, step: float, dtype: Any) -> UOp:
    """start, start + step, .. below stop."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ShapeError("arange with step 0", place=caller(), expected="a step that is not 0")
    whole = all(isinstance(v, int) for v in (start, stop, step))
    d = as_dtype(dtype) if dtype is not None else DEFAULT_INT if whole else DEFAULT_FLOAT
    count = max(0, math.ceil((stop - start) / step))
    if count == 0:
        return expanded(UOp.const(0, d), (0,))
    work = d if d.is_int else dtypes.f64 if d is dtypes.f64 else dtypes.f32
    if d.is_bool:
        work = DEFAULT_INT
    out = UOp.new(Op.Iota, (UOp.const(count, dtypes.index),)).cast(work)
    if step != 1:
        out = out * UOp.const(step, work)
    if start != 0:
        out = out + UOp.const(start, work)
    return cast_to(out, d)


def linspace(start: float, stop: float, num: int, endpoint: bool, dtype: Any) -> UOp:
    """`num` values evenly from start to stop."""
    d = as_dtype(dtype or DEFAULT_FLOAT)
    if num == 0:
        return expanded(UOp.const(0, d), (0,))
    work = d if d in (dtypes.f32, dtypes.f64) else dtypes.f32
    step = (stop - start) / max(num - 1 if endpoint else num, 1)
    i = UOp.new(Op.Iota, (UOp.const(num, dtypes.index),)).cast(work)
    out = i * UOp.const(step, work) + UOp.const(start, work)
    if endpoint and num > 1:  # rounding must not miss the last one
        out = i.eq(UOp.const(num - 1, work)).where(UOp.const(stop, work), out)
    return cast_to(out, d)


def eye(rows: int, columns: int, dtype: Any) -> UOp:
    """1 on the diagonal, 0 elsewhere."""
    d = as_dtype(dtype or DEFAULT_FLOAT)
    if rows == 0 or columns == 0:
        return expanded(UOp.const(0, d), (rows, columns))
    i = reshaped(UOp.new(Op.Iota, (UOp.const(rows, dtypes.index),)).cast(dtypes.i32), (rows, 1))
    j = reshaped(UOp.new(Op.Iota, (UOp.const(columns, dtypes.index),)).cast(dtypes.i32), (1, columns))
    shape = (rows, columns)
    return expanded(i, shape).eq(expanded(j, shape)).where(UOp.const(1, d), UOp.const(0, d))


def same_device(devices: Sequence[str]) -> str:
    if len(set(devices)) != 1:
        raise DeviceError(
            f"tensors on {' and '.join(dict.fromkeys(devices))}", place=caller(), expected="one device", hint="use .to()"
        )
    return devices[0]
