"""The reads that each lane of a value was computed from, in a run: kept where a graph reads memory that it stores to."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, Final

from morok.ir.interpret.access_order import JOINED, below
from morok.ir.interpret.iteration import PerThread
from morok.ir.interpret.lane_values import DECIDES, INVALID, SAME, Lanes, Poison
from morok.ir.interpret.memory_places import THROUGH, Places
from morok.ir.interpret.storage import Read, Sources, element
from morok.ir.interpret.walk import order
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.lane_roles import groups, join, lane, opened, take

NONE: Final[frozenset[Read]] = frozenset()


class Reads:
    """The reads that values and places of one run were computed from, lane by lane.

    fed    the nodes of which they are kept: those above reads of memory that the graph stores to
    taken  of a node that is being computed: what it read, or the reads of each iteration
    """

    def __init__(self, run: Places, fed: Set[UOp]) -> None:
        self.run = run
        self.fed = fed
        self.taken: dict[UOp, list[list[Sources]]] = {}

    def of_value(self, node: UOp) -> list[Sources]:
        """The reads of each lane of a computed value, for each thread; for a loop counter those of the loop's length."""
        if node.op is Op.Range:
            return self.of_value(node.src[0])
        found = self.run.memo(node).get((node, "reads")) if node in self.fed else None
        return [(NONE,) * node.dtype.count] * len(self.run.threads) if found is None else found

    def of_place(self, node: UOp) -> list[Sources]:
        """The reads of each lane of a place that was computed, or the same for all its lanes, for each thread."""
        found = self.run.memo(node).get((node, "place reads")) if node in self.fed else None
        return [(NONE,)] * len(self.run.threads) if found is None else found

    def take(self, node: UOp, places: bool) -> None:
        """Keep the reads of the present iteration of a node's first operand, its value or its places."""
        if node in self.fed:
            self.taken.setdefault(node, []).append((self.of_place if places else self.of_value)(node.src[0]))

    def keep_value(self, node: UOp) -> None:
        """Keep the reads of a value that was just computed."""
        self.run.memo(node)[node, "reads"] = self._of_value(node)

    def keep_place(self, node: UOp, places: PerThread) -> None:
        """Keep the reads of places that were just computed."""
        self.run.memo(node)[node, "place reads"] = self._of_place(node, places)

    def _of_value(self, node: UOp) -> list[Sources]:
        op, src, each = node.op, node.src, range(len(self.run.threads))
        taken = self.taken.pop(node, [])
        if op is Op.Load or op is Op.Index:
            return taken[0]
        if op is Op.Unroll:
            return self._unrolled(node, self.of_value(src[0]))
        if op is Op.Contract:
            return [join([part[t] for part in taken]) for t in each]
        if op is Op.After or op is Op.Barrier:
            return self.of_value(src[0])
        operand = [self.of_value(s) for s in src]
        if op is Op.Reduce:
            ends = [_all([v[t] for v in operand[1:]]) for t in each]
            folded = [[groups(p[t], node.dtype.count) for p in taken] for t in each]
            lanes = range(node.dtype.count)
            return [tuple([ends[t] | _all([own[k] for own in folded[t]]) for k in lanes]) for t in each]
        values = [v for s in src if (v := self.run.ready(s)) is not None] if op is Op.Where or op in DECIDES else []
        return [_lanes(node, [v[t] for v in operand], [v[t] for v in values]) for t in each]

    def _of_place(self, node: UOp, places: PerThread) -> list[Sources]:
        op, src, each = node.op, node.src, range(len(self.run.threads))
        taken = self.taken.pop(node, [])
        if op is Op.Index:
            return self._of_index(node, places)
        if op in JOINED:
            parts = [(self.of_place(s), self.run.memo(s)[s, "place"]) for s in src]
            return [tuple([lane(found[t], i) for found, at in parts for i in range(len(at[t]))]) for t in each]
        if op is Op.Contract:
            return [join([part[t] for part in taken]) for t in each]
        none: list[Sources] = [(NONE,)] * len(each)
        inner = self.of_place(src[0]) if src else none
        if op is Op.Gep:
            return [take(v, node.arg) if len(v) > 1 else v for v in inner]
        if op is Op.Unroll:
            return self._unrolled(node, inner)
        if op is Op.PointerIndex:
            steps = self.of_value(src[1])
            return [tuple([s | steps[t][0] for s in inner[t]]) for t in each]
        return inner if op in (Op.After, Op.Barrier, Op.Cast) or op in THROUGH else none

    def _of_index(self, node: UOp, places: PerThread) -> list[Sources]:
        """The reads of each lane of the indices and the gate; the reads of inner indices count for all lanes."""
        indices = [self.of_value(s) for s in node.src[1:]]
        inner = [self.of_value(s) for n in order(node.src[:1], below) if n.op is Op.Index for s in n.src[1:]]
        count = element(node.src[0].dtype).count
        out = []
        for t, at in enumerate(places):
            base = _all([v[t] for v in inner])
            out.append(tuple([base.union(*[lane(v[t], i // count) for v in indices]) for i in range(len(at))]))
        return out

    def _unrolled(self, node: UOp, whole: list[Sources]) -> list[Sources]:
        count = node.dtype.count
        at = [0 if isinstance(k, Poison) else k for k in self.run.part(node)]
        return [opened(v, k, count) if len(v) > 1 else v for k, v in zip(at, whole, strict=True)]

    def read_from(self, node: UOp, reads: list[list[frozenset[Read]]], at: PerThread) -> None:
        """Keep the reads of a Load, or of a read Index, with those of its place and of the alternative of a false gate."""
        places = self.of_place(node if node.op is Op.Index else node.src[0])
        alt = self.of_value(node.src[1]) if node.op is Op.Load and len(node.src) > 1 else None
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
    """The reads of each lane of a value: those of the operands that it depends on at these values."""
    op, count = node.op, node.dtype.count
    if op is Op.Where:
        return tuple([_chosen([lane(v, i) for v in vs], lane(values[0], i)) for i in range(count)])
    if op in DECIDES and node.dtype.is_bool:
        return tuple(
            [_decided([lane(v, i) for v in vs], [lane(v, i) is DECIDES[op] for v in values]) for i in range(count)]
        )
    if op is Op.Vectorize or op is Op.Cat:
        return join(vs)
    if op is Op.Gep:
        return take(vs[0], node.arg)
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
