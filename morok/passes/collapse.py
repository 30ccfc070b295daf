"""Stage 2: reductions that need no loop, because only the number of iterations matters.

An integer sum of what does not depend on the range is a product; under a condition that the range passes once, the number of
iterations on the right side of that point is a clamped difference. Maximum and minimum of one value are that value.
"""

from __future__ import annotations

from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.affine import linear
from morok.passes.walk import rebuild

# Comparisons a ? b in terms of a < b: (operands swapped, result negated).
_AS_LESS: Final = {Op.Lt: (False, False), Op.Ge: (False, True), Op.Gt: (True, False), Op.Le: (True, True)}


def _clamp(x: UOp, end: UOp) -> UOp:
    return x.max(UOp.const(0)).min(end)


def _iterations(c: UOp, r: UOp) -> UOp | None:
    """For how many values of `r` the comparison `c` holds, where it changes once along the range; else None."""
    kind = _AS_LESS.get(c.op)
    if kind is None or not c.src[0].dtype.is_index or c.src[0].dtype.count > 1:
        return None
    swapped, negated = kind
    a, b = reversed(c.src) if swapped else c.src
    left, right = linear(a), linear(b)
    k = left.terms.pop(r, 0) - right.terms.pop(r, 0)
    if k not in (1, -1) or any(r in t.ranges for t in (*left.terms, *right.terms)):
        return None
    end = r.src[0]
    if k == 1:  # r + left < right
        below = _clamp(right.node(a) - left.node(a), end)
    else:  # left - right < r
        below = end - _clamp(left.node(a) - right.node(a) + 1, end)
    return end - below if negated else below


def _count(body: UOp, r: UOp) -> tuple[UOp, UOp] | None:
    """(value, times) where a sum of `body` over `r` is value * times."""
    if r not in body.ranges:
        return body, r.src[0]
    if body.op is Op.Cast and body.src[0].dtype.is_bool:
        body = body.src[0].where(body.like(1), body.like(0))
    if body.op is not Op.Where:
        return None
    c, t, f = body.src
    times = _iterations(c, r)
    if times is None:
        return None
    if f.op is Op.Const and f.arg == 0 and r not in t.ranges:
        return t, times
    if t.op is Op.Const and t.arg == 0 and r not in f.ranges:
        return f, r.src[0] - times
    return None


def collapse_loads(root: UOp) -> UOp:
    """`root` with reductions that are arithmetic written as such."""

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is not Op.Reduce or node.dtype.count > 1:
            return None
        body, *ranges = src
        left = []
        for r in ranges:
            end = r.src[0] if r.op is Op.Range else None
            if end is None or end.vmin < 0 or len(r.src) > 1:
                left.append(r)
            elif node.arg in (Op.Max, Op.Min) and end.vmin >= 1 and r not in body.ranges:
                pass
            elif node.arg is Op.Add and node.dtype.is_int and end.vmax <= node.dtype.max and (found := _count(body, r)):
                body = found[0] * found[1].cast(node.dtype)
            else:
                left.append(r)
        if len(left) == len(ranges):
            return None
        return body.reduce(node.arg, *left) if left else body

    return rebuild(root, visit)
