"""Stages 4 to 6: the ranges that ops close, the ranges that may be merged, and range ids in nesting order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

from morok.ir.op import AxisType, Op
from morok.ir.ranges import CLOSES
from morok.ir.uop import UOp
from morok.passes.affine import Linear, linear
from morok.passes.node_order import nodes_of
from morok.passes.range_splitting import MergedRanges
from morok.passes.rebuilding import next_range_id, rebuild

_CLOSED: Final = frozenset({Op.Range, Op.Unroll})
_SUMS: Final = frozenset({Op.Add, Op.Sub, Op.Neg})


def new_range(end: int, id: int, axis: AxisType, like: UOp) -> UOp:
    return UOp.range(end, id, axis, like.arg[2])


def with_id(r: UOp, id: int) -> UOp:
    """The range `r` with another id."""
    return UOp.new(Op.Range, r.src, (id, *r.arg[1:]), r.dtype)


def with_axis(r: UOp, axis: AxisType) -> UOp:
    """The range `r` of another kind."""
    return UOp.new(Op.Range, r.src, (r.arg[0], axis, r.arg[2]), r.dtype)


def row_major(indices: Iterable[UOp], lengths: Iterable[int]) -> UOp:
    """The row-major position of indices into axes of these lengths."""
    place = UOp.const(0)
    for i, n in zip(indices, lengths, strict=True):
        place = place * n + i
    return place


def const_end(r: UOp) -> int | None:
    """The length of a range; None if it is not constant."""
    end = r.src[0]
    return int(end.arg) if end.op is Op.Const else None


def flatten_ranges(root: UOp) -> UOp:
    """`root` in which no closing op names a number in place of a range: a range of one iteration may have become one."""

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        first = CLOSES[node.op]
        found = [s for s in src[first:] if s.op in _CLOSED]
        if len(found) == len(src) - first:
            return None
        if not found and node.op is Op.End:
            return src[0]
        return UOp.new(node.op, (*src[:first], *found), node.arg, node.dtype if node.op is Op.Reduce else None)

    return rebuild(root, CLOSES, visit)


def _index_sums(nodes: Iterable[UOp]) -> dict[UOp, Linear]:
    """The linear forms of all nodes of dtype index with a user that is no sum. Range operands of closing ops do not count."""
    found: dict[UOp, Linear] = {}
    for n in nodes:
        first = CLOSES.get(n.op, len(n.src))
        linear_op = n.dtype.is_index and (n.op in _SUMS or (n.op is Op.Mul and any(s.op is Op.Const for s in n.src)))
        if linear_op:
            continue
        for s in n.src[:first]:
            if s.dtype.is_index and s not in found:
                found[s] = linear(s)
    return found


def merged_ranges(root: UOp) -> MergedRanges | None:
    """The adjacent ranges to merge: in every linear form that uses them, the outer stride is the inner stride times the length.

    Then the merged range needs no division: r0 * (c * n1) + r1 * c is r * c, for r of length n0 * n1. None if there are no such
    ranges.
    """
    nodes = nodes_of(root)
    closers = [n for n in nodes if n.op in CLOSES and len(n.src) - CLOSES[n.op] >= 2]
    if not closers:
        return None
    sums = _index_sums(nodes)
    pairs = {
        pair for n in closers for pair in itertools.pairwise(n.src[CLOSES[n.op] :]) if _mergeable(*pair, nodes, sums)
    }
    return MergedRanges(next_range_id(root), pairs) if pairs else None


def _mergeable(outer: UOp, inner: UOp, nodes: list[UOp], sums: dict[UOp, Linear]) -> bool:
    if outer.op is not Op.Range or inner.op is not Op.Range or outer.arg[1] is not inner.arg[1]:
        return False
    n0, n1 = const_end(outer), const_end(inner)
    if n0 is None or n1 is None or len(outer.src) > 1 or len(inner.src) > 1:
        return False
    for n in nodes:  # one loop nest: every op that closes one closes the other right after it
        if n.op in CLOSES:
            bound = n.src[CLOSES[n.op] :]
            if (outer in bound) != (inner in bound) or (
                outer in bound and bound.index(inner) != bound.index(outer) + 1
            ):
                return False
    return all(s.terms.get(outer, 0) == s.terms.get(inner, 0) * n1 for s in sums.values())


def number_by_nesting(root: UOp) -> UOp:
    """`root` with range ids in nesting order: a merged range has a new, greater id, and would otherwise nest too far inside."""
    order: dict[UOp, None] = {}
    for n in reversed(nodes_of(root)):
        if n.op in CLOSES:
            order.update(dict.fromkeys(n.src[CLOSES[n.op] :]))
    ids = [r.arg[0] for r in order if r.op is Op.Range]
    if len(ids) < len(order) or ids == sorted(ids):
        return root
    ranks = dict(zip(order, sorted(ids), strict=True))
    return rebuild(root, (Op.Range,), lambda node, src: _renumbered(node, src, ranks))


def _renumbered(node: UOp, src: tuple[UOp, ...], ranks: dict[UOp, int]) -> UOp | None:
    rank = ranks.get(node)
    return None if rank is None or rank == node.arg[0] else UOp.new(Op.Range, src, (rank, *node.arg[1:]), node.dtype)
