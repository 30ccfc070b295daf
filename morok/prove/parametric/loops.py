"""Loops that statements and folds close, at every size: in which order they are named means nothing (docs/ops.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.parametric import laws
from morok.prove.parametric.number_ops import number as number_of
from morok.prove.parametric.op_functions import name_of
from morok.prove.parametric.polynomials import INT, integer
from morok.prove.parametric.rule_values import Loops
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

BOUNDS: Final = ("vmin", "vmax")


def closed(r: Reading, part: Any) -> list[Loops]:
    """The loops that an op closes."""
    if part is None:
        return []
    items = list(part.items) if isinstance(part, (S.PList, S.EList)) else part
    if isinstance(items, list):
        found: list[Loops] = []
        for item in items:
            found += (
                _waited_for(r, item)
                if _is_group(item) and r.built_in
                else [_loop(r, item, isinstance(item, S.PSequence))]
            )
        return found
    return [_loop(r, items, several=True)]


def _is_group(item: Any) -> bool:
    """True if a part is a Group, and not a variable of that name."""
    return S.ops_at(item) == ("Group",)


def _waited_for(r: Reading, group: Any) -> list[Loops]:
    """Whoever waits for a group waits for all its statements."""
    return closed(r, r.parts("Group", group)["sources"])


def _loop(r: Reading, item: Any, several: bool) -> Loops:
    if r.part != "pattern":
        name = name_of(item)
        found = r.names.get(name) if name else r.value(item.sequence if isinstance(item, S.ESpread) else item)
        if not isinstance(found, Loops):
            raise Unsupported("loops of no known kind")
        return found
    match item:
        case S.PStruct(op="Range") | S.POp(ops=("Range",)) if r.built_in:
            return _range(r, item)
        case S.PBind(name=name, inner=(S.PStruct(op="Range") | S.POp(ops=("Range",))) as inner) if r.built_in:
            found = _range(r, inner, name)
            r.bind(name, found)
            return found
        case S.PVar() | S.PSequence():
            if item.name in r.names:
                found = r.names[item.name]
                if isinstance(found, Loops):
                    return found
                raise Unsupported("loops of no known kind")
            made = _unknown(r, item.name, several)
            return made if item.name.startswith("_") else r.bind(item.name, made)
        case S.PBind(name=name, inner=S.POp(ops=("Store",)) | S.PStruct(op="Store")) if r.built_in:
            made = _unknown(r, name, several=False)  # what it stores is not looked at
            r.bind(name, made)
            return made
    raise Unsupported("loops that a pattern looks into")


def _unknown(r: Reading, name: str, several: bool) -> Loops:
    if name.startswith("_"):
        r.setting.unnamed += 1
        name = f"{name} {r.setting.unnamed}"
    length = integer(1)
    if several:
        length = r.setting.unknown(f"{name} length")
        r.setting.premise(length.term >= 0)
    where = smt.Function(Symbol("loop", name), laws.ITERATION, INT, laws.VALUE)
    return Loops(name, where, length, smt.FALSE if several else launched(name), smt.FALSE)


def _range(r: Reading, p: Any, named: str = "_range") -> Loops:
    """A loop of which the pattern binds the length: what is known of this, or of its bounds, says if it runs once, or never."""
    end = r.parts("Range", p).get("end")
    name = name_of(end)
    if end is None:
        raise Unsupported("a loop of a length that is left open")
    length = r.one(end)
    made = _unknown(r, named, several=False)
    if isinstance(end, (S.PConst, S.PLiteral)) and r.element(end) == "index":
        least = most = number_of(r.setting, length.at(r.here, integer(0))).term
    elif name and not name.startswith("_"):
        least, most = (bound(which, name) for which in BOUNDS)
    else:
        return Loops(made.name, made.function, made.length, smt.FALSE, smt.FALSE)
    once, trips = smt.And(least == 1, most == 1), integer(least) if least is most else None
    return Loops(made.name, made.function, made.length, once, most <= 0, least > 0, trips)


def launched(name: str) -> Expr:
    """The truth of the hardware running all iterations of a loop: then closing it changes nothing."""
    return smt.Bool(Symbol("function", "launched", name))


def bound(which: str, name: str) -> Expr:
    """The bound of a node that a rule names, as an integer."""
    return smt.Int(Symbol("function", which, name))


def another(r: Reading, what: str) -> Loops:
    """A loop that a helper gives."""
    r.setting.unnamed += 1
    return _unknown(r, f"{what} {r.setting.unnamed}", several=False)


def axes(r: Reading, x: Loops) -> Expr:
    """A list of all axes that loops close together, each of them once."""
    closed = smt.Const(Symbol("loop", x.name, "axes"), laws.AXES)
    r.setting.premise(laws.DISTINCT(closed))
    return closed


def free(x: Loops, r: Loops) -> Expr:
    """The truth of no length of the loops x depending on the loops r."""
    return smt.Bool(Symbol("function", "free", x.name, r.name))


def around(r: Reading, outer: Sequence[Loops], inner: Sequence[Loops]) -> list[Loops]:
    """Loops around others as loops that are closed together: the lengths of the outer ones may not depend on the inner ones. That
    of a loop which the hardware runs depends on no other; but what is free of it is not that loop itself, which named twice would
    run once. Of a pattern, too, it is to be shown: what it matches may be nothing of the kind.
    """
    claim = r.setting.claim if r.part == "pattern" else r.claim
    for x in outer:
        for y in inner:
            claim(smt.Or(free(x, y), smt.And(launched(x.name), free(y, x))))
    return [*inner, *outer]


__all__ = ["another", "around", "axes", "closed", "free", "launched"]
