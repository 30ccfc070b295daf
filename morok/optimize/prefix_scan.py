"""Prefix scans: a loop whose iteration k folds all elements up to k can carry the fold from iteration to iteration.

`out[k] = Reduce(Where(j <= k, x[j], identity), j)` is cumsum, with n additions for each of n elements. On a CPU the fold over j
gets a range of length k + 1, and the loop over k becomes sequential (axis REDUCE): its iterations are not reordered, and not
parallel. The value is the same. Stage 11 turns such a fold into a register that each iteration updates
(morok/passes/prefix_scan_registers.py).

A scan in blocks of lanes is a fold over the earlier blocks, combined with a scan of the lanes of one block, in log2(lanes) steps
(Hillis and Steele 1986).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.ir.graph import substitute
from morok.ir.op import AxisType, Op
from morok.ir.ops.loop import identity
from morok.ir.ranges import CLOSES, replace_range
from morok.ir.uop import UOp, vconst
from morok.passes.affine import linear
from morok.passes.node_order import nodes_of
from morok.passes.prefix_scan_registers import reach
from morok.passes.range_stages import const_end, with_axis
from morok.passes.rebuilding import next_range_id

_BELOW: Final = {Op.Lt: 0, Op.Le: 1}  # a < b + 0, a < b + 1
_ABOVE: Final = {Op.Gt: 0, Op.Ge: 1}


def with_prefix_scans(ast: UOp) -> UOp:
    """`ast` with masked folds as prefix scans, where a single End closes the loop, with exactly the ranges around the fold."""
    if ast.op is not Op.Sink or not any(n.op is Op.Reduce and n.src[0].op is Op.Where for n in nodes_of(ast)):
        return ast
    closers: dict[UOp, list[UOp]] = {}
    for n in nodes_of(ast):
        for r in n.src[CLOSES[n.op] :] if n.op in CLOSES else ():
            closers.setdefault(r, []).append(n)
    mapping: dict[UOp, UOp] = {}
    ordered: dict[UOp, UOp] = {}  # End -> the sequential loop that it closes
    for n in nodes_of(ast):
        found = _masked(n)
        if found is None:
            continue
        k, source, more = found
        end = closers.get(k, [])
        if (
            len(end) != 1
            or end[0].op is not Op.End
            or n.ranges != frozenset(end[0].src[1:])
            or ordered.setdefault(end[0], k) is not k
        ):
            continue
        loop = mapping.setdefault(k, with_axis(k, AxisType.Reduce))
        j = n.src[1]
        upto = UOp.new(Op.Range, (loop + UOp.const(more) if more else loop,), j.arg)
        mapping[n] = UOp.new(Op.Reduce, (replace_range(source, j, upto), upto), n.arg, n.dtype)
    return substitute((ast,), mapping)[0] if mapping else ast


def _masked(n: UOp) -> tuple[UOp, UOp, int] | None:
    """(loop k, values, d) if `n` folds the values at all j < k + d, where d is 0 or 1; else None."""
    if n.op is not Op.Reduce or len(n.src) != 2 or n.src[0].op is not Op.Where or n.dtype.count != 1 or n.dtype.is_bool:
        return None
    condition, source, other = n.src[0].src
    j = n.src[1]
    length = const_end(j)
    if (
        other is not other.like(identity(n.arg, n.dtype))
        or length is None
        or length < 2
        or j.arg[1] is not AxisType.Reduce
    ):
        return None
    if condition.op in _ABOVE:
        right, left = map(_position, condition.src)
    elif condition.op in _BELOW:
        left, right = map(_position, condition.src)
    else:
        return None
    more = _ABOVE.get(condition.op, _BELOW.get(condition.op, 0))
    if left is None or right is None:
        return None
    sums = linear(left), linear(right)
    if sums[0].terms != {j: 1}:
        return None
    more += sums[1].constant - sums[0].constant
    k = next(iter(sums[1].terms), j)
    times = const_end(k) if sums[1].terms == {k: 1} and k.op is Op.Range and k.arg[1] is AxisType.Loop else None
    if times is None or more not in (0, 1) or times - 1 + more > length or k in source.ranges:
        return None
    return k, source, more


def _position(x: UOp) -> UOp | None:
    """`x`, or the operand of a cast `x`, if it is a scalar of dtype index; else None."""
    inner = x.src[0] if x.op is Op.Cast else x
    return inner if inner.dtype.is_index and inner.dtype.count == 1 else None


def folds(ast: UOp, loop: UOp) -> list[UOp]:
    """The prefix scans that `loop` carries."""
    found = [(n, reach(n)) for n in nodes_of(ast) if n.op is Op.Reduce]
    return [n for n, to in found if to is not None and to[0] is loop]


def in_blocks(ast: UOp, loop: UOp, lanes: int) -> UOp:
    """`ast` with the sequential loop in blocks of `lanes` iterations, as lanes of vectors; `lanes` divides its length."""
    length = const_end(loop)
    assert length is not None
    assert length % lanes == 0
    id = next_range_id(ast)
    axes = ((id, lanes),)
    lane = UOp.new(Op.Unroll, (vconst(loop.dtype, range(lanes)),), axes, loop.dtype)
    block = UOp.new(Op.Range, (UOp.const(length // lanes), *loop.src[1:]), loop.arg) if length > lanes else UOp.const(0)
    mapping = {loop: block * lanes + lane}
    for n in folds(ast, loop):
        id += 1
        to = reach(n)
        assert to is not None
        lately = _prefixes(_lanes(n, block * lanes + lane, axes), n.arg)
        if length > lanes:
            earlier = UOp.new(Op.Range, (block,), (id, AxisType.Reduce, loop.arg[2]))
            total = _prefixes(_lanes(n, earlier * lanes + lane, axes), n.arg).gep(lanes - 1)
            before = UOp.new(Op.Reduce, (total, earlier), n.arg)
            upto = UOp.new(n.arg, (before.gep(*[0] * lanes), lately if to[1] else _shifted(lately, 1, n.arg)))
        else:
            upto = lately if to[1] else _shifted(lately, 1, n.arg)
        mapping[n] = UOp.new(Op.Unroll, (upto,), axes, n.dtype)
    return substitute((ast,), mapping)[0]


def _lanes(n: UOp, at: UOp, axes: tuple[tuple[int, int], ...]) -> UOp:
    """The operand of the fold `n` at the iterations `at`, as one vector."""
    return UOp.new(Op.Contract, (replace_range(n.src[0], n.src[1], at),), axes, n.dtype.vec(axes[0][1]))


def _prefixes(x: UOp, op: Op) -> UOp:
    """The inclusive scan of the lanes of `x`, by doubling the distance in each step."""
    step = 1
    while step < x.dtype.count:
        x = UOp.new(op, (_shifted(x, step, op), x))
        step *= 2
    return x


def _shifted(x: UOp, by: int, op: Op) -> UOp:
    """The lanes of `x` shifted up by `by`, with identities of `op` in the first ones."""
    neutral = UOp.const(identity(op, x.dtype.scalar()), x.dtype.scalar())
    return UOp.vectorize(*[neutral] * by, *[x.gep(i) for i in range(x.dtype.count - by)])


def ordered_loops(ast: UOp) -> Sequence[UOp]:
    """The sequential loops of statements: axis REDUCE, closed by an End."""
    return [
        r
        for n in nodes_of(ast)
        if n.op is Op.End
        for r in n.src[1:]
        if r.op is Op.Range and r.arg[1] is AxisType.Reduce
    ]
