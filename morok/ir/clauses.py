"""Conditions as conjunctions: which of their clauses belong into the gate of a load.

Helpers of `rules/index/invalid.rules`, with the contracts written there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from morok.ir.op import Op

if TYPE_CHECKING:
    from morok.ir.uop import UOp

_AND: Final = Op.And
_MEMORY: Final = frozenset({Op.Index, Op.Load})


def clauses(c: UOp) -> list[UOp]:
    """The conditions that `c` is the conjunction of, in order, each once."""
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
    """All of these; true if there are none."""
    from morok.ir.dtype import dtypes
    from morok.ir.uop import UOp

    if not conditions:
        return UOp.const(True, dtypes.bool)
    out = conditions[0]
    for c in conditions[1:]:
        out = out & c
    return out


def movable(c: UOp, place: UOp) -> tuple[UOp, UOp] | None:
    """(inside, outside) with c = inside & outside: inside are the clauses over the place's loops that read no memory."""
    if c.dtype.count != 1:
        return None
    loops = place.ranges
    inside: list[UOp] = []
    outside: list[UOp] = []
    for clause in clauses(c):
        (inside if clause.ranges <= loops and not _reads_memory(clause) else outside).append(clause)
    return (conjunction(inside), conjunction(outside)) if inside else None


def _reads_memory(c: UOp) -> bool:
    return any(n.op in _MEMORY for n in c.toposort())
