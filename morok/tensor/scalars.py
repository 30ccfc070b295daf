"""Python numbers as nodes, with their dtype."""

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
    """`value` as a plain bool, int or float, also from a subclass; None for anything else.

    NumPy's numbers give None: they have a dtype.
    """
    if type(value) in (bool, int, float):
        number: Number = value
        return number
    if not isinstance(value, (int, float)) or hasattr(value, "dtype"):
        return None
    return int(value) if isinstance(value, int) else float(value)


def natural_dtype(value: Number) -> DType:
    """The default dtype of a Python number: bool, i64 (u64 for greater integers, as in NumPy) or f32."""
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, float):
        return DEFAULT_FLOAT
    return dtypes.u64 if DEFAULT_INT.max < value <= dtypes.u64.max else DEFAULT_INT


def weak_dtype(d: DType, value: Number) -> DType:
    """The dtype of a Python number as operand beside a tensor of dtype `d`: `d` if its kind fits, else the kind's default."""
    if isinstance(value, bool):
        return d
    if isinstance(value, int):
        return DEFAULT_INT if d.is_bool else d
    return d if d.is_float else DEFAULT_FLOAT


def constant(value: Number, d: DType, device: str) -> UOp:
    """A Python number as a scalar node of dtype `d`, converted once, as np.array(value, d) converts it.

    Floats are rounded to a float dtype, truncated to an integer dtype. RangeError for a number outside an integer dtype, and for
    an integer too large for any float. A NaN with a sign or payload becomes data(): constants have only one NaN.
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
    """-1 for a Python integer below the range of the integer dtype `d`, 1 for one above it; 0 for anything else."""
    number = python_number(value)
    if type(number) is not int or not d.is_int:
        return 0
    return -1 if number < d.min else 1 if number > d.max else 0


def data(value: Number, d: DType, device: str) -> UOp:
    """A Python number as a scalar node in a buffer of its own, so that the same kernel serves all numbers."""
    if d in BITS:
        sign = math.copysign(1.0, value) < 0
        array = np.array([to_bits(d, value) | sign << (d.bits - 1)], NUMPY[d])
    else:
        array = np.array([value], NUMPY[d])
    return reshaped(registry.new_buffer(d, 1, device, Buffer.wrap(find_device(device), array, d)), ())


def _integer(value: Number, d: DType) -> int:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RangeError(f"{value} cannot be converted to {d}", place=caller(), expected="a finite number")
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
    """RangeError for an integer too large for Python's float."""
    try:
        float(value)
    except OverflowError:
        raise RangeError(
            f"an integer of {value.bit_length()} bits does not fit {d}", place=caller(), expected="less than 2^1024"
        ) from None
