"""Bounds that hold even for undefined values, as a basis for nsw flags and unchecked shifts and divisions.

The bounds of a node hold where it is defined. Machine code computes a value elsewhere too, which a select or a connective of
bools may then ignore: it may be any number, but not poison or undefined behaviour. So overflow, shift amounts and divisors are
assumed to be in bounds only if `bounded` is true.
"""

from __future__ import annotations

from typing import Final

from morok.ir.op import TABLE, Op
from morok.ir.ranges import remember, unknown
from morok.ir.uop import UOp

_FACT: Final = "bounded"
_SHIFTS: Final = frozenset({Op.Shl, Op.Shr})
_DIVISIONS: Final = frozenset({Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod})
_PASSING: Final = frozenset({Op.Gep, Op.Vectorize, Op.Cat, Op.After})


def bounded(u: UOp) -> bool:
    """True if the integer or bool `u` is within its bounds even where it, or one of its operands, is undefined."""
    if _FACT not in u.memo:
        for node in unknown(u, _FACT):
            remember(node, _FACT, _holds(node))
    found: bool = u.memo[_FACT]
    return found


def _holds(u: UOp) -> bool:
    d = u.dtype.scalar()
    if d.is_float:
        return True  # floats have no bounds
    if not TABLE.entries[u.op].pointwise and u.op not in _PASSING:
        return True  # constants, counters and loads: no arithmetic
    operands = u.src[:1] if u.op is Op.After else u.src
    if d.is_int and d.min == u.vmin and u.vmax == d.max:
        return True
    if not all(s.memo[_FACT] for s in operands):
        return False
    if u.op in _SHIFTS:
        return amount_fits(u)
    if u.op in _DIVISIONS:
        return not may_be_zero(u.src[1]) and not may_overflow(*u.src)
    return u.op is not Op.Pow


def exact_range(op: Op, x: UOp, y: UOp) -> tuple[int | float, int | float]:
    """(least, greatest) exact value of the sum, difference or product of two integers, without wrapping."""
    if op is Op.Add:
        return x.vmin + y.vmin, x.vmax + y.vmax
    if op is Op.Sub:
        return x.vmin - y.vmax, x.vmax - y.vmin
    corners = [x.vmin * y.vmin, x.vmin * y.vmax, x.vmax * y.vmin, x.vmax * y.vmax]
    return min(corners), max(corners)


def cannot_wrap(u: UOp) -> bool:
    """True if the integer sum, difference or product `u` never wraps."""
    low, high = exact_range(u.op, *u.src)
    return u.dtype.min <= low and high <= u.dtype.max and all(map(bounded, u.src))


def amount_fits(u: UOp) -> bool:
    """True if the amount of the shift `u` is always in [0, width of the dtype)."""
    n = u.src[1]
    return n.vmin >= 0 and n.vmax < u.dtype.scalar().bits and bounded(n)


def may_be_zero(y: UOp) -> bool:
    """True if a divisor may be 0."""
    return y.vmin <= 0 <= y.vmax or not bounded(y)


def may_overflow(x: UOp, y: UOp) -> bool:
    """True if the division x / y is signed and may be that of the least number by -1."""
    least = x.vmin <= x.dtype.min or not bounded(x)
    return x.dtype.is_signed and least and (y.vmin <= -1 <= y.vmax or not bounded(y))
