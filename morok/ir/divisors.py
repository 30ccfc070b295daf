"""Values that a divisor cannot have, by its bounds, or by the Where that tests it before the division."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morok.ir.op import Op

if TYPE_CHECKING:
    from morok.ir.uop import UOp

# Nodes, each with a number: it suffices that one of them differs from its number, lane by lane.
Apart = tuple[tuple["UOp", int], ...]


def excludes_zero(y: UOp) -> bool:
    """True if no lane of `y` can be 0."""
    return _excludes(y, 0, ())


def excludes_overflow(x: UOp, y: UOp) -> bool:
    """True if no lane of `x` can be the least integer of its dtype where that of `y` is -1."""
    d = x.dtype.scalar()
    return not d.is_signed or x.vmin > d.min or _excludes(y, -1, ((x, int(d.min)),))


def _excludes(y: UOp, number: int, beside: Apart) -> bool:
    """True if each lane of `y` differs from `number`, or is chosen only where it does, or one `beside` it from its own."""
    if y.vmin > number or y.vmax < number:
        return True
    if y.op is Op.VConst:
        return number not in y.arg
    if y.op in (Op.Vectorize, Op.Cat, Op.Gep):  # lanes are moved: what stands beside each is told of scalars alone
        same = tuple((n, v) for n, v in beside if n.dtype.count == 1)
        return all(_excludes(s, number, same) for s in y.src)
    if y.op is Op.Cast:
        x = y.src[0]
        widens = x.dtype.is_int and x.dtype.bits <= y.dtype.bits and (number == 0 or x.dtype.is_signed)
        return widens and _excludes(x, number, beside)
    if y.op is Op.Where:
        c, t, f = y.src
        return all(
            _excludes(branch, number, beside) or _implies(c, held, ((branch, number), *beside))
            for branch, held in ((t, True), (f, False))
        )
    return False


def _implies(c: UOp, held: bool, apart: Apart) -> bool:
    """True if `c` being `held` implies that one of these nodes differs from its number."""
    if c.op is Op.Not:
        return _implies(c.src[0], not held, apart)
    if c.op in (Op.And, Op.Or):
        found = [_implies(s, held, apart) for s in c.src]
        return any(found) if (c.op is Op.And) is held else all(found)
    if c.op is (Op.Ne if held else Op.Eq):
        a, b = c.src
        compared = [(n, k.arg) for n, k in ((a, b), (b, a)) if k.op is Op.Const]
        return any(n is m and v == w for n, v in compared for m, w in apart)
    return False
