"""Passes after range assignment: loop-invariant parts of reductions, and buffers that need not be stored, are removed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from morok.ir.dtype import FLOAT_FORMAT
from morok.ir.graph import reached, substitute
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.rangeify.demand_values import read
from morok.passes.rangeify.state import COSTLY, State, otherwise
from morok.passes.rebuilding import over

_WORTH_STORING: Final = frozenset({Op.Index, Op.Reduce, *COSTLY})
_LONG: Final = 256  # a value of more nodes is stored rather than recomputed


def simplify_reductions(state: State) -> None:
    """Drop loops of reductions whose value is invariant in them."""
    assert state.sink is not None
    nodes = state.sink.toposort()
    if not any(n.op is Op.Reduce for n in nodes):
        return
    done: dict[UOp, UOp] = {}
    for node in nodes:
        new = over(node, done)
        done[node] = otherwise(_simpler(new), new) if new.op is Op.Reduce else new
    state.replace_in_sink(done)


def _simpler(node: UOp) -> UOp | None:
    """A reduction without the loops in which its operand is invariant: a sum over n iterations is n * x, a maximum x. Float sums
    only if they are exact in any order. None if nothing changes.
    """
    op, body, d = node.arg, node.src[0], node.dtype
    inside = body.ranges
    idle = [r for r in node.src[1:] if r not in inside]
    times = 1
    for r in idle:
        if r.src[0].op is not Op.Const or r.src[0].arg < 1:
            return None
        times *= r.src[0].arg
    if not idle:
        return None
    if op in (Op.Max, Op.Min):
        folded = body
    elif op is Op.Add and d.is_int:
        folded = body * UOp.const(times, d)
    elif op is Op.Add and d.is_float and body.op is Op.Const and _adds_exactly(body, times):
        folded = UOp.const(body.arg * times, d)
    else:
        return None
    left = [r for r in node.src[1:] if r in inside]
    return folded.reduce(op, *left) if left else folded


def _adds_exactly(c: UOp, times: int) -> bool:
    """True if every partial sum of `times` copies of a constant is exact in its float dtype."""
    value: float = c.arg
    return math.isfinite(value) and value.is_integer() and abs(value) * times <= 2 ** FLOAT_FORMAT[c.dtype][0]


def fold_buffers(state: State) -> None:
    """Replace reads of stored constants by the constants."""

    def fold(read_: UOp, source: UOp) -> UOp | None:
        value = source.src[0]
        if value.op is Op.Const:
            return value if not read_.arg else read_.src[-1].where(value, UOp.const(0, value.dtype))
        return None

    _rewrite_reads(state, fold)


def drop_dead_axes(state: State) -> None:
    """Drop axes of stored values that are invariant along them."""

    def drop(read_: UOp, source: UOp) -> UOp | None:
        value, ranges = source.src[0], source.src[1:]
        needed = value.ranges
        alive = [k for k, r in enumerate(ranges) if r in needed]
        if len(alive) == len(ranges) or value.op is Op.Assign:
            return None
        smaller = UOp.new(Op.Bufferize, (value, *[ranges[k] for k in alive]), source.arg)
        gates = read_.src[-1:] if read_.arg else ()
        return read(smaller, [read_.src[1 + k] for k in alive], gates)

    _rewrite_reads(state, drop)


def remove_buffers(state: State) -> None:
    """Recompute stored values at their readers if they are cheap by now, since their reduction is gone."""
    kept: dict[UOp, bool] = {}

    def inline(read_: UOp, source: UOp) -> UOp | None:
        if source not in kept:
            kept[source] = _worth_storing(source)
        if kept[source]:
            return None
        value, ranges = source.src[0], source.src[1:]
        indices = read_.src[1 : 1 + len(ranges)]
        here = substitute((value,), dict(zip(ranges, indices, strict=True)))[0]
        return read_.src[-1].where(here, UOp.const(0, here.dtype)) if read_.arg else here

    _rewrite_reads(state, inline)


def _worth_storing(source: UOp) -> bool:
    """True for a value that reads memory, reduces or has a costly function, and for an assignment. Arithmetic on positions is
    recomputed unless it is long: if two readers recompute it, their readers have twice the work (sorting values of a formula has
    a hundred such steps).
    """
    if source.src[0].op is Op.Assign:
        return True
    # stops at reads, below which there may be a whole program
    return any(node.op in _WORTH_STORING or n > _LONG for n, node in enumerate(reached(source.src[:1])))


def _rewrite_reads(state: State, rewrite: Callable[[UOp, UOp], UOp | None]) -> None:
    """Replace reads of stored values by `rewrite(read, Bufferize)`, operands first; unread stored values disappear."""
    assert state.sink is not None
    nodes = state.sink.toposort()
    if sum(1 for n in nodes if n.op is Op.Bufferize) == len(set(state.sink.src)):
        return  # nothing is stored but the results
    done: dict[UOp, UOp] = {}
    for node in nodes:
        new = over(node, done)
        if new.op is Op.Index and new.src[0].op is Op.Bufferize:
            new = otherwise(rewrite(new, new.src[0]), new)
        done[node] = new
    state.replace_in_sink(done)
