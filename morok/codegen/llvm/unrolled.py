"""Innermost loops of few iterations, which LLVM writes out.

The window of a convolution is summed over in loops of three iterations; what the loops cost each time stands beside little work.
Which loops these are is said as metadata of their branch, and whoever makes code of the text runs the pass that unrolls, alone:
it takes a tenth of the time of LLVM's whole pipeline.
"""

from __future__ import annotations

from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp

ASKED: Final = "llvm.loop.unroll.full"  # what a text says that has such loops
_ITERATIONS: Final = 4
_LINES: Final = 512  # of what is written out
_WANT: Final = 2  # numbers of metadata: what is asked for, and from the next on the loops


def is_short(loop: UOp, lines: int) -> bool:
    """Whether a loop around nothing but `lines` instructions is to be written out."""
    end = loop.src[0]
    return end.op is Op.Const and 2 <= end.arg <= _ITERATIONS and lines * end.arg <= _LINES


def mark(count: int) -> str:
    """What the branch at the end of the loop number `count` says."""
    return f", !llvm.loop !{_WANT + 1 + count}"


def metadata(count: int) -> list[str]:
    """What `count` such loops need at the end of the text."""
    if not count:
        return []
    loops = [f"!{n} = distinct !{{!{n}, !{_WANT}}}" for n in range(_WANT + 1, _WANT + 1 + count)]
    return [f'!{_WANT} = !{{!"{ASKED}"}}', *loops, ""]
