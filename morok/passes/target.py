"""The abilities of a code generator: the facts about a target that optimizer and lowering ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from morok.ir.dtype import DType
from morok.ir.op import Op

if TYPE_CHECKING:
    from morok.rewrite.ruleset import RuleSet


@dataclass(frozen=True, slots=True)
class Target:
    """One target machine, as the pipeline sees it.

    name          "LLVM" or "CUDA"
    vector_bytes  width of an arithmetic vector register; 0: arithmetic is scalar
    memory_bytes  the widest single load or store
    registers     vector registers that accumulators and operands may share
    caches        bytes of a core's first and second cache
    fma           whether MulAcc is one instruction; half_fma: at f16 too
    ieee_extremes whether the IEEE maximum and minimum of vectors are one
    avx512        whether AVX-512 is there
    has_local     whether workgroups, shared memory and barriers exist
    threads       threads that share a kernel's THREAD axes; 1: there are no such axes
    grid_max, block_max, block_threads, local_bytes   limits of a GPU launch
    buffers       most buffers that one kernel may use; 0: any number
    predicated    whether gated stores need no IF
    unsupported   ops that stage 18 must decompose
    pre_matcher, extra_matcher   rules that the target adds in stages 17 and 19, in the order in which they are tried: names of
                                 built-in groups, and rule sets of its own (`morok.load_rules`)
    """

    name: str
    vector_bytes: int = 0
    memory_bytes: int = 16
    registers: int = 16
    caches: tuple[int, int] = (48 << 10, 2 << 20)
    fma: bool = True
    half_fma: bool = False
    ieee_extremes: bool = False
    avx512: bool = False
    has_local: bool = False
    threads: int = 1
    grid_max: tuple[int, ...] = ()
    block_max: tuple[int, ...] = ()
    block_threads: int = 1
    local_bytes: int = 0
    buffers: int = 0
    predicated: bool = False
    unsupported: frozenset[Op] = frozenset()
    pre_matcher: tuple[str | RuleSet, ...] = ()
    extra_matcher: tuple[str | RuleSet, ...] = ()

    @property
    def own_rules(self) -> tuple[RuleSet, ...]:
        """The rule sets that are no built-in groups."""
        return tuple([rules for rules in (*self.pre_matcher, *self.extra_matcher) if not isinstance(rules, str)])

    @property
    def nearest(self) -> int:
        """Bytes that stay in a core's first cache while others pass through it: two thirds."""
        return self.caches[0] * 2 // 3

    @property
    def near(self) -> int:
        """Bytes that stay in a core's second cache while others pass through it: half."""
        return self.caches[1] // 2

    @property
    def aligned(self) -> bool:
        """True if a wide access must begin at a multiple of its size: GPUs fault otherwise."""
        return self.has_local

    def lanes(self, dtype: DType) -> int:
        """The number of elements of `dtype` in one arithmetic register; 1 where arithmetic is scalar."""
        return max(1, self.vector_bytes // max(1, dtype.scalar().itemsize))


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """The information that a kernel's Sink carries besides the program, kept through every stage.

    opts  the optimizations to apply (stage 7), or None for the optimizer to choose; afterwards those applied
    """

    name: str = ""
    opts: tuple[object, ...] | None = None
