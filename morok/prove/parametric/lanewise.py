"""Ops lane by lane, at every size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from morok.prove import smt
from morok.prove.parametric.polynomials import Integer, integer
from morok.prove.parametric.rule_values import Vector
from morok.prove.smt import Expr

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def lanewise(r: Reading, f: Callable[..., Expr], operands: Sequence[Vector], scalars: set[int]) -> Vector:
    """An op lane by lane. The operands at the places `scalars` may have one lane, which serves all."""
    ruling = [x for k, x in enumerate(operands) if k not in scalars and not x.uniform]
    others = [x for x in operands if not x.uniform]
    count = ruling[0].count if ruling else _widest(others)
    for k, x in enumerate(operands):
        if x.uniform or x.count.same(count):
            continue
        same = x.count.term == count.term
        fits = smt.Or(x.count.term == 1, same) if k in scalars else same
        r.exists(fits)

    def at(e: Expr, lane: Integer) -> Expr:
        return f(*(_lane(x, k in scalars, count, e, lane) for k, x in enumerate(operands)))

    return Vector(count, at, uniform=not others)


def _widest(xs: Sequence[Vector]) -> Integer:
    """The number of lanes where each operand has one or all of them."""
    found = integer(1)
    for x in xs:
        if found.known == 1:
            found = x.count
        elif x.count.known != 1 and not x.count.same(found):
            found = integer(smt.If(found.term == 1, x.count.term, found.term))
    return found


def _lane(x: Vector, scalar: bool, count: Integer, e: Expr, lane: Integer) -> Expr:
    """A lane of an operand of which one lane may serve all."""
    if not scalar or x.uniform or x.count.same(count):
        return x.at(e, lane)
    if x.count.known == 1:
        return x.at(e, integer(0))
    return smt.If(x.count.term == 1, x.at(e, integer(0)), x.at(e, lane))
