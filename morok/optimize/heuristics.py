"""Which optimizations a kernel gets when nobody measures: rules from the shape of its loops and the strides of its accesses."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Final

from morok import config
from morok.errors import OptError
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize import packing, scans, strips, threads
from morok.optimize.opts import MAX_LANES, Opt, OptOp, Scheduler
from morok.passes.affine import Linear, place_sums
from morok.passes.nesting import nesting
from morok.passes.ranges import const_end
from morok.passes.target import Target

PACK_BYTES: Final = 1 << 15  # a factor smaller than this stays in the nearest cache as it lies
PACK_ROWS: Final = 32  # rows that a copy must serve to be worth its time
NEAR_BYTES: Final = 1 << 20  # what a core's own cache keeps beside what passes through it
NEAR_ROWS: Final = 512  # that a copy of many columns must serve: it is made and read further away than one of few
TILE: Final = 16  # vectors of a matrix product's register tile
SUM_VECTORS: Final = 4  # vector accumulators of a reduction to one number
COLUMN_VECTORS: Final = 16  # vector accumulators of neighbouring reductions
LINE_BYTES: Final = 64  # of memory, which is read and written by lines
STREAM_VECTORS: Final = 2  # vectors a step of an elementwise loop
STRIP_READS: Final = 1 << 21  # bytes that a fold reads beyond which it waits for memory, and is to read that in order
STRIP_ROWS: Final = 32  # that a strip adds up, to be worth its own reads and writes
STRIP_BYTES: Final = 1 << 12  # at least, of a part of a row: what is read in one go
SHORT_ROWS: Final = 1 << 13  # rows, that more code for them takes longer to compile than to run one by one
GPU_THREADS: Final = (256, 128, 64, 32)
GPU_BUSY: Final = 1 << 14  # threads that outputs alone must give to fill a GPU
GPU_SHARED: Final = 8  # threads from which on it is worth it that they share a reduction


@dataclass(frozen=True, slots=True)
class Accesses:
    """Every scalar access of a kernel, as a sum of ranges; `places` are those that the loads read."""

    places: list[UOp]
    loads: list[Linear]
    stores: list[Linear]
    reduces: bool

    @staticmethod
    def of(ast: UOp) -> Accesses:
        nodes = ast.toposort()
        stored = {n.src[0] for n in nodes if n.op is Op.Store}
        sums = place_sums(nodes)
        read = [(p, s) for p, s in sums if p not in stored]
        return Accesses(
            [p for p, _ in read],
            [s for _, s in read],
            [s for p, s in sums if p in stored],
            any(n.op is Op.Reduce for n in nodes),
        )

    def unit(self, r: UOp, stores: bool | None = None) -> int:
        """How many accesses move by one element along `r`, less those that move by more. Stores count double, but not beside a
        reduction, which reads much more than it writes."""
        score = 0
        for weight, sums in ((1, self.loads), (2 if stores or (stores is None and not self.reduces) else 0, self.stores)):
            for s in sums:
                c = s.terms.get(r, 0)
                score += weight if c == 1 else -weight if c else 0
        return score


def native(s: Scheduler) -> int:
    """Lanes of a register, for the widest numbers that the kernel computes with; narrow ones count as 32 bits."""
    widest = max((n.dtype.scalar().itemsize for n in s.ast.toposort() if n.op in (Op.Reduce, Op.Index)), default=4)
    return max(1, s.target.vector_bytes // max(4, widest))


def optimize(ast: UOp, target: Target) -> UOp:
    """The kernel `ast` with the optimizations chosen for `target`."""
    scheduler = Scheduler(ast, target)
    if target.has_local:
        _gpu(scheduler)
    elif target.vector_bytes:
        _cpu(scheduler)
        if target.threads > 1 and threads.cost_ns(ast) >= threads.WORTH_NS:
            _thread(scheduler)
    return scheduler.kernel()


def _thread(s: Scheduler) -> None:
    """THREAD over a loop of each output, where that is legal."""
    as_nested = any(opt.op is OptOp.SWAP for opt in s.applied)
    for r in threads.loops(s.ast, s.target.threads, as_nested):
        with contextlib.suppress(OptError):
            _apply(s, OptOp.THREAD, r, 0)


def _apply(s: Scheduler, op: OptOp, r: UOp, amount: int) -> None:
    among = s.reduced_ranges if op is OptOp.UNROLL else s.ranges
    s.apply(Opt(op, among.index(r), amount))


def _length(r: UOp) -> int:
    return const_end(r) or 0


def _widest(length: int, lanes: int, vectors: int) -> int:
    """Lanes for a loop of this length: as many whole vectors as divide it, else one vector and a remainder, else all of it."""
    for v in (vectors, *[1 << k for k in reversed(range(vectors.bit_length()))]):
        if v <= vectors and length % (lanes * v) == 0:
            return lanes * v
    if length >= 2 * lanes:
        return lanes * (vectors if length >= 8 * lanes * vectors else 1)
    return length


# CPU


def _cpu(s: Scheduler) -> None:
    accesses = Accesses.of(s.ast)
    stored = {r for end in s.ast.src for r in end.src[1:]}
    _fill(s, accesses, [r for r in s.output_ranges if r not in stored])
    outputs = [r for r in s.output_ranges if _length(r) > 1 and r in stored and not s.fills_within(r)]
    ordered = s.ordered_ranges
    if ordered:
        _scan(s, accesses, outputs, ordered)
        return
    reduced = [r for r in s.reduced_ranges if _length(r) > 1]
    if reduced and (config.K_VECTORIZE.value or config.NO_OUTPUT_UPCAST.value):
        _unroll(s, max(reduced, key=lambda r: (accesses.unit(r), r.arg[0])), native(s), SUM_VECTORS)
        return
    if reduced and (inner := _after_reductions(s.ast, outputs)):
        _rows(s, accesses, inner, reduced)
        return
    if reduced and (tile := _matmul(s.ast, accesses, outputs, reduced)) is not None:
        _tile(s, accesses, *tile, _copied_slot(s, accesses, *tile))
        return
    lanes = native(s)
    if reduced and (dots := _dot_products(s.ast, accesses, outputs, reduced, lanes)) is not None:
        row, column, along = dots
        slot = _copied_slot(s, accesses, row, column) if _length(column) >= 2 * lanes else None
        if slot is not None:
            _tile(s, accesses, row, column, slot)
            return
        _unroll(s, along, lanes, 1)
        for r in (column, row):
            _upcast(s, r, 1, next((n for n in (4, 2) if _length(r) % n == 0), 1))
        return
    if not reduced and (turned := _transposed(accesses, outputs, lanes)) is not None:
        _turn(s, *turned, lanes)
        return
    across = max(outputs, key=lambda r: (accesses.unit(r), r.arg[0]), default=None)
    if across is not None and accesses.unit(across) > 0 and (_length(across) >= lanes // 2 or not reduced):
        best = max([accesses.unit(r) for r in reduced], default=0)
        if best <= accesses.unit(across):
            if reduced and (width := _strip_width(s, accesses, across, reduced)) and _strip(s, across, width, lanes):
                return
            _upcast(s, across, lanes, COLUMN_VECTORS if reduced else STREAM_VECTORS)
            return
    if len(reduced) == 1 and (rows := _short_rows(accesses, outputs, reduced[0], lanes)) is not None:
        _apply(s, OptOp.UNROLL, reduced[0], 0)
        _upcast(s, rows, lanes, 1)
        return
    for r in reduced:
        if accesses.unit(r) > 0 and _length(r) >= lanes:
            _unroll(s, r, lanes, SUM_VECTORS)


def _short_rows(accesses: Accesses, outputs: list[UOp], r: UOp, lanes: int) -> UOp | None:
    """The range over many rows, each no longer than half a vector, which lie one behind the other and are folded along `r`: of as
    many rows as a vector has lanes, memory is read whole. None where there is no such range.
    """
    length = _length(r)
    if not 1 < length <= lanes // 2 or accesses.unit(r) <= 0:
        return None
    for row in outputs:
        behind = all(s.terms.get(row) == length for s in accesses.loads if r in s.terms)
        if behind and _length(row) >= SHORT_ROWS and all(s.terms.get(row) == 1 for s in accesses.stores):
            return row
    return None


def _strip_width(s: Scheduler, accesses: Accesses, across: UOp, reduced: list[UOp]) -> int:
    """How many of the neighbouring results of a fold to keep at once, where it reads so much, row by row, that it waits for
    memory and registers do not hold a row of results; else 0. All threads are to have some of them.
    """
    length = _length(across)
    rows = [
        (p.dtype.itemsize, math.prod(_length(r) for r in t.terms if r.op is Op.Range))
        for p, t in zip(accesses.places, accesses.loads, strict=True)
        if t.terms.get(across) == 1 and any(abs(t.terms.get(r, 0)) >= length for r in reduced)
    ]
    read = max((size * elements for size, elements in rows), default=0)
    if length <= COLUMN_VECTORS * native(s) or read < STRIP_READS or math.prod(map(_length, reduced)) < STRIP_ROWS:
        return 0
    if length * max(n.dtype.itemsize for n in s.ast.toposort() if n.op is Op.Reduce) > strips.MAX_BYTES:
        return 0
    if s.target.threads == 1 or any(_length(r) % s.target.threads == 0 for r in s.output_ranges if r is not across):
        return length
    width = length // s.target.threads
    return 0 if length % s.target.threads or width * min(size for size, _ in rows) < STRIP_BYTES else width


def _strip(s: Scheduler, across: UOp, width: int, lanes: int) -> bool:
    """Keep strips of results, and use them a few vectors at a time; whether that was possible."""
    before = set(s.ranges) - {across}
    try:
        _apply(s, OptOp.STRIP, across, width)
    except OptError:
        return False
    used = [r for end in s.ast.src for r in end.src[1:] if r not in before and _length(r) == width]
    _upcast(s, max(used, key=lambda r: r.arg[0]), lanes, STREAM_VECTORS)
    return True


def _scan(s: Scheduler, accesses: Accesses, outputs: list[UOp], ordered: list[UOp]) -> None:
    """Folds that continue from iteration to iteration: in blocks of a vector where memory runs along them, else side by side."""
    lanes = native(s)
    across = max(outputs, key=lambda r: (accesses.unit(r, stores=True), r.arg[0]), default=None)
    for r in ordered:
        along = sum(accesses.unit(x, stores=True) for x in (r, *[n.src[1] for n in scans.folds(s.ast, r)]))
        if across is not None and accesses.unit(across, stores=True) > along:
            _upcast(s, across, lanes, COLUMN_VECTORS)
            return
        blocks = [n for n in (lanes, lanes // 2, lanes // 4) if n >= 4 and _length(r) % n == 0]
        if blocks and along > 0:
            _apply(s, OptOp.UNROLL, r, blocks[0])


def _after_reductions(ast: UOp, outputs: list[UOp]) -> list[UOp]:
    """The output ranges that no reduction knows of: loops behind them, inside the loops that they share. A loop around those does
    the same again, and is none of these."""
    known = frozenset[UOp]().union(*[n.ranges for n in ast.toposort() if n.op is Op.Reduce])
    shared = max([nesting(r) for r in outputs if r in known], default=None)
    return [r for r in outputs if r not in known and (shared is None or nesting(r) > shared)]


def _fill(s: Scheduler, accesses: Accesses, ranges: list[UOp]) -> None:
    """Loops that fill local buffers, which run along the buffer or along what they read."""
    for r in ranges:
        if accesses.unit(r, stores=True) > 0 and _length(r) > 1:
            _upcast(s, r, native(s), STREAM_VECTORS)


def _rows(s: Scheduler, accesses: Accesses, inner: list[UOp], reduced: list[UOp]) -> None:
    """Reductions, and then loops over what uses their results: each is vectorized along memory, as if it were alone."""
    lanes = native(s)
    for r in reduced:
        if accesses.unit(r) > 0 and _length(r) >= lanes:
            _unroll(s, r, lanes, SUM_VECTORS)
    for r in inner:
        if accesses.unit(r, stores=True) > 0:
            _upcast(s, r, lanes, STREAM_VECTORS)


def _upcast(s: Scheduler, r: UOp, lanes: int, vectors: int) -> None:
    _vectorize(s, r, _widest(_length(r), lanes, vectors))


def _vectorize(s: Scheduler, r: UOp, amount: int) -> None:
    """UPCAST by `amount`, and what remains of the range altogether, as far as lanes go; nothing where outputs are not to be
    vectorized."""
    rest = _length(r) % amount
    if config.NO_OUTPUT_UPCAST.value or amount < 2 or amount * s.lanes(r) > MAX_LANES:
        return
    before = set(s.ranges)
    _apply(s, OptOp.UPCAST, r, amount)
    if rest > 1:
        for x in s.output_ranges:
            if x not in before and _length(x) == rest and x.arg[1] is AxisType.Loop and rest * s.lanes(x) <= MAX_LANES:
                _apply(s, OptOp.UPCAST, x, rest)
                return


def _unroll(s: Scheduler, r: UOp, lanes: int, vectors: int) -> None:
    amount = _widest(_length(r), lanes, vectors)
    if amount * s.lanes(r) <= MAX_LANES:
        _apply(s, OptOp.UNROLL, r, amount)


def _matmul(ast: UOp, accesses: Accesses, outputs: list[UOp], reduced: list[UOp]) -> tuple[UOp, UOp] | None:
    """The row and column ranges of a sum of products, one factor of which runs along columns element by element, and what is
    stored if possible; else None."""
    if len(outputs) < 2 or not any(n.op is Op.Reduce and n.arg is Op.Add and _product(n.src[0]) for n in ast.toposort()):
        return None
    found: list[tuple[UOp, UOp]] = []
    for s in accesses.loads:
        columns = [r for r in outputs if s.terms.get(r) == 1 and _length(r) >= 2]
        if not columns or not any(r in s.terms for r in reduced):
            continue
        rows = [
            r
            for r in outputs
            if r not in s.terms and any(r in t.terms and columns[0] not in t.terms for t in accesses.loads) and _length(r) >= 2
        ]
        if rows:
            found.append((rows[-1], columns[0]))
    stored = [(row, column) for row, column in found if any(s.terms.get(column) == 1 for s in accesses.stores)]
    return next(iter(stored + found), None)


def _dot_products(
    ast: UOp, accesses: Accesses, outputs: list[UOp], reduced: list[UOp], lanes: int
) -> tuple[UOp, UOp, UOp] | None:
    """The row, column and reduced ranges of a sum of products both of whose factors run along the reduced range; else None."""
    if not any(n.op is Op.Reduce and n.arg is Op.Add and _product(n.src[0]) for n in ast.toposort()):
        return None
    for k in reduced:
        along = [s for s in accesses.loads if s.terms.get(k) == 1]
        if len(along) == 2 and _length(k) >= 2 * lanes:
            a, b = ([r for r in outputs if r in s.terms] for s in along)
            rows, columns = [r for r in a if r not in b], [r for r in b if r not in a]
            if rows and columns:
                stored = any(s.terms.get(rows[-1]) == 1 for s in accesses.stores)  # vectors are stored along columns
                return (columns[-1], rows[-1], k) if stored else (rows[-1], columns[-1], k)
    return None


def _transposed(accesses: Accesses, outputs: list[UOp], lanes: int) -> tuple[UOp, UOp] | None:
    """Where memory is read along one range and written along another, those: a tile of both is whole vectors on either side."""
    for written in outputs:
        if all(s.terms.get(written) == 1 for s in accesses.stores) and 2 * _length(written) >= lanes > 1:
            for read in outputs:
                turned = [s for s in accesses.loads if s.terms.get(read) == 1 and s.terms.get(written, 1) != 1]
                if read is not written and turned and _length(read) >= lanes:
                    return read, written
    return None


def _turn(s: Scheduler, read: UOp, written: UOp, lanes: int) -> None:
    """A tile of vectors along `read` by whole lines of memory along `written`, so that what is written need not be read first;
    tiles follow each other along `read`, in the order in which memory is read ahead."""
    if read.arg[0] < written.arg[0]:
        read, written = _swapped(s, read, written)
    stored = max((n.src[1].dtype.itemsize for n in s.ast.toposort() if n.op is Op.Store), default=4)
    _vectorize(s, read, lanes)
    _vectorize(s, written, min(LINE_BYTES // stored, MAX_LANES // lanes, _length(written)))


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


def _copied_slot(s: Scheduler, accesses: Accesses, row: UOp, column: UOp) -> int | None:
    """The buffer of the factor that runs along columns, where rows read it often enough, and far enough apart, to copy it."""
    found = _shared(accesses, row, column)
    if len(found) != 1 or _length(row) < PACK_ROWS:
        return None
    (place,) = found
    outer = [r for r in s.output_ranges if r not in (row, column)]
    return _copyable(s, place) if packing.copied_bytes(place, outer) > PACK_BYTES else None


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


def _tile(s: Scheduler, accesses: Accesses, row: UOp, column: UOp, slot: int | None) -> None:
    """A block of `row` x `column` outputs in registers: rows broadcast one element, columns load vectors, from a copy of the
    columns that a block is wide if buffer `slot` is to be copied.
    """
    lanes, length = native(s), _length(column)
    lying = _lying(accesses, row, column)
    # A row shorter than a register, and all there is, has one of its own, and lies close enough to the others. Of other lanes
    # that are no power of two registers are put together one by one.
    narrow = length < lanes and length & (length - 1) > 0 and 4 * lanes == s.target.vector_bytes
    slot = None if narrow else slot
    turned = _copyable(s, lying[0]) if len(lying) == 1 else None
    near = _near_columns(s, row, column, slot, bool(lying)) if slot is not None and (turned is not None or not lying) else 0
    # With a copy of few columns, the loop over rows is inside: it reads the copy again and again. One of many columns is made
    # first, and the loop over them is inside: the rows of a block are read from afar once for all of them.
    if slot is not None and (row.arg[0] < column.arg[0]) != (near == _length(column)):
        row, column = _swapped(s, row, column)
    if 0 < near < _length(column):
        _apply(s, OptOp.BLOCK, column, near)
        column = s.output_ranges[-1]
    rows, vectors = _length(row), 4 if s.target.registers >= 32 else 2 if s.target.registers >= 16 else 1
    if near:  # twice as many rows, which are near, and half as many columns, which are less so
        vectors = max(1, vectors // 2)
    wide = _widest(_length(column), lanes, vectors)
    if wide % lanes and not narrow:
        wide = 1 << (wide.bit_length() - 1)
    outside = s.output_ranges.index(row) if near else s.output_ranges.index(column) + (wide < _length(column))
    used = min(vectors, -(-wide // lanes))
    tile = TILE // 2 if wide < lanes <= 2 * wide else TILE // used  # eight rows of less than a vector keep as many registers busy
    most = min(max(1, MAX_LANES // (wide * s.lanes(row))), max(2, (s.target.registers - 4) // used), tile)
    tall = _divided(rows, most)
    before = set(s.ranges)
    # What becomes lanes last are neighbours in registers: columns where rows could be as well.
    for r, amount in ((row, tall), (column, wide)) if lying else ((column, wide), (row, tall)):
        _vectorize(s, r, amount)
    for r in s.output_ranges:  # columns that remain have rows of their own where the loop over rows is inside
        if r not in before and r is not row and _length(r) == rows and (width := s.lanes(r)) > 1:
            _vectorize(s, r, _divided(rows, min(MAX_LANES // width, TILE // -(-width // lanes))))
    if narrow:
        s.apply(Opt(OptOp.LANES, None, wide))
    if slot is not None:
        s.apply(Opt(OptOp.PACK, slot, outside))
        if near and turned is not None:  # the rows of a block, side by side
            s.apply(Opt(OptOp.PACK, turned, outside + 1))


def _divided(rows: int, most: int) -> int:
    """How many rows of a tile that has at most so many: a divisor of all rows, but not one of few."""
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
    """How many columns of buffer `slot` to copy at once, so that rows are read from afar once for all of them: as many as a
    core's own cache keeps, where it keeps not all rows too, and the nearest one keeps the rows of a block but not the columns of
    one, or where rows are `lying` across memory. Else 0, as few as a block has. Threads would each make a copy.
    """
    lanes, (place,) = native(s), packing.reads_of(s.ast, slot)
    if s.target.threads > 1 or s.target.registers < 32 or _length(row) % (TILE // 2):
        return 0
    loops = s.output_ranges
    outer = loops[: min(loops.index(row), loops.index(column))]
    line = packing.copied_bytes(place, outer) // _length(column)  # of either factor: as many elements are multiplied and summed
    far = _length(row) >= NEAR_ROWS and _length(row) * line > NEAR_BYTES
    if not lying and not (far and TILE // 2 * line < PACK_BYTES < 4 * lanes * line):
        return 0
    most = min(_length(column), NEAR_BYTES // line)
    return max((n for n in range(2 * lanes, most + 1, 2 * lanes) if _length(column) % n == 0), default=0)


# GPU


def _gpu(s: Scheduler) -> None:
    accesses = Accesses.of(s.ast)
    outputs = [r for r in s.output_ranges if _length(r) > 1]
    reduced = [r for r in s.reduced_ranges if _length(r) > 1]
    tile = _matmul(s.ast, accesses, outputs, reduced) if reduced else None
    if reduced and tile is None and _grouped(s, accesses, outputs, reduced):
        return
    if not outputs:
        return
    across = max(outputs, key=lambda r: (accesses.unit(r), r.arg[0]))
    if tile is not None:
        for r in tile:
            if _length(r) % 4 == 0 and _length(r) >= 64:
                _apply(s, OptOp.UPCAST, r, 4)
    elif accesses.unit(across) > 0 and _length(across) % 4 == 0 and _length(across) >= 512:
        _apply(s, OptOp.UPCAST, across, 4)
    block = 1
    sizes = (16, 8, 4) if tile is not None else GPU_THREADS
    # a block has a fixed number of threads, and one buffer of its own
    known = [r for r in s.output_ranges if _length(r) > 1 and not s.fills_within(r)]
    for r in sorted(known, key=lambda r: (accesses.unit(r), r.arg[0]), reverse=True)[:2]:
        limit = 256 // block
        amount = next((n for n in sizes if n <= limit and _length(r) % n == 0), 0) or _divisor(_length(r), min(limit, sizes[0]))
        if amount > 1:
            block *= amount
            _apply(s, OptOp.LOCAL, r, amount)


def _grouped(s: Scheduler, accesses: Accesses, outputs: list[UOp], reduced: list[UOp]) -> bool:
    """Let the threads of a block share each reduction where outputs alone, a thread each, would leave most of a GPU idle; whether
    they do.

    Along memory they read neighbours, for a few rows at once, as for a product of a matrix and a vector; where outputs are the
    neighbours, as many of them as fill a block share it.
    """
    if math.prod(_length(r) or 1 for r in outputs) > GPU_BUSY or any(const_end(r) is None for r in s.ranges):
        return False
    along = max(reduced, key=lambda r: (accesses.unit(r), _length(r)))
    across = max(outputs, key=lambda r: (accesses.unit(r), r.arg[0]), default=None)
    neighbours = accesses.unit(along) > 0
    shared = _divisor(_length(along), 256 if across is None else 64 if neighbours else 16)
    if shared < GPU_SHARED:
        return False
    trial = Scheduler(s.ast, s.target)
    with contextlib.suppress(OptError):  # a reduction inside another loop is no block's
        if across is not None and (rows := _divisor(_length(across), 256 // shared if not neighbours else 4)) > 1:
            _apply(trial, OptOp.LOCAL, across, rows)
        trial.apply(Opt(OptOp.GROUP, trial.reduced_ranges.index(along), shared))
        for opt in trial.applied:
            s.apply(opt)
        return True
    return False


def _divisor(n: int, most: int) -> int:
    """The greatest divisor of `n` up to `most`."""
    return max((d for d in range(1, min(n, most) + 1) if n % d == 0), default=1)
