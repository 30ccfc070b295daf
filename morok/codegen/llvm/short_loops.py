"""Innermost loops of few iterations, which LLVM writes out; and how loops are marked for LLVM.

The window of a convolution is summed over in loops of three iterations; what the loops cost each time stands beside little work.
Which loops these are is said as metadata of their branch, and whoever makes code of the text runs the pass that unrolls, alone:
it takes a tenth of the time of LLVM's whole pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp

ASKED: Final = "llvm.loop.unroll.full"  # what a text says that has such loops
_ITERATIONS: Final = 4
_LINES: Final = 512  # of what is written out
_WANT: Final = 2  # numbers of metadata: that loops are to be written out, and from the next on the loops
FULL: Final = f'!"{ASKED}"'
NO_VECTORS: Final = '!"llvm.loop.vectorize.enable", i1 false'


def is_short(loop: UOp, lines: int) -> bool:
    """True if a loop around nothing but `lines` instructions is to be written out."""
    end = loop.src[0]
    return end.op is Op.Const and 2 <= end.arg <= _ITERATIONS and lines * end.arg <= _LINES


def mark(number: int) -> str:
    """The metadata of the branch at the end of the marked loop of this number."""
    return f", !llvm.loop !{_WANT + 1 + number}"


def metadata(asked: Sequence[str]) -> list[str]:
    """The metadata of marked loops, for the end of the text; `asked`: for each of them FULL or NO_VECTORS."""
    if not asked:
        return []
    first = _WANT + 1
    numbers = {FULL: _WANT, NO_VECTORS: first + len(asked)}
    loops = [f"!{n} = distinct !{{!{n}, !{numbers[kind]}}}" for n, kind in enumerate(asked, first)]
    return [f"!{n} = !{{{kind}}}" for kind, n in numbers.items() if kind in asked] + [*loops, ""]
