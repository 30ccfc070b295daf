"""The cost model of an instruction list: parts for threads, work, and LLVM's effort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.codegen.survey import Loop

PARTS: Final = 4  # parts of a THREAD axis for each thread
LONG: Final = 8  # a loop of more iterations is worth vectorizing, if all of them take longer than SMALL
# LLVM's full pipeline, the slowest part of compilation, pays if over 1/16 of the work is in scalar loops
SHARE: Final = 16
COMPUTED: Final = 3  # most computed values per vector access of a memory-bound kernel
SMALL: Final = 1000  # instructions that take less time than the start of a kernel


def parts_of(loops: Sequence[Loop]) -> int:
    """The number of parts of the THREAD axes for each thread; 0 without such axes. Several, so that other threads take over the
    work of a delayed one; but 1 if each part would repeat the work of other outermost loops.
    """
    if not any(loop.is_shared_by_threads for loop in loops):
        return 0
    outside = any(len(loop.ranges) == 1 and not loop.is_shared_by_threads for loop in loops)
    return 1 if outside else PARTS


def work_of(loops: Sequence[Loop]) -> tuple[int, bool, bool]:
    """(work, scalar, plain) of one run of a kernel.

    work    executed instructions, without constants and addresses
    scalar  True if more than 1/SHARE of them is in long innermost loops with scalar accesses to memory and no vectors
    plain   True if optimized code would not be faster: the kernel is memory-bound (vector accesses, little arithmetic, no
            products), or very short
    """
    total = scalar = computed = wide = 0
    for loop in loops:
        took = loop.count * loop.times
        total += took
        computed += loop.computed * loop.times
        wide += loop.wide * loop.times
        if loop.innermost and loop.scalars and not loop.vectors and loop.end > LONG and took > SMALL:
            scalar += took
    products = any(loop.products for loop in loops)
    memory_bound = wide > 0 and not products and computed <= COMPUTED * wide
    return total, scalar * SHARE > total, memory_bound or total <= SMALL
