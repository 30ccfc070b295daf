"""The helpers of the pack of rules about structure."""

from __future__ import annotations

from morok import Op, UOp, helper


@helper
def fresh(s: UOp) -> int:
    """An id that no range below s has."""
    return max((n.arg[0] for n in s.toposort() if n.op is Op.Range), default=-1) + 1


@helper
def cut(n: int) -> int:
    """A place within so many."""
    return max(n // 3, 1)
