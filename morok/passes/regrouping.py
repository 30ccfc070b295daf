"""The steps that move an index through a reshape, until the view has the shape of its operand.

Each step is a rule of rules/tensor/movement.rules, true for any reshape. This module only chooses the next step, so that indices
are divided as little as possible. Symbolic sizes are equal if they are the same node.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.shape import Shape, shape_of
from morok.ir.uop import UOp
from morok.marks import helper

REMEMBERED: Final = 4096  # most cached pairs of shapes


class Step(NamedTuple):
    """One step at axis k: drop it (of size 1); insert one of size 1 there; merge it with the next; split it into q and m."""

    kind: Literal["drop", "insert", "merge", "split"]
    k: int
    q: int = 0
    m: int = 0


@lru_cache(REMEMBERED)
def step(seen: Shape, below: Shape) -> Step | None:
    """The first step from one shape to another of equally many elements; None if they are equal, or differ only in how symbolic
    sizes are written.

    Axes between the common prefix and the common suffix of the shapes are changed, the last first: so an index is divided by
    products of sizes, and only quotients are taken modulo one.
    """
    first = _first_unlike(seen, below)
    a, b = seen[first:], below[first:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    end = first + len(a)
    if (b and b[-1] == 1) or (b and not a):
        return Step("insert", end)
    if a and a[-1] == 1 and (len(a) > 1 or not b):
        return Step("drop", end - 1)
    if a and not b and end > 1:  # of a tensor without elements
        return Step("merge", end - 2)
    return _between(a, b, end) if a and b else None


def _between(a: Shape, b: Shape, end: int) -> Step | None:
    """The step from the sizes `a`, of the axes before axis `end`, towards the sizes `b`; None if there is none."""
    n, m = a[-1], b[-1]
    if len(a) == 1 and len(b) == 1:
        return None
    if isinstance(n, int) and isinstance(m, int) and n and m and n % m == 0:
        return Step("split", end - 1, n // m, m)
    if len(a) == 1:
        return None
    before = a[-2]
    if before == 1:
        return Step("drop", end - 2)
    if isinstance(n, int) and isinstance(m, int) and isinstance(before, int) and n and m and m % n == 0:
        missing = m // n
        if before and missing % before and before % missing == 0:
            return Step("split", end - 2, before // missing, missing)
    return Step("merge", end - 2)


def _first_unlike(seen: Shape, below: Shape) -> int:
    """The first axis at which two shapes differ; the rank of the shorter if there is none."""
    return next((j for j, (n, m) in enumerate(zip(seen, below, strict=False)) if n != m), min(len(seen), len(below)))


def _is_product(n: int | UOp, a: int | UOp, b: int | UOp) -> bool:
    """True if the size n is a * b, as numbers, or as the node Mul(a, b)."""
    if isinstance(n, UOp):
        return n.op is Op.Mul and n.src == (_node(a), _node(b))
    return isinstance(a, int) and isinstance(b, int) and n == a * b


def _node(n: int | UOp) -> UOp:
    return n if isinstance(n, UOp) else UOp.const(n, dtypes.index)


def _axis(view: UOp, kind: str) -> int | None:
    found = step(shape_of(view), shape_of(view.src[0]))
    return found.k if found is not None and found.kind == kind else None


@helper
def dropped(view: UOp) -> int | None:
    """The axis of size 1 to drop next; None if the next step is another."""
    return _axis(view, "drop")


@helper
def inserted(view: UOp) -> int | None:
    """The axis before which to insert one of size 1 next; None if the next step is another."""
    return _axis(view, "insert")


@helper
def merged(view: UOp) -> int | None:
    """The axis to merge next with the one after it; None if the next step is another."""
    return _axis(view, "merge")


@helper
def split(view: UOp) -> tuple[int, int, int] | None:
    """(axis to split next, sizes of the two parts); None if the next step is another."""
    found = step(shape_of(view), shape_of(view.src[0]))
    return (found.k, found.q, found.m) if found is not None and found.kind == "split" else None


@helper
def factored(view: UOp) -> int | None:
    """The first axis that differs from the operand's, if its size is the product of the operand's sizes there and at the next
    axis.
    """
    seen, below = shape_of(view), shape_of(view.src[0])
    k = _first_unlike(seen, below)
    return k if k < len(seen) and k + 1 < len(below) and _is_product(seen[k], below[k], below[k + 1]) else None


@helper
def different(view: UOp) -> int | None:
    """The only axis that may differ from the operand's; None if others differ."""
    seen, below = shape_of(view), shape_of(view.src[0])
    k = _first_unlike(seen, below)
    return k if len(seen) == len(below) and seen[k + 1 :] == below[k + 1 :] else None


@helper
def merged_below(view: UOp) -> int | None:
    """The first axis of the operand that differs from the view's, to merge with the one after it; None if it is the last."""
    below = shape_of(view.src[0])
    k = _first_unlike(shape_of(view), below)
    return k if k + 1 < len(below) else None
