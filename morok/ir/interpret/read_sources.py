"""The reads that each lane of a value was computed from, in a run: kept where a graph reads memory that it stores to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from morok.ir.interpret.access_order import JOINED, AccessOrder, below
from morok.ir.interpret.iteration import PerThread, Task
from morok.ir.interpret.lane_values import DECIDES, INVALID, SAME, Lanes, Poison, lane
from morok.ir.interpret.memory_places import THROUGH, Places
from morok.ir.interpret.storage import Read, Sources, element
from morok.ir.interpret.walk import order
from morok.ir.op import Op
from morok.ir.uop import UOp

NONE: Final[frozenset[Read]] = frozenset()


class Reads(Places):
    """The values and places of a run, with the reads that they were computed from, lane by lane."""

    order: AccessOrder
    taken: dict[UOp, list[list[Sources]]]  # of a node that is being computed: what it read, or the reads of each iteration

    def value(self, node: UOp) -> Task:
        return self._once(node, node, self._valued if node in self.order.fed else self._value)

    def place(self, node: UOp) -> Task:
        return self._once(node, (node, "place"), self._placed if node in self.order.fed else self._place)

    def sources(self, node: UOp) -> list[Sources]:
        """The reads of each lane of a value that was computed, for each thread; of a counter those of its loop's length."""
        if node.op is Op.Range:
            return self.sources(node.src[0])
        found = self._frame(node).memo.get((node, "reads")) if node in self.order.fed else None
        return [(NONE,) * node.dtype.count] * len(self.threads) if found is None else found

    def place_sources(self, node: UOp) -> list[Sources]:
        """The reads of each lane of a place that was computed, or the same for all its lanes, for each thread."""
        found = self._frame(node).memo.get((node, "place reads")) if node in self.order.fed else None
        return [(NONE,)] * len(self.threads) if found is None else found

    def took(self, node: UOp, get: Callable[[UOp], Task]) -> None:
        if node in self.order.fed:
            found = self.sources(node.src[0]) if get == self.value else self.place_sources(node.src[0])
            self.taken.setdefault(node, []).append(found)

    def _valued(self, node: UOp) -> Task:
        lanes = yield from self._value(node)
        self._frame(node).memo[node, "reads"] = self._of_value(node)
        return lanes

    def _placed(self, node: UOp) -> Task:
        places = yield from self._place(node)
        self._frame(node).memo[node, "place reads"] = self._of_place(node, places)
        return places

    def _of_value(self, node: UOp) -> list[Sources]:
        op, src, each = node.op, node.src, range(len(self.threads))
        taken = self.taken.pop(node, [])
        if op is Op.Load or op is Op.Index:
            return taken[0]
        if op is Op.Unroll:
            return self._unrolled(node, self.sources(src[0]))
        if op is Op.Contract:
            return [tuple([s for part in taken for s in part[t]]) for t in each]
        if op is Op.After or op is Op.Barrier:
            return self.sources(src[0])
        operand = [self.sources(s) for s in src]
        if op is Op.Reduce:
            ends = [_all([v[t] for v in operand[1:]]) for t in each]
            group = src[0].dtype.count // node.dtype.count
            lanes = range(0, src[0].dtype.count, group)
            return [tuple([ends[t] | _all([p[t][k : k + group] for p in taken]) for k in lanes]) for t in each]
        values = [v for s in src if (v := self.ready(s)) is not None] if op is Op.Where or op in DECIDES else []
        return [_lanes(node, [v[t] for v in operand], [v[t] for v in values]) for t in each]

    def _of_place(self, node: UOp, places: PerThread) -> list[Sources]:
        op, src, each = node.op, node.src, range(len(self.threads))
        taken = self.taken.pop(node, [])
        if op is Op.Index:
            return self._of_index(node, places)
        if op in JOINED:
            parts = [(self.place_sources(s), self._frame(s).memo[s, "place"]) for s in src]
            return [tuple([lane(found[t], i) for found, at in parts for i in range(len(at[t]))]) for t in each]
        if op is Op.Contract:
            return [tuple([s for part in taken for s in part[t]]) for t in each]
        none: list[Sources] = [(NONE,)] * len(each)
        inner = self.place_sources(src[0]) if src else none
        if op is Op.Gep:
            return [tuple([lane(v, i) for i in node.arg]) for v in inner]
        if op is Op.Unroll:
            return self._unrolled(node, inner)
        if op is Op.PointerIndex:
            steps = self.sources(src[1])
            return [tuple([s | steps[t][0] for s in inner[t]]) for t in each]
        return inner if op in (Op.After, Op.Barrier, Op.Cast) or op in THROUGH else none

    def _of_index(self, node: UOp, places: PerThread) -> list[Sources]:
        """The reads of each lane of the indices and the gate; those of an index inside of it count for all lanes."""
        indices = [self.sources(s) for s in node.src[1:]]
        inner = [self.sources(s) for n in order(node.src[:1], below) if n.op is Op.Index for s in n.src[1:]]
        count = element(node.src[0].dtype).count
        out = []
        for t, at in enumerate(places):
            base = _all([v[t] for v in inner])
            out.append(tuple([base.union(*[lane(v[t], i // count) for v in indices]) for i in range(len(at))]))
        return out

    def _unrolled(self, node: UOp, whole: list[Sources]) -> list[Sources]:
        count = node.dtype.count
        at = [0 if isinstance(k, Poison) else k * count for k in self.part(node)]
        return [v[k : k + count] if len(v) > 1 else v for k, v in zip(at, whole, strict=True)]

    def read_from(self, node: UOp, reads: list[list[frozenset[Read]]], at: PerThread) -> None:
        """Keep the reads of a Load, or an Index that is read, with those of its place, and of what stands where it has none."""
        places = self.place_sources(node if node.op is Op.Index else node.src[0])
        alt = self.sources(node.src[1]) if node.op is Op.Load and len(node.src) > 1 else None
        out = []
        for t, lanes in enumerate(reads):
            found = [s | lane(places[t], i) for i, s in enumerate(lanes)]
            if alt is not None:
                found = [s | lane(alt[t], i) if lane(at[t], i) is INVALID else s for i, s in enumerate(found)]
            out.append(tuple(found))
        self.taken[node] = [out]


def _all(lanes: Sequence[Sources]) -> frozenset[Read]:
    return NONE.union(*[s for v in lanes for s in v])


def _lanes(node: UOp, vs: list[Sources], values: list[Lanes]) -> Sources:
    """The reads of each lane of a value, by those of its operands: of what it depends on at these values."""
    op, count = node.op, node.dtype.count
    if op is Op.Where:
        return tuple([_chosen([lane(v, i) for v in vs], lane(values[0], i)) for i in range(count)])
    if op in DECIDES and node.dtype.is_bool:
        return tuple([_decided([lane(v, i) for v in vs], [lane(v, i) is DECIDES[op] for v in values]) for i in range(count)])
    if op is Op.Vectorize or op is Op.Cat:
        return tuple([s for v in vs for s in v])
    if op is Op.Gep:
        return tuple([lane(vs[0], i) for i in node.arg])
    by_lane = node.entry.pointwise or op in SAME or op is Op.Bitcast
    if by_lane and all(len(v) in (1, count) for v in vs):
        return tuple([NONE.union(*[lane(v, i) for v in vs]) for i in range(count)])
    return (_all(vs),) * count


def _chosen(vs: Sequence[frozenset[Read]], cond: Any) -> frozenset[Read]:
    return vs[0] if isinstance(cond, Poison) else vs[0] | vs[1 if cond else 2]


def _decided(vs: Sequence[frozenset[Read]], decides: Sequence[bool]) -> frozenset[Read]:
    """The reads of a connective: of one operand that decides it, if there is any."""
    alone = [v for v, d in zip(vs, decides, strict=True) if d]
    return min(alone, key=len) if alone else NONE.union(*vs)
