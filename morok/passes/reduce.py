"""Stage 11, the global part of reductions: the loops that several of them share.

The rules of rules/loops/accumulate.rules turn each Reduce into a loop. Before them, `separate_loops` gives separate ranges to
reductions that depend on each other; after them, `share_loops` fuses loops over the same ranges, all independent by then.
"""

from __future__ import annotations

from collections.abc import Mapping

from morok.errors import LoweringError
from morok.ir.bounds import Num, times
from morok.ir.dtype import AddrSpace, PtrType, dtypes
from morok.ir.graph import new_forms
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.ranges import replace_range
from morok.ir.uop import UOp
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import with_id
from morok.passes.rebuilding import next_range_id, over

Loop = tuple[tuple[UOp, ...], frozenset[UOp]]  # the ranges of a Reduce, and the ranges around it


class _Separator:
    """Reductions by depth, the longest chain of reductions that they depend on: reductions of one depth over the same ranges,
    inside the same loops, share their ranges; all others get ranges of their own.
    """

    def __init__(self, root: UOp) -> None:
        self.next_range = next_range_id(root)
        self.used: set[UOp] = set()
        self.done: dict[UOp, UOp] = {}
        depth: dict[UOp, int] = {}
        levels: dict[int, list[UOp]] = {}
        for node in root.toposort():
            d = max((depth[s] for s in node.src), default=0) + (node.op is Op.Reduce)
            depth[node] = d
            levels.setdefault(d, []).append(node)
        for d in sorted(levels):
            self.level(levels[d])

    def level(self, nodes: list[UOp]) -> None:
        loops: dict[Loop, list[UOp]] = {}
        for node in nodes:
            if node.op is Op.Reduce:
                loops.setdefault((node.src[1:], node.ranges), []).append(node)
        for group in loops.values():
            self.loop(group)
        for node in nodes:
            if node not in self.done:
                self.done[node] = over(node, self.done)

    def loop(self, group: list[UOp]) -> None:
        """Rebuild reductions over the same ranges inside the same loops, with new ranges for those that an earlier loop uses."""
        ranges = tuple(self.done[r] for r in group[0].src[1:])
        taken = {r: self.fresh(r) for r in ranges if r in self.used}
        ranges = tuple(taken.get(r, r) for r in ranges)
        self.used.update(ranges)
        for node in group:
            source = self.done[node.src[0]]
            for r, fresh in taken.items():
                source = replace_range(source, r, fresh)
            if node.dtype.is_index:  # a register needs a width, and an empty Max or Min an identity
                _check_fold_fits(node, source)
                wide = dtypes.i64.vec(node.dtype.count)
                self.done[node] = UOp.new(Op.Reduce, (source.cast(dtypes.i64), *ranges), node.arg, wide).cast(
                    node.dtype
                )
            elif (source, *ranges) == node.src:
                self.done[node] = node
            else:
                self.done[node] = node.replace((source, *ranges))

    def fresh(self, r: UOp) -> UOp:
        self.next_range += 1
        return with_id(r, self.next_range - 1)


def _check_fold_fits(fold: UOp, source: UOp) -> None:
    """LoweringError unless, by its bounds, every partial result of a fold of `source` at index fits i64: indices are exact
    (ops.md).
    """
    if fold.arg in (Op.Max, Op.Min):
        return  # the result is one of the values of `source`
    count: Num = source.dtype.count // fold.dtype.count
    for r in fold.src[1:]:
        count = times(count, max(0, r.src[0].vmax))
    low, high = source.vmin, source.vmax
    if fold.arg is Op.Add:
        fits = dtypes.i64.min <= times(min(0, low), count) and times(max(0, high), count) <= dtypes.i64.max
    else:
        largest = max(abs(low), abs(high))
        fits = largest <= 1 or (
            count <= 64 and largest <= dtypes.i64.max and int(largest) ** int(count) <= dtypes.i64.max
        )
    if not fits:
        raise LoweringError(
            f"a reduction of up to {count} indices with the bounds {low}..={high} may not fit i64: {fold}",
            expected="partial results within the bounds of i64",
            hint="use smaller shapes, or variables with closer bounds",
        )


def separate_loops(root: UOp) -> UOp:
    """`root` in which reductions that cannot share a loop share no range, and folds at index are folds at i64."""
    folds = [n for n in nodes_of(root) if n.op is Op.Reduce]
    if len(folds) < 2 and not any(n.dtype.is_index for n in folds):
        return root
    return _Separator(root).done[root]


def _adds_to_register(end: UOp) -> bool:
    body = end.src[0]
    if end.op is not Op.End or body.op is not Op.Store:
        return False
    d = storage(body.src[0]).dtype
    return isinstance(d, PtrType) and d.space is AddrSpace.REG


def share_loops(root: UOp) -> UOp:
    """`root` with one loop for all accumulating stores to registers over the same ranges; they do not depend on each other."""
    nodes = nodes_of(root)
    loops: dict[tuple[UOp, ...], list[UOp]] = {}
    for node in nodes:
        if node.op is Op.End and _adds_to_register(node):
            loops.setdefault(node.src[1:], []).append(node)
    together = {end: group for group in loops.values() if len(group) > 1 for end in group}
    if not together:
        return root

    def shared(end: UOp, done: Mapping[UOp, UOp]) -> UOp:
        body = UOp.new(Op.Group, tuple([done[other.src[0]] for other in together[end]]))
        return body.end(*[done[r] for r in end.src[1:]])

    besides = {end: [other.src[0] for other in group] for end, group in together.items()}
    return new_forms(root, besides, shared, UOp.replace)[root]
