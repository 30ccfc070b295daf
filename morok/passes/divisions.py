"""Stage 19: no division can trap, also in a branch that is not taken.

A graph may hold `Where(Eq(y, 0), 0, Idiv(x, y))`: only the chosen branch need be defined. Machines compute both, so a divisor
that may be 0, or -1 under the least integer, gives way to 1 where the division has no value anyway.
"""

from __future__ import annotations

from typing import Final

from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.ir.verify import excludes_zero
from morok.passes.walk import rebuild

DIVISIONS: Final = frozenset({Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod})


def guard_divisions(root: UOp) -> UOp:
    """`root` with a safe divisor in every division whose operands' bounds do not show that it has a value."""

    def visit(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op not in DIVISIONS:
            return None
        x, y = src
        d = y.dtype.scalar()
        safe: UOp | None = None if excludes_zero(y) else y.ne(0)
        if d.is_signed and x.vmin == d.min and y.vmin <= -1 <= y.vmax and y.op is not Op.Where:
            fits = x.ne(d.min) | y.ne(-1)
            safe = fits if safe is None else safe & fits
        return None if safe is None else UOp.new(node.op, (x, safe.where(y, y.like(1))))

    return rebuild(root, visit)
