"""The properties of a target machine and its code generator that the optimizer and the pipeline use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from morok.ir.dtype import DType
from morok.ir.op import Op

if TYPE_CHECKING:
    from morok.rewrite.ruleset import RuleSet


@dataclass(frozen=True, slots=True)
class Target:
    """The properties of one target machine.

    name          "LLVM" or "CUDA"
    vector_bytes  bytes of an arithmetic vector register; 0: arithmetic is scalar
    memory_bytes  bytes of the widest single load or store
    registers     vector registers that accumulators and operands share
    caches        bytes of a core's L1 and L2 data cache
    fma           True if MulAcc is one instruction; half_fma: at f16 too
    ieee_extremes True if the IEEE maximum and minimum of vectors are one instruction each
    avx512        True if the machine has AVX-512
    has_local     True if there are workgroups, shared memory and barriers
    threads       threads that share a kernel's THREAD axes; 1: no such axes
    grid_max, block_max, block_threads, local_bytes   limits of a GPU launch
    buffers       most buffers of one kernel; 0: no limit
    predicated    True if gated stores need no IF
    unsupported   ops that stage 18 must decompose
    pre_matcher, extra_matcher   the target's own rules in stages 17 and 19, in order of application: names of built-in groups,
                                 and rule sets (`morok.load_rules`)
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
        """The rule sets in `pre_matcher` and `extra_matcher`, without built-in groups."""
        return tuple([rules for rules in (*self.pre_matcher, *self.extra_matcher) if not isinstance(rules, str)])

    @property
    def l1_bytes(self) -> int:
        """Bytes that stay in a core's L1 cache while other data streams through it: two thirds of it."""
        return self.caches[0] * 2 // 3

    @property
    def l2_bytes(self) -> int:
        """Bytes that stay in a core's L2 cache while other data streams through it: half of it."""
        return self.caches[1] // 2

    @property
    def aligned(self) -> bool:
        """True if the address of a wide access must be a multiple of its size: GPUs fault otherwise."""
        return self.has_local

    def lanes(self, dtype: DType) -> int:
        """The number of elements of `dtype` in one arithmetic register; 1 if arithmetic is scalar."""
        return max(1, self.vector_bytes // max(1, dtype.scalar().itemsize))


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """The metadata of a kernel's Sink, kept through all stages.

    name  of the kernel
    opts  the optimizations to apply in stage 7, None to let the optimizer choose; after stage 7 the applied ones
    """

    name: str = ""
    opts: tuple[object, ...] | None = None
