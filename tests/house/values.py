"""Values of all kinds as text that is the same on every run: errors, tensors, nodes, numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from house.pages import digest
from morok import Tensor, UOp
from morok.errors import MorokError


def of_array(array: np.ndarray[Any, Any]) -> str:
    """Its dtype, its shape, its bits, and the first few numbers for a reader."""
    first = np.array2string(array.ravel()[:6], precision=6)
    return f"{array.dtype} {array.shape} {digest(np.ascontiguousarray(array).tobytes())} {first}"


def of_error(error: BaseException) -> str:
    """The error's classes that a program may catch, and all that it says."""
    classes = " ".join(c.__name__ for c in type(error).__mro__ if c not in (object, BaseException, Exception))
    if isinstance(error, MorokError):
        return f"{classes}\n{error}"
    return f"{classes}: {type(error).__name__ if ' at 0x' in str(error) else error}"


def shown(value: Any) -> str:
    """What a call gave back; of a tensor its shape and dtype, as its numbers may be random."""
    if isinstance(value, Tensor):
        return f"Tensor {value.shape} {value.dtype}"
    if isinstance(value, UOp):
        return value.text()
    if isinstance(value, np.ndarray):
        return f"ndarray {value.dtype} {value.shape}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}: {'; '.join(map(shown, value[:4]))}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return f"{type(value).__name__} {value!r}"[:400]
    return type(value).__name__


def outcome(call: Callable[[], Any]) -> str:
    """What a call gives, or the error that it ends in."""
    try:
        return shown(call())
    except Exception as error:
        return of_error(error)
