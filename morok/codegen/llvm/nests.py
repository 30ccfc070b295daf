"""What the loops of an instruction list amount to: parts for threads, work, and whether LLVM's vectorizer has something to do."""

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
_RANGE: Final = Op.Range
_END: Final = Op.End
_LOAD: Final = Op.Load
_STORE: Final = Op.Store
_REG: Final = Op.DefineReg
_THREAD: Final = AxisType.Thread
_COUNTED: Final = frozenset(op for op, entry in TABLE.entries.items() if entry.pointwise) | {Op.Bitcast, Op.Load, Op.Store}


def parts_of(instructions: Sequence[UOp]) -> int:
    """Into how many parts each thread divides the THREAD axes: several, so that a thread that is held up leaves its work to
    others, but one where all parts would do again what stands outside.
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
    """An open loop: its iterations in one of the kernel's runs, and its own instructions and what they are."""

    end: int
    times: int
    count: int = 0
    innermost: bool = True
    vectors: bool = False
    memory: bool = False


def work_of(instructions: Sequence[UOp]) -> tuple[int, bool]:
    """How many instructions one run of the kernel executes, constants and addresses not counted; and whether a noticeable share
    of them is in innermost loops of many iterations that read or write memory and have no vector in them.
    """
    total = scalar = 0
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
            total += loop.count * loop.times
            if loop.innermost and loop.memory and not loop.vectors and loop.end > LONG:
                scalar += loop.count * loop.times
            open_.pop()
            loop = open_[-1]
        else:
            if op in _COUNTED:
                loop.count += 1
            if u.dtype.count > 1:
                loop.vectors = True
            elif not loop.memory and (op is _LOAD or op is _STORE) and storage(u.src[0]).op is not _REG:
                loop.memory = True
    total += sum(loop.count * loop.times for loop in open_)
    return total, scalar * SHARE > total
