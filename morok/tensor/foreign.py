"""Arrays of other libraries as ndarrays, or an error of ours that gives the library's reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from morok.caller import caller
from morok.errors import DTypeError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

# What libraries raise for an array that they do not hand out.
REFUSALS: Final = (BufferError, RuntimeError, TypeError, ValueError, AttributeError)


def foreign_array(data: Any) -> Array:
    """The elements of another library's array, without a copy where it allows; DTypeError where it refuses."""
    import numpy as np

    try:
        return np.asarray(data) if hasattr(data, "__array__") or not hasattr(data, "__dlpack__") else np.from_dlpack(data)
    except REFUSALS as problem:
        raise refusal(data, problem) from None


def dlpack_array(source: Any) -> Array:
    """The elements of another library's array, through DLPack; DTypeError where it, or NumPy, refuses."""
    import numpy as np

    try:
        return np.from_dlpack(source)
    except REFUSALS as problem:
        raise refusal(source, problem) from None


def refusal(data: Any, problem: Exception) -> DTypeError:
    """The error for an array that its library does not hand out."""
    gradients = getattr(data, "requires_grad", None) is True
    reason = " ".join(str(problem).split()) or type(problem).__name__
    kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
    return DTypeError(
        f"a tensor cannot be made of this {kind.removeprefix('builtins.')}: {reason}",
        place=caller(),
        expected="an array in the host's memory, of a dtype that NumPy has, without gradients",
        hint="detach() it first" if gradients else "convert it to float32 on the CPU first",
    )
