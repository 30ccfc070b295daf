"""What a code generator can do: the facts about a target that optimizer and lowering ask for."""

from __future__ import annotations

from dataclasses import dataclass

from morok.ir.dtype import DType
from morok.ir.op import Op


@dataclass(frozen=True, slots=True)
class Target:
    """One target machine, as the pipeline sees it.

    name          "LLVM" or "CUDA"
    vector_bytes  width of an arithmetic vector register; 0: arithmetic is scalar
    memory_bytes  the widest single load or store
    registers     vector registers that accumulators and operands may share
    fma           whether MulAcc is one instruction
    has_local     whether workgroups, shared memory and barriers exist
    threads       threads that share a kernel's THREAD axes; 1: there are no such axes
    grid_max, block_max, block_threads, local_bytes   limits of a GPU launch
    buffers       most buffers that one kernel may use; 0: any number
    predicated    whether gated stores need no IF
    unsupported   ops that stage 18 must decompose
    pre_matcher, extra_matcher   names of rule groups that the target adds in stages 17 and 19
    """

    name: str
    vector_bytes: int = 0
    memory_bytes: int = 16
    registers: int = 16
    fma: bool = True
    has_local: bool = False
    threads: int = 1
    grid_max: tuple[int, ...] = ()
    block_max: tuple[int, ...] = ()
    block_threads: int = 1
    local_bytes: int = 0
    buffers: int = 0
    predicated: bool = False
    unsupported: frozenset[Op] = frozenset()
    pre_matcher: tuple[str, ...] = ()
    extra_matcher: tuple[str, ...] = ()

    @property
    def aligned(self) -> bool:
        """Whether a wide access must begin at a multiple of its size: GPUs fault otherwise."""
        return self.has_local

    def lanes(self, dtype: DType) -> int:
        """How many elements of `dtype` one arithmetic register holds; 1 where arithmetic is scalar."""
        return max(1, self.vector_bytes // max(1, dtype.scalar().itemsize))


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What a kernel's Sink carries besides the program: kept through every stage.

    opts  the optimizations to apply (stage 7), or None for the optimizer to choose; afterwards those applied
    """

    name: str = ""
    opts: tuple[object, ...] | None = None
