"""The default optimizations of a kernel on a GPU: lanes and blocks of threads, by loop lengths and the strides of accesses."""

from __future__ import annotations

import contextlib
import math
from typing import Final

from morok import config
from morok.errors import OptError
from morok.ir.uop import UOp
from morok.optimize.loop_facts import Accesses, along_reductions, apply, length_of
from morok.optimize.matmul_tiling import matmul
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.range_stages import const_end

THREADS: Final = (256, 128, 64, 32)  # sizes of a block
BUSY: Final = 1 << 14  # outputs that fill a GPU with one thread each
SHARED: Final = 8  # fewest threads to share a reduction


def choose(s: Scheduler) -> None:
    """Apply the optimizations for a GPU; OptError for an illegal one."""
    accesses = Accesses.of(s.ast)
    outputs = [r for r in s.output_ranges if length_of(r) > 1]
    reduced = [r for r in s.reduced_ranges if length_of(r) > 1]
    tile = matmul(s.ast, accesses, outputs, reduced) if reduced else None
    if reduced and tile is None and _grouped(s, accesses, outputs, reduced):
        return
    _several_results(s, accesses, outputs, reduced, tile)
    block = 1
    sizes = (16, 8, 4) if tile is not None else THREADS
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


def _several_results(
    s: Scheduler, accesses: Accesses, outputs: list[UOp], reduced: list[UOp], tile: tuple[UOp, UOp] | None
) -> None:
    """Give each thread several results, of a tile of a product or along contiguous memory; or several lanes of a reduction."""
    if reduced and along_reductions():
        along = max(reduced, key=lambda r: (accesses.unit(r), length_of(r)))
        if (lanes := _width_along(s, accesses, along)) > 1:
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
    if math.prod(length_of(r) or 1 for r in outputs) > BUSY or any(const_end(r) is None for r in s.ranges):
        return False
    along = max(reduced, key=lambda r: (accesses.unit(r), length_of(r)))
    across = max(outputs, key=lambda r: (accesses.unit(r), r.arg[0]), default=None)
    neighbours = accesses.unit(along) > 0
    lanes = _width_along(s, accesses, along) if along_reductions() else 1
    shared = _divisor(length_of(along) // lanes, 256 if across is None else 64 if neighbours else 16)
    if shared < SHARED:
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


def _width_along(s: Scheduler, accesses: Accesses, r: UOp) -> int:
    """The lanes for a reduced range on a GPU: the most elements of one load of a thread that divide its length; 1 if none do."""
    widest = max((p.dtype.itemsize for p in accesses.places), default=4)
    return next((n for n in (16, 8, 4, 2) if n * widest <= s.target.memory_bytes and length_of(r) % n == 0), 1)


def _divisor(n: int, most: int) -> int:
    """The greatest divisor of `n` up to `most`; 1 if n is 0."""
    return max((d for d in range(1, min(n, most) + 1) if n % d == 0), default=1)
