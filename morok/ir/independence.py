"""Statements in loops: the loops whose iterations may run in any order, and the statements that each iteration repeats."""

from __future__ import annotations

import math
from typing import Final

from morok.ir.linear_forms import terms
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.ranges import closed_by, free_of, is_spread, vector_axis
from morok.ir.uop import UOp

# Ops that read memory in a way that is not analysed here, or wait for statements.
_OTHER: Final = frozenset({Op.After, Op.Barrier, Op.Custom, Op.CustomI, Op.Kernel})


def independent(s: UOp, r: UOp) -> bool:
    """True if `s` is a store to a place of its own in each iteration of the range `r`, and reads no other place of that memory.
    False if that is unknown.
    """
    if r.op is not Op.Range or s.op is not Op.Store or s.src[0].op is not Op.Index or s.src[1].dtype.count != 1:
        return False
    place, memory = s.src[0], storage(s.src[0])
    for n in s.toposort():
        if n.op in _OTHER or (n.dtype.kind == "void" and n is not s) or (memory in n.src and n is not place):
            return False
    return place.src[0] is memory and any(_apart(at, r) for at in place.src[1 : len(place.src) - bool(place.arg)])


def done_within(s: UOp, p: UOp, q: UOp) -> bool:
    """True if each statement in `s` that iterations of the range `p` repeat is repeated by iterations of `q` too. If one loop
    replaces both, a statement that only `p` repeats would run more often, and may read what it has stored itself.
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
    """True if an index is different in every iteration of `r`, at all values of its other terms: the terms with coefficients
    below the step of `r` stay below one step together, and a common divisor of the others exceeds the whole way of `r`
    and these terms.
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
