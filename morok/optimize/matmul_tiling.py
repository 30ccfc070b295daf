"""Register tiles, for sums of products and transposes: the loops over rows and columns, the size of a tile, packed copies."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize import packing
from morok.optimize.loop_facts import Accesses, apply, length_of, native, vectorize
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.affine import Linear
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import const_end
from morok.passes.rangeify.state import CAST, beneath
from morok.passes.register_tiles import (
    MAX_LANES,
    PACK_ROWS,
    TILE,
    divided,
    height,
    is_narrow,
    most_vectors,
    whole_lanes,
    widest,
)

LINE_BYTES: Final = 64  # bytes of a cache line
COPY_ROWS: Final = 4  # the same for a copy that makes scattered elements contiguous, and so vectors possible
WINDOW_TERMS: Final = 128  # fewest terms of a sum of products that pay for storing its results with a stride
NEAR_ROWS: Final = 512  # fewest rows that must use a copy of many columns, which is in L2 rather than L1


class Copied(NamedTuple):
    """A sum of products over the output ranges `rows` (one or more, in nesting order) and `column`, and the slot of the buffer of
    the factor with columns; a copy of that buffer is contiguous along columns.
    """

    rows: list[UOp]
    column: UOp
    slot: int


def matmul(ast: UOp, accesses: Accesses, outputs: list[UOp], reduced: list[UOp]) -> tuple[UOp, UOp] | None:
    """(row range, column range) of a sum of products with a factor of stride 1 along columns, preferably with results of stride 1
    too; else None."""
    if len(outputs) < 2 or not any(n.op is Op.Reduce and n.arg is Op.Add and _product(n.src[0]) for n in nodes_of(ast)):
        return None
    found: list[tuple[UOp, UOp]] = []
    for s in accesses.loads:
        columns = [r for r in outputs if s.terms.get(r) == 1 and length_of(r) >= 2]
        if not columns or not any(r in s.terms for r in reduced):
            continue
        rows = [
            r
            for r in outputs
            if r not in s.terms
            and any(r in t.terms and columns[0] not in t.terms for t in accesses.loads)
            and length_of(r) >= 2
        ]
        if rows:
            found.append((rows[-1], columns[0]))
    stored = [(row, column) for row, column in found if any(s.terms.get(column) == 1 for s in accesses.stores)]
    return next(iter(stored + found), None)


def dot_products(
    ast: UOp, accesses: Accesses, outputs: list[UOp], reduced: list[UOp], lanes: int
) -> tuple[UOp, UOp, UOp] | None:
    """(row, column, reduced range) of sums of products with both factors of stride 1 along the reduced range; else None.

    Several sums, as in a recurrent layer, must have the same rows and columns.
    """
    if not any(n.op is Op.Reduce and n.arg is Op.Add and _product(n.src[0]) for n in nodes_of(ast)):
        return None
    for k in reduced:
        along = [tuple(r for r in outputs if r in s.terms) for s in accesses.loads if s.terms.get(k) == 1]
        if len(sides := list(dict.fromkeys(along))) == 2 and length_of(k) >= 2 * lanes:
            a, b = sides
            rows, columns = [r for r in a if r not in b], [r for r in b if r not in a]
            if rows and columns:
                # columns are the contiguous axis of the result
                stored = any(s.terms.get(rows[-1]) == 1 for s in accesses.stores)
                return (columns[-1], rows[-1], k) if stored else (rows[-1], columns[-1], k)
    return None


def scattered(s: Scheduler, accesses: Accesses, outputs: list[UOp], reduced: list[UOp], least: int) -> Copied | None:
    """The loops of a sum of products of any strides, and the factor to copy so that it is contiguous along columns; None if there
    is none, or if fewer than `least` outputs read each copied element.

    Of two factors that can be copied, the one with whole vectors of columns is preferred, then the smaller one.
    """
    if not any(n.op is Op.Reduce and n.arg is Op.Add and _product(n.src[0]) for n in s.nodes):
        return None
    factors = [p for p, t in zip(accesses.places, accesses.loads, strict=True) if any(r in t.terms for r in reduced)]
    if len(factors) != 2:
        return None
    found: list[tuple[tuple[bool, int], Copied]] = []
    for place, other in (factors, factors[::-1]):
        columns = [r for r in outputs if r in place.ranges and r not in other.ranges and length_of(r) >= 2]
        rows = [r for r in outputs if r in other.ranges and r not in place.ranges and length_of(r) >= 2]
        reads = math.prod(length_of(r) for r in outputs if r not in place.ranges)
        if columns and rows and reads >= least and (slot := _copyable(s, place)) is not None:
            ragged = length_of(columns[-1]) % native(s) > 0
            found.append(((ragged, packing.copied_bytes(place, ())), Copied(rows, columns[-1], slot)))
    return min(found, key=lambda f: f[0])[1] if found else None


def windows(s: Scheduler, accesses: Accesses, column: UOp, outputs: list[UOp], reduced: list[UOp]) -> Copied | None:
    """The result of `scattered` for a sum of products over overlapping windows along `column`, as in a convolution: vectors along
    the other factor's columns are aligned and whole, while windows begin anywhere, and a row of windows is seldom a multiple of a
    vector.

    None if the windows do not overlap, or rows of windows are whole vectors and the sums too short to pay for strided stores.
    """
    if not any(column in t.terms and _overlap(t) for t in accesses.loads):
        return None
    if length_of(column) % native(s) == 0 and math.prod(map(length_of, reduced)) < WINDOW_TERMS:
        return None
    few = 4 * length_of(column) <= native(s)  # most of a vector would be idle
    return scattered(s, accesses, outputs, reduced, COPY_ROWS if few else PACK_ROWS // 2)


def _overlap(total: Linear) -> bool:
    """True if an access spans fewer elements than its loops have iterations: windows overlap."""
    ranges = {r: c for r, c in total.terms.items() if r.op is Op.Range}
    if not all(map(const_end, ranges)):
        return False
    return 1 + sum(abs(c) * (length_of(r) - 1) for r, c in ranges.items()) < math.prod(map(length_of, ranges))


def transposed(accesses: Accesses, outputs: list[UOp], lanes: int) -> tuple[UOp, UOp] | None:
    """(range with stride 1 in loads, another range with stride 1 in all stores) of a transpose: a tile of both has whole vectors
    in both directions. None if there are none.
    """
    for written in outputs:
        if all(s.terms.get(written) == 1 for s in accesses.stores) and 2 * length_of(written) >= lanes > 1:
            for read in outputs:
                turned = [s for s in accesses.loads if s.terms.get(read) == 1 and s.terms.get(written, 1) != 1]
                if read is not written and turned and length_of(read) >= lanes:
                    return read, written
    return None


def transpose_tiles(s: Scheduler, read: UOp, written: UOp, lanes: int) -> None:
    """Vectorize a tile of one vector along `read` by whole cache lines along `written`, so that stores need no read of a line;
    consecutive tiles are along `read`, the direction of the prefetcher.
    """
    if read.arg[0] < written.arg[0]:
        read, written = _swapped(s, read, written)
    stored = max((n.src[1].dtype.itemsize for n in s.nodes if n.op is Op.Store), default=4)
    vectorize(s, read, lanes)
    vectorize(s, written, min(LINE_BYTES // stored, MAX_LANES // lanes, length_of(written)))


def _product(x: UOp) -> bool:
    return beneath(x, CAST).op is Op.Mul


def _shared(accesses: Accesses, row: UOp, column: UOp) -> list[UOp]:
    """The loads in sums that depend on the column but not on the row: every row repeats them."""
    return [
        p
        for p, s in zip(accesses.places, accesses.loads, strict=True)
        if column in s.terms and row not in s.terms and any(r.arg[1] is AxisType.Reduce for r in p.ranges)
    ]


def copied_slot(s: Scheduler, accesses: Accesses, row: UOp, column: UOp) -> int | None:
    """The slot of the factor with columns, if enough rows repeat its reads and it exceeds L1, so that a copy pays; else None."""
    found = _shared(accesses, row, column)
    if len(found) != 1 or length_of(row) < PACK_ROWS:
        return None
    (place,) = found
    outer = [r for r in s.output_ranges if r not in (row, column)]
    return _copyable(s, place) if packing.copied_bytes(place, outer) > s.target.l1_bytes else None


def _copyable(s: Scheduler, place: UOp) -> int | None:
    """The slot of the buffer of a load, if a copy can replace the load: it is plain, with loops of constant length, and the only
    access of the buffer; else None.
    """
    buffer = place.src[0]
    if buffer.op is not Op.DefineGlobal or not packing.is_plain(place) or not all(map(const_end, place.ranges)):
        return None
    slot: int = buffer.arg
    return slot if len(packing.reads_of(s.ast, slot)) == 1 and not packing.is_written(s.ast, slot) else None


def _swapped(s: Scheduler, a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """The ranges `a` and `b` after SWAP, each in the other's position in the nest."""
    s.apply(Opt(OptOp.SWAP, s.ranges.index(a), s.ranges.index(b)))
    first, second = (next(r for r in s.ranges if r.arg == (o.arg[0], *x.arg[1:])) for x, o in ((a, b), (b, a)))
    return first, second


