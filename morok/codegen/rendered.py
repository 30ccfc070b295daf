"""The result of a renderer: the kernel's text, its parameters, and facts for compiler and launcher."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from morok.ir.dtype import DType
from morok.ir.uop import UOp

WHOLE: Final = 1 << 32  # part 0 of 1 of a kernel's THREAD axes, in the encoding of `Rendered.parts`
# LLVM's effort for a kernel: code from the text as it stands; optimized code generation; vectorization of scalar loops before.
Effort = Literal["plain", "code", "all"]
CONTRACT: Final = frozenset({"contract"})  # the only liberty by default: a * b + c may be rounded once


def symbol(name: str) -> str:
    """The name of the function of the kernel `name`; its prefix keeps it apart from names of C, libm, CUDA and LLVM."""
    return "kernel_" + re.sub(r"\W", "_", name, flags=re.ASCII)


@dataclass(frozen=True, slots=True)
class Variable:
    """A run-time value of a kernel, in least..=most: an 8-byte slot of `vars` with the value in its own dtype."""

    name: str
    dtype: DType
    least: int | float
    most: int | float


@dataclass(frozen=True, slots=True)
class Argument:
    """A buffer of a kernel: its slot, the dtype of its elements, and True if the kernel writes it."""

    slot: int
    dtype: DType
    written: bool


@dataclass(frozen=True, slots=True)
class Rendered:
    """One kernel as text.

    name          of the kernel; `symbol` is the function's name in `text`
    backend       "LLVM" or "CUDA"
    args          its buffers, by slot
    vars          its run-time values, in the order of their slots
    scratch       bytes of working memory that the caller passes after the last buffer (LLVM); 0: none
    parts         parts of the kernel's THREAD axes for each thread; 0: there are none. Otherwise a word follows the buffers and
                  working memory: the number of the part to run in the lower 32 bits, the number of parts in the upper
    work          estimate of the instructions in one run
    scalar_loops  True if a noticeable share of the work is in scalar innermost loops, for LLVM's vectorizer
    plain         True if optimized code would not be faster: it is memory-bound (few ops but vector accesses), or short
    overwritable  the slots of inputs whose memory the only output may reuse: each is read before it is overwritten (LLVM)
    narrow        the text without wide accesses, for buffers not aligned to 16 bytes; "" if `text` has none (CUDA)
    grid, block   GPU launch dimensions: constants or expressions of `vars`
    """

    name: str
    backend: str
    text: str
    args: tuple[Argument, ...]
    vars: tuple[Variable, ...] = ()
    scratch: int = 0
    parts: int = 0
    work: int = 0
    scalar_loops: bool = False
    plain: bool = False
    overwritable: frozenset[int] = frozenset()
    narrow: str = ""
    grid: tuple[UOp, ...] = ()
    block: tuple[UOp, ...] = ()

    @property
    def symbol(self) -> str:
        return symbol(self.name)

    @property
    def effort(self) -> Effort:
        """The effort of LLVM for this kernel."""
        return "all" if self.scalar_loops else "plain" if self.plain else "code"

    @property
    def slots(self) -> int:
        """The number of entries for buffers in the argument array."""
        return max((a.slot for a in self.args), default=-1) + 1

    @property
    def words(self) -> int:
        """The number of all entries in the argument array (LLVM)."""
        return self.slots + bool(self.scratch) + bool(self.parts)
