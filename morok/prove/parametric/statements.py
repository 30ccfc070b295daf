"""Statements at every size: the sets of what they do at all iterations and lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.kinds import Parts
from morok.prove.parametric import laws
from morok.prove.parametric.functions import name_of
from morok.prove.parametric.integers import INT, Integer, integer
from morok.prove.parametric.setting import Setting
from morok.prove.parametric.values import Loops, Statement
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

VALUE: Final = laws.VALUE


def opaque(name: Symbol) -> Statement:
    """A statement of which nothing is known."""
    f = smt.Function(name, laws.ITERATION, VALUE)
    return Statement(integer(1), lambda e, lane: (f(e),))


def store(r: Reading, op: str, parts: Parts, at: Any) -> Statement:
    """An effect for every lane: the value of the lane to its place."""
    place, value = r.one(parts["index"]), r.one(parts["value"])
    if place.uniform or value.uniform:
        raise Unsupported("a store of any number of lanes")
    if not place.count.same(value.count):
        if r.part == "pattern":
            raise Unsupported("a store of several lanes from one place on")
        r.exists(place.count.term == value.count.term)
    made = Statement(r.setting.count(place.count), lambda e, lane: (place.at(e, lane), value.at(e, lane)))
    return within_loops(r, made, parts.get("ranges"))


def end(r: Reading, op: str, parts: Parts, at: Any) -> Statement:
    """A statement within loops."""
    return within_loops(r, statement(r.one_of_any_kind(parts["body"])), parts.get("ranges"))


def within_loops(r: Reading, made: Statement, part: Any) -> Statement:
    """A statement within the loops that are open; what closes axes adds nothing to what is done at all iterations."""
    functions = [loops.function for loops in _loops(r, part)]
    return Statement(made.count, lambda e, lane: (*made.effect(e, lane), *(f(e, 0) for f in functions)))


def _loops(r: Reading, part: Any) -> list[Loops]:
    if part is None:
        return []
    items: list[Any] = [part]
    if isinstance(part, (S.PList, S.EList)):
        items = list(part.items)
    elif isinstance(part, list):
        items = part
    found = []
    for item in items:
        name = name_of(item)
        if r.part == "pattern":
            if not name or name.startswith("_"):
                raise Unsupported("loops without names")
            r.bind(name, Loops(smt.Function(Symbol("loop", name), laws.ITERATION, INT, VALUE)))
        value = r.names.get(name) if name else r.value(item.sequence if isinstance(item, S.ESpread) else item)
        if not isinstance(value, Loops):
            raise Unsupported("loops of no known kind")
        found.append(value)
    return found


def statement(value: Any) -> Statement:
    if isinstance(value, Statement):
        return value
    raise Unsupported(f"{type(value).__name__} where a statement is read")


def same(setting: Setting, here: Expr, pattern: Statement, target: Statement) -> None:
    """Claim that two statements do the same: for every effect of one, at any iteration and lane, the other has one like it."""
    there = setting.iteration(smt.Const(Symbol("fixed", "there"), laws.ITERATION))
    lists = setting.widest_lists()
    for one, other, e, back in ((pattern, target, here, False), (target, pattern, there, True)):
        lane = setting.unknown("lane")
        setting.guard.append(setting.below(lane, one.count))
        wanted = one.effect(e, lane)
        found = []
        for at, k in _candidates(setting, lists, e, lane, pattern.count, back):
            given = other.effect(at, k)
            if len(given) != len(wanted):
                raise Unsupported("statements within other loops")
            inside = setting.below(k, other.count)
            found.append(smt.And(inside, *(a == b for a, b in zip(wanted, given, strict=True))))
        setting.claim(smt.Or(*found))
        setting.guard.pop()


def _candidates(
    setting: Setting, lists: list[Expr], e: Expr, lane: Integer, own: Integer, back: bool
) -> list[tuple[Expr, Integer]]:
    """Where the same effect may be: at the same place, or where spreading lanes over axes, or collecting them, puts it."""
    found = [(e, lane)]
    for a in lists:
        if back:
            block, k = setting.divided(lane, own)
            found.append((setting.iteration(laws.moved(a, block, e)), k))
        else:
            found.append((e, laws.block(a, e) * own + lane))
    return found


__all__ = ["Statement", "end", "opaque", "same", "statement", "store", "within_loops"]
