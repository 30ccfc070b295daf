"""Loads ahead of use: in the next iteration of an outer loop, or further on in this one.

A kernel that works on a row at a time, in several loops (the greatest element, then exponentials, then their sum), reads the row
from memory in the first and from the nearest cache in the others, while memory waits. There the second loop over a row fetches
the next one: of 16 MB of rows of 4 KB, softmax takes 1.8 ms and not 2.4.

A processor notices that memory is read in order, and reads ahead by itself, but not beyond the page, and not far enough where
each element takes some arithmetic. A loop that reads a large buffer once asks for what is a page further: of 64 MB, a running
sum takes 7.2 ms and not 10.1, a copy 6.5 and not 7.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from morok.codegen.survey import Access
from morok.ir.dtype import PtrType
from morok.ir.op import Op
from morok.ir.uop import UOp

_GLOBAL: Final = Op.DefineGlobal
LEAST_BYTES: Final = 1 << 20  # of a buffer: one that the nearer caches do not hold
ROW_BYTES: Final = 1 << 14  # at most, of a row: this one, the next, and what is kept of it fit into the nearest cache
LINE_BYTES: Final = 64
STREAM_BYTES: Final = 1 << 24  # of a buffer: one that no cache of a core holds
PAGE_BYTES: Final = 1 << 12  # what lies so much further is fetched
STEP_BYTES: Final = 1 << 10  # at most, from one iteration to the next: memory is read in order


class Ahead(NamedTuple):
    """A prefetch: the line that many elements further, into the nearest cache or the one behind it."""

    elements: int
    nearest: bool


class _Row(NamedTuple):
    """A row of `buffer` that a loop reads in one iteration of the loop `outer`: `span` elements, `step` further in the next."""

    buffer: UOp
    outer: UOp
    step: int
    span: int


def loads_ahead(accesses: Sequence[Access]) -> dict[UOp, Ahead]:
    """The loads that also prefetch: in loops that are the second to read a row, and in loops that alone read a buffer, which the
    kernel does not write.
    """
    found: dict[UOp, Ahead] = {}
    reads: dict[_Row, set[UOp]] = {}  # the loops that read each row
    inside: dict[UOp, set[UOp | None]] = {}  # the loops that read each buffer
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
                found[a.node] = Ahead(row.step, True)
            readers.add(loops[-1])
    for a in streams:
        if len(inside[a.kept]) == 1:
            found[a.node] = Ahead(PAGE_BYTES // a.dtype.scalar().itemsize, False)
    return found


def _bytes(kept: UOp) -> int:
    """The size of a kernel's buffer; of other memory, 0."""
    assert isinstance(kept.dtype, PtrType)
    return kept.dtype.size * kept.dtype.base.itemsize if kept.op is _GLOBAL else 0


def _element(buffer: UOp) -> int:
    """The size of one element."""
    assert isinstance(buffer.dtype, PtrType)
    return buffer.dtype.base.itemsize


def _streams(load: Access) -> bool:
    """True if the innermost loop goes through the buffer by `load` in small steps."""
    step = load.at.terms.get(load.loops[-1], 0) * _element(load.kept)
    return 0 < step <= STEP_BYTES and _begins_line(load)


def _row(load: Access) -> _Row | None:
    """The row that the innermost loop reads by `load`, if it is one, other than those of the loops around it."""
    terms = load.at.terms
    inner, outer = load.loops[-1], load.loops[-2]
    step, span = terms.get(outer, 0), terms.get(inner, 0) * int(inner.src[0].vmax)
    if not 0 < span <= step <= ROW_BYTES // _element(load.kept):
        return None
    return _Row(load.kept, outer, step, span)


def _begins_line(load: Access) -> bool:
    """True if a vector is read from where a line begins, if the buffer begins with one."""
    line = LINE_BYTES // load.dtype.scalar().itemsize
    return load.dtype.itemsize >= 16 and load.at.factor % line == 0 and load.at.constant % line == 0
