"""Facts about the loops of an instruction list: parts for threads, work, and the effort that LLVM needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.codegen.survey import Loop

PARTS: Final = 4  # of a THREAD axis, a thread
LONG: Final = 8  # iterations from which on a loop is worth vectors
SHARE: Final = 16  # of a kernel's work: less in scalar loops is not worth LLVM's pipeline, which takes longer than all the rest
COMPUTED: Final = 3  # values for each access to memory by vectors: with no more, memory is what a kernel waits for
SMALL: Final = 1000  # instructions: what they take is less than what it costs to start a kernel


def parts_of(loops: Sequence[Loop]) -> int:
    """The number of parts into which each thread divides the THREAD axes: several, so that a thread that is held up leaves its
    work to others, but one where all parts would repeat the work outside.
    """
    if not any(loop.is_shared_by_threads for loop in loops):
        return 0
    outside = any(len(loop.ranges) == 1 and not loop.is_shared_by_threads for loop in loops)
    return 1 if outside else PARTS


def work_of(loops: Sequence[Loop]) -> tuple[int, bool, bool]:
    """The number of instructions that one run of the kernel executes, without constants and addresses; True if a noticeable share
    of them is in innermost loops of many iterations that access memory and have no vector; True if they do little but access
    memory by vectors, or little at all.
    """
    total = scalar = computed = wide = 0
    for loop in loops:
        total += loop.count * loop.times
        computed += loop.computed * loop.times
        wide += loop.wide * loop.times
        if loop.innermost and loop.scalars and not loop.vectors and loop.end > LONG:
            scalar += loop.count * loop.times
    products = any(loop.products for loop in loops)
    waits = wide > 0 and not products and computed <= COMPUTED * wide
    return total, scalar * SHARE > total, waits or total <= SMALL
