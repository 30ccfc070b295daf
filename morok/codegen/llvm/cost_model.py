"""Facts about the loops of an instruction list: parts for threads, work, and the effort that LLVM needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from morok.ir.op import TABLE, AxisType, Op
from morok.ir.places import storage
from morok.ir.uop import UOp

PARTS: Final = 4  # of a THREAD axis, a thread
LONG: Final = 8  # iterations from which on a loop is worth vectors
SHARE: Final = 16  # of a kernel's work: less in scalar loops is not worth LLVM's pipeline, which takes longer than all the rest
COMPUTED: Final = 3  # values for each access to memory by vectors: with no more, memory is what a kernel waits for
SMALL: Final = 1000  # instructions: what they take is less than what it costs to start a kernel
_RANGE: Final = Op.Range
_END: Final = Op.End
_LOAD: Final = Op.Load
_STORE: Final = Op.Store
_REG: Final = Op.DefineReg
_MULACC: Final = Op.MulAcc
_THREAD: Final = AxisType.Thread
_COUNTED: Final = frozenset(op for op, entry in TABLE.entries.items() if entry.pointwise) | {Op.Bitcast}


def parts_of(instructions: Sequence[UOp]) -> int:
    """The number of parts into which each thread divides the THREAD axes: several, so that a thread that is held up leaves its
    work to others, but one where all parts would repeat the work outside.
    """
    outside = shared = False
    depth = 0
    for u in instructions:
        if u.op is _RANGE:
            threads = u.arg[1] is _THREAD
            shared, outside = shared or threads, outside or (depth == 0 and not threads)
            depth += 1
        elif u.op is _END:
            depth -= 1
    return 0 if not shared else 1 if outside else PARTS


@dataclass(slots=True)
class _Loop:
    """An open loop: its iterations in one of the kernel's runs, and its own instructions by kind; `wide` are accesses to memory
    by vectors, `computed` all but accesses.
    """

    end: int
    times: int
    count: int = 0
    computed: int = 0
    wide: int = 0
    innermost: bool = True
    vectors: bool = False
    memory: bool = False


def work_of(instructions: Sequence[UOp]) -> tuple[int, bool, bool]:
    """The number of instructions that one run of the kernel executes, without constants and addresses; True if a noticeable share
    of them is in innermost loops of many iterations that access memory and have no vector; True if they do little but access
    memory by vectors, or little at all.
    """
    total = scalar = computed = wide = 0
    products = False
    loop = _Loop(1, 1)
    open_ = [loop]
    for u in instructions:
        op = u.op
        if op is _RANGE:
            loop.innermost = False
            end = max(0, int(u.src[0].vmax))
            loop = _Loop(end, loop.times * end)
            open_.append(loop)
        elif op is _END and len(open_) > 1:
            if loop.innermost and loop.memory and not loop.vectors and loop.end > LONG:
                scalar += loop.count * loop.times
            total += loop.count * loop.times
            computed += loop.computed * loop.times
            wide += loop.wide * loop.times
            open_.pop()
            loop = open_[-1]
        elif op is _LOAD or op is _STORE:
            lanes = u.dtype.count if op is _LOAD else u.src[1].dtype.count
            loop.count += 1
            loop.vectors = loop.vectors or lanes > 1
            if storage(u.src[0]).op is not _REG:
                loop.wide += lanes > 1
                loop.memory = loop.memory or lanes == 1
        else:
            if op in _COUNTED:
                loop.count += 1
                loop.computed += 1
                products = products or op is _MULACC
            if u.dtype.count > 1:
                loop.vectors = True
    total += sum(o.count * o.times for o in open_)
    computed += sum(o.computed * o.times for o in open_)
    wide += sum(o.wide * o.times for o in open_)
    waits = wide > 0 and not products and computed <= COMPUTED * wide
    return total, scalar * SHARE > total, waits or total <= SMALL
