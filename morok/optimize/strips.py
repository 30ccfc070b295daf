"""STRIP: folds of adjacent results, row by row, in a small local buffer.

The sum of a matrix over its rows has a result for each column. With the results in registers, only a few hundred bytes of each
row are read at a time, which defeats the prefetcher. With a strip of results in a local buffer, the loop over results is inside
the loop of the fold, and memory is read in order. Each result is the same fold, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from morok.errors import OptError
from morok.ir.dtype import AddrSpace
from morok.ir.graph import substitute
from morok.ir.op import AxisType, Op
from morok.ir.ops.loop import identity
from morok.ir.uop import UOp
from morok.passes.nesting import nesting
from morok.passes.range_stages import const_end, new_range
from morok.passes.rebuilding import next_range_id
from morok.passes.target import Target

MAX_BYTES: Final = 1 << 16  # most bytes of a strip: it stays in L2
VECTORS: Final = 2  # vectors of results per iteration of the loop over a strip
ROWS: Final = (4, 2, 1)  # rows folded per load and store of a result: the first that divides the length of the fold
_LOOPS: Final = frozenset({AxisType.Outer, AxisType.Loop, AxisType.Thread})


def the_fold(ast: UOp, r: UOp) -> UOp:
    """The only fold in the loop over `r`, if a strip can hold its results; else OptError."""
    nodes = ast.toposort()
    found = [n for n in nodes if n.op is Op.Reduce and r in n.ranges]
    if len(found) != 1:
        raise OptError(f"{len(found)} reductions depend on that axis", expected="exactly one")
    fold = found[0]
    if (
        fold.dtype.count > 1
        or fold.dtype.is_bool
        or fold.dtype.is_index
        or any(n.op in (Op.Reduce, Op.Unroll) for n in fold.src[0].toposort())
    ):
        raise OptError(
            "the reduction is of vectors, bools or indices, or contains other reductions",
            expected="one reduction of scalar numbers",
            hint="apply STRIP before UPCAST",
        )
    if any(x.arg[1] not in _LOOPS for x in fold.ranges) or any(
        x.op is not Op.Range or len(x.src) > 1 for x in fold.src[1:]
    ):
        raise OptError(
            "a loop of the reduction, or around it, is vectorized or waits for other nodes", expected="sequential loops"
        )
    if any(x.arg[1] is not AxisType.Reduce for x in fold.src[1:]) or any(
        x.src[0].op is not Op.Const for x in fold.src[1:]
    ):
        raise OptError(
            "threads divide a loop of the reduction, or its length is not constant",
            expected="sequential loops of constant length",
        )
    if max(fold.ranges, key=nesting) is not r:
        raise OptError("another loop is between that axis and the reduction", hint="apply SWAP to the two axes first")
    if any(n.op in (Op.DefineLocal, Op.Bufferize) for n in nodes):
        raise OptError("the kernel has a local buffer already", hint="apply STRIP before PACK")
    stored = {s.src[0] for s in nodes if s.op is Op.Store}
    written = {p.src[0] for p in stored}
    if any(n.op is Op.Index and n not in stored and n.src[0] in written for n in nodes):
        raise OptError("the kernel reads a buffer that it writes", expected="no buffer that is both read and written")
    return fold


def strip(ast: UOp, fold: UOp, r: UOp, target: Target) -> UOp:
    """`ast` with all results of `fold` along the range `r`, of constant length, in a local buffer before their uses."""
    length = const_end(r)
    assert length is not None
    lanes = VECTORS * max(1, target.vector_bytes // max(4, fold.dtype.itemsize))
    ids = count(next_range_id(ast))
    outer = sorted(fold.ranges - {r}, key=nesting)
    buffer = UOp.new(Op.DefineLocal, (), 0, fold.dtype.ptr(length, AddrSpace.LOCAL))
    inside = buffer.after(*outer) if outer else buffer
    start = fold.src[0].like(identity(fold.arg, fold.dtype))
    begun = [inside.index(at).store(start).end(*loops) for at, loops in _along(r, length, AxisType.Loop, lanes, ids)]
    lengths = [const_end(x) or 0 for x in fold.src[1:]]
    together = next(k for k in ROWS if lengths[-1] % k == 0)
    lengths[-1] //= together
    at_row = [
        new_range(n, next(ids), AxisType.Reduce, x) if n > 1 else UOp.const(0)
        for n, x in zip(lengths, fold.src[1:], strict=True)
    ]
    rows = [x for x in at_row if x.op is Op.Range]
    sofar = inside.after(UOp.new(Op.Barrier, tuple(begun)), *rows)
    steps = []
    for at, loops in _along(r, length, AxisType.Reduce, lanes, ids):
        place = total = sofar.index(at)
        for k in range(together):
            here = dict(zip(fold.src[1:], (*at_row[:-1], at_row[-1] * together + k), strict=True))
            total = UOp.new(fold.arg, (total, substitute((fold.src[0],), {**here, r: at})[0]))
        steps.append(place.store(total).end(*loops))
    body = steps[0] if len(steps) == 1 else UOp.new(Op.Group, tuple(steps))
    done = inside.after(UOp.new(Op.Barrier, (body.end(*rows),)))
    return substitute((ast,), {fold: done.index(r)})[0]


def _along(r: UOp, length: int, axis: AxisType, lanes: int, ids: Iterator[int]) -> Iterator[tuple[UOp, list[UOp]]]:
    """(index, loops) over a strip: vectors of `lanes`, then the remainder."""
    done = 0
    while done < length:
        step = min(lanes, length - done)
        times = (length - done) // step
        at, loops = UOp.const(done), []
        if times > 1:
            loops.append(new_range(times, next(ids), axis, r))
            at = at + loops[-1] * step
        if step > 1:
            loops.append(new_range(step, next(ids), AxisType.Upcast, r))
            at = at + loops[-1]
        yield at, loops
        done += times * step
