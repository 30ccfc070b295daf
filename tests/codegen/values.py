"""Edge values of every dtype, and their bits in memory."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from morok.ir.dtype import DType, dtypes
from morok.ir.number import coerce
from morok.runtime.buffer import NUMPY

_OWN = {
    dtypes.bf16: ml_dtypes.bfloat16,
    dtypes.f8e4m3: ml_dtypes.float8_e4m3fn,
    dtypes.f8e5m2: ml_dtypes.float8_e5m2,
}


def encode(d: DType, values: Sequence[Any]) -> np.ndarray:
    """`values`, which are values of `d` already, as a buffer holds them."""
    if d in _OWN:
        return np.array(values, np.float32).astype(_OWN[d]).view(NUMPY[d])
    if d.is_float:
        return np.array(values, np.float64).astype(NUMPY[d])
    return np.array(values, dtype=NUMPY[d])


def decode(d: DType, array: np.ndarray) -> list[Any]:
    if d in _OWN:
        return [float(v) for v in array.view(_OWN[d]).astype(np.float32)]
    return array.tolist()


def edges(d: DType) -> list[Any]:
    """Values of `d` at which ops go wrong, and a few others."""
    if d.is_bool:
        return [False, True]
    if d.is_int:
        lo, hi = int(d.min), int(d.max)
        middle = [0, 1, 2, 3, 5, 7, 10, lo, lo + 1, hi, hi - 1, hi // 2, hi // 3, 63, d.bits - 1]
        if d.is_signed:
            middle += [-1, -2, -3, -7, lo // 2]
        return sorted({v for v in middle if lo <= v <= hi})
    least, greatest = _extremes(d)
    values = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.5,
        3.0,
        7.25,
        100.0,
        greatest,
        least,
        least * 2,
        math.inf,
        0.1,
        1 / 3,
        255.0,
        2.0**-14,
        6.5,
        1.0 + 2.0**-8 + 2.0**-30,  # just above a tie of bf16, and on it when rounded to f32 first
        1.0 + 2.0**-11 + 2.0**-30,  # likewise of f16
    ]
    return [coerce(d, v) for s in (1.0, -1.0) for v in (s * x for x in values)] + [math.nan]


def _extremes(d: DType) -> tuple[float, float]:
    from morok.ir.dtype import FLOAT_FORMAT

    precision, unit, exponent = FLOAT_FORMAT[d]
    greatest = 448.0 if d is dtypes.f8e4m3 else (2.0 - 2.0 ** (1 - precision)) * 2.0**exponent
    return 2.0**unit, greatest


def sample(d: DType, n: int, seed: int) -> list[Any]:
    """`n` values of `d`, of every magnitude."""
    rng = random.Random(seed)
    if d.is_bool:
        return [rng.random() < 0.5 for _ in range(n)]
    if d.is_int:
        return [rng.randint(int(d.min), int(d.max)) >> rng.randrange(d.bits) for _ in range(n)]
    size = NUMPY[d].itemsize
    raw = rng.randbytes(size * n)
    return [coerce(d, v) for v in decode(d, np.frombuffer(raw, NUMPY[d]).copy())]


def bits(d: DType, v: Any) -> Any:
    """`v` as something that is equal for equal values and no others; all NaNs are one."""
    if d.is_float:
        return "nan" if v != v else struct.pack("<d", v)
    return int(v)
