"""Definedness: a node certainly has a value if bounds show that every partial operation below it is defined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from morok.ir.divisors import excludes_overflow, excludes_zero
from morok.ir.dtype import PtrType
from morok.ir.op import Op
from morok.ir.ranges import remember, unknown

if TYPE_CHECKING:
    from morok.ir.uop import UOp

_memo: Final = "defined"
_LEAVES: Final = frozenset({Op.Const, Op.VConst, Op.DefineVar, Op.Range, Op.Special, Op.DefineGlobal})
# ops that only rearrange lanes, or reinterpret bits
_LANES: Final = frozenset({Op.Vectorize, Op.Cat, Op.Gep, Op.Bitcast})
_DIVISIONS: Final = frozenset({Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod})
_SHIFTS: Final = frozenset({Op.Shl, Op.Shr})
_SELECTIONS: Final = (Op.Max, Op.Min)


def defined(x: UOp) -> bool:
    """True if `x` certainly has a value, not Invalid, for all values of its variables and loop indices within their bounds, and
    all contents of memory. False proves nothing.
    """
    found: bool | None = x.memo.get(_memo)
    if found is None:
        for node in unknown(x, _memo):
            found = (node.op in _LEAVES or _total(node)) and all(s.memo[_memo] for s in node.src)
            remember(node, _memo, found)
        assert found is not None
    return found


def _total(n: UOp) -> bool:
    """True if a node has a value if its operands have."""
    op = n.op
    if op in _DIVISIONS:
        x, y = n.src
        return excludes_zero(y) and (x.dtype.is_index or excludes_overflow(x, y))
    if op in _SHIFTS:
        return n.src[1].vmin >= 0 and n.src[1].vmax < n.dtype.scalar().bits
    if op is Op.Cast:
        x, d = n.src[0], n.dtype
        if x.dtype.is_float:
            return not d.is_integral
        return not (x.dtype.is_index and d.is_int) or (d.min <= x.vmin and x.vmax <= d.max)
    if op is Op.Index:
        d, places = n.src[0].dtype, n.src[1:]
        elements = d.size if isinstance(d, PtrType) and d.base.count == 1 else 0
        return len(places) == 1 and places[0].vmin >= 0 and places[0].vmax < elements
    if op is Op.Load:  # a vector load reads beyond the indexed element
        return len(n.src) == 1 and n.dtype.count == 1
    if op is Op.Reduce:  # Max or Min over no iterations has no value at index
        return n.arg not in _SELECTIONS or not n.dtype.is_index
    return op in _LANES or (n.entry.pointwise and op is not Op.Pow)
