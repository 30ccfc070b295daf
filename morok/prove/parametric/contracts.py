"""The results of helpers at every size: what their contracts promise of it, as far as that is understood, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.forms import conjuncts
from morok.prove.parametric import laws, registers, shared, threads
from morok.prove.parametric.number_ops import has_value, is_valid
from morok.prove.parametric.op_functions import exact
from morok.prove.parametric.polynomials import INT, Integer, integer, within
from morok.prove.parametric.rule_values import AxisList, Datum, Items, Seen, Vector
from morok.prove.semantics.term import Unsupported, is_true
from morok.prove.smt import Expr

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def result(r: Reading, extern: S.Extern, arguments: list[Any], sure: bool) -> Any:
    """The result of a call of a helper: several as a tuple. `sure`: the rule does not fire where it has none."""
    if extern.partial and r.guarding and not sure:
        raise Unsupported(f"{extern.name}, which may give nothing, where it may not be called")
    given = {p.name: a for p, a in zip(extern.params, arguments, strict=True)}
    for needed in extern.requires:
        if r.guarding:
            raise Unsupported(f"{extern.name} in a condition, where it may not be called")
        r.claim(_under(r, _seen(r, extern, given, r.here), True, r.truth, needed))
    defined = _definition(extern)
    if defined is not None:
        found = _under(r, given, r.guarding, r.value, defined)
        if isinstance(found, Vector):
            _always_asked(r, extern, arguments)
            _of_one_value(r, extern)
        return found
    if shared.told_apart(extern):
        return shared.given(r, extern, given)
    asked = _asked(r, extern, given)
    made = tuple(_unknown(r, extern, p, given, asked) for p in extern.results)
    names = given | {p.name: v for p, v in zip(extern.results, made, strict=True)}
    seen = _seen(r, extern, names, r.here)
    for promise in extern.ensures:
        for c in conjuncts(promise):
            try:
                premise = _under(r, seen, True, r.known, c)
            except Unsupported:
                continue
            r.setting.premise_here(premise if asked is None else smt.Implies(asked, premise))
    return made if len(made) > 1 else made[0]


def _always_asked(r: Reading, extern: S.Extern, arguments: list[Any]) -> None:
    """Unsupported of a node that has a value wherever all of several nodes have one, and elsewhere may be anything: what is made
    of it may stand where not all of them have values. Of one node alone it is asked where that has one, if that is not Invalid.
    """
    nodes = [a for a in arguments if isinstance(a, Vector)]
    valid = (is_valid(r.setting, a.at(r.here, integer(0))) for a in nodes)
    if len(nodes) > 1 or not all(map(is_true, valid)):
        raise Unsupported(f"{extern.name}, which gives a node of what may have no value")


def _of_one_value(r: Reading, extern: S.Extern) -> None:
    """Unsupported of a node that is promised to equal another, where values that are equal may be two, as the zeros are, and
    NaN is equal to none.
    """
    kind = getattr(extern.results[0].type, "name", "")
    if kind != "index" and not (kind in r.rule.dialect.dtypes and exact(r, kind)):
        raise Unsupported(f"{extern.name}, which gives a node that is equal, and may be another value")


def _seen(r: Reading, extern: S.Extern, names: dict[str, Any], e: Expr) -> dict[str, Any]:
    """The names of a contract, where those of nodes of numbers and truths are their lanes at an iteration, too."""
    kinds = {p.name: getattr(p.type, "name", "") for p in (*extern.params, *extern.results)}
    return {name: _lanes_seen(r, v, kinds[name], e) if isinstance(v, Vector) else v for name, v in names.items()}


def _lanes_seen(r: Reading, x: Vector, kind: str, e: Expr) -> Any:
    if kind == "index":
        return Seen(x, lambda k: r.setting.number_of(x.at(e, k)))
    if kind == "bool":
        return Seen(x, lambda k: Datum(x.at(e, k), kind))
    return x


def _definition(extern: S.Extern) -> S.Expr | None:
    """The only result of a helper, where its contract says that: `ensures r == expression`."""
    if len(extern.results) != 1 or extern.partial:
        return None
    for e in extern.ensures:
        match e:
            case S.ECompare(ops=("==",), operands=(S.EName(name=name), value)) if name == extern.results[0].name:
                return value
    return None


def _under(r: Reading, names: dict[str, Any], guarding: bool, read: Callable[[S.Expr], Any], e: S.Expr) -> Any:
    """An expression of a contract, read where its names stand for these."""
    before, r.names = r.names, names
    was, r.guarding = r.guarding, guarding
    there, r.places = r.places, (*r.places, smt.Int(r.setting.symbol("call")))
    try:
        return read(e)
    finally:
        r.names, r.guarding, r.places = before, was, there


def _asked(r: Reading, extern: S.Extern, given: dict[str, Any]) -> Expr | None:
    """The condition that all nodes which a helper of conditions is given have values: elsewhere it promises nothing. None of a
    helper that is given no condition that is a node; of one that is, what it gives are nodes, too.
    """
    made, conditions = (
        [p.name for p in ps if getattr(p.type, "name", "") == "bool"] for ps in (extern.results, extern.params)
    )
    if not made or not any(isinstance(given[name], Vector) for name in conditions):
        return None
    nodes = [a for a in given.values() if isinstance(a, Vector)]
    if any(a.count.known != 1 for a in nodes):
        raise Unsupported(f"{extern.name}, which is given conditions of several lanes")
    values = [a.at(r.here, integer(0)) for a in nodes]
    return smt.And(*(f(r.setting, v) for v in values for f in (has_value, is_valid)))


def _unknown(r: Reading, extern: S.Extern, p: S.Param, given: dict[str, Any], asked: Expr | None) -> Any:
    if isinstance(p.type, S.TPointer):
        return registers.register(r, extern, p.name, given)
    kind = getattr(p.type, "name", "")
    what = f"{extern.name}.{p.name}"
    if kind == "int":
        return r.setting.unknown(what)
    if kind == "bool" and asked is not None:
        made = r.opaque(r.setting.symbol(what), integer(1))
        r.setting.premise_here(smt.Implies(asked, has_value(r.setting, made.at(r.here, integer(0)))))
        return made
    if kind == "bool":
        return smt.Bool(r.setting.symbol(what))
    if kind == "seq":
        if _is_of_axes(extern, p.name):
            return AxisList((smt.Const(r.setting.symbol(what), laws.AXES),))
        if _is_nested(extern, p.name):
            return _sequences(r, what)
        f = smt.Function(r.setting.symbol(what), INT, INT)
        length = r.setting.count(r.setting.unknown(f"{what} length"))
        r.setting.premise(length.term >= 0)
        return Items(length, lambda k: integer(f(k.term)))
    if kind == "index" and threads.is_launched(extern, p.name):
        return threads.launched(r, what)
    if kind == "index":
        _always_asked(r, extern, list(given.values()))
        return r.opaque(r.setting.symbol(what), integer(1))
    raise Unsupported(f"{extern.name}, which gives a node")


def _sequences(r: Reading, what: str) -> Items:
    """A sequence of sequences of numbers, each of its own length."""
    s = r.setting
    lengths, f = smt.Function(s.symbol(f"{what} lengths"), INT, INT), smt.Function(s.symbol(what), INT, INT, INT)
    length = s.count(s.unknown(f"{what} length"))
    s.premise(length.term >= 0)

    def item(k: Integer) -> Items:
        its = integer(lengths(k.term))
        s.instance("A sequence has no negative length.", smt.Implies(within(k, 0, length), its.term >= 0))
        return Items(its, lambda j: integer(f(k.term, j.term)))

    s.nested_items[f] = s.parts_behind_one_another(length, lambda k: item(k).length)
    return Items(length, item)


def _is_nested(extern: S.Extern, name: str) -> bool:
    """True if a contract iterates over the list over which it iterates for a result."""
    for e in S.walk(*extern.ensures):
        match e:
            case S.EComprehension(body=body, names=(one,), sequence=S.EName(name=n)) if n == name:
                if any(isinstance(b, S.EComprehension) and b.sequence == S.EName(one) for b in S.walk(body)):
                    return True
    return False


def _is_of_axes(extern: S.Extern, name: str) -> bool:
    """True if a contract asks a result for the ids of axes, `c[i][0]`."""
    for e in S.walk(*extern.ensures):
        match e:
            case S.EIndex(sequence=S.EIndex(sequence=S.EName(name=n)), index=S.ENumber()) if n == name:
                return True
    return False
