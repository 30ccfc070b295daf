"""Loops whose counter is reduced modulo a power of two in an address: `x[(i + 3) & 63]`, as in a roll along an axis.

LLVM's loop vectorizer (22.1) treats such an address as affine, after a run-time check against wrapping. The check is wrong if the
loop has exactly as many iterations as the reduced counter has values: the loop then reads past the row. So the vectorizer is
disabled for these loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp

# not address arithmetic
_WORKED_OUT: Final = frozenset((Op.Load, Op.Index, Op.DefineGlobal, Op.DefineLocal, Op.DefineReg))


def wrapping_loops(instructions: Sequence[UOp]) -> frozenset[UOp]:
    """The ranges in expressions that an address reduces to their low bits."""
    found: set[UOp] = set()
    seen: set[UOp] = set()
    for place in instructions:
        if place.op is not Op.Index:
            continue
        todo = list(place.src[1:])
        while todo:
            u = todo.pop()
            if u in seen or u.op in _WORKED_OUT:
                continue
            seen.add(u)
            if _keeps_low_bits(u):
                found.update(u.ranges)
            todo += u.src
    return frozenset(found)


def _keeps_low_bits(u: UOp) -> bool:
    if u.op is Op.And:
        return any(s.op is Op.Const and s.arg > 0 and s.arg & (s.arg + 1) == 0 for s in u.src)
    return u.op is Op.Cast and u.dtype.is_int and u.src[0].dtype.is_int and u.dtype.itemsize < u.src[0].dtype.itemsize
