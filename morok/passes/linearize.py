"""Stages 20 and 21: the order of loops, and the order of instructions."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import Final

from morok.errors import LoweringError, Place
from morok.ir import provenance
from morok.ir.graph import new_forms
from morok.ir.op import NO_INSTRUCTION, Op
from morok.ir.ranges import all_open_ranges
from morok.ir.uop import UOp, relinked
from morok.passes.node_order import keep_order, nodes_of

# Among instructions that run equally often, lower numbers come first.
PRIORITY: Final[dict[Op, int]] = {
    Op.DefineGlobal: -20,
    Op.DefineVar: -19,
    Op.DefineLocal: -18,
    Op.DefineReg: -17,
    Op.Const: -10,
    Op.VConst: -10,
    Op.Load: -1,
    Op.End: -5,
    Op.Store: 1,
    Op.Range: 5,
}
_EFFECTS: Final = frozenset({Op.Store, Op.Barrier})
_NONE: Final[frozenset[UOp]] = frozenset()


def order_loops(root: UOp) -> UOp:
    """Stage 20: `root` in which every Range waits, by extra operands, for all that must run before its loop opens.

    An inner Range waits for the Range around it. Loops, stores and barriers directly inside the same loop are put in a
    topological order, stores as early as possible; each loop waits for everything before it. LoweringError for a Range that two
    Ends close, or that waits already.
    """
    nodes = nodes_of(root)
    ends: dict[UOp, UOp] = {}
    for n in nodes:
        if n.op is Op.End and len(n.src) == 2 and ends.setdefault(n.src[1], n) is not n:
            raise _closed_twice(n)
        if n.op is Op.Range and len(n.src) > 1:
            raise _waits(n)
    if not ends:
        return root
    parent = _parents(nodes, ends)
    # the units of each loop: the side effects directly inside it, and the Ends of the loops directly inside it
    units: dict[UOp | None, list[UOp]] = {}
    for n in nodes:
        if n.op is Op.End or n.op in _EFFECTS:
            units.setdefault(parent[n], []).append(n)
    before = _unit_dependencies(nodes, parent)
    waits: dict[UOp, list[UOp]] = {}
    for loop, members in units.items():
        last: list[UOp] = []
        for unit in _ordered(members, before):
            if unit.op is Op.End:
                waits[unit.src[1]] = ([loop] if loop is not None else []) + last
                last = [unit]
            else:
                last.append(unit)

    def waiting(r: UOp, done: Mapping[UOp, UOp]) -> UOp:
        return r.replace((*[done[s] for s in r.src], *dict.fromkeys(done[w] for w in waits[r])))

    forms = new_forms(root, {r: w for r, w in waits.items() if w}, waiting, relinked)
    keep_order(list(forms.values()))
    return forms[root]


def _closed_twice(end: UOp) -> LoweringError:
    return _refused(
        end.src[1],
        end,
        "is closed by two Ends",
        "one End for each Range",
        "join the bodies in a Group under one End, or give one of the loops a Range of another id",
    )


def _waits(r: UOp) -> LoweringError:
    return _refused(
        r,
        r,
        "waits for other nodes",
        "a Range without operands after its length: this stage adds the nodes that a loop waits for",
        "let the statements inside the loop wait (After), and add other statements to the Sink",
    )


def _refused(r: UOp, at: UOp, why: str, expected: str, hint: str) -> LoweringError:
    where = provenance.place(at.origin)
    return LoweringError(
        f"stage 20: the loop Range({r.src[0].text()}, {r.arg[0]}) of {r.dtype} {why}",
        place=None if where is None else Place(*where),
        expected=expected,
        hint=hint,
    )


def _parents(nodes: list[UOp], ends: dict[UOp, UOp]) -> dict[UOp, UOp | None]:
    """The innermost loop around each End, Store and Barrier; None outside of all loops."""
    ranges_of = all_open_ranges(nodes)
    parent: dict[UOp, UOp | None] = {}
    depth: dict[UOp, int] = {}
    for n in reversed(nodes):  # users before operands
        if n.op is Op.End and n.src[1] in ends:
            r = n.src[1]
            outer = _innermost(ranges_of[n], depth)
            parent[n] = outer
            depth[r] = 0 if outer is None else depth[outer] + 1
    inside: dict[frozenset[UOp], UOp | None] = {}
    for n in nodes:
        if n.op in _EFFECTS:
            ranges = ranges_of[n]
            if ranges not in inside:
                inside[ranges] = _innermost(ranges, depth)
            parent[n] = inside[ranges]
    return parent


def _innermost(ranges: frozenset[UOp], depth: dict[UOp, int]) -> UOp | None:
    return max([r for r in ranges if r in depth], key=lambda r: depth[r], default=None)


def _unit_dependencies(nodes: list[UOp], parent: dict[UOp, UOp | None]) -> dict[UOp, set[UOp]]:
    """For each unit the units of the same loop that it depends on, directly or through other nodes."""
    needs: dict[UOp, frozenset[UOp]] = {}
    out: dict[UOp, set[UOp]] = {}
    for n in nodes:
        below: frozenset[UOp] = _NONE
        for s in n.src:
            more = needs[s]
            if more is not below and more:
                below = below | more if below else more
        if n in parent:
            own = parent[n]
            out[n] = {b for b in below if parent[b] is own}
            # later nodes depend through n on the units of its loop, and through an End on those inside the loop
            gone = (own, n.src[1]) if n.op is Op.End else (own,)
            below = frozenset({n}) | frozenset(b for b in below if parent[b] not in gone)
        needs[n] = below
    return out


def _ordered(members: list[UOp], before: dict[UOp, set[UOp]]) -> list[UOp]:
    """`members` in a topological order of `before`, with all but loops as early as possible."""
    place = {m: i for i, m in enumerate(members)}
    users: list[list[int]] = [[] for _ in members]
    waiting: list[int] = []
    for i, m in enumerate(members):
        needed = [place[b] for b in before[m] if b in place]
        waiting.append(len(needed))
        for b in needed:
            users[b].append(i)
    loops: list[int] = []
    others: list[int] = []
    for i, m in enumerate(members):
        if not waiting[i]:
            (loops if m.op is Op.End else others).append(i)
    out: list[UOp] = []
    while others or loops:
        i = heapq.heappop(others or loops)
        out.append(members[i])
        for u in users[i]:
            waiting[u] -= 1
            if not waiting[u]:
                heapq.heappush(loops if members[u].op is Op.End else others, u)
    return out


def linearize(root: UOp) -> list[UOp]:
    """Stage 21: the instructions in a topological order: by number of executions, then by PRIORITY, then as in the graph."""
    nodes = nodes_of(root)
    place = {n: i for i, n in enumerate(nodes)}
    users: list[list[int]] = [[] for _ in nodes]
    waiting = [len(n.src) for n in nodes]  # a repeated operand counts each time
    runs: dict[frozenset[UOp], int] = {}
    urgency: list[tuple[int, int, int]] = []
    for i, (n, ranges) in enumerate(all_open_ranges(nodes).items()):
        op = n.op
        for s in n.src:
            users[place[s]].append(i)
        count = runs.get(ranges)
        if count is None:
            count = runs[ranges] = math.prod(int(r.vmax) + 1 for r in ranges)
        urgency.append((count, PRIORITY.get(op, 0), n.arg if op is Op.DefineGlobal else 0))
    # few, and integers compare faster than tuples
    ranks = {u: k * len(nodes) for k, u in enumerate(sorted(set(urgency)))}
    keys = [ranks[u] + i for i, u in enumerate(urgency)]
    heap = [k for k, w in zip(keys, waiting, strict=True) if not w]
    heapq.heapify(heap)
    out: list[UOp] = []
    while heap:
        i = heapq.heappop(heap) % len(nodes)
        out.append(nodes[i])
        for u in users[i]:
            waiting[u] -= 1
            if not waiting[u]:
                heapq.heappush(heap, keys[u])
    return [n for n in out if n.op not in NO_INSTRUCTION]
