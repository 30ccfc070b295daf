"""A compiled kernel, and how run-time values are packed for it."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from morok.codegen.rendered import Rendered, Variable
from morok.errors import BindError
from morok.ir.dtype import DType, dtypes

if TYPE_CHECKING:
    from morok.runtime.buffer import Buffer

Vars = Mapping[str, Any]
NOTHING: Final[Vars] = {}
_FORMAT: Final[dict[DType, str]] = {
    dtypes.bool: "?", dtypes.i8: "b", dtypes.i16: "h", dtypes.i32: "i", dtypes.i64: "q", dtypes.u8: "B", dtypes.u16: "H",
    dtypes.u32: "I", dtypes.u64: "Q", dtypes.f16: "e", dtypes.f32: "f", dtypes.f64: "d",
}  # fmt: skip


def value_of(kernel: str, variable: Variable, values: Vars) -> Any:
    """The value bound to `variable`; BindError if there is none."""
    try:
        return values[variable.name]
    except KeyError:
        raise BindError(
            f"kernel {kernel} needs a value for the variable {variable.name}", hint="bind it, or pass it to execute"
        ) from None


def pack(kernel: str, variables: Sequence[Variable], values: Vars) -> bytes:
    """The 8-byte slots of `variables`. BindError for one without a value, or whose value does not fit its dtype."""
    out = bytearray(8 * len(variables))
    for slot, variable in enumerate(variables):
        value = value_of(kernel, variable, values)
        try:
            struct.pack_into("<" + _FORMAT[variable.dtype], out, 8 * slot, value)
        except (struct.error, OverflowError):
            raise BindError(f"{value} is no {variable.dtype}, which the variable {variable.name} of kernel {kernel} is") from None
    return bytes(out)


class Kernel(ABC):
    """A kernel ready to run.

    name      its function
    backend   "LLVM", "CUDA" or "NULL"
    code      its text
    rendered  all of what the renderer said
    """

    backend = ""

    def __init__(self, rendered: Rendered) -> None:
        self.rendered = rendered
        self.name = rendered.name
        self.code = rendered.text

    def __repr__(self) -> str:
        return f"<{self.backend} kernel {self.name}>"

    @abstractmethod
    def launch(self, buffers: Sequence[Buffer], values: Vars = NOTHING) -> None:
        """Run once on `buffers`, by slot; returns when done (GPU: when queued)."""
