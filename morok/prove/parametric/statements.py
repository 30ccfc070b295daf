"""Statements at every size: the sets of what they do at all iterations and lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.kinds import Parts
from morok.prove.parametric import laws, loops
from morok.prove.parametric.integers import Integer, integer
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
    """A statement, or what a pattern says nothing of, within loops."""
    part = parts["body"]
    if r.part == "pattern" and isinstance(part, S.PVar) and part.name not in r.names:
        body = opaque(r.symbol(part.name))
        if not part.ignored:
            r.bind(part.name, body)
    else:
        body = statement(r.one_of_any_kind(part))
    return within_loops(r, body, parts.get("ranges"))


def within_loops(r: Reading, made: Statement, part: Any) -> Statement:
    """A statement within loops; what closes axes adds nothing to what is done at all iterations."""
    return Statement(made.count, made.effect, tuple(loops.around(r, loops.closed(r, part), made.loops)))


def nothing(r: Reading, op: str, parts: Parts, at: Any) -> Statement:
    """A statement without effects."""
    if parts.get("sources"):
        raise Unsupported("nothing that waits")
    return Statement(integer(0), lambda e, lane: ())


def statement(value: Any) -> Statement:
    if isinstance(value, Statement):
        return value
    raise Unsupported(f"{type(value).__name__} where a statement is read")


def same(setting: Setting, here: Expr, pattern: Statement, target: Statement) -> None:
    """Claim that two statements do the same: for every effect of one, at any iteration and lane, the other has one like it.

    The target may leave out loops of which closing changes nothing.
    """
    there = setting.iteration(smt.Const(Symbol("fixed", "there"), laws.ITERATION))
    lists = setting.widest_lists()
    never = smt.Or(*(x.never for x in pattern.loops))
    kept = [] if target.count.known == 0 else _kept(setting, pattern.loops, target)
    setting.guard.append(smt.Not(never))
    for one, other, e, back in ((pattern, target, here, False), (target, pattern, there, True)):
        if one.count.known == 0:
            continue
        lane = setting.unknown("lane")
        setting.guard.append(setting.below(lane, one.count))
        wanted = one.effect(e, lane)
        found = []
        for at, k in _candidates(setting, lists, e, lane, pattern.count, back):
            if other.count.known == 0:
                continue
            given = other.effect(at, k)
            if len(given) != len(wanted):
                raise Unsupported("statements of several kinds")
            places = (x.function(e, 0) == x.function(at, 0) for x in kept)
            inside = setting.below(k, other.count)
            found.append(smt.And(inside, *places, *(a == b for a, b in zip(wanted, given, strict=True))))
        setting.claim(smt.Or(*found))
        setting.guard.pop()
    setting.guard.pop()


def _kept(setting: Setting, of: Sequence[Loops], target: Statement) -> list[Loops]:
    """The loops that both close; that of the others nothing changes is claimed."""
    left = list(of)
    for x in target.loops:
        if x not in left:
            raise Unsupported("statements within other loops")
        left.remove(x)
    for x in left:
        setting.claim(x.idle)
    return list(target.loops)


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


__all__ = ["Statement", "end", "nothing", "opaque", "same", "statement", "store", "within_loops"]
