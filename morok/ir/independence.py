"""Statements in loops: which iterations may be done in any order, and which statements are done at those of two loops."""

from __future__ import annotations

import math
from typing import Final

from morok.ir.linear_forms import terms
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.ranges import closed_by, free_of, is_spread, vector_axis
from morok.ir.uop import UOp

# What reads memory that is not seen here, or waits for statements.
_OTHER: Final = frozenset({Op.After, Op.Barrier, Op.Custom, Op.CustomI, Op.Kernel})


def independent(s: UOp, r: UOp) -> bool:
    """True if `s` is a store that, in each iteration of the range `r`, writes another place than in all others, and reads nothing
    of that memory but what is at this place. False where that is not seen.
    """
    if r.op is not Op.Range or s.op is not Op.Store or s.src[0].op is not Op.Index or s.src[1].dtype.count != 1:
        return False
    place, memory = s.src[0], storage(s.src[0])
    for n in s.toposort():
        if n.op in _OTHER or (n.dtype.kind == "void" and n is not s) or (memory in n.src and n is not place):
            return False
    return place.src[0] is memory and any(_apart(at, r) for at in place.src[1 : len(place.src) - bool(place.arg)])


def done_within(s: UOp, p: UOp, q: UOp) -> bool:
    """True if each statement in `s` that is done again for each iteration of the range `p` is so for those of `q`. Other
    statements are done once where the two loops are one that counts both: done more often, they may find what they have stored.
    """
    if p.op is not Op.Range or q.op is not Op.Range:
        return False
    acting = [n for n in s.toposort() if is_spread(n) or n.op in _OTHER or n.op is Op.Assign]
    return all(_repeats(n, q) for n in acting if _repeats(n, p))


def _repeats(n: UOp, r: UOp) -> bool:
    """True if a statement depends on a range, or on the axis that it is, which it does not close itself."""
    ranges, axes = closed_by(n)
    return r not in ranges and vector_axis(r) not in axes and not all(free_of(x, r) for x in n.src)


def _apart(at: UOp, r: UOp) -> bool:
    """True if an index is another number for every iteration of `r`, whatever else it depends on: what is less than a step of `r`
    is so in all, and what is more makes steps that are longer than all of this together.
    """
    while at.op is Op.Where and at.src[2].op is Op.Invalid:
        at = at.src[1]
    if not at.dtype.is_index or at.dtype.count != 1:
        return False
    parts, _ = terms(at)
    step = abs(dict(parts).get(r, 0))
    others = [(v, abs(c)) for v, c in parts if v is not r]
    if not step or not all(free_of(v, r) and isinstance(v.vmax - v.vmin, int) for v, _ in others):
        return False
    less = sum(c * (v.vmax - v.vmin) for v, c in others if c < step)
    more = [c for v, c in others if c >= step and v.vmax > v.vmin]
    return less < step and (not more or math.gcd(*more) > step * (r.vmax - r.vmin) + less)
