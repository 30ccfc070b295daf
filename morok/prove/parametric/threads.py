"""The effects of all iterations of ranges that the hardware runs, at every size.

A range that a helper promises to be launched is an axis, of which it is the place. What statements do at all its iterations is
done in no order (docs/ops.md): where several store to one place, they leave the same value there. So a statement may do at some
iterations all that another does there, and nothing at the others, where those that are left still store to each place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import integer
from morok.prove.parametric.rule_values import Statement, Vector
from morok.prove.parametric.setting import Setting
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.smt.term_graphs import subterms
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

# the kinds of functions that are what they are at every iteration
WITHOUT_ITERATION: Final = ("op", "function", "fixed")


def is_launched(extern: S.Extern, name: str) -> bool:
    return any(e == S.ECall("launched", (S.EName(name),)) for e in extern.ensures)


def launched(r: Reading, what: str) -> Vector:
    """A range that the hardware runs, as its place at each iteration."""
    axis = smt.Const(r.setting.symbol(what), laws.AXES)
    r.setting.premise(laws.DISTINCT(axis))
    r.setting.threads.append(axis)
    return Vector(integer(1), lambda e, lane: laws.NUMBER(laws.block(axis, e).term))


def axis_of(s: Setting, x: Vector) -> Expr | None:
    """The axis that a range is which the hardware runs; None of anything else."""
    here = smt.Const(Symbol("fixed", "somewhere"), laws.ITERATION)
    t = x.at(here, integer(0))
    return next((a for a in s.threads if t is laws.NUMBER(laws.block(a, here).term)), None)


def free(s: Setting, x: Vector, axis: Expr, so: Expr) -> None:
    """The premise that a node depends on no iteration of an axis where `so` holds: nor does any of its operands."""
    e, lane = smt.Const(s.symbol("iteration"), laws.ITERATION), smt.Int(s.symbol("lane"))
    looked_at: set[Expr] = set()
    functions: set[Any] = set()
    with s.tried():
        terms = [x.at(e, integer(lane))]
        while terms:
            inside = [t for t in subterms(terms) if t not in looked_at]
            looked_at.update(inside)
            functions |= {t.data for t in inside if t.head == "apply" and any(a is e for a in t.args)}
            if any(f.name.kind in WITHOUT_ITERATION for f in functions):
                raise Unsupported("a promise about what is no variable")
            terms = [s.sequences[t][1](integer(lane)) for t in inside if t in s.sequences]
    s.free += [(f, axis, so) for f in sorted(functions, key=lambda f: str(f.name))]


def same(s: Setting, here: Expr, pattern: Statement, target: Statement) -> None:
    """Claim that at every iteration the target does what the pattern does, or nothing; and that where the pattern stores, the
    target does at some iteration of what the hardware runs.
    """
    if not (pattern.ordered and target.ordered) or pattern.loops or target.loops or pattern.grouped or target.grouped:
        raise Unsupported("other statements than stores, done by threads")
    s.claim(pattern.count.term == target.count.term)
    lane, other = s.probe("lane"), s.probe("other lane")
    (place, value), (its_place, its_value) = pattern.effect(here, other), target.effect(here, other)
    s.guard += [s.below(lane, pattern.count), s.below(other, pattern.count)]
    s.guard.append(smt.Not(target.effect(here, lane)[0] == laws.NOWHERE))
    s.claim(smt.And(its_place == place, its_value == value))
    del s.guard[-2:]
    wanted = pattern.effect(here, lane)[0]
    s.guard.append(smt.Not(wanted == laws.NOWHERE))
    first = [s.iteration(laws.moved(axis, integer(0), here)) for axis in s.threads]
    s.claim(smt.Or(*(target.effect(e, lane)[0] == wanted for e in (here, *first))))
    s.guard.clear()


__all__ = ["axis_of", "free", "is_launched", "launched", "same"]
