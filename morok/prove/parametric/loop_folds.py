"""The instances of the laws of folds over loops, of items that are computed, or are the same in all iterations.

A fold over loops is a function of what its item is, as a value, at the iteration that is looked at: so each law is about values
that depend on these loops as they may, but for those that are said not to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from morok.prove import smt
from morok.prove.parametric import equal_items, laws
from morok.prove.parametric.polynomials import INT, integer
from morok.prove.parametric.rule_values import Loops
from morok.prove.parametric.setting import Looped, Setting
from morok.prove.smt import Expr
from morok.prove.smt.term_graphs import subterms

_OF_NUMBERS: Final = (laws.NUMBER, laws.TRUTH)


def about(s: Setting, t: Expr) -> None:
    """Add the instances at a fold of one item."""
    f = s.looped[t.data]
    length, at = s.sequences[t.args[0]]
    if length.known != 1:
        return
    item = at(integer(0))
    runs = smt.And(*(x.runs for x in f.over))
    if f.combine is not None:
        _of_one_value(s, t, f, item, runs)
        if item.head == "apply" and item.data in s.algebra.together.get(f.combine, (f.combine,)):
            folds = (t.data(_one(s, a)) for a in item.args)
            s.instance("A fold of combinations, or of differences, is that of the folds.", t == item.data(*folds))
    if item.head != "apply" or (of := f.taken_out.get(item.data)) is None:
        return
    for k, a in enumerate(item.args):
        same = _all(_same(s, b, f.over) for j, b in enumerate(item.args) if j != k)
        if same is not None:
            outside = item.data(*(of(_one(s, a)) if j == k else b for j, b in enumerate(item.args)))
            so = smt.And(same, *([runs] if len(item.args) > 1 else []))
            s.instance("What is computed of items may be computed of their fold.", smt.Implies(so, t == outside))


def _one(s: Setting, item: Expr) -> Expr:
    """A sequence of one item."""
    return s.tuple_of(integer(1), lambda k: item)


def _of_one_value(s: Setting, t: Expr, f: Looped, item: Expr, runs: Expr) -> None:
    """A fold of what is the same in all iterations: that, by an op that makes no more of it, or as often as there are any."""
    same = _same(s, item, f.over)
    if same is None or f.combine is None:
        return
    so = smt.And(same, runs)
    if f.combine in s.algebra.idempotent:
        s.instance("The greatest, or least, of equal values is that value.", smt.Implies(so, t == item))
    if len(f.over) == 1 and (trips := f.over[0].trips) is not None:
        equal_items.about(s, f.combine, t, item, trips, smt.Not(so))


def _same(s: Setting, t: Expr, over: Sequence[Loops]) -> Expr | None:
    """The condition that a value is the same in all iterations of loops; None where nothing is known of that."""
    if t in s.constants or (t.head == "const" and t.data.kind == "fixed"):
        return smt.TRUE
    if t.head != "apply":
        return None
    if t.data in _OF_NUMBERS:  # of what the rule knows, and no node or iteration tells
        return smt.TRUE if all(a.sort in (INT, laws.BOOL) for a in subterms(t.args)) else None
    if t.data in s.elements.ops:
        return _all(_same(s, a, over) for a in t.args)
    said = (s.invariant.get((t.data, x.name)) for x in over)
    return _all(None if truths is None else smt.Or(*truths) for truths in said)


def _all(conditions: Iterable[Expr | None]) -> Expr | None:
    """All of these conditions; None where one is not known."""
    found = list(conditions)
    return None if any(c is None for c in found) else smt.And(*(c for c in found if c is not None))


__all__ = ["about"]
