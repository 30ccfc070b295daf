"""Values that a divisor cannot have, by its bounds, or by the Where that tests it before the division."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from morok.ir.op import Op

if TYPE_CHECKING:
    from morok.ir.uop import UOp

Atom = Callable[["UOp", int], bool]  # (node, number): True if it suffices that the node differs from this number


def excludes_zero(y: UOp) -> bool:
    """True if no lane of `y` can be 0."""
    return _excludes(y, 0, lambda x: lambda n, v: n is x and v == 0)


def excludes_overflow(x: UOp, y: UOp) -> bool:
    """True if no lane of `x` can be the least integer of its dtype where that of `y` is -1."""
    d = x.dtype.scalar()
    if not d.is_signed or x.vmin > d.min:
        return True
    least = int(d.min)
    return _excludes(y, -1, lambda t: lambda n, v: (n is t and v == -1) or (n is x and v == least))


def _excludes(y: UOp, number: int, atom: Callable[[UOp], Atom]) -> bool:
    """True if `y` differs from `number`, or is chosen only where a condition made of `atom` holds."""
    if y.vmin > number or y.vmax < number:
        return True
    if y.op is Op.VConst:
        return number not in y.arg
    if y.op in (Op.Vectorize, Op.Cat):
        return all(_excludes(s, number, atom) for s in y.src)
    if y.op is Op.Gep:
        return _excludes(y.src[0], number, atom)
    if y.op is Op.Cast:
        x = y.src[0]
        widens = x.dtype.is_int and x.dtype.bits <= y.dtype.bits and (number == 0 or x.dtype.is_signed)
        return widens and _excludes(x, number, atom)
    if y.op is Op.Where:
        c, t, f = y.src
        return (_excludes(t, number, atom) or _implies(c, True, atom(t))) and (
            _excludes(f, number, atom) or _implies(c, False, atom(f))
        )
    return False


def _implies(c: UOp, held: bool, atom: Atom) -> bool:
    """True if `c` being `held` implies one of the inequalities that `atom` accepts."""
    if c.op is Op.Not:
        return _implies(c.src[0], not held, atom)
    if c.op in (Op.And, Op.Or):
        found = [_implies(s, held, atom) for s in c.src]
        return any(found) if (c.op is Op.And) is held else all(found)
    if c.op is (Op.Ne if held else Op.Eq):
        a, b = c.src
        return (b.op is Op.Const and atom(a, b.arg)) or (a.op is Op.Const and atom(b, a.arg))
    return False
