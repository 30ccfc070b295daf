"""Places, loads and stores at every size.

A place of a buffer at one index is a function of an integer, so that the places behind it are known: a load or store of several
lanes at one place goes on from there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.kinds import Parts
from morok.prove.parametric import laws, registers, sequences, shared
from morok.prove.parametric.axis_conditions import closes_no_axes
from morok.prove.parametric.lanewise import lanewise
from morok.prove.parametric.number_ops import decided, has_value, parts_of
from morok.prove.parametric.op_functions import constant_number, wraps, zero_of
from morok.prove.parametric.polynomials import INT, Integer, integer, within
from morok.prove.parametric.rule_values import (
    Branch,
    Indexed,
    Items,
    Register,
    Shared,
    Statement,
    Vector,
    items,
    splat,
    vector,
    zero,
)
from morok.prove.parametric.sequences import behind
from morok.prove.parametric.setting import Setting, same_everywhere
from morok.prove.parametric.statements import behind_gates, listed, statement, within_loops
from morok.prove.parametric.tensor_rules import may_be_invalid
from morok.prove.rule_syntax import ops_of
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

VALUE: Final = laws.VALUE
# Of storage whose elements may be vectors, by so many places and lanes there: whether these are all lanes of its elements; which
# element a lane is in, and which lane of that it is. Nothing else is known of them.
FITS: Final = smt.Function(Symbol("function", "fits"), VALUE, INT, INT, laws.BOOL)
# The lanes of all elements at so many places.
AT_PLACES: Final = smt.Function(Symbol("function", "lanes of places"), VALUE, INT, INT)
ELEMENT_OF: Final = smt.Function(Symbol("function", "element of lane"), INT, INT, INT, INT)
PART_OF: Final = smt.Function(Symbol("function", "lane in element"), INT, INT, INT, INT)


def invalid(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    r.setting.invalid_named = True
    return splat(laws.INVALID)


# places


def index(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """A place for every lane: of a buffer at indices, behind a gate where there is one."""
    found = r.one_of_any_kind(parts["buffer"])
    if isinstance(found, Register):
        return registers.cell(r, found, parts)
    if isinstance(found, Shared):
        return shared.cell(r, found, parts)
    gate = r.optional(parts.get("gate"))
    if isinstance(found, Vector) and found.indexed is not None and gate is None:
        return _with_value(r, _within(r, found.indexed, r.many(parts["indices"])), at)
    buffer = vector(found)
    if gate is None or not r.built_in:
        made = _indexed(r, parts, buffer, gate)
    else:
        made = _indexed(r, parts, buffer, None)
        looked_at = made.looked_at
        # of a gate without a value nowhere has none either, and may be anything
        if not made.uniform or r.part != "pattern":
            made = lanewise(r, lambda g, p: behind_gates(r.setting, [g], p), [gate, made], {0})
        if looked_at is not None:
            looked_at = lanewise(r, lambda g, p: smt.Implies(_is_open(r.setting, g), p), [gate, looked_at], {0})
        made = replace(made, indexed=None, looked_at=looked_at)
    place = _of_elements_of(r, made, buffer, parts["buffer"])
    if r.part == "pattern" and place.of_vectors is not None and not place.uniform:
        r.setting.premise(r.lanes.of(r.rule.type_of(at)).term == lanes_at(r.setting, place).term)
    return _with_value(r, place, at)


def _is_open(s: Setting, gate: Expr) -> Expr:
    return smt.And(has_value(s, gate), decided(s, gate))


def _with_value(r: Reading, place: Vector, at: Any) -> Vector:
    """A place, with the value there."""

    def held() -> Vector:
        return _loaded_from(r, place, None, lanes_at(r.setting, place), zero(r.element(at)))

    return replace(place, is_place=True, held=functools.cache(held))


def lanes_at(s: Setting, place: Vector) -> Integer:
    """The number of lanes of a place as a value: as many as there are places, or as all the elements there have."""
    if place.of_vectors is None:
        return place.count
    own, places = laws.LANES_OF(place.of_vectors), place.count.term
    count = AT_PLACES(place.of_vectors, places)
    several = smt.And(own > 1, places > 1, count > places)
    s.instance(
        "An element of storage has lanes; a place is a value of all lanes of the elements there, which a load of it has, too.",
        smt.And(
            own > 0,
            FITS(place.of_vectors, places, count),
            smt.Or(smt.And(own == 1, count == places), smt.And(places == 1, count == own), several),
        ),
    )
    return integer(count)


def _within(r: Reading, operand: Indexed, more: list[Items | Vector]) -> Vector:
    """A place within a place: that at the indices of both, those of its operand first (docs/ops.md)."""
    kind, buffer, indices = (
        ["Index", r.element(_storage(r, operand.written))],
        operand.buffer,
        (*operand.indices, *more),
    )
    made = _index_of_any_rank(r, kind, buffer, behind(r.setting, indices), [])
    return _of_elements_of(r, replace(made, indexed=replace(operand, indices=indices)), buffer, operand.written)


def _of_elements_of(r: Reading, place: Vector, buffer: Vector, written: Any) -> Vector:
    """A place, of which it is noted where elements may be vectors."""
    return place if _of_numbers(r, written) else replace(place, of_vectors=buffer.at(r.setting.zero, integer(0)))


def _of_numbers(r: Reading, buffer: Any) -> bool:
    """True if the elements of storage are numbers: a pointer named by a rule points to numbers, others maybe to vectors."""
    return not r.built_in or bool(getattr(r.type(_storage(r, buffer)), "pointer", False))


def _storage(r: Reading, buffer: Any) -> Any:
    """The storage that a node is, behind the effects that it waits for."""
    match buffer:
        case _ if not r.built_in:
            return buffer
        case S.POp(ops=("After",), args=(first, *_)) | S.ECall(name="After", args=(first, *_)):
            return _storage(r, first)
        case S.PStruct(op="After") | S.EStruct(op="After"):
            return _storage(r, r.parts("After", buffer)["passthrough"])
    return buffer


def _indexed(r: Reading, parts: Parts, buffer: Vector, gate: Vector | None) -> Vector:
    """A place of a buffer for every lane."""
    found = r.many(parts["indices"])
    kind = ["Index", r.element(_storage(r, parts["buffer"]))] + (["gated"] if gate is not None else [])
    rest = [] if gate is None else [gate]
    if any(isinstance(i, Items) for i in found):
        made = _index_of_any_rank(r, kind, buffer, behind(r.setting, found), rest)
        return made if rest else replace(made, indexed=Indexed(buffer, parts["buffer"], tuple(found)))
    indices = [vector(i) for i in found]
    if any(i.uniform and i.at(r.setting.zero, integer(0)) is laws.INVALID for i in indices):
        return splat(laws.NOWHERE)
    operands = [buffer, *indices, *rest]
    every = set(range(len(operands)))
    if len(indices) == 1 and _are_numbers(r, parts["indices"]):
        f = smt.Function(Symbol("op", *kind, "at"), VALUE, INT, *([VALUE] * len(rest)), VALUE)
        if _of_numbers(r, parts["buffer"]):
            r.setting.of_numbers.add(f)
        (dtype,) = map(r.element, _written(parts["indices"]))
        made = lanewise(r, lambda b, i, *g: f(b, place_number(r, i, dtype).term, *g), operands, every)
        return replace(made, looked_at=lanewise(r, lambda i: has_value(r.setting, i), indices, {0}))
    f = smt.Function(Symbol("op", *kind), *([VALUE] * len(operands)), VALUE)
    return lanewise(r, lambda *given: _where_valid(r.setting, f, given, range(1, 1 + len(indices))), operands, every)


def _where_valid(s: Setting, f: Applicable, operands: Sequence[Expr], indices: Iterable[int]) -> Expr:
    """A place, of which an index that is Invalid where a condition says so is a gate."""
    for k in indices:
        at = operands[k]
        if at is laws.INVALID:
            return laws.NOWHERE
        if at.head == "apply" and at.data in s.selections and laws.INVALID in at.args[1:]:
            condition, *choices = at.args
            yes, no = (_where_valid(s, f, (*operands[:k], i, *operands[k + 1 :]), indices) for i in choices)
            return smt.If(has_value(s, condition), smt.If(decided(s, condition), yes, no), laws.UNSAID)
    return f(*operands)


def _are_numbers(r: Reading, part: Any) -> bool:
    """True if all indices are integers, none of which may be Invalid."""
    if "Invalid" in ops_of(r.rule):
        return False
    written = _written(part)
    names = {n.name for w in written for n in S.walk(w) if isinstance(n, (S.PVar, S.EName, S.PBind))}
    known = [r.rule.bindings[n] for n in names if n in r.rule.bindings]
    numbers = all(d == "index" or wraps(r, d) for d in map(r.element, written))
    return numbers and not any(b.invalid_ok for b in known)


def _written(part: Any) -> list[Any]:
    """The indices of a place, one by one."""
    return list(part.items) if isinstance(part, (S.PList, S.EList)) else part if isinstance(part, list) else [part]


def place_number(r: Reading, t: Expr, dtype: str) -> Integer:
    """The integer that an index is, whatever dtype holds it: of what is converted, or added, the same if the dtype has it."""
    s = r.setting
    if dtype == "index":
        return s.number_of(t)
    if t.head == "ite":
        condition, yes, no = t.args
        chosen: Integer = sequences.chosen(condition, place_number(r, yes, dtype), place_number(r, no, dtype))
        return chosen
    number = integer(0) if t is zero_of(dtype) else constant_number(t, dtype)
    if number is not None:
        return number
    own = integer(smt.Function(Symbol("function", "number_of", dtype), VALUE, INT)(t))
    holds: Any = r.rule.dialect.dtypes.get(dtype)
    if holds is None or t.head != "apply":
        return own
    low, end = (-(1 << (holds.bits - 1)), 1 << (holds.bits - 1)) if holds.is_signed else (0, 1 << holds.bits)
    s.instance("An integer of a dtype is one that it holds.", within(own, low, integer(end)))
    op, dtypes, _ = s.elements.ops.get(t.data, ("", ("index",), None))
    if op == "Cast" and (dtypes[0] == "index" or wraps(r, dtypes[0])):
        exact = place_number(r, t.args[0], dtypes[0])
    elif op == "Add":
        exact = place_number(r, t.args[0], dtype) + place_number(r, t.args[1], dtype)
    else:
        return own
    s.instance(
        "What is converted, or added, is the same integer where the dtype has it.",
        smt.Implies(within(exact, low, integer(end)), own.term == exact.term),
    )
    return own


def _index_of_any_rank(r: Reading, kind: list[str], buffer: Vector, indices: Items, rest: list[Vector]) -> Vector:
    """A place by any number of indices: a function of the buffer, the gate, and the vector of indices as one value."""
    f = smt.Function(Symbol("op", *kind, "of any rank"), *([VALUE] * (2 + len(rest))), VALUE)
    each = vector(indices.at(r.setting.probe("anywhere")))
    if each.uniform:
        raise Unsupported("indices of any number of lanes")
    r.exists(indices.length.term > 0)
    alike = same_everywhere(r.setting, each.count, lambda k: vector(indices.at(k)).count)
    count = each.count if alike else _lanes_of_all(r, indices)

    def index_of(k: Integer, e: Expr, lane: Integer) -> Expr:
        x = vector(indices.at(k))
        return x.at(e, lane) if x.count.same(count) else smt.If(x.count.term == 1, x.at(e, integer(0)), x.at(e, lane))

    def together(e: Expr, lane: Integer) -> Expr:
        return r.setting.tuple_of(indices.length, lambda k: index_of(k, e, lane))

    vectors = Vector(count, together)
    return lanewise(r, f, [buffer, vectors, *rest], set(range(2 + len(rest))))


def _lanes_of_all(r: Reading, indices: Items) -> Integer:
    """The number of lanes where each index has one or all of them: of the same indices the same number."""
    s = r.setting
    with s.anywhere() as place:
        key = (indices.length.term, vector(indices.at(place)).count.term)
    if key not in s.widest:
        if r.part != "pattern":
            raise Unsupported("indices of different lanes that no pattern has")
        s.widest[key] = s.count(s.unknown("lanes of all"))
        s.premise(s.widest[key].term > 0)
    return s.widest[key]


def step(s: Setting, place: Expr, k: Integer) -> Expr:
    """The place that so many elements come before."""
    if k.known == 0 or place is laws.NOWHERE or place is laws.UNSAID:
        return place
    if place.head == "apply" and place.data in s.of_numbers:
        buffer, i, *gate = place.args
        at: Applicable = place.data
        return at(buffer, (s.polynomial(i) + k).term, *gate)
    if place.head == "ite":
        condition, yes, no = place.args
        return smt.If(condition, step(s, yes, k), step(s, no, k))
    return laws.BEHIND(place, k.term)


def _place(r: Reading, x: Vector, count: Integer, e: Expr, lane: Integer) -> Expr:
    """The place of one of so many lanes, of which one place is the first or each has its own, or those of an element one."""
    if x.count.same(count):
        return x.at(e, lane)
    base = x.at(e, integer(0))
    first = step(r.setting, base, lane)
    if x.of_vectors is not None:
        first = smt.If(lane.term == 0, base, first)
    if x.count.known == 1:
        return first
    own = x.at(e, lane)
    if x.of_vectors is not None:
        element, part = (integer(f(x.count.term, count.term, lane.term)) for f in (ELEMENT_OF, PART_OF))
        each = smt.Or(laws.LANES_OF(x.of_vectors) == 1, x.count.term == count.term)
        own = smt.If(each, own, step(r.setting, x.at(e, element), part))
    return smt.If(x.count.term == 1, first, own)


# loads


def load(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """The values stored at a place, lane by lane, or from one place on; in place of what is not there the alternative, or 0."""
    return _loaded_from(
        r, r.place(parts["index"]), r.optional(parts.get("alt")), _loaded(r, parts, at), zero(r.element(at))
    )


def _loaded_from(r: Reading, place: Vector, alt: Vector | None, count: Integer | None, otherwise: Vector) -> Vector:
    if place.of_vectors is not None and not place.uniform:
        count = _of_elements(r, place, place.of_vectors, count)
    if place.uniform:
        if place.at(r.setting.zero, integer(0)) is not laws.NOWHERE:
            raise Unsupported("a load at a place of any number of lanes")
        absent = alt or otherwise
        return Vector(count or integer(1), absent.at, uniform=absent.uniform and count is None)
    count = count or place.count
    if place.of_vectors is None and not count.same(place.count):
        r.exists(smt.Or(place.count.term == 1, place.count.term == count.term))
    operands = [] if alt is None else [alt]
    plain, f = (smt.Function(Symbol("op", "Load"), *([VALUE] * n), VALUE) for n in (1, 1 + len(operands)))
    nothing = otherwise.at(r.setting.zero, integer(0)) if alt is None else None

    def loaded(at: Expr, *instead: Expr) -> Expr:
        if at is laws.NOWHERE:
            return instead[0] if nothing is None else nothing
        if at.head == "ite":
            condition, yes, no = at.args
            return smt.If(condition, loaded(yes, *instead), loaded(no, *instead))
        there = at.head == "apply" and at.data in r.setting.of_numbers  # behind no gate
        found: Expr = plain(at) if there else f(at, *instead)
        return found

    places = Vector(count, lambda e, lane: _place(r, place, count, e, lane))
    return lanewise(r, loaded, [places, *operands], set())


def _of_elements(r: Reading, place: Vector, storage: Expr, wanted: Integer | None) -> Integer:
    """The number of lanes of a load from storage whose elements may be vectors: all of the elements, or several numbers."""
    if wanted is None and place.count.known != 1:
        raise Unsupported("a load of several elements that may be vectors")
    count = wanted or integer(laws.LANES_OF(storage))
    _fitting(r, place, storage, count)
    return count


def _fitting(r: Reading, place: Vector, storage: Expr, count: Integer, else_: Expr = smt.FALSE) -> None:
    """The premise, or the claim, that so many lanes are all those of the elements at some places, or several numbers from one on;
    or something else.
    """
    own, places = laws.LANES_OF(storage), place.count.term
    numbers = smt.And(own == 1, smt.Or(places == 1, count.term == places))
    one = smt.And(places == 1, count.term == own)
    alike = FITS(storage, places, count.term)  # as it is of any access to this storage with as many of both
    if r.part != "pattern":
        r.claim(smt.Or(else_, numbers, one, alike))
        return
    r.setting.premise(own > 0)
    r.setting.premise(smt.Or(else_, numbers, one, smt.And(own > 1, places > 1, count.term > places)))
    r.setting.premise(smt.Or(else_, alike))


def _loaded(r: Reading, parts: Parts, at: Any) -> Integer | None:
    """The number of lanes of a load; None for as many as its place."""
    if r.part == "pattern":
        return r.lanes.of(r.rule.type_of(at))
    if "dtype" in parts:
        return r.dtype(parts["dtype"]).lanes
    if at is r.rule.syntax.target:  # made with the dtype of what it stands for
        return r.wanted
    return None


# stores


def store(r: Reading, op: str, parts: Parts, at: Any) -> Statement:
    """An effect for every lane: the value of the lane to its place."""
    part, behind = _without_wait(r, parts["index"])
    place, value = index(r, "Index", part, at) if isinstance(part, Parts) else r.place(part), r.one(parts["value"])
    read_again = place.register is not None or place.shared is not None
    if behind is not None and (place.uniform or read_again):
        raise Unsupported("a store of another kind behind a store")
    if read_again and (may_be_invalid(r.rule) or "Invalid" in ops_of(r.rule)):
        raise Unsupported("a store of what may be Invalid, to where it is read: memory holds no Invalid")
    if place.register is not None:
        return within_loops(r, registers.store(place, value), parts.get("ranges"))
    if place.shared is not None:
        return within_loops(r, shared.store(place, value), parts.get("ranges"))
    if place.uniform and place.at(r.setting.zero, integer(0)) is laws.NOWHERE:
        return Statement(integer(0), lambda e, lane: (laws.NOWHERE, laws.NOWHERE))
    if place.uniform or value.uniform:
        raise Unsupported("a store of any number of lanes")
    count = place.count
    if place.of_vectors is not None:
        _fitting(r, place, place.of_vectors, value.count, value.count.term == 1)
        count = count if value.count.same(count) else _longer(value.count, count)
    elif not value.count.same(count):
        r.exists(smt.Or(place.count.term == 1, value.count.term == 1, place.count.term == value.count.term))
        count = _longer(place.count, value.count)

    def effect(e: Expr, lane: Integer) -> tuple[Expr, ...]:
        given = value.at(e, lane)
        if not value.count.same(count):
            given = smt.If(value.count.term == 1, value.at(e, integer(0)), given)
        return _place(r, place, count, e, lane), given

    made = within_loops(r, Statement(r.setting.count(count), effect, ordered=True, behind=behind), parts.get("ranges"))
    axes = (x for x in made.loops if not x.open and not closes_no_axes(r.rule.syntax, x.name))
    return replace(made, opening=tuple(axes))


def _longer(a: Integer, b: Integer) -> Integer:
    """The greater of two numbers of lanes, of which one may be 1."""
    if a.known == 1:
        return b
    return a if b.known == 1 else integer(smt.If(a.term == 1, b.term, a.term))


def _without_wait(r: Reading, part: Any) -> tuple[Any, Statement | None]:
    """A place of a target, and the statement that is done before: what `After(b, s)` says of its buffer."""
    match part:
        case S.EStruct(op="Index") if r.part == "target":
            parts = r.parts("Index", part)
            match parts["buffer"]:
                case S.ECall(name="After", args=(buffer, S.EName(name=name))) if isinstance(
                    r.names.get(name), Statement
                ):
                    return Parts({**parts, "buffer": buffer}), r.names[name]
    return part, None


def group(r: Reading, op: str, parts: Parts, at: Any) -> Statement:
    """Statements without an order, but where one waits for the one before it."""
    sources = parts["sources"]
    given = [_source(r, s) for s in (sources if isinstance(sources, list) else [sources])]
    if r.part != "pattern" and any(isinstance(s, Branch) for s in given):
        return listed(r, given)
    found = [statement(s) for s in given]
    if not found:
        raise Unsupported("a group of no statements")
    made = found[0]
    for s in found[1:]:
        made = _both(r, made, s)
    return made


def _source(r: Reading, part: Any) -> Any:
    """A statement of a group, or those of a sequence as one."""
    match part:
        case S.PVar(name=name) | S.PSequence(name=name) if isinstance(part, S.PSequence) or isinstance(
            r.names.get(name), Items
        ):
            return _side_by_side(r, _statements(r, name))
        case S.ESpread(sequence=several) | (S.EComprehension() as several):
            found = r.value(several)
            return _side_by_side(r, behind(r.setting, found) if isinstance(found, list) else items(found))
    return r.one_of_any_kind(part)


def _statements(r: Reading, name: str) -> Items:
    """A name for any number of statements of which nothing is known."""
    if name not in r.names:
        f = smt.Function(r.symbol(name), INT, laws.ITERATION, VALUE)
        length = r.setting.count(r.setting.unknown(f"{name} length"))
        r.setting.premise(length.term >= 0)
        made = Items(length, lambda k: Statement(integer(1), lambda e, lane: (f(k.term, e),)))
        if name.startswith("_"):
            return made
        r.names[name] = made
    return items(r.names[name])


def _both(r: Reading, first: Statement, second: Statement) -> Statement:
    """Two statements: in order if the second waits for the first, else in none. What does nothing adds nothing."""
    if second.behind is None and 0 in (first.count.known, second.count.known):
        return second if first.count.known == 0 else first
    if first.loops or second.loops:
        raise Unsupported("loops side by side")
    if first.behind is not None or second.behind not in (None, first):
        raise Unsupported("a store behind another one than that beside it")
    in_order = second.behind is first and first.ordered and second.ordered
    one, other = _needed(r, first), _needed(r, second)
    if one is not None and other is not None and not (other <= one and (in_order or one <= other)):
        raise Unsupported("a store before another one, of which the value may be read where it stores")

    def effect(e: Expr, lane: Integer) -> tuple[Expr, ...]:
        one, other = first.effect(e, lane), second.effect(e, lane - first.count)
        if len(one) != len(other):
            raise Unsupported("statements of several kinds")
        return tuple(smt.If(lane.term < first.count.term, a, b) for a, b in zip(one, other, strict=True))

    return Statement(first.count + second.count, effect, ordered=in_order, grouped=True)


def _needed(r: Reading, s: Statement) -> set[tuple[Any, ...]] | None:
    """The nodes of the pattern without which stores that a rule makes have no places and values, each at an iteration; None of
    any other statement. Each of them may be read from where another store is made: so it is known before that only where the
    other one needs it too.
    """
    if r.part == "pattern" or s.count.known == 0:
        return None
    e, place = smt.Const(Symbol("fixed", "somewhere"), laws.ITERATION), integer(smt.Int(Symbol("fixed", "somewhere")))
    effect = s.effect(e, place)
    if len(effect) != len(("place", "value")):
        return None
    return {
        (t.data, *t.args[:-1])
        for t in parts_of(r.setting, effect, place)
        if t.head == "apply"
        and t.sort is VALUE
        and t.data.name.kind != "loop"
        and any(a.sort is laws.ITERATION for a in t.args)
    }


def _side_by_side(r: Reading, sequence: Items) -> Statement:
    """The statements of a sequence, as a group."""
    one = statement(sequence.at(r.setting.probe("anywhere")))
    if one.loops or one.behind is not None:
        raise Unsupported("loops side by side")
    with r.setting.anywhere() as place:
        other = statement(sequence.at(place))
    if _needed(r, one) != _needed(r, other):  # at another place: an item may need an unknown that names none
        raise Unsupported("stores beside each other, of which the values may be read where the others store")
    if one.count.known == 1:
        return Statement(
            r.setting.count(sequence.length), lambda e, k: statement(sequence.at(k)).effect(e, integer(0)), grouped=True
        )
    count, part, start = r.setting.parts_of(sequence.length, lambda k: statement(sequence.at(k)).count, False)

    def effect(e: Expr, lane: Integer) -> tuple[Expr, ...]:
        k, begin = part(lane), start(lane)
        return statement(sequence.at(k)).effect(e, lane - begin)

    return Statement(r.setting.count(count), effect, grouped=True)


__all__ = ["group", "index", "invalid", "load", "store"]
