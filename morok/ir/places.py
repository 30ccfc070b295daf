"""The storage that a place is in: through the indices into it, and the order edges around it."""

from __future__ import annotations

from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp

_PASSING: Final = frozenset({Op.After, Op.Barrier})
_PLACES: Final = _PASSING | {Op.Index, Op.PointerIndex}


def storage(place: UOp) -> UOp:
    """The DefineGlobal, DefineLocal, DefineReg or Buffer that a place is in."""
    while place.op in _PLACES:
        place = place.src[0]
    return place


def passed(node: UOp) -> UOp:
    """`node` without the order edges around it."""
    while node.op in _PASSING:
        node = node.src[0]
    return node
