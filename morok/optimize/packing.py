"""Copies of memory that inner loops read again and again, in the order in which they read it.

A matrix product reads the same columns of one factor for every row: copied once into a small buffer, they lie next to each other,
in few cache lines and pages. Copying changes no value, so the kernel computes what it did.
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
from morok.passes.range_stages import const_end, new_range
from morok.passes.rebuilding import next_range_id, substituted
from morok.passes.target import Target

MAX_BYTES: Final = 1 << 26  # of one copy


def reads_of(ast: UOp, slot: int) -> list[UOp]:
    """Every read of the buffer `slot` in the kernel."""
    nodes = nodes_of(ast)
    written = {n.src[0] for n in nodes if n.op is Op.Store}
    return [n for n in nodes if n.op is Op.Index and n not in written and n.src[0].op is Op.DefineGlobal and n.src[0].arg == slot]


def is_written(ast: UOp, slot: int) -> bool:
    stores = [n.src[0] for n in nodes_of(ast) if n.op is Op.Store]
    return any(s.op is Op.Index and s.src[0].op is Op.DefineGlobal and s.src[0].arg == slot for s in stores)


def is_plain(read: UOp) -> bool:
    """True if a read has one index, no gate, and needs no other read, so that it may be made at another time; and its loops are
    not in blocks of lanes, which are no ranges that a copy could run over."""
    below = read.src[1].toposort()
    return len(read.src) == 2 and read.dtype.count == 1 and not any(n.op in (Op.Invalid, Op.Index, Op.Unroll) for n in below)


def inner_ranges(read: UOp, outer: Collection[UOp]) -> list[UOp]:
    """The ranges that the copy for a read runs over, lanes last: they lie next to each other."""
    found = [r for r in read.src[1].ranges if r not in outer]
    return sorted(found, key=lambda r: (r.arg[1] is AxisType.Upcast, r.arg[1].priority, r.arg[0]))


def copied_bytes(read: UOp, outer: Collection[UOp]) -> int:
    """The size of the copy; 0 where it is not known."""
    return math.prod(const_end(r) or 0 for r in inner_ranges(read, outer)) * read.dtype.itemsize


def _flat(ranges: Sequence[UOp], lengths: Sequence[int]) -> UOp:
    place = UOp.const(0)
    for r, n in zip(ranges, lengths, strict=True):
        place = place * n + r
    return place


def pack(ast: UOp, slot: int, outer: Collection[UOp], target: Target) -> UOp:
    """`ast` with all reads of buffer `slot` made from copies, each filled inside the ranges `outer` and before all others.

    The reads are plain, and the ranges that are not `outer` have known lengths.
    """
    ids = itertools.count(next_range_id(ast))
    buffers = itertools.count(max((n.arg for n in nodes_of(ast) if n.op is Op.DefineLocal), default=-1) + 1)
    made: dict[UOp, UOp] = {}
    mapping: dict[UOp, UOp] = {}
    for read in reads_of(ast, slot):
        inner = inner_ranges(read, outer)
        lengths = [const_end(r) or 0 for r in inner]
        # two reads that differ in the names of their ranges alone share a copy
        names = [new_range(n, -1 - at, AxisType.Loop, r) for at, (r, n) in enumerate(zip(inner, lengths, strict=True))]
        key = substitute((read,), dict(zip(inner, names, strict=True)))[0]
        if key not in made:
            made[key] = _copy(read, inner, lengths, ids, next(buffers), target)
        mapping[read] = made[key].index(_flat(inner, lengths))
    return substituted(ast, mapping)


def _copy(read: UOp, inner: Sequence[UOp], lengths: Sequence[int], ids: Iterator[int], number: int, target: Target) -> UOp:
    """The local buffer `number`, once it is filled with the elements that `read` reads over the ranges `inner`."""
    index = linear(read.src[1])
    across = target.vector_bytes // read.dtype.itemsize
    known = list(zip(inner, lengths, strict=True))
    # elements that lie next to each other are read together and, if the copy has them elsewhere, written apart
    along = [r for r, n in known if index.terms.get(r) == 1 and r.arg[1] is not AxisType.Upcast and across > 1 and not n % across]
    loops: list[UOp] = []
    places: list[UOp] = []
    for r, n in known:
        lanes = r.arg[1] is AxisType.Upcast
        if r in along or (along and lanes and n > across and n % across == 0):  # a square of vectors at a time is enough
            steps, side = new_range(n // across, next(ids), AxisType.Loop, r), new_range(across, next(ids), AxisType.Upcast, r)
            loops += [steps, side]
            places.append(steps * across + side)
        else:
            loops.append(new_range(n, next(ids), AxisType.Upcast if lanes else AxisType.Loop, r))
            places.append(loops[-1])
    source = substitute((read,), dict(zip(inner, places, strict=True)))[0]
    buffer = UOp.new(Op.DefineLocal, (), number, read.dtype.ptr(math.prod(lengths), AddrSpace.LOCAL))
    filled = buffer.index(_flat(places, lengths)).store(source).end(*loops)
    return buffer.after(UOp.new(Op.Barrier, (filled,)))
