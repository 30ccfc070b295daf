"""Memory that the threads of a block share, at every size.

A helper gives storage of a block's own, and for every iteration of a loop that the hardware runs a place in it, which tells apart
all iterations in which something is stored: none of another value is at the same place. Once all threads have come to a barrier
behind their stores, what is read at the place of an iteration is what was stored there (docs/ops.md). So a fold over another loop
of as many iterations, which nothing knows of, of what is read at the places of its iterations is the fold over the loop itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from morok.dsl import syntax as S
from morok.prove.kinds import Parts
from morok.prove.parametric import loops
from morok.prove.parametric.polynomials import Integer, integer
from morok.prove.parametric.rule_values import Loops, Shared, Statement, Substituted, Vector
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def told_apart(extern: S.Extern) -> bool:
    """True if a helper's contract promises places that differ between iterations."""
    return any(isinstance(e, S.ECall) and e.name == "told_apart" for e in extern.ensures)


def given(r: Reading, extern: S.Extern, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """The storage, the place and the other loop that a helper gives. Unsupported where its contract leaves open whether what it
    is given, or the place, knows of them.
    """
    said = {
        (e.name, *(a.name for a in e.args if isinstance(a, S.EName))) for e in extern.ensures if isinstance(e, S.ECall)
    }
    storage = [p.name for p in extern.results if isinstance(p.type, S.TPointer)]
    places = [(f[1], f[2], f[3]) for f in said if f[0] == "told_apart" and len(f) == 4]
    if len(storage) != 1 or len(places) != 1 or len(extern.results) != 3 or extern.partial:
        raise Unsupported(f"{extern.name}, which gives something else than storage that is shared")
    (b,), ((at, s, t),) = storage, places
    q = next(p.name for p in extern.results if p.name not in (b, at))
    nodes = [name for name, v in arguments.items() if not isinstance(v, Loops)]
    needed = {("renames", q, t), ("free_of", at, q), *(("free_of", x, y) for x in nodes for y in (b, q))}
    value, loop = arguments.get(s), arguments.get(t)
    if not needed <= said or not isinstance(value, Vector) or not isinstance(loop, Loops) or value.count.known != 1:
        raise Unsupported(f"{extern.name}, of which something may know what it gives")
    r.claim(loops.launched(loop.name))
    place = r.opaque(r.setting.symbol(f"{extern.name}.{at}"), integer(1))
    made = Shared(place, value, loop, loops.another(r, f"{extern.name}.{q}"))
    return tuple({b: made, at: place, q: made.again}[p.name] for p in extern.results)


def cell(r: Reading, x: Shared, parts: Parts) -> Vector:
    """The place of an iteration; or, behind a barrier, the value at the place of an iteration of the other loop."""
    indices = parts["indices"]
    if parts.get("gate") is not None or not isinstance(indices, list) or len(indices) != 1:
        raise Unsupported("another place of what is shared")
    place = r.one_of_any_kind(indices[0])
    if place != Substituted(x.place, x.loop, x.again) if x.filled else place is not x.place:
        raise Unsupported("another place of what is shared")
    return Vector(integer(1), _within_its_loop, shared=x)


def store(place: Vector, value: Vector) -> Statement:
    """The statement by which each iteration stores its value at its place."""
    assert place.shared is not None
    if place.shared.filled or value is not place.shared.value:
        raise Unsupported("a store of something else than what is shared")

    def effect(e: Expr, lane: Integer) -> tuple[Expr, ...]:
        raise Unsupported("a store to what is shared among others")

    return Statement(value.count, effect, shared=place.shared)


def barrier(r: Reading, op: str, parts: Parts, at: Any) -> Statement:
    """Stores of all iterations, behind which all threads have come."""
    s = r.one_of_any_kind(parts["src"])
    if not isinstance(s, Statement) or s.shared is None or s.loops != (s.shared.loop,) or parts.get("deps"):
        raise Unsupported("a barrier behind something else than what is shared")
    return replace(s, fenced=True)


def after(r: Reading, x: Shared, part: Any) -> Shared:
    """The storage behind a barrier."""
    found = [r.one_of_any_kind(p) for p in (part if isinstance(part, list) else [part])]
    if len(found) != 1 or not isinstance(found[0], Statement) or not found[0].fenced or found[0].shared != x:
        raise Unsupported("what is shared behind something else than a barrier")
    return replace(x, filled=True)


def substituted(x: Any, loop: Any, again: Any) -> Substituted:
    if not isinstance(x, Vector) or not isinstance(loop, Loops) or not isinstance(again, Loops):
        raise Unsupported("a substitution of this form")
    return Substituted(x, loop, again)


def _within_its_loop(e: Expr, lane: Integer) -> Expr:
    raise Unsupported("a place of what is shared, outside of what closes its loop")


__all__ = ["after", "barrier", "cell", "given", "store", "substituted", "told_apart"]
