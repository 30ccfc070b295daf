"""Elements in memory as text: nothing is computed for it, on no device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from morok.ir.dtype import DType, dtypes
from morok.ir.number import from_bits
from morok.runtime.buffer import BITS, Buffer

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

MOST: Final = 1000  # elements that are shown whole; of more the edges


def shown_values(memory: Buffer, shape: tuple[int, ...]) -> str:
    """The elements of a row-major array, in lines where it has several axes; above 1,000 of them the edges of each axis."""
    import numpy as np

    array = memory.numpy()[: math.prod(shape)].reshape(shape)
    if memory.dtype in BITS:
        array = _decoded(memory.dtype, array)
    text = np.array2string(array, threshold=MOST, separator=", ")
    return f"\n{text}" if "\n" in text else f" {text}"


def _decoded(d: DType, bits: Array) -> Array:
    """The values, as f32, of a dtype that NumPy holds as bits."""
    import numpy as np

    if d is dtypes.bf16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return np.array([from_bits(d, b) for b in range(256)], np.float32)[bits]
