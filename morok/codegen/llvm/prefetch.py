"""Prefetches: of the next iteration of an outer loop, or one page ahead in the same loop.

A kernel with several loops over each row (the maximum, then exponentials, then their sum) reads the row from memory in the first
loop and from L1 in the others, during which memory is idle. So the second loop over a row prefetches the next row: softmax over
16 MB, in rows of 4 KB, takes 1.8 ms instead of 2.4.

The hardware prefetcher detects sequential reads, but does not cross pages, and is not far enough ahead if each element takes some
arithmetic. So a loop that reads a large buffer once prefetches one page ahead: over 64 MB a prefix sum takes 7.2 ms instead of
10.1, a copy 6.5 instead of 7.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from morok.codegen.survey import Access
from morok.ir.dtype import PtrType
from morok.ir.op import Op
from morok.ir.uop import UOp

LEAST_BYTES: Final = 1 << 20  # least bytes of a buffer with prefetched rows: L1 and L2 do not hold it
ROW_BYTES: Final = 1 << 14  # most bytes of a row: this row, the next, and results of this one fit L1
LINE_BYTES: Final = 64
STREAM_BYTES: Final = 1 << 24  # least bytes of a buffer that no cache of a core holds
PAGE_BYTES: Final = 1 << 12  # distance of a prefetch in the same loop
STEP_BYTES: Final = 1 << 10  # greatest stride of a sequential read


class Prefetch(NamedTuple):
    """A prefetch of the cache line `elements` elements ahead, into L1 if `nearest`, else into L2."""

    elements: int
    nearest: bool


class _Row(NamedTuple):
    """A row of `buffer`, `span` elements, that a loop reads in each iteration of the loop `outer`; rows are `step` elements
    apart.
    """

    buffer: UOp
    outer: UOp
    step: int
    span: int


def prefetching_loads(accesses: Sequence[Access]) -> dict[UOp, Prefetch]:
    """The loads that also prefetch: in the second loop over a row, and in the only loop that accesses a large buffer."""
    found: dict[UOp, Prefetch] = {}
    reads: dict[_Row, set[UOp]] = {}  # the loops that read each row
    # the loops that read each buffer; None for stores, and for reads outside of loops
    inside: dict[UOp, set[UOp | None]] = {}
    streams: list[Access] = []
    for a in accesses:
        size = _bytes(a.kept)
        if size < LEAST_BYTES:
            continue
        loops = a.loops
        if a.stores:
            inside.setdefault(a.kept, set()).add(None)
            continue
        inside.setdefault(a.kept, set()).add(loops[-1] if loops else None)
        if not loops or not a.consecutive:
            continue
        if size >= STREAM_BYTES and _streams(a):
            streams.append(a)
        if len(loops) > 1 and (row := _row(a)) is not None:
            readers = reads.setdefault(row, set())
            if readers and len(readers - {loops[-1]}) == 1 and _begins_line(a):
                found[a.node] = Prefetch(row.step, True)
            readers.add(loops[-1])
    for a in streams:
        if len(inside[a.kept]) == 1:
            found[a.node] = Prefetch(PAGE_BYTES // a.dtype.scalar().itemsize, False)
    return found


def _bytes(kept: UOp) -> int:
    """The bytes of a global buffer; 0 for other memory."""
    assert isinstance(kept.dtype, PtrType)
    return kept.dtype.size * kept.dtype.base.itemsize if kept.op is Op.DefineGlobal else 0


def _element(buffer: UOp) -> int:
    """The bytes of one element."""
    assert isinstance(buffer.dtype, PtrType)
    return buffer.dtype.base.itemsize


def _streams(load: Access) -> bool:
    """True if `load` reads its buffer sequentially in the innermost loop: with a small positive stride."""
    step = load.at.terms.get(load.loops[-1], 0) * _element(load.kept)
    return 0 < step <= STEP_BYTES and _begins_line(load)


def _row(load: Access) -> _Row | None:
    """The row that `load` reads in the innermost loop; None if rows overlap, or are further apart than ROW_BYTES."""
    terms = load.at.terms
    inner, outer = load.loops[-1], load.loops[-2]
    step, span = terms.get(outer, 0), terms.get(inner, 0) * int(inner.src[0].vmax)
    if not 0 < span <= step <= ROW_BYTES // _element(load.kept):
        return None
    return _Row(load.kept, outer, step, span)


def _begins_line(load: Access) -> bool:
    """True if a load of at least 16 bytes begins a cache line, provided that the buffer does."""
    line = LINE_BYTES // load.dtype.scalar().itemsize
    return load.dtype.itemsize >= 16 and load.at.factor % line == 0 and load.at.constant % line == 0
