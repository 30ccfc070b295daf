"""The ops whose value follows from their operands, wherever it is computed."""

from __future__ import annotations

from typing import Final

from morok.ir.op import Op
from morok.ir.ops import TABLE

# In a list of instructions such a value can be used behind the loop, or the branch, that makes it: it is computed again.
PURE: Final = frozenset(op for op, entry in TABLE.entries.items() if entry.pointwise) | {
    Op.Const, Op.VConst, Op.Bitcast, Op.Vectorize, Op.Gep, Op.Cat, Op.Index, Op.PointerIndex, Op.After, Op.Barrier,
}  # fmt: skip
