"""The loads and stores of an instruction list, found in one walk for all who ask about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.ir.dtype import DType
from morok.ir.op import Op
from morok.ir.places import passed, storage
from morok.ir.uop import UOp
from morok.passes.affine import Linear, linear

_LOAD: Final = Op.Load
_STORE: Final = Op.Store
_RANGE: Final = Op.Range
_END: Final = Op.End
_INDEX: Final = Op.Index


class Access:
    """A Load or Store.

    node    it
    stores  whether it is a Store
    place   where, without order edges
    kept    the storage that the place is in
    dtype   of the value
    loops   the open loops, the outermost first
    """

    __slots__ = ("_at", "dtype", "kept", "loops", "node", "place", "stores")

    def __init__(self, node: UOp, loops: tuple[UOp, ...]) -> None:
        self.node = node
        self.stores = node.op is _STORE
        self.place = passed(node.src[0])
        self.kept = storage(self.place)
        self.dtype: DType = node.src[1].dtype if self.stores else node.dtype
        self.loops = loops
        self._at: Linear | None = None

    @property
    def consecutive(self) -> bool:
        """True if it is of consecutive elements, ungated."""
        place = self.place
        return place.op is _INDEX and not place.arg and place.src[1].dtype.count == 1

    @property
    def at(self) -> Linear:
        """The number of the first element, as a sum, if it is of consecutive elements."""
        if self._at is None:
            self._at = linear(self.place.src[1])
        return self._at


def accesses(instructions: Sequence[UOp]) -> list[Access]:
    """All of them, in order."""
    out: list[Access] = []
    loops: tuple[UOp, ...] = ()
    for u in instructions:
        op = u.op
        if op is _LOAD or op is _STORE:
            out.append(Access(u, loops))
        elif op is _RANGE:
            loops = (*loops, u)
        elif op is _END:
            loops = loops[:-1]
    return out
