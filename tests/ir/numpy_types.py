"""The NumPy type of each dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from morok.ir.dtype import DType
from morok.ir.dtype import dtypes as D

NUMPY: dict[DType, Any] = {
    D.bool: np.bool_, D.i8: np.int8, D.i16: np.int16, D.i32: np.int32, D.i64: np.int64, D.u8: np.uint8, D.u16: np.uint16,
    D.u32: np.uint32, D.u64: np.uint64, D.f16: np.float16, D.bf16: ml_dtypes.bfloat16, D.f32: np.float32, D.f64: np.float64,
    D.f8e4m3: ml_dtypes.float8_e4m3fn, D.f8e5m2: ml_dtypes.float8_e5m2,
}  # fmt: skip
