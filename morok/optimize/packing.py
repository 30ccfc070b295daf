"""PACK: copies of memory that inner loops read repeatedly, in the order of these reads.

A matrix product reads the same columns of one factor for every row: copied once into a small buffer, they are contiguous, in few
cache lines and pages. A copy changes no value, so the kernel's results are the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from morok.ir.dtype import AddrSpace
from morok.ir.graph import substitute
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.affine import linear
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import const_end, new_range, row_major
from morok.passes.rebuilding import next_range_id, substituted
from morok.passes.target import Target

MAX_BYTES: Final = 1 << 26  # most bytes of one copy


def reads_of(ast: UOp, slot: int) -> list[UOp]:
    """The Index nodes of all reads of the buffer `slot` in the kernel."""
    nodes = nodes_of(ast)
    written = {n.src[0] for n in nodes if n.op is Op.Store}
    return [
        n
        for n in nodes
        if n.op is Op.Index and n not in written and n.src[0].op is Op.DefineGlobal and n.src[0].arg == slot
    ]


def is_written(ast: UOp, slot: int) -> bool:
    stores = [n.src[0] for n in nodes_of(ast) if n.op is Op.Store]
    return any(s.op is Op.Index and s.src[0].op is Op.DefineGlobal and s.src[0].arg == slot for s in stores)


def is_plain(read: UOp) -> bool:
    """True if a read has one scalar index, without gates, other reads and Unrolls: it may move to another time, and a copy can
    loop over its ranges.
    """
    below = read.src[1].toposort()
    return (
        len(read.src) == 2
        and read.dtype.count == 1
        and not any(n.op in (Op.Invalid, Op.Index, Op.Unroll) for n in below)
    )


def inner_ranges(read: UOp, outer: Collection[UOp]) -> list[UOp]:
    """The ranges of the copy for a read, outermost first; vectorized ones are last, and so contiguous."""
    found = [r for r in read.src[1].ranges if r not in outer]
    return sorted(found, key=lambda r: (r.arg[1] is AxisType.Upcast, r.arg[1].priority, r.arg[0]))


def copied_bytes(read: UOp, outer: Collection[UOp]) -> int:
    """The bytes of the copy for a read; 0 if a length is not constant."""
    return math.prod(const_end(r) or 0 for r in inner_ranges(read, outer)) * read.dtype.itemsize


def pack(ast: UOp, slot: int, outer: Collection[UOp], target: Target) -> UOp:
    """`ast` with all reads of buffer `slot` from copies, each filled inside the ranges `outer` and before all other loops.

    Requires plain reads, and constant lengths of all ranges that are not `outer`.
    """
    ids = itertools.count(next_range_id(ast))
    buffers = itertools.count(max((n.arg for n in nodes_of(ast) if n.op is Op.DefineLocal), default=-1) + 1)
    made: dict[UOp, UOp] = {}
    mapping: dict[UOp, UOp] = {}
    for read in reads_of(ast, slot):
        inner = inner_ranges(read, outer)
        lengths = [const_end(r) or 0 for r in inner]
        # reads equal up to the ids of their ranges share a copy
        names = [new_range(n, -1 - at, AxisType.Loop, r) for at, (r, n) in enumerate(zip(inner, lengths, strict=True))]
        key = substitute((read,), dict(zip(inner, names, strict=True)))[0]
        if key not in made:
            made[key] = _copy(read, inner, lengths, ids, next(buffers), target)
        mapping[read] = made[key].index(row_major(inner, lengths))
    return substituted(ast, mapping)


def _copy(
    read: UOp, inner: Sequence[UOp], lengths: Sequence[int], ids: Iterator[int], number: int, target: Target
) -> UOp:
    """The local buffer `number`, after a loop has filled it with the elements that `read` reads over the ranges `inner`."""
    index = linear(read.src[1])
    across = target.vector_bytes // read.dtype.itemsize
    known = list(zip(inner, lengths, strict=True))
    # contiguous elements are read as vectors and, if they are not contiguous in the copy, stored one by one
    along = [
        r
        for r, n in known
        if index.terms.get(r) == 1 and r.arg[1] is not AxisType.Upcast and across > 1 and not n % across
    ]
    loops: list[UOp] = []
    places: list[UOp] = []
    for r, n in known:
        lanes = r.arg[1] is AxisType.Upcast
        if r in along or (along and lanes and n > across and n % across == 0):  # a square tile of vectors
            steps, side = (
                new_range(n // across, next(ids), AxisType.Loop, r),
                new_range(across, next(ids), AxisType.Upcast, r),
            )
            loops += [steps, side]
            places.append(steps * across + side)
        else:
            loops.append(new_range(n, next(ids), AxisType.Upcast if lanes else AxisType.Loop, r))
            places.append(loops[-1])
    source = substitute((read,), dict(zip(inner, places, strict=True)))[0]
    buffer = UOp.new(Op.DefineLocal, (), number, read.dtype.ptr(math.prod(lengths), AddrSpace.LOCAL))
    filled = buffer.index(row_major(places, lengths)).store(source).end(*loops)
    return buffer.after(UOp.new(Op.Barrier, (filled,)))
