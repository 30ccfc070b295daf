"""Lists in static fields, of numbers or of truths, as patterns write or name them and targets compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.kinds import whole
from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import INT, Integer, integer
from morok.prove.parametric.rule_values import Items, items
from morok.prove.parametric.rule_values import number as as_number
from morok.prove.parametric.sequences import behind, listed
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def field(r: Reading, part: Any, length: Integer, sort: smt.Sort) -> Items:
    """A list of numbers, or of truths, of so many items: of a pattern any."""
    if isinstance(part, S.PVar) and part.name not in r.names:
        f = smt.Function(r.symbol(part.name), INT, sort)
        made = Items(length, lambda k: f(k.term) if sort is laws.BOOL else integer(f(k.term)))
        return made if part.ignored else r.bind(part.name, made)
    if r.part == "pattern" and isinstance(part, (S.PList, S.EList)):
        return listed([written(r, i, sort) for i in part.items])
    value = r.value(S.EName(part.name) if isinstance(part, S.PVar) else getattr(part, "value", part))
    found = behind(r.setting, value) if isinstance(value, list) else items(value)
    return Items(found.length, lambda k: _of_sort(found.at(k), sort))


def _of_sort(value: Any, sort: smt.Sort) -> Any:
    """An item of a static field: a truth, or a number."""
    if sort is laws.BOOL:
        if isinstance(value, Expr) and value.sort is sort:
            return value
        raise Unsupported("a truth where there is none")
    return as_number(value)


def written(r: Reading, item: Any, sort: smt.Sort) -> Any:
    """A number, or a truth, that a pattern writes in a static field, or has a name for."""
    item = item.value if isinstance(item, S.PExpr) else item
    match item:
        case S.ENumber(value=known) | S.PLiteral(value=known):
            return smt.BoolVal(known) if isinstance(known, bool) else integer(whole(item))
        case S.EName(name=name) | S.PVar(name=name):
            if name in r.names:
                return _of_sort(r.names[name], sort)
            symbol = r.symbol(name)
            made = smt.Bool(symbol) if sort is laws.BOOL else integer(smt.Int(symbol))
            return made if name.startswith("_") else r.bind(name, made)
    raise Unsupported("a static field that a pattern computes")
