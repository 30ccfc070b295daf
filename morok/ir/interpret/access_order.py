"""The order of loads and stores of one place, as a graph states it: by what storage waits for, never by values.

A rule may drop an operand of a value, or write a load that reads again: so what a value is computed from says nothing of when.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from morok.ir.interpret.memory_places import MOVEMENT, THROUGH
from morok.ir.interpret.walk import operands, order
from morok.ir.op import Op
from morok.ir.uop import UOp

_JOINED: Final = frozenset({Op.Vectorize, Op.Cat, Op.PtrCat})
_WITHIN: Final = MOVEMENT | THROUGH | {Op.Index, Op.PointerIndex, Op.Gep, Op.Unroll, Op.Contract, Op.Cast, Op.BufferView}
WAITING: Final = frozenset({Op.After, Op.Barrier, Op.Assign})  # storage that waits, or is stored to
_OTHERS: Final = 1  # who uses a lane, as bits: anything that a store does not wait for, or a lane of the store

Users = dict[UOp, list[int]]


def _below(node: UOp) -> Sequence[UOp]:
    """The operands of storage, or of a place, that are the storage which it is of."""
    if node.op in _JOINED:
        return node.src
    return node.src[:1] if node.op in WAITING or node.op in _WITHIN else ()


class AccessOrder:
    """What is known of the order of accesses before a run. The stores and loops that a statement was done behind are bits.

    depends  the loops that each node is in
    stored   the storage that something stores to
    """

    def __init__(self, roots: Sequence[UOp], depends: Mapping[UOp, frozenset[Any]]) -> None:
        self.roots = roots
        self.depends = depends
        self.stored = _stored_to(roots)
        self._bits: dict[UOp, int] = {}
        self._waiting: dict[UOp, list[UOp]] = {}
        self._users: dict[tuple[UOp, int], Users] = {}

    def bit(self, node: Any) -> int:
        """The bit of a store, or of a range; none of an axis, whose iterations are in no order."""
        if not isinstance(node, UOp):
            return 0
        found = self._bits.get(node)
        if found is None:
            found = self._bits[node] = 1 << len(self._bits)
        return found

    def waiting(self, storage: UOp) -> list[UOp]:
        """The nodes in storage, or in a place, for which it waits for something."""
        found = self._waiting.get(storage)
        if found is None:
            found = self._waiting[storage] = [n for n in order([storage], _below) if n.op in WAITING]
        return found

    def loops(self, store: UOp) -> frozenset[Any]:
        """The loops that what is stored, or its place, is in: also those that the store closes."""
        return self.depends[store.src[0]] | self.depends[store.src[1]]

    def read_for(self, load: UOp, lane: int, store: UOp, place: int, behind: int) -> bool:
        """True if that lane of a load is for nothing but what is stored to that place of `store`, and for what it is `behind`."""
        users = self._users.get((store, behind))
        if users is None:
            users = self._users[store, behind] = self._users_of_reads(store, behind)
        found = users.get(load)
        return found is not None and not found[lane] & ~(2 << place)

    def _users_of_reads(self, store: UOp, behind: int) -> Users:
        """For each lane that is read, who uses it: lane i of `store` as the bit 2 << i, and others that it does not wait for,
        among them other iterations of its loops.
        """
        loops = {b for b in self.loops(store) if not behind & self.bit(b)}
        users: Users = {r: [_OTHERS] * r.dtype.count for r in self.roots}
        reads: Users = {}
        for n in reversed(order(self.roots)):
            masks = users.pop(n, None) or [0] * n.dtype.count
            if n.op is Op.Load or n.op is Op.Index:
                reads[n] = masks if loops <= self.depends[n] else [m | _OTHERS for m in masks]
            if n.op in (Op.Store, Op.Assign) and n is not store and self._bits.get(n, 0) & behind:
                continue
            for s, more in _stored_lanes(n) if n is store else _used_lanes(n, masks):
                if any(more):
                    found = users.get(s)
                    users[s] = list(more) if found is None else [a | b for a, b in zip(found, more, strict=True)]
        return reads


def _stored_to(roots: Sequence[UOp]) -> frozenset[UOp]:
    """The storage of the places that something stores to."""
    places = [n.src[0] for n in order(roots) if n.op is Op.Store or n.op is Op.Assign]
    return frozenset(order(places, lambda n: n.src if n.op in _JOINED else n.src[:1]))


def _used_lanes(node: UOp, masks: list[int]) -> Iterator[tuple[UOp, list[int]]]:
    """The operands of a node, each with the users of its lanes, by those of the node's lanes."""
    op, src = node.op, operands(node)
    whole = 0
    for m in masks:
        whole |= m
    if op in _JOINED and sum(s.dtype.count for s in src) == len(masks):
        at = 0
        for s in src:
            yield s, masks[at : at + s.dtype.count]
            at += s.dtype.count
        return
    if op is Op.Gep and len(node.arg) == len(masks):
        lanes = [0] * src[0].dtype.count
        for i, m in zip(node.arg, masks, strict=True):
            lanes[i] |= m
        yield src[0], lanes
        return
    if node.entry.pointwise or op is Op.Load or op is Op.Bitcast or op is Op.Precast:
        by_lane = len(src)
    else:
        by_lane = 1 if op is Op.After else len(src) if op is Op.Index else 0
    for k, s in enumerate(src):
        same = k < by_lane and s.dtype.count == len(masks) and not (op is Op.Index and k == 0)
        yield s, masks if same else [whole] * s.dtype.count


def _stored_lanes(store: UOp) -> Iterator[tuple[UOp, list[int]]]:
    """The operands of a Store, each with the stored lanes that its lanes are for."""
    count = max(s.dtype.count for s in store.src[:2])
    lanes = [2 << i for i in range(count)]
    whole = sum(lanes)
    for k, s in enumerate(store.src):
        yield s, lanes if k < 2 and s.dtype.count == count else [whole] * s.dtype.count
