"""The storage that a place is in: through the indices into it, and the order edges around it."""

from __future__ import annotations

from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp

_PASSING: Final = frozenset({Op.After, Op.Barrier})
_PLACES: Final = _PASSING | {Op.Index, Op.PointerIndex}

# By name: the ops whose nodes loads and stores take for places, or indices for storage.
PLACES: Final = frozenset({"Index", "PointerIndex"})
# Those whose nodes are places, or storage, where their first operands are. Nothing is stored to what is padded.
PASSING: Final = frozenset(
    {
        "After", "Barrier", "Gep", "Unroll", "Contract", "Vectorize", "Cat", "PtrCat",
        "Reshape", "Permute", "Expand", "Shrink", "Flip", "Contiguous", "ContiguousBackward", "Detach",
    }
)  # fmt: skip
STORAGE: Final = frozenset(
    {
        "Buffer", "BufferView", "Bufferize", "Param", "DefineGlobal", "DefineLocal", "DefineReg",
        "Copy", "Assign", "MSelect", "MStack", "Multi",
    }
)  # fmt: skip


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
