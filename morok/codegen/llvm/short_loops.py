"""Innermost loops of few iterations, which LLVM unrolls fully; and the metadata of loops for LLVM.

The window of a convolution is summed in loops of three iterations, whose overhead is large for so little work. Metadata of their
branches marks these loops, and the compiler runs only the unrolling pass for them, in a tenth of the time of LLVM's whole
pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp

ASKED: Final = "llvm.loop.unroll.full"  # a text with such loops contains it
_ITERATIONS: Final = 4  # most iterations of a short loop
_LINES: Final = 512  # most lines of an unrolled loop
_WANT: Final = 2  # the metadata number of FULL; those of the loops follow
FULL: Final = f'!"{ASKED}"'
NO_VECTORS: Final = '!"llvm.loop.vectorize.enable", i1 false'


def is_short(loop: UOp, lines: int) -> bool:
    """True if an innermost loop of `lines` instructions should be unrolled fully."""
    end = loop.src[0]
    return end.op is Op.Const and 2 <= end.arg <= _ITERATIONS and lines * end.arg <= _LINES


def mark(number: int) -> str:
    """The metadata reference for the branch at the end of marked loop `number`."""
    return f", !llvm.loop !{_WANT + 1 + number}"


def metadata(asked: Sequence[str]) -> list[str]:
    """The metadata lines of marked loops, for the end of the text; `asked`: FULL or NO_VECTORS for each of them."""
    if not asked:
        return []
    first = _WANT + 1
    numbers = {FULL: _WANT, NO_VECTORS: first + len(asked)}
    loops = [f"!{n} = distinct !{{!{n}, !{numbers[kind]}}}" for n, kind in enumerate(asked, first)]
    return [f"!{n} = !{{{kind}}}" for kind, n in numbers.items() if kind in asked] + [*loops, ""]
