"""Addresses at constant distances from each other.

The loads and stores of a tile lie at constant distances. Said as an address and a number of bytes from there, an access needs one
instruction of its own and no sum, and LLVM need not find out that all of them move together: of the time it takes to generate
the code of a matmul, a quarter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.codegen.bounded import cannot_wrap
from morok.ir.op import Op
from morok.ir.uop import UOp

_PLACES: Final = (Op.Index, Op.PointerIndex)


def apart(offset: UOp) -> tuple[UOp, int]:
    """`offset` as a node and a number whose sum it is: of one that might wrap, itself and 0."""
    if offset.op is Op.Add and offset.src[1].op is Op.Const and offset.dtype.is_signed and cannot_wrap(offset):
        return offset.src[0], int(offset.src[1].arg)
    return offset, 0


def distances(instructions: Sequence[UOp]) -> set[UOp]:
    """The sums that only say at what distance an access lies: no code need compute them."""
    sums = {u.src[1] for u in instructions if u.op in _PLACES and u.src[1].dtype.count == 1 and apart(u.src[1])[1]}
    if not sums:
        return set()
    return sums.difference(s for u in instructions for k, s in enumerate(u.src) if u.op not in _PLACES or k != 1)