def in_copied_tiles(s: Scheduler, accesses: Accesses, product: Copied) -> None:
    """Tile a product whose columns are contiguous only in a copy. Two axes of rows form one tile if all their rows fit, as those
    of 3 x 3 pixels do.
    """
    row, others = product.rows[-1], product.rows[:-1]
    lanes = native(s)
    area = length_of(row) * length_of(others[-1]) if others else 0
    if 0 < area <= TILE and length_of(product.column) % lanes == 0 and area * lanes <= MAX_LANES:
        wide = widest(length_of(product.column), lanes, max(1, min(TILE // area, MAX_LANES // (area * lanes))))
        around = s.output_ranges[: s.output_ranges.index(product.column)]
        outside = sum(r not in (others[-1], row) for r in around) + (length_of(product.column) > wide)
        for r, amount in ((others[-1], length_of(others[-1])), (row, length_of(row)), (product.column, wide)):
            vectorize(s, r, amount)
        s.apply(Opt(OptOp.PACK, product.slot, outside))
    else:
        tile_matmul(s, accesses, row, product.column, product.slot, across=True)


def tile_matmul(
    s: Scheduler, accesses: Accesses, row: UOp, column: UOp, slot: int | None, across: bool = False
) -> None:
    """Vectorize `row` and `column` for a register tile of outputs: rows broadcast an element, columns load vectors. PACK copies
    the buffer `slot`, if it is given, for the columns of a tile at a time.

    across  True if the columns are contiguous in the copy alone
    """
    lanes, length = native(s), length_of(column)
    rowwise = _rowwise_loads(accesses, row, column)
    narrow = is_narrow(length, lanes, s.target)
    slot = None if narrow else slot
    turned = _copyable(s, rowwise[0]) if len(rowwise) == 1 else None
    panel = 0
    if slot is not None and (turned is not None or not rowwise):
        panel = _panel_columns(s, row, column, slot, bool(rowwise))
    # Inside a copy of few columns the inner loop is over rows, and rereads the copy. Inside a copy of many columns it is over
    # columns: the rows of a block are read from memory once for all of them.
    if slot is not None and (row.arg[0] < column.arg[0]) != (panel == length_of(column)):
        row, column = _swapped(s, row, column)
    if 0 < panel < length_of(column):
        apply(s, OptOp.BLOCK, column, panel)
        column = s.output_ranges[-1]
    rows, vectors = length_of(row), most_vectors(s.target.registers)
    if slot is not None and not across and vectors == 4:  # loads from a copy cost more: twice the rows
        vectors = 2
    if across and slot is not None:  # every tile rereads a block's columns, which must fit L2
        (place,) = packing.reads_of(s.ast, slot)
        line = packing.copied_bytes(place, s.output_ranges)
        while vectors > 1 and vectors * lanes * line > s.target.l2_bytes:
            vectors //= 2
    wide = widest(length_of(column), lanes, vectors)
    # more vectors, so that each row element is loaded for several
    if slot is not None and wide <= lanes < length_of(column):
        wide = lanes * min(vectors, length_of(column) // lanes)
    if wide % lanes and not narrow:
        wide = whole_lanes(wide)
    outside = s.output_ranges.index(row) if panel else s.output_ranges.index(column) + (length_of(column) // wide > 1)
    tall = height(rows, wide, lanes, s.target, s.lanes(row))
    before = set(s.ranges)
    # The last UPCAST is contiguous in registers: columns, if rows could be too.
    for r, amount in ((row, tall), (column, wide)) if rowwise or across else ((column, wide), (row, tall)):
        vectorize(s, r, amount)
    for r in s.output_ranges:  # the remainder of columns has its own loop over rows, if rows are the inner loop
        width = s.lanes(r)
        if r not in before and r is not row and length_of(r) == rows and width < wide:
            vectorize(s, r, divided(rows, min(MAX_LANES // width, TILE // -(-width // lanes))))
    if narrow:
        s.apply(Opt(OptOp.LANES, None, wide))
    if slot is not None:
        s.apply(Opt(OptOp.PACK, slot, outside))
        if panel and turned is not None:  # makes the rows of a block contiguous
            s.apply(Opt(OptOp.PACK, turned, outside + 1))


def _rowwise_loads(accesses: Accesses, row: UOp, column: UOp) -> list[UOp]:
    """The loads of a factor with stride 1 along rows, in a sum: the factor is transposed."""
    return [
        p
        for p, t in zip(accesses.places, accesses.loads, strict=True)
        if t.terms.get(row) == 1 and column not in t.terms and any(r.arg[1] is AxisType.Reduce for r in p.ranges)
    ]


def _panel_columns(s: Scheduler, row: UOp, column: UOp, slot: int, rowwise: bool) -> int:
    """The columns of buffer `slot` in one packed panel: as many as fit L2 (GotoBLAS, n_c), so that rows are read from memory once
    for all of them. 0, for a copy of one tile's columns, unless the rows do not fit L2 and L1 holds the rows of a tile but not
    its columns, or the loads are `rowwise` (with stride 1 along rows). 0 with several threads, which would each make a copy.
    """
    lanes, (place,) = native(s), packing.reads_of(s.ast, slot)
    if s.target.threads > 1 or s.target.registers < 32 or length_of(row) % (TILE // 2):
        return 0
    loops = s.output_ranges
    outer = loops[: min(loops.index(row), loops.index(column))]
    line = packing.copied_bytes(place, outer) // length_of(column)  # bytes of a column, and of a row
    exceeds_l2 = length_of(row) >= NEAR_ROWS and length_of(row) * line > s.target.l2_bytes
    if not rowwise and not (exceeds_l2 and TILE // 2 * line < s.target.l1_bytes < 4 * lanes * line):
        return 0
    most = min(length_of(column), s.target.l2_bytes // line)
    return max((n for n in range(2 * lanes, most + 1, 2 * lanes) if length_of(column) % n == 0), default=0)
