"""Stage 9: Upcast and Unroll ranges become lanes.

A range that is to be vectorized, or an Unroll, stands for several values at once. This pass computes for every node the vector of
all its values and the axes that the vector runs over; operands with fewer axes are repeated to match. A Contract, a
Store, or the Reduce that closes an axis ends it. One visit a node: the lanes of a node depend on its operands' alone.

Layout of a vector with axes ((a, 2), (b, 3)) and an own width of 4: lane = (ia * 3 + ib) * 4 + own: the last axis runs fastest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from morok.errors import LoweringError
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.uop import UOp, vconst
from morok.passes.affine import unit_stride_ids

Axes = tuple[tuple[int, int], ...]

VECTOR_AXES: Final = frozenset({AxisType.Upcast, AxisType.Unroll})
# Statements and order: their operands have done with their axes.
_PLAIN: Final = frozenset({Op.Sink, Op.Group, Op.Noop, Op.Barrier, Op.If, Op.EndIf, Op.Kernel, Op.Special, Op.Range})


def width(axes: Axes) -> int:
    return math.prod(n for _, n in axes)


def swizzle(target: Axes, source: Axes, own: int = 1) -> tuple[int, ...]:
    """For every lane of a vector over `target` the lane of the same values over `source`; axes `source` lacks repeat."""
    strides: dict[int, int] = {}
    step = own
    for axis, n in reversed(source):
        strides[axis] = step
        step *= n
    lanes = [0]
    for axis, n in target:
        stride = strides.get(axis, 0)
        lanes = [base + i * stride for base in lanes for i in range(n)]
    if own == 1:
        return tuple(lanes)
    return tuple(base + i for base in lanes for i in range(own))


def take(x: UOp, lanes: tuple[int, ...]) -> UOp:
    """The lanes of `x` with these numbers; x itself where that is all of them in order."""
    count = x.dtype.count
    if len(lanes) == count and lanes == tuple(range(count)):
        return x
    if x.op is Op.Const:
        return UOp.const(x.arg, x.dtype.scalar().vec(len(lanes)))
    if x.op is Op.VConst:
        return vconst(x.dtype.scalar(), [x.arg[i] for i in lanes])
    if x.op is Op.Invalid:
        return UOp.invalid_at(x.dtype.scalar().vec(len(lanes)))
    if count == 1:
        return UOp.vectorize(*([x] * len(lanes)))
    if x.op is Op.Gep:
        inner = x.arg
        return take(x.src[0], tuple(inner[i] for i in lanes))
    if x.op is Op.Vectorize:
        return UOp.vectorize(*[x.src[i] for i in lanes])
    return x.gep(*lanes)


class _Expander:
    """What every node became: a vector and the axes that it runs over, in `rank` order."""

    def __init__(self, root: UOp) -> None:
        nodes = root.toposort()
        fast = unit_stride_ids(nodes)
        # The axis along which memory is contiguous runs fastest, so that its lanes are one load.
        self.rank = lambda axis: (axis[0] in fast, axis[0])
        self.axes: dict[UOp, Axes] = {}
        self.done: dict[UOp, UOp] = {}
        for node in nodes:
            src = tuple([self.done[s] for s in node.src])
            self.done[node], self.axes[node] = self.visit(node, src)

    def union(self, parts: Sequence[Axes]) -> Axes:
        found = {axis for part in parts for axis in part}
        if len({i for i, _ in found}) != len(found):
            raise LoweringError(f"one axis has two lengths: {sorted(found)}")
        return tuple(sorted(found, key=self.rank))

    def spread(self, node: UOp, value: UOp, axes: Axes) -> UOp:
        """The value of `node`, repeated so that it runs over `axes`."""
        have = self.axes[node]
        if have == axes or value.dtype.kind == "void":
            return value
        return take(value, swizzle(axes, have, value.dtype.count // width(have)))

    def visit(self, node: UOp, src: tuple[UOp, ...]) -> tuple[UOp, Axes]:
        op = node.op
        if op is Op.Range and node.arg[1] in VECTOR_AXES:
            return self.lanes_of_range(node)
        if op is Op.Unroll:
            have = self.axes[node.src[0]]
            own = src[0].dtype.count // width(have) // width(node.arg)
            both = (*have, *node.arg)
            axes = self.union((have, node.arg))
            return take(src[0], swizzle(axes, both, own)), axes
        if op is Op.Contract:
            return self.contract(node, src[0])
        if op is Op.Reduce:
            return self.reduce(node, src)
        if op is Op.End:
            live = [s for s, old in zip(src[1:], node.src[1:], strict=True) if not self.axes[old]]
            return src[0].end(*live), ()
        if op in _PLAIN:
            return (node if src == node.src else node.replace(src)), ()
        if not any(self.axes[s] for s in node.src):
            return (node if src == node.src else node.replace(src)), ()
        return self.over_all(node, src)

    def lanes_of_range(self, node: UOp) -> tuple[UOp, Axes]:
        end = node.src[0]
        if end.op is not Op.Const:
            raise LoweringError(f"a vectorized range needs a constant length, not {end}")
        n = int(end.arg)
        if n == 1:
            return UOp.const(0, node.dtype), ()
        return vconst(node.dtype, range(n)), ((node.arg[0], n),)

    def contract(self, node: UOp, value: UOp) -> tuple[UOp, Axes]:
        have = self.axes[node.src[0]]
        if value.dtype.kind == "void":
            return value, ()
        rest = tuple(a for a in have if a not in node.arg)
        own = value.dtype.count // width(have)
        return take(value, swizzle((*rest, *node.arg), have, own)), rest

    def reduce(self, node: UOp, src: tuple[UOp, ...]) -> tuple[UOp, Axes]:
        """Lanes of closed axes become the fastest lanes of the source: a Reduce with fewer lanes than its source folds them."""
        body, *ranges = node.src
        closed: Axes = self.union([self.axes[r] for r in ranges])
        live = [new for old, new in zip(ranges, src[1:], strict=True) if not self.axes[old] and new.op is not Op.Const]
        have = self.axes[body]
        rest = tuple(a for a in have if a not in closed)
        own = src[0].dtype.count // width(have)
        if own != 1 and closed:
            raise LoweringError("a Reduce of vectors cannot close a vectorized range")
        value = take(src[0], swizzle((*rest, *closed), have, own))
        if not closed and not live:
            return value, rest
        dtype = node.dtype.scalar().vec(width(rest) * own)
        return UOp.new(Op.Reduce, (value, *live), node.arg, dtype), rest

    def over_all(self, node: UOp, src: tuple[UOp, ...]) -> tuple[UOp, Axes]:
        """An op that works lane by lane, or on places: all operands over all axes of any."""
        op = node.op
        axes = self.union([self.axes[s] for s in node.src])
        if op is Op.Index:
            places = [self.spread(o, s, axes) for o, s in zip(node.src[1:], src[1:], strict=True)]
            if node.arg and not self.axes[node.src[-1]]:
                places[-1] = src[-1]  # one gate for all lanes
            return UOp.new(Op.Index, (src[0], *places), node.arg), axes
        if op is Op.Store:
            place, value = (self.spread(o, s, axes) for o, s in zip(node.src[:2], src[:2], strict=True))
            live = [new for old, new in zip(node.src[2:], src[2:], strict=True) if not self.axes[old]]
            return UOp.new(Op.Store, (place, value, *live)), ()
        if op is Op.After:
            return UOp.new(Op.After, src), self.axes[node.src[0]]
        if op in (Op.Vectorize, Op.Cat, Op.PtrCat):
            return self.join(node, src, axes), axes
        if op is Op.Gep:
            own = src[0].dtype.count // width(axes)
            lanes = tuple(a * own + i for a in range(width(axes)) for i in node.arg)
            return take(src[0], lanes), axes
        spread = [self.spread(o, s, axes) for o, s in zip(node.src, src, strict=True)]
        if op is Op.Where and not self.axes[node.src[0]] and src[0].dtype.count == 1:
            spread[0] = src[0]  # one condition for all lanes
        lanes_out = max(s.dtype.count for s in spread)
        dtype = node.dtype.scalar().vec(lanes_out)
        if TABLE.entries[op].pointwise or op in (Op.Bitcast, Op.Load, Op.Reduce, Op.Precast):
            return UOp.new(op, tuple(spread), node.arg, dtype), axes
        raise LoweringError(f"{op.name} cannot be vectorized: {node}")

    def join(self, node: UOp, src: tuple[UOp, ...], axes: Axes) -> UOp:
        """Elements side by side within each lane."""
        n = width(axes)
        parts = [self.spread(o, s, axes) for o, s in zip(node.src, src, strict=True)]
        starts, at = [], 0
        for p in parts:
            starts.append(at)
            at += p.dtype.count
        whole = UOp.new(Op.PtrCat if node.op is Op.PtrCat else Op.Cat, tuple(parts))
        lanes: list[int] = []
        for i in range(n):
            for start, p in zip(starts, parts, strict=True):
                own = p.dtype.count // n
                lanes.extend(range(start + i * own, start + (i + 1) * own))
        return take(whole, tuple(lanes))


def expand(root: UOp) -> UOp:
    """`root` without Upcast and Unroll ranges, Unroll and Contract; axes still open at the root stay in one Unroll."""
    expander = _Expander(root)
    out, axes = expander.done[root], expander.axes[root]
    return UOp.new(Op.Unroll, (out,), axes) if axes else out


__all__ = ["Axes", "expand", "swizzle", "take", "width"]
