"""What the lanes of stores use, at every size.

Where a lane of a store uses what was loaded, no other lane stores over it; and stores that nothing orders go to different places
(docs/ops.md). That holds of what a pattern matches, and must be shown of what a rule makes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from morok.prove import smt
from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import INT, Integer, integer, within
from morok.prove.smt import Applicable, Expr
from morok.prove.smt.term_graphs import subterms

if TYPE_CHECKING:
    from morok.prove.parametric.rule_values import Statement
    from morok.prove.parametric.setting import Setting

FEW: Final = 4  # lanes of the pattern that are looked at besides those that a value names
TWO: Final = 2  # of any number of lanes: what all of these use, another one than any of them does
MATCHED: Final = ("variable", "item")  # the kinds of symbols of nodes that a rule names


def kept_apart(s: Setting, here: Expr, pattern: Statement, target: Statement) -> None:
    """Claim that no lane of the target stores over what another lane uses: there is a lane of the pattern that stores where the
    other lane does, and what the one uses is used by others than that lane.
    """
    if target.count.known == 1:
        return
    lane, other = s.probe("lane"), s.probe("other lane")
    (place, value), (stored, its_value) = (target.effect(here, k) for k in (lane, other))
    uses = _uses(s, (place, value))
    by_all = any(k.known is not None for k in _lanes(uses))
    some = [integer(k) for k in range(min(FEW, pattern.count.known or TWO))]
    in_sequences = any(p.part in _functions(place) for p in s.nested_items.values())
    users, storing = (
        [*_named(s, k, at, _uses(s, (v,))), *([] if in_sequences else [*_lanes(_uses(s, (at,))), *some])]
        for k, at, v in ((lane, place, value), (other, stored, its_value))
    )
    users += some if in_sequences and by_all else []
    s.guard += [s.below(lane, target.count), s.below(other, target.count), smt.Not(lane.term == other.term)]
    s.guard += [_is_somewhere(s, p) for p in (place, stored)]
    found = []
    for k in storing:
        by_others = (smt.Implies(reached, _by_another(s, here, pattern, node, k, users)) for reached, node in uses)
        found.append(smt.And(within(k, 0, pattern.count), pattern.effect(here, k)[0] == stored, *by_others))
    in_order = smt.TRUE if target.ordered else smt.Not(place == stored)
    s.claim(smt.And(in_order, smt.Or(*found)))
    del s.guard[-5:]


def _functions(t: Expr) -> set[Applicable]:
    return {x.data for x in subterms([t]) if x.head == "apply"}


def _lanes(uses: Iterable[tuple[Expr, Expr]]) -> list[Integer]:
    """The lanes at which nodes are used."""
    return [integer(a) for a in dict.fromkeys(a for _, node in uses for a in node.args if a.sort is INT)]


def _named(s: Setting, lane: Integer, place: Expr, uses: Iterable[tuple[Expr, Expr]]) -> list[Integer]:
    """The lanes at which nodes are used, and the items of sequences that a lane is of, by names: conditions on all lanes that
    give names to what there is are used at names alone.
    """
    of = [k.term for k in _lanes(uses)]
    for f, p in s.nested_items.items():
        if p.part in _functions(place):
            part, start = integer(p.part(lane.term)), integer(p.start(lane.term))
            s.law(laws.part_begins, lane, p.total, start, p.begin(part))
            of.append(f(part.term, (lane - start).term))
    found = []
    for t in dict.fromkeys(of):
        found.append(s.unknown("named lane"))
        s.premise(found[-1].term == t)
    s.lanes += found
    return found


def _by_another(s: Setting, here: Expr, pattern: Statement, node: Expr, k: Integer, users: Iterable[Integer]) -> Expr:
    """The condition that a lane of the pattern other than this one uses a node, and has a place."""
    found = []
    for at in users:
        place, value = pattern.effect(here, at)
        used = (smt.And(reached, node == n) for reached, n in _uses(s, (place, value)) if _alike(node, n))
        another = smt.And(within(at, 0, pattern.count), smt.Not(at.term == k.term))
        found.append(smt.And(another, _is_somewhere(s, place), smt.Or(*used)))
    return smt.Or(*found)


def _is_somewhere(s: Setting, place: Expr) -> Expr:
    """The condition that a place is one: those of pointers are."""
    if place.head == "ite":
        condition, yes, no = place.args
        return smt.If(condition, _is_somewhere(s, yes), _is_somewhere(s, no))
    if place.head == "apply" and place.data in s.of_numbers:
        return smt.TRUE
    return smt.Not(place == laws.NOWHERE)


def _alike(a: Expr, b: Expr) -> bool:
    return a is b or (a.head == b.head == "apply" and a.data is b.data)


def _uses(s: Setting, terms: Iterable[Expr]) -> list[tuple[Expr, Expr]]:
    """The nodes of the pattern, and the loads, that terms are computed from, each with the condition under which it is asked."""
    found: dict[tuple[Expr, Expr], None] = {}
    todo = [(smt.TRUE, t) for t in terms]
    seen = set(todo)
    while todo:
        reached, t = todo.pop()
        if t in s.sequences or t in s.folded or (t.head == "apply" and _is_node(t)):
            found[reached, t] = None
        if t.head == "ite":
            condition, yes, no = t.args
            parts = [(reached, condition), (smt.And(reached, condition), yes)]
            parts.append((smt.And(reached, smt.Not(condition)), no))
        else:
            # a pointer is no value: nothing was loaded to know it
            parts = [(reached, a) for a in (t.args[1:] if t.head == "apply" and t.data in s.of_numbers else t.args)]
        todo += [p for p in parts if p not in seen]
        seen.update(parts)
    return list(found)


def _is_node(t: Expr) -> bool:
    name = t.data.name
    at_iterations = any(a.sort is laws.ITERATION for a in t.args)
    return (name.kind in MATCHED and at_iterations) or (name.kind == "op" and name.parts[0] == "Load")


__all__ = ["kept_apart"]
