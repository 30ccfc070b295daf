"""The default optimizations of a kernel, without timing: heuristics on loop lengths and the strides of accesses."""

from __future__ import annotations

import contextlib
import math
from typing import Final

from morok import config
from morok.errors import OptError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize import prefix_scan, strips, thread_loops
from morok.optimize.loop_facts import Accesses, apply, length_of, native, unroll, upcast
from morok.optimize.matmul_tiling import (
    COPY_ROWS,
    copied_slot,
    dot_products,
    in_copied_tiles,
    matmul,
    scattered,
    tile_matmul,
    transpose_tiles,
    transposed,
    windows,
)
from morok.optimize.opts import Opt, OptOp
from morok.optimize.packing import is_plain
from morok.optimize.scheduler import Scheduler
from morok.passes.nesting import nesting
from morok.passes.node_order import nodes_of
from morok.passes.range_stages import const_end
from morok.passes.target import Target

SUM_VECTORS: Final = 4  # vector accumulators of a reduction to a scalar
COLUMN_VECTORS: Final = 16  # vector accumulators of adjacent reductions
STREAM_VECTORS: Final = 2  # vectors per iteration of an elementwise loop
STRIP_READS: Final = 1 << 21  # least bytes read by a memory-bound fold, which should read memory in order
STRIP_ROWS: Final = 32  # least rows to fold for a strip to pay for its own reads and writes
STRIP_BYTES: Final = 1 << 12  # least bytes of the part of a row in one strip: one sequential read
SHORT_ROWS: Final = 1 << 13  # least rows to vectorize short folds: for fewer, compiling the code takes longer than it saves
GPU_THREADS: Final = (256, 128, 64, 32)  # sizes of a block
GPU_BUSY: Final = 1 << 14  # outputs that fill a GPU with one thread each
GPU_SHARED: Final = 8  # fewest threads to share a reduction


def optimize(ast: UOp, target: Target) -> UOp:
    """The kernel `ast` with the optimizations chosen for `target`, up to the first that is illegal.

    The choice looks at the loops only; each optimization then checks the current kernel. If it is illegal, the kernel keeps the
    optimizations before it: that costs speed, never correctness.
    """
    scheduler = Scheduler(ast, target)
    choose = _gpu if target.has_local else _cpu if target.vector_bytes else None
    if choose is None:
        return scheduler.kernel()
    try:
        choose(scheduler)
    except OptError as error:
        refused(error)
    if choose is _cpu and target.threads > 1 and thread_loops.cost_ns(ast) >= thread_loops.WORTH_NS:
        _thread(scheduler)
    return scheduler.kernel()


def refused(error: OptError) -> None:
    """Ignore an illegal choice of the heuristics; under MOROK_CHECK, as in the tests, raise the error."""
    if config.CHECK.value:
        raise error


def _thread(s: Scheduler) -> None:
    """Apply THREAD to one loop of each output, if legal."""
    as_nested = any(opt.op is OptOp.SWAP for opt in s.applied)
    for r in thread_loops.loops(s.ast, s.target.threads, as_nested):
        with contextlib.suppress(OptError):
            apply(s, OptOp.THREAD, r, 0)


# CPU


