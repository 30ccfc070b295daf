"""The result of a renderer, and the questions that it answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from morok.ir.dtype import DType
from morok.ir.uop import UOp

WHOLE: Final = 1 << 32  # the part of a kernel's THREAD axes that is all of them: part 0 of 1, as `Rendered.parts` says it
# What LLVM has to do for a kernel: code of the text as it stands; code in good order; vectors of its scalar loops first.
Effort = Literal["plain", "code", "all"]
CONTRACT: Final = frozenset({"contract"})  # a * b + c may be rounded once; nothing else may change


def symbol(name: str) -> str:
    """The function's name of the kernel `name` in a program's text: no name that C, libm, CUDA or LLVM have."""
    return "kernel_" + re.sub(r"\W", "_", name, flags=re.ASCII)


@dataclass(frozen=True, slots=True)
class Variable:
    """A run-time value of a kernel in least..=most: one 8-byte slot of `vars`, holding the value in its own dtype."""

    name: str
    dtype: DType
    least: int | float
    most: int | float


@dataclass(frozen=True, slots=True)
class Argument:
    """A buffer of a kernel: its slot, the dtype of its elements, and whether the kernel writes it."""

    slot: int
    dtype: DType
    written: bool


@dataclass(frozen=True, slots=True)
class Rendered:
    """One kernel as text.

    name          what the kernel is called; `symbol` is the function's name in `text`
    backend       "LLVM" or "CUDA"
    args          its buffers, by slot
    vars          its run-time values, in the order of their slots
    scratch       bytes of working memory that the caller hands over behind the last buffer (LLVM); 0: none
    parts         into how many parts a thread each divides the kernel's THREAD axes; 0: it has none. Then one word more follows
                  the buffers and working memory: which part to run in the lower 32 bits, of how many in the upper
    work          instructions that a run executes, roughly
    scalar_loops  whether an innermost loop works on scalars, so that LLVM's vectorizer has something to do
    waits         whether it does little but read and write memory by vectors, so that its speed is the memory's, or little
                  at all
    overwritable  the slots of inputs in whose memory the only output may lie: each is read before it is overwritten (LLVM)
    narrow        the text without wide accesses, for buffers not aligned to 16 bytes; "" where `text` has none (CUDA)
    grid, block   a GPU launch: ends of the block and thread axes, constants or expressions of `vars`
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
    waits: bool = False
    overwritable: frozenset[int] = frozenset()
    narrow: str = ""
    grid: tuple[UOp, ...] = ()
    block: tuple[UOp, ...] = ()

    @property
    def symbol(self) -> str:
        return symbol(self.name)

    @property
    def effort(self) -> Effort:
        """The effort that LLVM needs for it."""
        return "all" if self.scalar_loops else "plain" if self.waits else "code"

    @property
    def slots(self) -> int:
        """Entries of the argument array that hold buffers."""
        return max((a.slot for a in self.args), default=-1) + 1

    @property
    def words(self) -> int:
        """Entries of the argument array in all (LLVM)."""
        return self.slots + bool(self.scratch) + bool(self.parts)
