"""Stages 4 to 6: which ranges are closed, which may be merged, and cutting a store's loop where its condition changes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Final

from morok.ir.graph import substitute
from morok.ir.op import AxisType, Op
from morok.ir.ranges import CLOSES
from morok.ir.uop import UOp
from morok.passes.affine import Linear, linear
from morok.passes.range_rules import MergedRanges
from morok.passes.walk import next_range_id, rebuild

_SUMS: Final = frozenset({Op.Add, Op.Sub, Op.Neg})
MAX_PIECES: Final = 4  # a store is cut into at most so many


def new_range(end: int, id: int, axis: AxisType, like: UOp) -> UOp:
    return UOp.range(end, id, axis, like.arg[2])


def const_end(r: UOp) -> int | None:
    """The length of a range where it is a number."""
    end = r.src[0]
    return int(end.arg) if end.op is Op.Const else None


def flatten_ranges(root: UOp) -> UOp:
    """Every op that closes ranges names them one by one: an expression in a binder position stands for the ranges in it."""

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        first = CLOSES.get(node.op)
        if first is None or all(s.op is Op.Range for s in src[first:]):
            return None
        found: dict[UOp, None] = {}
        for s in src[first:]:
            if s.op is Op.Range:
                found[s] = None
            else:
                found.update(dict.fromkeys(n for n in s.toposort() if n.op is Op.Range))
        if not found and node.op is Op.End:
            return src[0]
        # a range of one iteration may have become a number
        return UOp.new(node.op, (*src[:first], *found), node.arg, node.dtype if node.op is Op.Reduce else None)

    return rebuild(root, visit)


def _index_sums(nodes: Iterable[UOp]) -> dict[UOp, Linear]:
    """Every node of dtype index that something other than a sum uses, as a sum. Range operands of closing ops do not count."""
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
    """The neighbouring ranges that may become one: where every use is a sum in which they already count as one.

    That is the case in which the merged range needs no division: r0 * (c * n1) + r1 * c is r * c, for r over n0 * n1. None where
    there are no such ranges.
    """
    nodes = root.toposort()
    closers = [n for n in nodes if n.op in CLOSES and len(n.src) - CLOSES[n.op] >= 2]
    if not closers:
        return None
    sums = _index_sums(nodes)
    pairs = {pair for n in closers for pair in itertools.pairwise(n.src[CLOSES[n.op] :]) if _mergeable(*pair, nodes, sums)}
    return MergedRanges(next_range_id(root), pairs) if pairs else None


def _mergeable(outer: UOp, inner: UOp, nodes: list[UOp], sums: dict[UOp, Linear]) -> bool:
    if outer.op is not Op.Range or inner.op is not Op.Range or outer.arg[1] is not inner.arg[1]:
        return False
    n0, n1 = const_end(outer), const_end(inner)
    if n0 is None or n1 is None or len(outer.src) > 1 or len(inner.src) > 1:
        return False
    for n in nodes:  # one loop nest: whatever closes one closes the other right beside it
        if n.op in CLOSES:
            bound = n.src[CLOSES[n.op] :]
            if (outer in bound) != (inner in bound) or (outer in bound and bound.index(inner) != bound.index(outer) + 1):
                return False
    return all(s.terms.get(outer, 0) == s.terms.get(inner, 0) * n1 for s in sums.values())


def number_by_nesting(root: UOp) -> UOp:
    """Ranges numbered anew where a merged one, whose number is new, would nest inside those that it is closed before."""
    order: dict[UOp, None] = {}
    for n in reversed(root.toposort()):
        if n.op in CLOSES:
            order.update(dict.fromkeys(n.src[CLOSES[n.op] :]))
    ids = [r.arg[0] for r in order if r.op is Op.Range]
    if len(ids) < len(order) or ids == sorted(ids):
        return root
    ranks = dict(zip(order, sorted(ids), strict=True))
    return rebuild(root, lambda node, src: _renumbered(node, src, ranks))


def _renumbered(node: UOp, src: tuple[UOp, ...], ranks: dict[UOp, int]) -> UOp | None:
    rank = ranks.get(node)
    return None if rank is None or rank == node.arg[0] else UOp.new(Op.Range, src, (rank, *node.arg[1:]), node.dtype)


def cut_points(store: UOp, r: UOp) -> list[int]:
    """Where a comparison of `r` plus a number with a number changes its result, inside the range's length."""
    end = const_end(r)
    if end is None:
        return []
    found: set[int] = set()
    for n in store.toposort():
        if n.op not in (Op.Lt, Op.Ge) or not n.src[0].dtype.is_index:
            continue
        for x, c, beyond in ((n.src[0], n.src[1], 0), (n.src[1], n.src[0], 1)):  # x < c changes at c, c < x behind it
            if c.op is Op.Const and list((total := linear(x)).terms.items()) == [(r, 1)]:
                at = int(c.arg) + beyond - total.constant
                if 0 < at < end:
                    found.add(at)
    return sorted(found)


