"""Sums of products, and other computation in tiles: the loops that are rows and columns, the size of a tile, the copies."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize import packing
from morok.optimize.loop_facts import Accesses, apply, length_of, native, vectorize, widest
from morok.optimize.opts import MAX_LANES, Opt, OptOp, Scheduler
from morok.passes.affine import Linear
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import const_end

LINE_BYTES: Final = 64  # of memory, which is read and written by lines
PACK_ROWS: Final = 32  # rows that a copy must serve to be worth its time
COPY_ROWS: Final = 4  # rows that a copy must serve which turns single elements into vectors
WINDOW_TERMS: Final = 128  # of a sum of products, from which on its results may be stored across memory
NEAR_ROWS: Final = 512  # that a copy of many columns must serve: it is made and read further away than one of few
TILE: Final = 16  # vectors of a matrix product's register tile


class Copied(NamedTuple):
    """A sum of products over `rows` and `column`, ranges of the output, and the buffer `slot` of the factor with columns, which
    a copy lets run along columns; one row or more, in nesting order."""

    rows: list[UOp]
    column: UOp
    slot: int


def matmul(ast: UOp, accesses: Accesses, outputs: list[UOp], reduced: list[UOp]) -> tuple[UOp, UOp] | None:
    """The row and column ranges of a sum of products, one factor of which runs along columns element by element, and what is
    stored if possible; else None."""
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
            if r not in s.terms and any(r in t.terms and columns[0] not in t.terms for t in accesses.loads) and length_of(r) >= 2
        ]
        if rows:
            found.append((rows[-1], columns[0]))
    stored = [(row, column) for row, column in found if any(s.terms.get(column) == 1 for s in accesses.stores)]
    return next(iter(stored + found), None)


def dot_products(ast: UOp, accesses: Accesses, outputs: list[UOp], reduced: list[UOp], lanes: int) -> tuple[UOp, UOp, UOp] | None:
    """The row, column and reduced ranges of sums of products both of whose factors run along the reduced range; else None.

    Of several sums, as in a recurrent layer, all have the same rows and columns.
    """
    if not any(n.op is Op.Reduce and n.arg is Op.Add and _product(n.src[0]) for n in nodes_of(ast)):
        return None
    for k in reduced:
        along = [tuple(r for r in outputs if r in s.terms) for s in accesses.loads if s.terms.get(k) == 1]
        if len(sides := list(dict.fromkeys(along))) == 2 and length_of(k) >= 2 * lanes:
            a, b = sides
            rows, columns = [r for r in a if r not in b], [r for r in b if r not in a]
            if rows and columns:
                stored = any(s.terms.get(rows[-1]) == 1 for s in accesses.stores)  # vectors are stored along columns
                return (columns[-1], rows[-1], k) if stored else (rows[-1], columns[-1], k)
    return None


def scattered(s: Scheduler, accesses: Accesses, outputs: list[UOp], reduced: list[UOp], least: int) -> Copied | None:
    """The loops of a sum of products, one factor of which is copied so that it runs along columns, whatever the strides of both;
    None where there is no such product, or fewer than `least` outputs read each copied element.

    Of two factors that can be copied, one whose columns are whole vectors comes first, then the smaller one.
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
    """The tiling of `scattered` for a sum of products over overlapping windows along `column`, as in a convolution: vectors along
    the other factor's columns are whole ones, while windows begin anywhere, and a row of them seldom is a number of whole
    vectors.

    None where rows of windows are whole vectors and sums too short to pay for storing across memory.
    """
    if not any(column in t.terms and _overlap(t) for t in accesses.loads):
        return None
    if length_of(column) % native(s) == 0 and math.prod(map(length_of, reduced)) < WINDOW_TERMS:
        return None
    few = 4 * length_of(column) <= native(s)  # most of a vector would be idle
    return scattered(s, accesses, outputs, reduced, COPY_ROWS if few else PACK_ROWS // 2)


def _overlap(total: Linear) -> bool:
    """True if fewer elements are read than the loops have iterations: windows have elements in common."""
    ranges = {r: c for r, c in total.terms.items() if r.op is Op.Range}
    if not all(map(const_end, ranges)):
        return False
    return 1 + sum(abs(c) * (length_of(r) - 1) for r, c in ranges.items()) < math.prod(map(length_of, ranges))


def transposed(accesses: Accesses, outputs: list[UOp], lanes: int) -> tuple[UOp, UOp] | None:
    """The range that memory is read along and another one that it is written along, if there are such: a tile of both is whole
    vectors on either side.
    """
    for written in outputs:
        if all(s.terms.get(written) == 1 for s in accesses.stores) and 2 * length_of(written) >= lanes > 1:
            for read in outputs:
                turned = [s for s in accesses.loads if s.terms.get(read) == 1 and s.terms.get(written, 1) != 1]
                if read is not written and turned and length_of(read) >= lanes:
                    return read, written
    return None


def transpose_tiles(s: Scheduler, read: UOp, written: UOp, lanes: int) -> None:
    """A tile of vectors along `read` by whole lines of memory along `written`, so that lines need not be read before they are
    written; tiles follow each other along `read`, in the order in which memory is read ahead.
    """
    if read.arg[0] < written.arg[0]:
        read, written = _swapped(s, read, written)
    stored = max((n.src[1].dtype.itemsize for n in s.nodes if n.op is Op.Store), default=4)
    vectorize(s, read, lanes)
    vectorize(s, written, min(LINE_BYTES // stored, MAX_LANES // lanes, length_of(written)))


def _product(x: UOp) -> bool:
    while x.op is Op.Cast:
        x = x.src[0]
    return x.op is Op.Mul


def _shared(accesses: Accesses, row: UOp, column: UOp) -> list[UOp]:
    """The places that are read again for every row: along columns and whatever is summed over."""
    return [
        p
        for p, s in zip(accesses.places, accesses.loads, strict=True)
        if column in s.terms and row not in s.terms and any(r.arg[1] is AxisType.Reduce for r in p.ranges)
    ]


def copied_slot(s: Scheduler, accesses: Accesses, row: UOp, column: UOp) -> int | None:
    """The buffer of the factor that runs along columns, where rows read it often enough, and far enough apart, to copy it."""
    found = _shared(accesses, row, column)
    if len(found) != 1 or length_of(row) < PACK_ROWS:
        return None
    (place,) = found
    outer = [r for r in s.output_ranges if r not in (row, column)]
    return _copyable(s, place) if packing.copied_bytes(place, outer) > s.target.nearest else None


def _copyable(s: Scheduler, place: UOp) -> int | None:
    """The slot of the buffer that a place is in, if a copy can stand for it: nothing else reads it, and it is known before."""
    buffer = place.src[0]
    if buffer.op is not Op.DefineGlobal or not packing.is_plain(place) or not all(map(const_end, place.ranges)):
        return None
    slot: int = buffer.arg
    return slot if len(packing.reads_of(s.ast, slot)) == 1 and not packing.is_written(s.ast, slot) else None


def _swapped(s: Scheduler, a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """The ranges `a` and `b` once each has the other's place in the nest."""
    s.apply(Opt(OptOp.SWAP, s.ranges.index(a), s.ranges.index(b)))
    first, second = (next(r for r in s.ranges if r.arg == (o.arg[0], *x.arg[1:])) for x, o in ((a, b), (b, a)))
    return first, second


def in_copied_tiles(s: Scheduler, accesses: Accesses, product: Copied) -> None:
    """Tiles of a product whose columns are side by side in a copy alone. Rows along two axes are one tile where all of them fit,
    as those of 3 x 3 pixels."""
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


def tile_matmul(s: Scheduler, accesses: Accesses, row: UOp, column: UOp, slot: int | None, across: bool = False) -> None:
    """A block of `row` x `column` outputs in registers: rows broadcast one element, columns load vectors, from a copy of the
    columns that a block is wide if buffer `slot` is to be copied. Columns are neighbours in registers where rows are not read
    side by side, or where the copy alone makes them so (`across`).
    """
    lanes, length = native(s), length_of(column)
    lying = _lying(accesses, row, column)
    # A row shorter than a register, and all there is, has one of its own, and lies close enough to the others. Of other lanes
    # that are no power of two registers are put together one by one.
    narrow = length < lanes and length & (length - 1) > 0 and 4 * lanes == s.target.vector_bytes
    slot = None if narrow else slot
    turned = _copyable(s, lying[0]) if len(lying) == 1 else None
    near = _near_columns(s, row, column, slot, bool(lying)) if slot is not None and (turned is not None or not lying) else 0
    # With a copy of few columns, the loop over rows is inside: it reads the copy again and again. One of many columns is made
    # first, and the loop over them is inside: the rows of a block are read from afar once for all of them.
    if slot is not None and (row.arg[0] < column.arg[0]) != (near == length_of(column)):
        row, column = _swapped(s, row, column)
    if 0 < near < length_of(column):
        apply(s, OptOp.BLOCK, column, near)
        column = s.output_ranges[-1]
    rows, vectors = length_of(row), 4 if s.target.registers >= 32 else 2 if s.target.registers >= 16 else 1
    if slot is not None and not across and vectors == 4:  # a copy lies further away than rows: twice as many of these
        vectors = 2
    if across and slot is not None:  # a block's columns are read again for every tile
        (place,) = packing.reads_of(s.ast, slot)
        line = packing.copied_bytes(place, s.output_ranges)
        while vectors > 1 and vectors * lanes * line > s.target.near:
            vectors //= 2
    wide = widest(length_of(column), lanes, vectors)
    if slot is not None and wide <= lanes < length_of(column):  # of one vector, each is read with a row for itself
        wide = lanes * min(vectors, length_of(column) // lanes)
    if wide % lanes and not narrow:
        wide = 1 << (wide.bit_length() - 1)
    outside = s.output_ranges.index(row) if near else s.output_ranges.index(column) + (length_of(column) // wide > 1)
    used = min(vectors, -(-wide // lanes))
    tile = TILE // 2 if wide < lanes <= 2 * wide else TILE // used  # eight rows of less than a vector keep as many registers busy
    most = min(max(1, MAX_LANES // (wide * s.lanes(row))), max(2, (s.target.registers - 4) // used), tile)
    tall = _divided(rows, most)
    before = set(s.ranges)
    # What becomes lanes last are neighbours in registers: columns where rows could be as well.
    for r, amount in ((row, tall), (column, wide)) if lying or across else ((column, wide), (row, tall)):
        vectorize(s, r, amount)
    for r in s.output_ranges:  # columns that remain have rows of their own where the loop over rows is inside
        if r not in before and r is not row and length_of(r) == rows:
            width = s.lanes(r)
            vectorize(s, r, _divided(rows, min(MAX_LANES // width, TILE // -(-width // lanes))))
    if narrow:
        s.apply(Opt(OptOp.LANES, None, wide))
    if slot is not None:
        s.apply(Opt(OptOp.PACK, slot, outside))
        if near and turned is not None:  # the rows of a block, side by side
            s.apply(Opt(OptOp.PACK, turned, outside + 1))


def _divided(rows: int, most: int) -> int:
    """The rows of a tile that has at most so many: a divisor of all rows, but not one of few."""
    best = next((m for m in range(most, 3, -1) if rows % m == 0), 0)
    return best or min(rows, most)


def _lying(accesses: Accesses, row: UOp, column: UOp) -> list[UOp]:
    """The places of a factor whose rows lie across memory: it is read along rows element by element."""
    return [
        p
        for p, t in zip(accesses.places, accesses.loads, strict=True)
        if t.terms.get(row) == 1 and column not in t.terms and any(r.arg[1] is AxisType.Reduce for r in p.ranges)
    ]


def _near_columns(s: Scheduler, row: UOp, column: UOp, slot: int, lying: bool) -> int:
    """The number of columns of buffer `slot` to copy at once, so that rows are read from afar once for all of them: as many as a
    core's own cache keeps, where it keeps not all rows too, and the nearest one keeps the rows of a block but not the columns of
    one, or where rows are `lying` across memory. Else 0, as few as a block has. Threads would each make a copy.
    """
    lanes, (place,) = native(s), packing.reads_of(s.ast, slot)
    if s.target.threads > 1 or s.target.registers < 32 or length_of(row) % (TILE // 2):
        return 0
    loops = s.output_ranges
    outer = loops[: min(loops.index(row), loops.index(column))]
    line = packing.copied_bytes(place, outer) // length_of(column)  # of either factor: as many elements are multiplied and summed
    far = length_of(row) >= NEAR_ROWS and length_of(row) * line > s.target.near
    if not lying and not (far and TILE // 2 * line < s.target.nearest < 4 * lanes * line):
        return 0
    most = min(length_of(column), s.target.near // line)
    return max((n for n in range(2 * lanes, most + 1, 2 * lanes) if length_of(column) % n == 0), default=0)
