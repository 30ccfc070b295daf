"""Conditions as conjunctions: which of their clauses belong into the gate of a load.

Helpers of `rules/index/invalid.rules`, with the contracts written there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from morok.ir.op import Op

if TYPE_CHECKING:
    from morok.ir.uop import UOp

_AND: Final = Op.And
_WHERE: Final = Op.Where
_INVALID: Final = Op.Invalid
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


def _inside(c: UOp, place: UOp) -> tuple[list[UOp], list[UOp]]:
    """The clauses of `c`, and those over the loops of `place` alone that read no memory."""
    loops = place.ranges
    found = clauses(c)
    return found, [clause for clause in found if clause.ranges <= loops and not _reads_memory(clause)]


def gate(c: UOp, place: UOp) -> UOp | None:
    """`c`, if all of it may become the gate of a load at `place`."""
    found, inside = _inside(c, place)
    return conjunction(inside) if len(inside) == len(found) else None


def partial_gate(c: UOp, place: UOp) -> UOp | None:
    """What `c` says about the loops of `place` alone, if `place` has no such gate yet."""
    _, inside = _inside(c, place)
    known = set(clauses(place.src[0])) if place.op is _WHERE and place.src[2].op is _INVALID else set()
    return conjunction(inside) if set(inside) - known else None


def _reads_memory(c: UOp) -> bool:
    return any(n.op in _MEMORY for n in c.toposort())