def _cpu(s: Scheduler) -> None:
    accesses = Accesses.of(s.ast)
    stored = {r for end in s.ast.src for r in end.src[1:]}
    _fill(s, accesses, [r for r in s.output_ranges if r not in stored])
    outputs = [r for r in s.output_ranges if length_of(r) > 1 and r in stored and not s.fills_within(r)]
    ordered = s.ordered_ranges
    if ordered:
        _scan(s, accesses, outputs, ordered)
        return
    reduced = [r for r in s.reduced_ranges if length_of(r) > 1]
    if reduced and _along_reductions():
        unroll(s, max(reduced, key=lambda r: (accesses.unit(r), r.arg[0])), native(s), SUM_VECTORS)
        return
    if reduced and (inner := _after_reductions(s.ast, outputs)):
        _rows(s, accesses, inner, reduced)
        return
    if reduced and (tile := matmul(s.ast, accesses, outputs, reduced)) is not None:
        if (product := windows(s, accesses, tile[1], outputs, reduced)) is not None:
            in_copied_tiles(s, accesses, product)
        else:
            tile_matmul(s, accesses, *tile, copied_slot(s, accesses, *tile))
        return
    lanes = native(s)
    if reduced and (dots := dot_products(s.ast, accesses, outputs, reduced, lanes)) is not None:
        row, column, along = dots
        slot = copied_slot(s, accesses, row, column) if length_of(column) >= 2 * lanes else None
        if slot is not None:
            tile_matmul(s, accesses, row, column, slot)
            return
        unroll(s, along, lanes, 1)
        for r in (column, row):
            upcast(s, r, 1, next((n for n in (4, 2) if length_of(r) % n == 0), 1))
        return
    if reduced and (product := scattered(s, accesses, outputs, reduced, COPY_ROWS)) is not None:
        in_copied_tiles(s, accesses, product)
        return
    if not reduced and (turned := transposed(accesses, outputs, lanes)) is not None:
        transpose_tiles(s, *turned, lanes)
        return
    accesses = accesses.inside(reduced)  # loads outside of reductions are few
    across = max(outputs, key=lambda r: (accesses.unit(r), r.arg[0]), default=None)
    if across is not None and accesses.unit(across) > 0 and (length_of(across) >= lanes // 2 or not reduced):
        best = max([accesses.unit(r) for r in reduced if length_of(r) >= lanes], default=0)
        if best <= accesses.unit(across):
            if reduced and (width := _strip_width(s, accesses, across, reduced)) and _strip(s, across, width, lanes):
                return
            upcast(s, across, lanes, COLUMN_VECTORS if reduced else STREAM_VECTORS)
            return
    if len(reduced) == 1 and (rows := _short_rows(accesses, outputs, reduced[0], lanes)) is not None:
        apply(s, OptOp.UNROLL, reduced[0], 0)
        upcast(s, rows, lanes, 1)
        return
    for r in reduced:
        if accesses.unit(r) > 0 and length_of(r) >= lanes:
            unroll(s, r, lanes, SUM_VECTORS)
    if (side := _waiting_folds(s, accesses, outputs, reduced, lanes)) is not None:
        upcast(s, side, lanes, 1)


def _waiting_folds(s: Scheduler, accesses: Accesses, outputs: list[UOp], reduced: list[UOp], lanes: int) -> UOp | None:
    """The output range to vectorize for short folds although their operands are not contiguous, as in pooling with a stride; None
    if a fold is long, or scalar code is as fast.

    Scalar code has the latency of each comparison of a maximum, and of each branch of a gate. Vectors share these latencies, and
    the computation of the operands, which saves more than gathering costs. Sums of plain loads overlap in scalar code too.
    """
    folds = [n for n in s.nodes if n.op is Op.Reduce]
    if not folds or any(length_of(r) >= lanes for r in reduced):
        return None
    as_read = all(_is_read(n.src[0]) for n in folds)
    if as_read and all(n.arg in (Op.Add, Op.Mul) for n in folds) and all(map(is_plain, accesses.places)):
        return None
    along = [{t.terms.get(r, 0) for t in accesses.stores} for r in outputs]  # 0: a store to a local buffer
    stored = [r for r, steps in zip(outputs, along, strict=True) if length_of(r) >= lanes and 1 in steps and steps <= {0, 1}]
    return max(stored, key=lambda r: r.arg[0], default=None)


def _is_read(value: UOp) -> bool:
    while value.op is Op.Cast:
        value = value.src[0]
    return value.op is Op.Index


def _short_rows(accesses: Accesses, outputs: list[UOp], r: UOp, lanes: int) -> UOp | None:
    """The output range over many contiguous rows, each at most half a vector long and folded along `r`: a vector of rows then
    reads contiguous memory. None if there is no such range.
    """
    length = length_of(r)
    if not 1 < length <= lanes // 2 or accesses.unit(r) <= 0:
        return None
    for row in outputs:
        behind = all(s.terms.get(row) == length for s in accesses.loads if r in s.terms)
        if behind and length_of(row) >= SHORT_ROWS and all(s.terms.get(row) == 1 for s in accesses.stores):
            return row
    return None


def _strip_width(s: Scheduler, accesses: Accesses, across: UOp, reduced: list[UOp]) -> int:
    """The number of adjacent results to keep in a strip, for a fold that is memory-bound, reads row by row, and has more results
    in a row than registers hold; else 0. If threads must divide this loop, each gets one strip.
    """
    length = length_of(across)
    rows = [
        (p.dtype.itemsize, math.prod(length_of(r) for r in t.terms if r.op is Op.Range))
        for p, t in zip(accesses.places, accesses.loads, strict=True)
        if t.terms.get(across) == 1 and any(abs(t.terms.get(r, 0)) >= length for r in reduced)
    ]
    read = max((size * elements for size, elements in rows), default=0)
    if length <= COLUMN_VECTORS * native(s) or read < STRIP_READS or math.prod(map(length_of, reduced)) < STRIP_ROWS:
        return 0
    if length * max(n.dtype.itemsize for n in s.nodes if n.op is Op.Reduce) > strips.MAX_BYTES:
        return 0
    if s.target.threads == 1 or any(length_of(r) % s.target.threads == 0 for r in s.output_ranges if r is not across):
        return length
    width = length // s.target.threads
    return 0 if length % s.target.threads or width * min(size for size, _ in rows) < STRIP_BYTES else width


def _strip(s: Scheduler, across: UOp, width: int, lanes: int) -> bool:
    """True after STRIP, with the loop over its results vectorized; False, and no change, if STRIP is illegal."""
    before = set(s.ranges) - {across}
    try:
        apply(s, OptOp.STRIP, across, width)
    except OptError:
        return False
    used = [r for end in s.ast.src for r in end.src[1:] if r not in before and length_of(r) == width]
    upcast(s, max(used, key=lambda r: r.arg[0]), lanes, STREAM_VECTORS)
    return True


def _scan(s: Scheduler, accesses: Accesses, outputs: list[UOp], ordered: list[UOp]) -> None:
    """Vectorize prefix scans: in blocks of one vector along the scan if memory is contiguous along it, else across scans."""
    lanes = native(s)
    across = max(outputs, key=lambda r: (accesses.unit(r, stores=True), r.arg[0]), default=None)
    for r in ordered:
        along = sum(accesses.unit(x, stores=True) for x in (r, *[n.src[1] for n in prefix_scan.folds(s.ast, r)]))
        if across is not None and accesses.unit(across, stores=True) > along:
            upcast(s, across, lanes, COLUMN_VECTORS)
            return
        blocks = [n for n in (lanes, lanes // 2, lanes // 4) if n >= 4 and length_of(r) % n == 0]
        if blocks and along > 0:
            apply(s, OptOp.UNROLL, r, blocks[0])


def _after_reductions(ast: UOp, outputs: list[UOp]) -> list[UOp]:
    """The output ranges of loops after the reductions: no reduction depends on them, and they nest inside the output ranges that
    reductions depend on.
    """
    known = frozenset[UOp]().union(*[n.ranges for n in nodes_of(ast) if n.op is Op.Reduce])
    shared = max([nesting(r) for r in outputs if r in known], default=None)
    return [r for r in outputs if r not in known and (shared is None or nesting(r) > shared)]


def _fill(s: Scheduler, accesses: Accesses, ranges: list[UOp]) -> None:
    """Vectorize loops that fill local buffers, along the buffer or along the memory that they read."""
    for r in ranges:
        if accesses.unit(r, stores=True) > 0 and length_of(r) > 1:
            upcast(s, r, native(s), STREAM_VECTORS)


def _rows(s: Scheduler, accesses: Accesses, inner: list[UOp], reduced: list[UOp]) -> None:
    """Vectorize reductions, then the loops after them (`inner`), each along contiguous memory."""
    lanes = native(s)
    for r in reduced:
        if accesses.unit(r) > 0 and length_of(r) >= lanes:
            unroll(s, r, lanes, SUM_VECTORS)
    for r in inner:
        if accesses.unit(r, stores=True) > 0:
            upcast(s, r, lanes, STREAM_VECTORS)


# GPU


def _gpu(s: Scheduler) -> None:
    accesses = Accesses.of(s.ast)
    outputs = [r for r in s.output_ranges if length_of(r) > 1]
    reduced = [r for r in s.reduced_ranges if length_of(r) > 1]
    tile = matmul(s.ast, accesses, outputs, reduced) if reduced else None
    if reduced and tile is None and _grouped(s, accesses, outputs, reduced):
        return
    _gpu_lanes(s, accesses, outputs, reduced, tile)
    block = 1
    sizes = (16, 8, 4) if tile is not None else GPU_THREADS
    # only constant lengths; and a block shares one local buffer, so no loop around its filling
    known = [r for r in s.output_ranges if length_of(r) > 1 and not s.fills_within(r)]
    for r in sorted(known, key=lambda r: (accesses.unit(r), r.arg[0]), reverse=True)[:2]:
        limit = 256 // block
        amount = next((n for n in sizes if n <= limit and length_of(r) % n == 0), 0) or _divisor(
            length_of(r), min(limit, sizes[0])
        )
        if amount > 1:
            block *= amount
            apply(s, OptOp.LOCAL, r, amount)


def _gpu_lanes(s: Scheduler, accesses: Accesses, outputs: list[UOp], reduced: list[UOp], tile: tuple[UOp, UOp] | None) -> None:
    """Give each thread several results, of a tile of a product or along contiguous memory; or several lanes of a reduction."""
    if reduced and _along_reductions():
        along = max(reduced, key=lambda r: (accesses.unit(r), length_of(r)))
        if (lanes := _lanes_along(s, accesses, along)) > 1:
            apply(s, OptOp.UNROLL, along, lanes)
        return
    if config.NO_OUTPUT_UPCAST.value or not outputs:
        return
    across = max(outputs, key=lambda r: (accesses.unit(r), r.arg[0]))
    if tile is not None:
        for r in tile:
            if length_of(r) % 4 == 0 and length_of(r) >= 64:
                apply(s, OptOp.UPCAST, r, 4)
    elif accesses.unit(across) > 0 and length_of(across) % 4 == 0 and length_of(across) >= 512:
        apply(s, OptOp.UPCAST, across, 4)


def _grouped(s: Scheduler, accesses: Accesses, outputs: list[UOp], reduced: list[UOp]) -> bool:
    """True after GROUP: the threads of a block share each reduction, since outputs alone, one thread each, would leave most of a
    GPU idle. False, and no change, if GROUP does not pay or is illegal.

    If memory is contiguous along the reduction, adjacent threads read adjacent elements, for a few rows per block, as in a
    product of a matrix and a vector; if it is contiguous along outputs, a block has as many of them as fill it.
    """
    if math.prod(length_of(r) or 1 for r in outputs) > GPU_BUSY or any(const_end(r) is None for r in s.ranges):
        return False
    along = max(reduced, key=lambda r: (accesses.unit(r), length_of(r)))
    across = max(outputs, key=lambda r: (accesses.unit(r), r.arg[0]), default=None)
    neighbours = accesses.unit(along) > 0
    lanes = _lanes_along(s, accesses, along) if _along_reductions() else 1
    shared = _divisor(length_of(along) // lanes, 256 if across is None else 64 if neighbours else 16)
    if shared < GPU_SHARED:
        return False
    trial = Scheduler(s.ast, s.target)
    with contextlib.suppress(OptError):  # a reduction inside another loop cannot be shared
        if across is not None and (rows := _divisor(length_of(across), 256 // shared if not neighbours else 4)) > 1:
            apply(trial, OptOp.LOCAL, across, rows)
        if lanes > 1:
            apply(trial, OptOp.UNROLL, along, lanes)
        rest = next(k for k, r in enumerate(trial.reduced_ranges) if r.arg == along.arg)
        trial.apply(Opt(OptOp.GROUP, rest, shared))
        for opt in trial.applied:
            s.apply(opt)
        return True
    return False


def _along_reductions() -> bool:
    """True if the settings ask for vectors along reduced axes instead of outputs."""
    return config.K_VECTORIZE.value or config.NO_OUTPUT_UPCAST.value


def _lanes_along(s: Scheduler, accesses: Accesses, r: UOp) -> int:
    """The lanes for a reduced range on a GPU: the most elements of one load of a thread that divide its length; 1 if none do."""
    widest = max((p.dtype.itemsize for p in accesses.places), default=4)
    return next((n for n in (16, 8, 4, 2) if n * widest <= s.target.memory_bytes and length_of(r) % n == 0), 1)


def _divisor(n: int, most: int) -> int:
    """The greatest divisor of `n` up to `most`; 1 if n is 0."""
    return max((d for d in range(1, min(n, most) + 1) if n % d == 0), default=1)
