"""Registers that loops fold into, at every size: by induction over the iterations, what they hold is the fold.

A helper gives a register of its own, of which what is folded knows nothing. Let it hold the identity before a loop, and let each
iteration put there what it held combined with what the iteration adds: then it holds the fold of the loop afterwards, in one of
the orders that a Reduce leaves open (docs/ops.md). A rule names the register as it is before that loop, inside of it and behind
it, and in no other state: who stores there besides, or looks, waits for nothing of the loop, nor the loop for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.kinds import Parts
from morok.prove.parametric import folds, laws
from morok.prove.parametric.number_ops import parts_of
from morok.prove.parametric.op_functions import name_of
from morok.prove.parametric.polynomials import INT, integer
from morok.prove.parametric.rule_values import Kept, Lane, Loops, Register, Statement, Vector
from morok.prove.parametric.setting import Setting
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.smt.term_graphs import subterms
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

_WITHOUT_MEMORY: Final = ("op", "fixed", "value")  # the kinds of symbols of what no store changes


def register(r: Reading, extern: S.Extern, name: str, given: dict[str, Any]) -> Register:
    """The storage that a helper gives: its own. Its contract says what knows nothing of it, `free_of(x, register)`."""
    unaware = []
    for e in extern.ensures:
        match e:
            case S.ECall(name="free_of", args=(S.EName(name=x), S.EName(name=of))) if of == name and isinstance(
                given.get(x), Vector
            ):
                unaware.append(given[x])
    return Register(r.setting.symbol(f"{extern.name}.{name}"), tuple(unaware))


def after(r: Reading, x: Register, part: Any) -> Register:
    """The register behind statements, or inside of loops."""
    behind, inside = list(x.behind), list(x.inside)
    for item in part if isinstance(part, list) else [part]:
        found = r.names.get(name_of(item))
        if isinstance(found, Statement):
            behind.append(found)
        elif isinstance(found, Loops):
            inside.append(found)
        else:
            raise Unsupported("a register behind what is no statement and no loop")
    return Register(x.name, x.unaware, tuple(behind), tuple(inside))


def cell(r: Reading, x: Register, parts: Parts) -> Vector:
    """The only element of a register, as a place, and as the value that it holds there."""
    indices = parts["indices"]
    if (
        parts.get("gate") is not None
        or not isinstance(indices, list)
        or [getattr(i, "value", None) for i in indices] != [0]
    ):
        raise Unsupported("an element of a register that is not its first, or behind a gate")
    states = r.setting.registers.setdefault(x.name, [])
    if x not in states:
        states.append(x)
    _in_one_loop(states)
    if not x.behind:
        return Vector(integer(1), _holds_nothing, register=x)
    start = x.behind[0].kept
    if start is None or start.register != Register(x.name, x.unaware) or x.behind[0].loops:
        raise Unsupported("a register of which nothing says what it holds at first")
    if len(x.behind) == 1:
        return Vector(start.value.count, _held(x), register=x)
    if len(x.behind) == 2 and not x.inside:
        return _folded(r, x, start, x.behind[1])
    raise Unsupported("a register behind several statements")


def _in_one_loop(states: Sequence[Register]) -> None:
    """Unsupported where a register is named in other states than those before one loop, inside of it and behind it."""
    last = next((x for x in states if len(x.behind) > 1), None)
    if last is None:
        return
    start, done = last.behind[0], last.behind[-1]
    inside = Register(last.name, last.unaware, (start,), () if done.kept is None else done.kept.register.inside)
    if any(x not in (Register(last.name, last.unaware), inside, last) for x in states):
        raise Unsupported("a register that is looked at, or stored to, beside a loop into it")


def _held(x: Register) -> Lane:
    """The value of a register inside of loops, or before them: anything."""
    held = smt.Function(
        Symbol("fixed", "held", x.name, *sorted(w.name for w in x.inside)), laws.ITERATION, INT, laws.VALUE
    )
    return lambda e, lane: held(e, lane.term)


def _holds_nothing(e: Expr, lane: Any) -> Expr:
    raise Unsupported("a register that holds nothing yet")


def store(place: Vector, value: Vector) -> Statement:
    """The statement that puts a value into a register."""
    assert place.register is not None

    def effect(e: Expr, lane: Any) -> tuple[Expr, ...]:
        raise Unsupported("a store to a register among others")

    return Statement(value.count, effect, kept=Kept(place.register, value))


def _folded(r: Reading, x: Register, start: Kept, done: Statement) -> Vector:
    """The value of a register behind a loop: the fold that the pattern is, where the claims of the induction hold."""
    fold, again = r.folded, done.kept
    if fold is None or not fold.loops or again is None or r.probing:
        raise Unsupported("a loop into a register, where the pattern is no fold over loops")
    if not folds.as_one_fold(r, fold.op, fold.dtype):
        raise Unsupported("a loop into a register, where another order of the pattern's fold may tell")
    inside = Register(x.name, x.unaware, x.behind[:1], again.register.inside)
    if (
        again.register != inside
        or not same_loops(done.loops, fold.loops)
        or not same_loops(again.register.inside, fold.loops)
    ):
        raise Unsupported("a loop into a register over other loops than those of the pattern")
    s, e = r.setting, r.here
    for v in (start.value, again.value):
        if not v.uniform:
            r.claim(v.count.term == fold.count.term)
    lane = s.probe("lane")
    with s.where(s.below(lane, fold.count)):
        first, then, held = start.value.at(e, lane), again.value.at(e, lane), _held(inside)
        _knows_nothing(s, x, held, [first, then])
        r.claim(first == fold.nothing)
        r.claim(then == fold.combine(held(e, lane), fold.one(e, lane)))
    return Vector(fold.count, fold.result)


def same_loops(some: tuple[Loops, ...], others: tuple[Loops, ...]) -> bool:
    """True if the loops are the same, in any order."""
    return sorted(x.name for x in some) == sorted(x.name for x in others)


def _knows_nothing(s: Setting, x: Register, held: Lane, terms: list[Expr]) -> None:
    """Unsupported where something stored to a register may know of it by other ways than by what it held."""
    somewhere, place = (
        smt.Const(Symbol("fixed", "somewhere"), laws.ITERATION),
        integer(smt.Int(Symbol("fixed", "somewhere"))),
    )
    known = {
        t.data
        for at in (*(v.at for v in x.unaware), held)
        for t in subterms([at(somewhere, place)])
        if t.head == "apply"
    }
    for t in parts_of(s, terms, place):
        if (
            t.head == "apply"
            and t.sort is laws.VALUE
            and t.data not in known
            and t.data.name.kind not in _WITHOUT_MEMORY
        ):
            raise Unsupported("a value that may know of the register")


__all__ = ["after", "cell", "register", "store"]
