"""Conditions as conjunctions of clauses."""

from __future__ import annotations

from typing import Final

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp

_AND: Final = Op.And


def clauses(c: UOp) -> list[UOp]:
    """The conjuncts of `c`, in order, each once."""
    found: dict[UOp, None] = {}
    stack = [c]
    while stack:
        node = stack.pop()
        if node.op is _AND:
            stack.extend(reversed(node.src))
        else:
            found[node] = None
    return list(found)


def conjunction(conditions: list[UOp]) -> UOp:
    """The conjunction of conditions; true if there are none."""
    if not conditions:
        return UOp.const(True, dtypes.bool)
    out = conditions[0]
    for c in conditions[1:]:
        out = out & c
    return out
