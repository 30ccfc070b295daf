"""Statements at every size: the sets of what they do at all iterations and lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.kinds import Parts
from morok.prove.parametric import laws, loops, number_ops, threads, used_lanes
from morok.prove.parametric.polynomials import Integer, integer, within
from morok.prove.parametric.rule_values import Branch, Loops, Statement, Vector
from morok.prove.parametric.setting import AtItems, Setting
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.smt.term_graphs import subterms
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

VALUE: Final = laws.VALUE
FEW: Final = 4  # lanes of one store at each of which something may stay


def opaque(name: Symbol) -> Statement:
    """A statement of which nothing is known."""
    f = smt.Function(name, laws.ITERATION, VALUE)
    return Statement(integer(1), lambda e, lane: (f(e),))


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
    closed = loops.closed(r, part)
    if closed and made.behind is not None:
        raise Unsupported("a store behind another one, in loops")
    return replace(made, loops=tuple(loops.around(r, closed, made.loops)))


def branch(r: Reading, op: str, parts: Parts, at: Any) -> Branch:
    """The beginning of a branch; what else it names tells it from others, and is not done there."""
    condition = r.one(parts["cond"])
    r.exists(condition.count.term == 1)
    for part in parts.get("body") or () if r.part != "pattern" else ():
        r.one_of_any_kind(part)  # nothing that is not read may be done there
    return Branch(condition)


def end_of_branch(r: Reading, op: str, parts: Parts, at: Any) -> Branch:
    found = r.one_of_any_kind(parts["if_op"])
    if not isinstance(found, Branch) or found.ends is not None:
        raise Unsupported("the end of no branch")
    return Branch(found.condition, ends=found)


def listed(r: Reading, found: Sequence[Any]) -> Statement:
    """One statement among branches: what it stores, where their conditions hold."""
    opened: list[Branch] = []
    done: Statement | None = None
    for item in found:
        if isinstance(item, Branch) and item.ends is None:
            opened.append(item)
        elif isinstance(item, Branch):
            if not opened or opened.pop() is not item.ends:
                raise Unsupported("the end of another branch than the one that was opened last")
        elif done is not None:
            raise Unsupported("several statements among branches")
        else:
            done = _where(r, statement(item), [b.condition for b in opened])
    if opened or done is None:
        raise Unsupported("a branch without an end, or without a statement")
    return done


def _where(r: Reading, s: Statement, conditions: Sequence[Vector]) -> Statement:
    if not s.ordered or s.grouped or s.loops or s.behind is not None:
        raise Unsupported("another statement than a store in a branch")

    def effect(e: Expr, lane: Integer) -> tuple[Expr, ...]:
        place, value = s.effect(e, lane)
        return behind_gates(r.setting, [c.at(e, integer(0)) for c in conditions], place), value

    return replace(s, effect=effect)


def behind_gates(s: Setting, gates: Sequence[Expr], place: Expr) -> Expr:
    """A place where all its gates are true, and nowhere where one is false; of gates without a value it is not said where."""
    holds = smt.And(*(number_ops.decided(s, g) for g in gates))
    return smt.If(
        smt.And(*(number_ops.has_value(s, g) for g in gates)), smt.If(holds, place, laws.NOWHERE), laws.UNSAID
    )


def nothing(r: Reading, op: str, parts: Parts, at: Any) -> Any:
    """A statement without effects, or the one operand that nothing is done to."""
    match parts.get("sources") or []:
        case []:
            return Statement(integer(0), lambda e, lane: ())
        case [S.PVar() | S.PBind() | S.POp() | S.PStruct() | S.EName() | S.ECall() | S.EStruct() as one]:
            return r.one_of_any_kind(one)
    raise Unsupported("nothing that waits for several")


def statement(value: Any) -> Statement:
    if isinstance(value, Statement):
        return value
    raise Unsupported(f"{type(value).__name__} where a statement is read")


def same(setting: Setting, here: Expr, pattern: Statement, target: Statement) -> None:
    """Claim that two statements do the same: for every effect of one, at any iteration and lane, the other has one like it.

    The target may leave out loops of which closing changes nothing.
    """
    if pattern.behind is not None or target.behind is not None:
        raise Unsupported("a store behind another one, of which nothing is compared")
    if setting.threads:
        threads.same(setting, here, pattern, target)
        return
    lists = setting.widest_lists()
    if target.opening and (lists or any(x not in pattern.opening for x in target.opening)):
        raise Unsupported("a store that is done at iterations of axes which only the loops that it closes may open")
    there = setting.iteration(smt.Const(Symbol("fixed", "there"), laws.ITERATION))
    for e in (here, there):
        _said(setting, pattern, e)
    if pattern.ordered and (
        target.grouped or _of_fewer_lanes(target, pattern) or _in_another_order(setting, here, pattern, target)
    ):
        if pattern.loops != target.loops:
            raise Unsupported("stores in no order within other loops")
        same_memory(setting, here, pattern, target)  # at each iteration, and so at all of them
        return
    never = smt.Or(*(x.never for x in pattern.loops))
    kept = [] if target.count.known == 0 else _kept(setting, pattern.loops, target)
    setting.guard.append(smt.Not(never))
    for one, other, e, back in ((pattern, target, here, False), (target, pattern, there, True)):
        if one.count.known == 0:
            continue
        lane = setting.probe("lane")
        setting.guard.append(setting.below(lane, one.count))
        wanted = one.effect(e, lane)
        setting.guard.append(_somewhere(wanted))
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
        del setting.guard[-2:]
    setting.guard.pop()


def _of_fewer_lanes(target: Statement, pattern: Statement) -> bool:
    """True if a store has fewer lanes than another one, some of whose values are stored over, or twice."""
    few, many = target.count.known, pattern.count.known
    return target.ordered and few is not None and many is not None and 0 < few < many


def _in_another_order(setting: Setting, here: Expr, pattern: Statement, target: Statement) -> bool:
    """True if a store is of lanes that another one has, where no axes are opened or closed, at another lane."""
    if not target.ordered or pattern.loops or target.loops or setting.widest_lists():
        return False
    with setting.anywhere() as lane:
        return pattern.effect(here, lane)[0] is not target.effect(here, lane)[0]


def _said(setting: Setting, s: Statement, e: Expr) -> None:
    """The premise that the gates of a statement have values: where one has none, neither has the statement."""
    with setting.anywhere() as lane:
        gated = s.count.known != 0 and laws.UNSAID in set(subterms(s.effect(e, lane)[:1]))
    if gated:
        setting.for_all(s.count, lambda k: smt.Not(s.effect(e, k)[0] == laws.UNSAID), smt.TRUE, at_items=_items(s))


def _somewhere(effect: tuple[Expr, ...]) -> Expr:
    """The condition that an effect is one: what is stored nowhere is none."""
    return smt.Not(effect[0] == laws.NOWHERE) if len(effect) == len(("place", "value")) else smt.TRUE


def same_memory(setting: Setting, here: Expr, pattern: Statement, target: Statement) -> None:
    """Claim that two statements leave the same in memory.

    A value stays where the statement stores nothing more to its place. What stays of the one, the other stores too, and it stays.
    Where nothing orders what the other stores, all of it must be what stays: then the order means nothing.
    """
    setting.lanes += map(integer, range(min(FEW, max(s.count.known or 0 for s in (pattern, target)))))
    for one, other in ((pattern, target), (target, pattern)):
        lane = setting.probe("lane")
        setting.guard.append(setting.below(lane, one.count))
        setting.lanes.append(lane)
        place, value = one.effect(here, lane)
        setting.guard.append(_somewhere((place, value)))
        if one.ordered:
            setting.guard.append(_last(setting, one, here, lane, place))
        missing = smt.Bool(setting.symbol("missing"))
        no_match = _no_match(setting, other, here, place, value)
        _at_every_lane(setting, other, here, no_match, missing)
        setting.claim(smt.Not(missing))
        if one.ordered:
            setting.guard.pop()
        del setting.guard[-2:]
    used_lanes.kept_apart(setting, here, pattern, target)


def _last(setting: Setting, s: Statement, here: Expr, lane: Integer, place: Expr) -> Expr:
    """A truth from which follows that a statement stores nothing to a place behind this lane."""
    last = smt.Bool(setting.symbol("last"))

    def elsewhere(k: Integer) -> Expr:
        return smt.Implies(k.term > lane.term, smt.Not(s.effect(here, k)[0] == place))

    _at_every_lane(setting, s, here, elsewhere, last)
    return last


def _at_every_lane(setting: Setting, s: Statement, here: Expr, holds: Callable[[Integer], Expr], only_if: Expr) -> None:
    """A premise at every lane of a statement, where `only_if` holds."""
    if s.count.known is None:
        setting.for_all(s.count, holds, only_if, _places(s, here), _items(s))
    for k in range(s.count.known or 0):
        setting.premise(smt.Implies(only_if, holds(integer(k))))


def _items(s: Statement) -> AtItems:
    return "lanes" if s.ordered else "places"


def _places(s: Statement, here: Expr) -> Callable[[Integer], Expr]:
    return lambda k: s.effect(here, k)[0]


def _no_match(setting: Setting, s: Statement, here: Expr, place: Expr, value: Expr) -> Callable[[Integer], Expr]:
    """The condition that a lane does not store this value to this place, or that it does not stay."""

    def holds(k: Integer) -> Expr:
        its_place, its_value = s.effect(here, k)
        match = smt.And(its_place == place, its_value == value)
        if not s.ordered:
            return smt.Not(match)
        later = setting.witness("later")
        setting.lanes.append(later)
        again = smt.And(within(later, 0, s.count), later.term > k.term, s.effect(here, later)[0] == place)
        return smt.Or(smt.Not(match), again)

    return holds


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
    """The places where the same effect may be: at the same place, or where spreading lanes over axes, or collecting them, puts
    it.
    """
    found = [(e, lane)]
    for a in lists:
        if back:
            block, k = setting.divided(lane, own)
            found.append((setting.iteration(laws.moved(a, block, e)), k))
        else:
            found.append((e, laws.block(a, e) * own + lane))
    return found


__all__ = ["Statement", "end", "nothing", "opaque", "same", "statement", "within_loops"]
