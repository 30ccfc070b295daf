"""Helpers of rules/vector/expand.rules: the order of axes in a vector, the lane of each of their iterations, and memory that the
threads of a block share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from morok.errors import LoweringError
from morok.ir.dtype import AddrSpace
from morok.ir.launch import BLOCKS, THREADS, launched
from morok.ir.op import AxisType, Op
from morok.ir.ranges import VECTOR_AXES
from morok.ir.uop import UOp
from morok.marks import helper
from morok.passes.affine import place_sums, unit_stride_ids
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import row_major
from morok.passes.rebuilding import range_ids

Axes = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class AxisOrder:
    """The order of axes in a vector, the fastest last: axes with stride 1 in memory come last, so that their lanes are one load.

    fast    the ids of the axes with stride 1
    unions  cache of `union`
    next_range, next_buffer  unused ids of a range and of a buffer in shared memory
    strides  the greatest stride, in elements, of each range of threads, if threads share a reduction
    """

    fast: frozenset[int]
    unions: dict[tuple[Axes, ...], Axes]
    next_range: int = 0
    next_buffer: int = 0
    strides: dict[UOp, int] = field(default_factory=dict)

    @classmethod
    def of(cls, root: UOp) -> AxisOrder:
        """The order of a graph's axes. LoweringError for a vectorized range without a constant length."""
        nodes = nodes_of(root)
        for n in nodes:
            if n.op is Op.Range and n.arg[1] in VECTOR_AXES and n.src[0].op is not Op.Const:
                raise LoweringError(
                    f"the vectorized loop {n} has the length {n.src[0]}, which is not constant",
                    expected="a constant length",
                )
        buffers = [n.arg for n in nodes if n.op is Op.DefineLocal]
        next_range, next_buffer = max(range_ids(nodes), default=-1) + 1, max(buffers, default=-1) + 1
        return cls(unit_stride_ids(nodes), {}, next_range, next_buffer, _thread_strides(nodes))


def _thread_strides(nodes: list[UOp]) -> dict[UOp, int]:
    """The greatest stride, in elements, of each range of threads in all accesses; {} if threads share no reduction."""
    found: dict[UOp, int] = {}
    if any(n.op is Op.Range and n.arg[1] is AxisType.GroupReduce for n in nodes):
        for _, total in place_sums(nodes):
            for term, c in total.terms.items():
                if launched(term) and term.arg[1] in THREADS:
                    found[term] = max(abs(c), found.get(term, 0))
    return found


@helper
def union(parts: Sequence[Axes], order: AxisOrder) -> Axes:
    """The axes of all parts, each once, in vector order. LoweringError for an axis of two lengths."""
    key = tuple(parts)
    known = order.unions.get(key)
    if known is None:
        found = {axis for part in key for axis in part}
        if len({i for i, _ in found}) != len(found):
            raise LoweringError(
                f"one axis has two lengths: (axis, length) {sorted(found)}", expected="one length for each axis"
            )
        known = order.unions[key] = tuple(sorted(found, key=lambda axis: (axis[0] in order.fast, axis[0])))
    return known


@helper
def swizzle(
    target: Sequence[tuple[int, int]], source: Sequence[tuple[int, int]], own: int, order: AxisOrder
) -> tuple[int, ...]:
    """For each lane of a vector over the axes `target` the lane of a vector over `source` with the same iteration; lanes repeat
    along axes that `source` lacks. Each iteration has `own` lanes.
    """
    return _swizzle(tuple(target), tuple(source), own)


@lru_cache(maxsize=1024)
def _swizzle(target: Axes, source: Axes, own: int) -> tuple[int, ...]:
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
    return tuple([base + i for base in lanes for i in range(own)])


@helper
def shared(s: UOp, t: UOp, order: AxisOrder) -> tuple[UOp, UOp, UOp]:
    """(buffer, index, range) for a reduction of `s` that the threads along `t` share: a buffer in the block's shared memory, each
    thread's index in it, and a sequential range over the threads. Threads with adjacent elements in global memory are adjacent in
    the buffer.

    LoweringError if `s` is inside another loop, which would fill the buffer again.
    """
    around = sorted(s.ranges - {t}, key=lambda r: (r.arg[1] is AxisType.Upcast, r.arg[0]))
    inside = [r for r in around if r.arg[1] not in BLOCKS]
    if any(r.arg[1] not in (AxisType.Local, AxisType.Upcast) for r in inside):
        raise LoweringError(
            f"threads share a reduction that is inside another loop, which would fill its buffer again: {s}",
            expected="a shared reduction inside loops over blocks, threads and lanes only",
            hint="leave out GROUP",
        )
    threads = [*(r for r in inside if r.arg[1] is AxisType.Local), t]
    lanes = inside[len(threads) - 1 :]
    threads.sort(key=lambda r: order.strides.get(r, math.inf), reverse=True)
    axes = [*threads, *lanes]
    lengths = [int(r.vmax) + 1 for r in axes]
    buffer = UOp.new(Op.DefineLocal, (), order.next_buffer, s.dtype.ptr(math.prod(lengths), AddrSpace.LOCAL))
    again = UOp.new(Op.Range, t.src, (order.next_range, AxisType.Reduce, t.arg[2]))
    order.next_buffer, order.next_range = order.next_buffer + 1, order.next_range + 1
    return buffer, row_major(axes, lengths), again


def refuse_unrolled(root: UOp) -> None:
    """LoweringError if an Unroll or a Contract is left: its user is an op that cannot be vectorized."""
    for node in nodes_of(root):
        for s in node.src:
            if s.op is Op.Unroll or s.op is Op.Contract:
                raise LoweringError(
                    f"{node.op.name} cannot be vectorized: {node}",
                    expected="ops that work lane by lane in a vectorized loop",
                    hint="leave out UPCAST and UNROLL of the loops around it",
                )
