"""Sequences, lists of axes and numbers as values, made without reading anything of a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from morok import value_domains
from morok.prove import smt
from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import Integer, integer, within
from morok.prove.parametric.rule_values import (
    AxisList,
    Datum,
    Items,
    Vector,
    axis_list,
    items,
    number,
    splat,
    vector,
)
from morok.prove.parametric.setting import Setting
from morok.prove.semantics.term import Unsupported, is_false, is_true, truth
from morok.prove.smt import Expr
from morok.value_domains import Domain


def constant(value: Integer, dtype: str) -> Expr:
    """An integer as a value of a dtype that holds every integer."""
    if dtype != "index":
        raise Unsupported(f"an integer that {dtype} may not hold")
    return laws.NUMBER(value.term)


def listed(values: list[Any]) -> Items:
    """A sequence of known values."""
    last = len(values) - 1

    def at(k: Integer) -> Any:
        if k.known is not None and 0 <= k.known <= last:
            return values[k.known]
        if not values:
            raise Unsupported("an item of an empty list")
        found = values[last]
        for j in range(last - 1, -1, -1):
            found = chosen(k.term == j, values[j], found)
        return found

    return Items(integer(len(values)), at)


def chosen(condition: Expr, yes: Any, no: Any) -> Any:
    """One of two values."""
    if yes is no:
        return yes
    if isinstance(yes, Integer) and isinstance(no, Integer):
        return yes if yes.same(no) else integer(smt.If(condition, yes.term, no.term))
    if isinstance(yes, Datum) and isinstance(no, Datum) and yes.dtype == no.dtype:
        return Datum(smt.If(condition, yes.term, no.term), yes.dtype)
    if isinstance(yes, Expr) and isinstance(no, Expr) and yes.sort is no.sort:
        return smt.If(condition, yes, no)
    if isinstance(yes, Vector) and isinstance(no, Vector):
        count = chosen(condition, yes.count, no.count)
        if yes.of_vectors is not no.of_vectors:
            raise Unsupported("a choice between elements of several storages, which may be vectors")
        return Vector(
            count, lambda e, lane: smt.If(condition, yes.at(e, lane), no.at(e, lane)), of_vectors=yes.of_vectors
        )
    raise Unsupported("a choice between values of several kinds")


def _first(n: int, condition: Callable[[int], Expr], read: Callable[[int], Any]) -> Any:
    begin = 0
    while begin < n - 1 and is_false(condition(begin)):
        begin += 1
    if begin == n - 1 or is_true(condition(begin)):
        return read(begin)
    found = read(n - 1)
    for k in range(n - 2, begin - 1, -1):
        found = chosen(condition(k), read(k), found)
    return found


def _below(a: Integer, b: Integer) -> Expr:
    apart = (b - a).known
    return a.term < b.term if apart is None else truth(apart > 0)


# The domain that meanings are read over (morok/value_domains.py): integers of which a rule says what is known.
UNKNOWN: Final[Domain[Integer, Expr]] = Domain(
    number=integer,
    equal=lambda a, b: a.term == b.term,
    below=_below,
    at_most=lambda a, b: a.term <= b.term,
    inside=lambda i, n: within(i, 0, n),
    both=smt.And,
    either=smt.Or,
    choose=chosen,
    first=_first,
)


def segments(found: Any) -> list[Items | Vector]:
    """A sequence as the operands of an op: sequences and nodes behind one another."""
    if isinstance(found, list):
        return [s for part in found for s in segments(part)]
    if isinstance(found, (Items, Vector)):
        return [found if isinstance(found, Items) else vector(found)]
    raise Unsupported("operands of no known kind")


def behind(s: Setting, found: Sequence[Any]) -> Items:
    """Sequences, and single values, behind one another."""
    given = [p if isinstance(p, Items) else listed([p]) for p in found]
    parts = [p for p in given if p.length.known != 0]
    if not parts:
        return listed([])
    lengths = [p.length for p in parts]

    def below(a: Integer, b: Integer) -> Expr:
        return smt.TRUE if s.surely_below(a, b) else smt.FALSE if s.surely_from(a, b) else a.term < b.term

    def at(k: Integer) -> Any:
        by_facts = UNKNOWN._replace(below=below)
        return value_domains.behind(by_facts, k, lengths, lambda part, place: parts[part].at(place))

    return Items(value_domains.starts(integer(0), lengths)[1], at)


def width(setting: Setting, of: AxisList) -> Integer:
    """The number of iterations of a list of axes."""
    product = integer(1)
    for a in of.parts:
        product = product * laws.width(a)
    return setting.count(product)


def axis_list_or_none(of: Any) -> AxisList:
    """A list of axes; the empty list is one, and so is a list of pairs of an id and a length."""
    if not isinstance(of, Items) or of.length.known is None:
        return axis_list(of)
    parts = []
    for k in range(of.length.known):
        pair = items(of.at(integer(k)))
        if pair.length.known != 2:
            raise Unsupported("an axis of other parts than an id and a length")
        i, n = (number(pair.at(integer(j))) for j in range(2))
        parts.append(laws.SINGLE(i.term, n.term))
    return AxisList(tuple(parts))


def one_by_one(s: Items | Vector, numbers: bool) -> list[Items | Vector]:
    """The items of a sequence of known length, each as a node: an integer only where `numbers` are read."""
    if isinstance(s, Vector) or s.length.known is None:
        return [s]
    found = [s.at(integer(k)) for k in range(s.length.known)]
    return [splat(laws.NUMBER(x.term)) if numbers and isinstance(x, Integer) else vector(x) for x in found]
