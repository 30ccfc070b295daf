"""The clauses of a condition that can move into the gate of a load.

Helpers of `rules/index/invalid.rules`, with the contracts written there.
"""

from __future__ import annotations

from typing import Final

from morok.ir.conjunctions import clauses, conjunction
from morok.ir.definedness import defined
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.marks import helper
from morok.passes.validity import given, reduced

_MEMORY: Final = frozenset({Op.Index, Op.Load})


def _inside(c: UOp, place: UOp) -> tuple[list[UOp], list[UOp]]:
    """(all clauses of `c`, the clauses that depend on no loop besides those of `place` and read no memory)"""
    loops = place.ranges
    found = clauses(c)
    return found, [clause for clause in found if clause.ranges <= loops and not _reads_memory(clause)]


@helper
def gate(c: UOp, place: UOp) -> UOp | None:
    """`c` if all of its clauses may become the gate of a load at `place`; else None."""
    found, inside = _inside(c, place)
    return conjunction(inside) if len(inside) == len(found) else None


@helper
def gate_clauses(c: UOp, place: UOp) -> int | None:
    """A bit mask of the clauses of `c` to move into the gate of `place`: they depend on its loops alone. None if there are none.

    If some other clause may be undefined by itself, `c` is kept whole, and only clauses that the gate does not imply move. The
    new gate, once reduced, must imply them: otherwise they would move again and again.
    """
    found, about = _inside(c, place)
    inside = [clause for clause in about if defined(clause)]
    if not all(defined(clause) for clause in found if clause not in inside):
        known = clauses(place.src[0]) if place.op is Op.Where and place.src[2].op is Op.Invalid else []
        inside = [clause for clause in inside if not _implied(clause, known)]
        merged = conjunction(known + inside)
        simpler = reduced(merged)
        after = clauses(merged if simpler is None else simpler)
        inside = inside if all(_implied(clause, after) for clause in inside) else []
    return sum(1 << i for i, clause in enumerate(found) if clause in inside) or None


def _implied(clause: UOp, others: list[UOp]) -> bool:
    """True if `clause` is one of the `others`, or simplifies to true under their bounds."""
    if clause in others:
        return True
    simpler = given(conjunction(others), clause) if others else None
    return simpler is not None and simpler.op is Op.Const and bool(simpler.arg)


@helper
def split(c: UOp, which: int) -> tuple[UOp, UOp]:
    """(conjunction of the clauses of `c` in the bit mask `which` that are defined everywhere, the condition that remains)

    The condition that remains is `c` itself if some other clause may be undefined where `c` is false.
    """
    found = clauses(c)
    inside = [clause for i, clause in enumerate(found) if which >> i & 1 and defined(clause)]
    others = [clause for clause in found if clause not in inside]
    return conjunction(inside), conjunction(others) if all(map(defined, others)) else c


def _reads_memory(c: UOp) -> bool:
    return any(n.op in _MEMORY for n in c.toposort())
