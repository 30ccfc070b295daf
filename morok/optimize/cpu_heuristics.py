"""The default optimizations of a kernel on a CPU: vectors, tiles and copies, by loop lengths and the strides of accesses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from morok.errors import OptError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize import prefix_scan, strips
from morok.optimize.loop_facts import Accesses, along_reductions, apply, length_of, native, unroll, upcast
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
from morok.optimize.opts import OptOp
from morok.optimize.packing import is_plain
from morok.optimize.scheduler import Scheduler
from morok.passes.nesting import nesting
from morok.passes.node_order import nodes_of
from morok.passes.rangeify.state import CAST, beneath
from morok.passes.register_tiles import SUM_VECTORS, shared_by

COLUMN_VECTORS: Final = 16  # vector accumulators of adjacent reductions
STREAM_VECTORS: Final = 2  # vectors per iteration of an elementwise loop
STRIP_READS: Final = 1 << 21  # least bytes read by a memory-bound fold, which should read memory in order
STRIP_ROWS: Final = 32  # least rows to fold for a strip to pay for its own reads and writes
STRIP_BYTES: Final = 1 << 12  # least bytes of the part of a row in one strip: one sequential read
# least rows to vectorize short folds: for fewer, compiling the code takes longer than it saves
SHORT_ROWS: Final = 1 << 13


@dataclass(frozen=True, slots=True)
class _Loops:
    """The loops of a kernel that the heuristics choose among.

    outputs  the output ranges of several iterations, without those that fill local buffers
    ordered  the sequential loops that carry prefix scans
    reduced  the reduced ranges of several iterations
    lanes    the lanes of a register
    """

    accesses: Accesses
    outputs: list[UOp]
    ordered: list[UOp]
    reduced: list[UOp]
    lanes: int


def choose(s: Scheduler) -> None:
    """Apply the optimizations for a CPU: those of the first kind of kernel, in the order of KINDS, that this one is of. OptError
    for an illegal one.
    """
    accesses = Accesses.of(s.ast)
    stored = {r for end in s.ast.src for r in end.src[1:]}
    _fill(s, accesses, [r for r in s.output_ranges if r not in stored])
    outputs = [r for r in s.output_ranges if length_of(r) > 1 and r in stored and not s.fills_within(r)]
    reduced = [r for r in s.reduced_ranges if length_of(r) > 1]
    loops = _Loops(accesses, outputs, s.ordered_ranges, reduced, native(s))
    if not any(is_of_kind(s, loops) for is_of_kind in KINDS):
        _folds(s, loops)


# The kinds of kernels: each function returns False if the kernel is of another, and True after optimizing it.


def _scans(s: Scheduler, loops: _Loops) -> bool:
    """Prefix scans: in blocks of one vector along the scan if memory is contiguous along it, else vectors across scans."""
    if not loops.ordered:
        return False
    accesses, lanes = loops.accesses, loops.lanes
    across = max(loops.outputs, key=lambda r: (accesses.unit(r, stores=True), r.arg[0]), default=None)
    for r in loops.ordered:
        along = sum(accesses.unit(x, stores=True) for x in (r, *[n.src[1] for n in prefix_scan.folds(s.ast, r)]))
        if across is not None and accesses.unit(across, stores=True) > along:
            upcast(s, across, lanes, COLUMN_VECTORS)
            break
        blocks = [n for n in (lanes, lanes // 2, lanes // 4) if n >= 4 and length_of(r) % n == 0]
        if blocks and along > 0:
            apply(s, OptOp.UNROLL, r, blocks[0])
    return True


def _along_reductions(s: Scheduler, loops: _Loops) -> bool:
    """Reductions, under settings that ask for vectors along them."""
    if not loops.reduced or not along_reductions():
        return False
    unroll(s, max(loops.reduced, key=lambda r: (loops.accesses.unit(r), r.arg[0])), loops.lanes, SUM_VECTORS)
    return True


def _rows(s: Scheduler, loops: _Loops) -> bool:
    """Reductions with loops after them, as in a softmax: both are vectorized along contiguous memory."""
    inner = _after_reductions(s.ast, loops.outputs) if loops.reduced else []
    if not inner:
        return False
    for r in loops.reduced:
        if loops.accesses.unit(r) > 0 and length_of(r) >= loops.lanes:
            unroll(s, r, loops.lanes, SUM_VECTORS)
    for r in inner:
        if loops.accesses.unit(r, stores=True) > 0:
            upcast(s, r, loops.lanes, STREAM_VECTORS)
    return True


def _matrix_products(s: Scheduler, loops: _Loops) -> bool:
    """Sums of products with a factor that is contiguous along columns: a register tile, of a copied factor where it can be if
    windows overlap, or results are not contiguous along columns.
    """
    tile = matmul(s.ast, loops.accesses, loops.outputs, loops.reduced) if loops.reduced else None
    if tile is None:
        return False
    product = windows(s, loops.accesses, tile[1], loops.outputs, loops.reduced)
    if product is None and not any(t.terms.get(tile[1]) == 1 for t in loops.accesses.stores):
        product = scattered(s, loops.accesses, loops.outputs, loops.reduced, COPY_ROWS)
    if product is not None:
        in_copied_tiles(s, loops.accesses, product)
    else:
        tile_matmul(s, loops.accesses, *tile, copied_slot(s, loops.accesses, *tile))
    return True


def _dot_products(s: Scheduler, loops: _Loops) -> bool:
    """Sums of products with both factors contiguous along the sum: a tile of a copy, or vectors along the sum."""
    dots = dot_products(s.ast, loops.accesses, loops.outputs, loops.reduced, loops.lanes) if loops.reduced else None
    if dots is None:
        return False
    row, column, along = dots
    slot = copied_slot(s, loops.accesses, row, column) if length_of(column) >= 2 * loops.lanes else None
    if slot is not None:
        tile_matmul(s, loops.accesses, row, column, slot)
        return True
    unroll(s, along, loops.lanes, 1)
    for r in (column, row):
        upcast(s, r, 1, shared_by(length_of(r)))
    return True


def _scattered_products(s: Scheduler, loops: _Loops) -> bool:
    """Sums of products of any strides, with a factor that pays for a copy."""
    product = scattered(s, loops.accesses, loops.outputs, loops.reduced, COPY_ROWS) if loops.reduced else None
    if product is None:
        return False
    in_copied_tiles(s, loops.accesses, product)
    return True


def _transposes(s: Scheduler, loops: _Loops) -> bool:
    """Copies that read along one axis and write along another."""
    turned = None if loops.reduced else transposed(loops.accesses, loops.outputs, loops.lanes)
    if turned is None:
        return False
    transpose_tiles(s, *turned, loops.lanes)
    return True


def _across(s: Scheduler, loops: _Loops) -> bool:
    """Kernels with contiguous memory along outputs, and no more of it along reductions: vectors of adjacent results."""
    accesses = loops.accesses.inside(loops.reduced)  # loads outside of reductions are few
    across = max(loops.outputs, key=lambda r: (accesses.unit(r), r.arg[0]), default=None)
    if across is None or accesses.unit(across) <= 0 or (length_of(across) < loops.lanes // 2 and loops.reduced):
        return False
    if max([accesses.unit(r) for r in loops.reduced if length_of(r) >= loops.lanes], default=0) > accesses.unit(across):
        return False
    width = _strip_width(s, accesses, across, loops.reduced) if loops.reduced else 0
    if not width or not _strip(s, across, width, loops.lanes):
        upcast(s, across, loops.lanes, COLUMN_VECTORS if loops.reduced else STREAM_VECTORS)
    if not loops.reduced:
        for r in _across_others(s, loops, across):
            upcast(s, r, loops.lanes, STREAM_VECTORS)
    return True


def _across_others(s: Scheduler, loops: _Loops, across: UOp) -> list[UOp]:
    """The ranges to vectorize of loop nests that have none in common with those of `across` or with one another, as the pieces of
    a loop that was cut: in each the output with the most contiguous memory, if there is any.
    """
    stores = [end.src[1:] for end in s.ast.src if end.op is Op.End]
    seen = {r for ranges in stores if across in ranges for r in ranges}
    found = []
    for ranges in stores:
        if ranges and seen.isdisjoint(ranges):
            seen.update(ranges)
            inside = [r for r in ranges if r in loops.outputs]
            r = max(inside, key=lambda r: (loops.accesses.unit(r), r.arg[0]), default=None)
            if r is not None and loops.accesses.unit(r) > 0:
                found.append(r)
    return found


def _short_folds(s: Scheduler, loops: _Loops) -> bool:
    """Folds of many contiguous rows, each shorter than a vector: a vector of rows, each folded by shuffles."""
    if len(loops.reduced) != 1:
        return False
    rows = _short_rows(loops.accesses.inside(loops.reduced), loops.outputs, loops.reduced[0], loops.lanes)
    if rows is None:
        return False
    apply(s, OptOp.UNROLL, loops.reduced[0], 0)
    upcast(s, rows, loops.lanes, 1)
    return True


KINDS: Final[tuple[Callable[[Scheduler, _Loops], bool], ...]] = (
    _scans,
    _along_reductions,
    _rows,
    _matrix_products,
    _dot_products,
    _scattered_products,
    _transposes,
    _across,
    _short_folds,
)


def _folds(s: Scheduler, loops: _Loops) -> None:
    """Vectorize the folds of any other kernel, across results that wait for each other, or along contiguous memory."""
    accesses = loops.accesses.inside(loops.reduced)
    if (side := _waiting_folds(s, accesses, loops.outputs, loops.reduced, loops.lanes)) is not None:
        upcast(s, side, loops.lanes, 1)
        return
    for r in loops.reduced:
        if accesses.unit(r) > 0 and length_of(r) >= loops.lanes:
            unroll(s, r, loops.lanes, SUM_VECTORS)


def _waiting_folds(s: Scheduler, accesses: Accesses, outputs: list[UOp], reduced: list[UOp], lanes: int) -> UOp | None:
    """The output range to vectorize for short folds although their operands are not contiguous, as in pooling with a stride; None
    if a fold is of whole vectors or long, or scalar code is as fast.

    Scalar code has the latency of each comparison of a maximum, and of each branch of a gate. Vectors share these latencies, and
    the computation of the operands, which saves more than gathering costs. Sums of plain loads overlap in scalar code too.
    """
    folds = [n for n in s.nodes if n.op is Op.Reduce]
    if not folds or any(length_of(r) >= 2 * lanes or length_of(r) == lanes for r in reduced):
        return None
    as_read = all(beneath(n.src[0], CAST).op is Op.Index for n in folds)
    if as_read and all(n.arg in (Op.Add, Op.Mul) for n in folds) and all(map(is_plain, accesses.places)):
        return None
    along = [{t.terms.get(r, 0) for t in accesses.stores} for r in outputs]  # 0: a store to a local buffer
    stored = [
        r for r, steps in zip(outputs, along, strict=True) if length_of(r) >= lanes and 1 in steps and steps <= {0, 1}
    ]
    return max(stored, key=lambda r: r.arg[0], default=None)


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
