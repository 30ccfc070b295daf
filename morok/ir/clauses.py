"""Conditions as conjunctions: which of their clauses belong into the gate of a load.

Helpers of `rules/index/invalid.rules`, with the contracts written there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from morok.ir.definedness import defined
from morok.ir.op import Op
from morok.marks import helper

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


@helper
def gate(c: UOp, place: UOp) -> UOp | None:
    """`c`, if all of it may become the gate of a load at `place`."""
    found, inside = _inside(c, place)
    return conjunction(inside) if len(inside) == len(found) else None


@helper
def gate_clauses(c: UOp, place: UOp) -> int | None:
    """Which clauses of `c` are about the loops of `place` alone, as bits; None if nothing would change by moving them there."""
    found, about = _inside(c, place)
    inside = [clause for clause in about if defined(clause)]
    if not inside:
        return None
    known = set(clauses(place.src[0])) if place.op is _WHERE and place.src[2].op is _INVALID else set()
    stays = not all(defined(clause) for clause in found if clause not in inside)
    return None if stays and known.issuperset(inside) else sum(1 << i for i, clause in enumerate(found) if clause in inside)


@helper
def split(c: UOp, which: int) -> tuple[UOp, UOp]:
    """Those clauses of `c` that bits name and that have a value everywhere, and what is left to ask for: `c` itself, if less may
    have no value where `c` is false.
    """
    found = clauses(c)
    inside = [clause for i, clause in enumerate(found) if which >> i & 1 and defined(clause)]
    others = [clause for clause in found if clause not in inside]
    return conjunction(inside), conjunction(others) if all(map(defined, others)) else c


def _reads_memory(c: UOp) -> bool:
    return any(n.op in _MEMORY for n in c.toposort())