def cut(end: UOp, r: UOp, points: list[int], id: int) -> list[UOp]:
    """`end`, which closes `r`, once for every piece of the range between `points`; new ranges take ids from `id` on."""
    length = const_end(r)
    assert length is not None
    out: list[UOp] = []
    for k, (lo, hi) in enumerate(zip([0, *points], [*points, length], strict=True)):
        piece = new_range(hi - lo, id + k, r.arg[1], r)
        body = substitute((end.src[0],), {r: piece + lo if lo else piece})[0]
        out.append(body.end(*[piece if x is r else x for x in end.src[1:]]))
    return out


def _apart(pieces: list[UOp], id: int) -> tuple[list[UOp], int]:
    """`pieces` with no range in common, since each is a loop nest of its own; and the next free id."""
    seen: set[UOp] = set()
    out: list[UOp] = []
    for piece in pieces:
        fresh: dict[UOp, UOp] = {}
        for r in piece.src[1:] if len(pieces) > 1 else ():
            if r in seen:
                fresh[r] = UOp.new(Op.Range, r.src, (id, *r.arg[1:]))
                id += 1
            seen.add(r)
        out.append(substitute((piece,), fresh)[0] if fresh else piece)
    return out, id


def split_store(root: UOp) -> UOp:
    """Stage 6, CPU only: a loop over a store whose conditions compare its range with numbers becomes one loop a piece; likewise
    a loop that fills a local buffer.

    Each piece is free of the comparison, so it can be vectorized. Loops over reductions are left whole: a copy would
    double the work of compiling them.
    """
    if root.op is not Op.Sink:
        return root
    id = next_range_id(root)
    fills: dict[UOp, UOp] = {}
    for barrier in [n for n in root.toposort() if n.op is Op.Barrier]:
        pieces, id = _split(barrier.src, id)
        if tuple(pieces) != barrier.src:
            fills[barrier] = barrier.replace(tuple(pieces))
    root = substitute((root,), fills)[0] if fills else root
    out, _ = _split(root.src, id)
    return root if tuple(out) == root.src else root.replace(tuple(out))


def _split(ends: Sequence[UOp], id: int) -> tuple[list[UOp], int]:
    """The loops `ends`, each in pieces where that is possible; new ranges take ids from `id` on, and the next one is returned."""
    out: list[UOp] = []
    for end in ends:
        pieces = [end]
        if end.op is Op.End and end.src[0].op is Op.Store and not any(n.op is Op.Reduce for n in end.toposort()):
            for r in reversed(end.src[1:]):
                points = cut_points(end.src[0], r) if r.op is Op.Range else []
                if points and math.prod((len(points) + 1, len(pieces))) <= MAX_PIECES:
                    parts = []
                    for p in pieces:
                        parts += cut(p, r, points, id)
                        id += len(points) + 1
                    pieces = parts
        pieces, id = _apart(pieces, id)
        out += pieces
    return out, id
