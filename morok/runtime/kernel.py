"""The base class of compiled kernels, and the packing of run-time values for them."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from morok.arguments import flag, index_or_none, real_or_none, refused
from morok.caller import caller
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
    """The value bound to `variable`. BindError if there is none, or it is outside the bounds: memory is allocated for these."""
    name = variable.name
    if name not in values:
        raise BindError(
            f"kernel {kernel} needs a value for the variable {name}",
            place=caller(),
            hint="bind it, or pass it to execute",
        )
    value, d = values[name], variable.dtype
    if d.is_bool:
        return flag(value, f"the variable {name} of kernel {kernel}", BindError)
    known = real_or_none(value) if d.is_float else index_or_none(value)
    if known is None or not (variable.least <= known <= variable.most or (known != known and d.is_float)):
        expected = f"{d} in {variable.least}..={variable.most}"
        raise refused(value, f"the variable {name} of kernel {kernel}", expected, BindError)
    return known


def pack(kernel: str, variables: Sequence[Variable], values: Vars) -> bytes:
    """The values of `variables` in 8-byte slots. BindError for a missing value, or one that does not fit bounds or dtype."""
    out = bytearray(8 * len(variables))
    for slot, variable in enumerate(variables):
        value = value_of(kernel, variable, values)
        try:
            struct.pack_into("<" + _FORMAT[variable.dtype], out, 8 * slot, value)
        except (struct.error, OverflowError):  # a float out of its dtype's range
            raise refused(
                value, f"the variable {variable.name} of kernel {kernel}", variable.dtype.name, BindError
            ) from None
    return bytes(out)


class Kernel(ABC):
    """A kernel ready to run.

    name      the name of its function
    backend   "LLVM", "CUDA", "interpreter" or "NULL"
    code      its text
    rendered  the renderer's full result
    """

    backend = ""

    def __init__(self, rendered: Rendered) -> None:
        self.rendered = rendered
        self.name = rendered.name
        self.code = rendered.text

    def __repr__(self) -> str:
        return f"<{self.backend} kernel {self.name}>"

    @property
    def nbytes(self) -> int:
        """The bytes held by the kernel, roughly: its texts, and as much machine code."""
        return 2 * (len(self.code) + len(self.rendered.narrow))

    @abstractmethod
    def launch(self, buffers: Sequence[Buffer], values: Vars = NOTHING) -> None:
        """Run once on `buffers`, by slot; return when done (GPU: when queued). BindError for missing values."""


@dataclass(frozen=True, slots=True)
class PreparedKernel:
    """One step: a kernel, the numbers of the plan's buffers by slot, and values bound when the plan was made."""

    kernel: Kernel
    buffers: tuple[int, ...]
    fixedvars: Mapping[str, Any] = field(default_factory=dict)
