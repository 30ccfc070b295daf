"""Stage 13: reading a place becomes a Load.

Until here an Index in value position stands for what the place holds. Pointers and images are addresses, not values, and stay.
"""

from __future__ import annotations

from typing import Final

from morok.ir.op import Op, Position
from morok.ir.positions import positions
from morok.ir.uop import UOp
from morok.passes.walk import rebuild

_PLACES: Final = frozenset({Op.Index, Op.PtrCat})
_READ: Final = frozenset({Position.VALUE})


def _is_place(node: UOp) -> bool:
    return node.op in _PLACES and not node.dtype.is_ptr and node.dtype.kind != "image"


def add_loads(root: UOp) -> UOp:
    """`root` with a Load around every Index and PtrCat that stands where a value is wanted."""

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if not any(_is_place(s) for s in node.src):
            return None
        read = [
            UOp.new(Op.Load, (s,)) if p in _READ and _is_place(old) else s
            for old, s, p in zip(node.src, src, positions(node), strict=True)
        ]
        return node if tuple(read) == node.src else node.replace(tuple(read))

    return rebuild(root, visit)
