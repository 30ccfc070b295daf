"""Python numbers as nodes: the one place where a number of the user's program gets a dtype."""

from __future__ import annotations

import math
import struct
from typing import Any, Final

import numpy as np

from morok.caller import caller
from morok.errors import RangeError
from morok.ir.dtype import DType, dtypes
from morok.ir.number import NAN, to_bits
from morok.ir.uop import UOp
from morok.runtime.buffer import BITS, NUMPY, Buffer
from morok.runtime.device import device as find_device
from morok.tensor import registry
from morok.tensor.base import DEFAULT_FLOAT, DEFAULT_INT
from morok.tensor.view_methods import reshaped

Number = bool | int | float

_NAN_BITS: Final = struct.pack("<d", NAN)


def python_number(value: Any) -> Number | None:
    """The bool, int or float that `value` is, also of a subclass; None for anything else.

    NumPy's numbers are something else: they have a dtype.
    """
    if type(value) in (bool, int, float):
        number: Number = value
        return number
    if not isinstance(value, (int, float)) or hasattr(value, "dtype"):
        return None
    return int(value) if isinstance(value, int) else float(value)


def natural_dtype(value: Number) -> DType:
    """The dtype of a Python number that stands alone: bool, i64 (u64 above its numbers, as in NumPy) or f32."""
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, float):
        return DEFAULT_FLOAT
    return dtypes.u64 if DEFAULT_INT.max < value <= dtypes.u64.max else DEFAULT_INT


def weak_dtype(d: DType, value: Number) -> DType:
    """The dtype at which a Python number meets a tensor of dtype `d`: the tensor's, if its kind can hold the number."""
    if isinstance(value, bool):
        return d
    if isinstance(value, int):
        return DEFAULT_INT if d.is_bool else d
    return d if d.is_float else DEFAULT_FLOAT


def constant(value: Number, d: DType, device: str) -> UOp:
    """A Python number as a scalar node of dtype `d`, converted once, as np.array(value, d) converts it.

    Floats are rounded to a float dtype, and cut to an integer one. RangeError for what an integer dtype does not hold, and for
    integers beyond all floats. A NaN with a sign or a payload is data, for constants know one NaN.
    """
    if d.is_int:
        return UOp.const(_integer(value, d), d)
    if d.is_float:
        if isinstance(value, int):
            _check_float(value, d)
        elif value != value and struct.pack("<d", value) != _NAN_BITS:
            return data(value, d, device)
    return UOp.const(value, d)


def outside(value: Any, d: DType) -> int:
    """-1 for a Python integer below all numbers of the integer dtype `d`, 1 for one above them; 0 for anything else."""
    number = python_number(value)
    if type(number) is not int or not d.is_int:
        return 0
    return -1 if number < d.min else 1 if number > d.max else 0


def data(value: Number, d: DType, device: str) -> UOp:
    """A Python number as a scalar node in memory of its own: kernels that read it are the same for every number."""
    if d in BITS:
        sign = math.copysign(1.0, value) < 0
        array = np.array([to_bits(d, value) | sign << (d.bits - 1)], NUMPY[d])
    else:
        array = np.array([value], NUMPY[d])
    return reshaped(registry.new_buffer(d, 1, device, Buffer.wrap(find_device(device), array, d)), ())


def _integer(value: Number, d: DType) -> int:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RangeError(f"{value} is no integer", place=caller(), expected=f"a number that fits {d}")
        value = math.trunc(value)
    if not d.min <= value <= d.max:
        raise RangeError(
            f"{value} does not fit {d}",
            place=caller(),
            expected=f"{d.min}..={d.max}",
            hint="cast the tensor, or name a wider dtype",
        )
    return int(value)


def _check_float(value: int, d: DType) -> None:
    """RangeError for an integer that is beyond every float of Python's."""
    try:
        float(value)
    except OverflowError:
        raise RangeError(
            f"an integer of {value.bit_length()} bits does not fit {d}", place=caller(), expected="less than 2^1024"
        ) from None
