"""The role of each operand of a node: a value, a place, a binder, an order (ops.md, Positions)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morok.ir.op import Op, Position

if TYPE_CHECKING:
    from morok.ir.uop import UOp


_known: dict[tuple[Op, int, bool], tuple[Position, ...]] = {}


def positions(node: UOp) -> tuple[Position, ...]:
    """The position of every operand, in order."""
    key = (node.op, len(node.src), node.op is Op.Index and node.arg)
    found = _known.get(key)
    if found is None:
        found = _known[key] = _positions(node)
    return found


def _positions(node: UOp) -> tuple[Position, ...]:
    operands = node.entry.operands
    spread = [o for o in operands if o.many]
    fixed = sum(1 for o in operands if not (o.many or o.optional))
    gates = 1 if node.op is Op.Index and node.arg else 0
    rest = len(node.src) - fixed
    # an optional operand beside a sequence is there only where the arg says so (the gate of an Index)
    optional = (gates if spread else rest) if any(o.optional for o in operands) else 0
    each = (rest - optional) // len(spread) if spread else 0
    out: list[Position] = []
    for o in operands:
        out += [o.position] * (each if o.many else optional if o.optional else 1)
    return tuple(out)
