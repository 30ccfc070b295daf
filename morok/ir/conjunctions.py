"""Conditions as conjunctions of clauses."""

from __future__ import annotations

from typing import Final

from morok.ir.dtype import dtypes
from morok.ir.graph import flattened
from morok.ir.op import Op
from morok.ir.uop import UOp

_AND: Final = Op.And


def clauses(c: UOp) -> list[UOp]:
    """The conjuncts of `c`, in order, each once."""
    return list(dict.fromkeys(flattened(c, lambda n: n.op is _AND)))


def conjunction(conditions: list[UOp]) -> UOp:
    """The conjunction of conditions; true if there are none."""
    if not conditions:
        return UOp.const(True, dtypes.bool)
    out = conditions[0]
    for c in conditions[1:]:
        out = out & c
    return out
