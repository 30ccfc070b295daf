"""The order of loads and stores of one place, as a graph states it: by what storage waits for, never by values.

A rule may drop an operand of a value, or write a load that reads again: so what a value is computed from says nothing of when.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from morok.ir.interpret.memory_places import MOVEMENT, THROUGH
from morok.ir.interpret.storage import NAMED
from morok.ir.interpret.walk import operands, order
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.lane_roles import opened_place
from morok.value_domains import INTEGERS, behind

JOINED: Final = frozenset({Op.Vectorize, Op.Cat, Op.PtrCat})
_WITHIN: Final = (
    MOVEMENT | THROUGH | {Op.Index, Op.PointerIndex, Op.Gep, Op.Unroll, Op.Contract, Op.Cast, Op.BufferView}
)
WAITING: Final = frozenset({Op.After, Op.Barrier, Op.Assign})  # storage that waits, or is stored to


def below(node: UOp) -> Sequence[UOp]:
    """The operands of a node in storage, or of a place, that lead to its storage."""
    if node.op in JOINED:
        return node.src
    return node.src[:1] if node.op in WAITING or node.op in _WITHIN else ()


class AccessOrder:
    """The order of accesses, as known before a run. A set of stores and loops that a statement runs after is a mask of bits.

    depends  the loops that each node is in
    stored   the storage that something stores to
    fed      the nodes that may depend on a read of such memory
    """

    def __init__(self, roots: Sequence[UOp], depends: Mapping[UOp, frozenset[Any]]) -> None:
        self.depends = depends
        self.stored = _stored_to(roots)
        self.fed = _fed(roots, self.stored)
        self._bits: dict[UOp, int] = {}
        self._waiting: dict[UOp, list[UOp]] = {}
        self._joined: dict[UOp, bool] = {}

    def bit(self, node: Any) -> int:
        """The bit of a store, or of a range; none of an axis, whose iterations are in no order."""
        if not isinstance(node, UOp):
            return 0
        found = self._bits.get(node)
        if found is None:
            found = self._bits[node] = 1 << len(self._bits)
        return found

    def waiting(self, storage: UOp) -> list[UOp]:
        """The After, Barrier and Assign nodes between a place, or storage, and its memory."""
        found = self._waiting.get(storage)
        if found is None:
            found = self._waiting[storage] = [n for n in order([storage], below) if n.op in WAITING]
        return found

    def joined(self, place: UOp) -> bool:
        """True if lanes of a place may be in storage behind different After, Barrier or Assign nodes."""
        found = self._joined.get(place)
        if found is None:
            found = self._joined[place] = any(n.op in JOINED for n in order([place], below)) and bool(
                self.waiting(place)
            )
        return found

    def waiting_of_lane(self, place: UOp, lane: int, part: Callable[[UOp], int]) -> list[UOp]:
        """The result of `waiting` for one lane of a place; `part` gives the part of the lanes below that an Unroll takes."""
        found = []
        node: UOp | None = place
        while node is not None:
            if node.op in WAITING:
                found.append(node)
            if node.op in JOINED:
                node, lane = _joined_at(node.src, lane)
                continue
            if node.op is Op.Gep:
                lane = node.arg[lane]
            elif node.op is Op.Unroll:
                lane = opened_place(part(node), node.dtype.count, lane)
            node = next(iter(below(node)), None)
            lane = 0 if node is None else lane % max(node.dtype.count, 1)
        return found

    def loops(self, store: UOp) -> frozenset[Any]:
        """The loops around the value and the place of a store, those that it closes included."""
        return self.depends[store.src[0]] | self.depends[store.src[1]]


def _joined_at(places: Sequence[UOp], lane: int) -> tuple[UOp, int]:
    """(place, lane of it) of a lane of joined places."""
    k, own = behind(INTEGERS, lane, [p.dtype.count for p in places], lambda k, own: (k, own))
    return places[k], own


def _stored_to(roots: Sequence[UOp]) -> frozenset[UOp]:
    """The storage of the places that something stores to."""
    places = [n.src[0] for n in order(roots) if n.op is Op.Store or n.op is Op.Assign]
    return frozenset(order(places, lambda n: n.src if n.op in JOINED else n.src[:1]))


def _fed(roots: Sequence[UOp], stored: frozenset[UOp]) -> frozenset[UOp]:
    """The nodes that a read of the caller's memory leads to, of memory that something stores to."""
    nodes = order(roots)
    used = {s for n in nodes for s in operands(n)[n.op is Op.Store :]}
    base: set[UOp] = set()
    found: set[UOp] = set()
    for n in nodes:
        if (n.op in NAMED and n in stored) or not base.isdisjoint(below(n)):
            base.add(n)
        read = not base.isdisjoint(n.src[:1]) and (n.op is Op.Load or (n.op is Op.Index and (n in used or n in roots)))
        if read or not found.isdisjoint(operands(n)):
            found.add(n)
    return frozenset(found)
