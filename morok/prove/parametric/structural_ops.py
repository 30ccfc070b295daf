"""Structural ops at every size, by the roles that dialects declare for them, and all others lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from morok import lane_roles, value_domains
from morok.dsl import syntax as S
from morok.dsl.constant_lanes import lanes_said
from morok.prove import smt
from morok.prove.kinds import Parts, whole
from morok.prove.parametric import (
    folds,
    laws,
    loads_and_stores,
    loops,
    matrices,
    registers,
    sequences,
    shared,
    statements,
    tensors,
    view_places,
    views,
)
from morok.prove.parametric.lanewise import lanewise
from morok.prove.parametric.op_functions import function
from morok.prove.parametric.polynomials import INT, Integer, integer
from morok.prove.parametric.rule_values import (
    AxisList,
    Branch,
    Datum,
    Items,
    Loops,
    Register,
    Shared,
    Statement,
    Vector,
    items,
    number,
    vector,
)
from morok.prove.parametric.setting import same_everywhere
from morok.prove.parametric.tensor_rules import MARKS
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

VALUE: Final = laws.VALUE


def made(r: Reading, op: str, parts: Parts, at: Any) -> Vector | Statement | Register | Shared | Branch:
    """A node of an op."""
    info = r.rule.dialect.ops[op]
    if r.tensors and (own := _OF_TENSORS.get(op)) is not None:
        return own(r, op, parts, at)
    meaning = _ROLES.get(info.role) or (_NAMED.get(op) if r.built_in else None)
    if meaning is not None:
        return meaning(r, op, parts, at)
    if not info.params or (info.fields and not r.built_in):
        raise Unsupported(f"{op} at every size")
    written = [parts[o.name] for o in info.operands]
    operands = [_of_its_lanes(r, part, r.held(part), written) for part in written]
    dtypes = [r.element(parts[o.name]) for o in info.operands]
    stage = "constant" if all(x.constant for x in operands) else "run"
    f = function(r, op, dtypes, r.element(at) if "dtype" in parts else None, stage)
    if op == "Where" and r.built_in:
        r.setting.selections.add(f)
    scalars = {k for k, o in enumerate(info.operands) if o.holds == "condition"}
    node = lanewise(r, f, operands, scalars)
    return tensors.with_elements(r, op, dtypes[0], node, f, operands) if r.tensors else node


def _of_its_lanes(r: Reading, part: Any, made: Vector, beside: Sequence[Any]) -> Vector:
    """An operand of an op that works lane by lane; a constant that is made with so many lanes has no others."""
    said = lanes_said(r.rule, part, beside) if made.uniform and not r.tensors and isinstance(part, S.Expr) else None
    return made if said is None else replace(made, count=integer(said), uniform=False)


# what is taken from vectors, and joined


def _field(r: Reading, op: str, parts: Parts) -> Any:
    return parts[r.rule.dialect.ops[op].fields[0]]


def _operand(r: Reading, op: str, parts: Parts) -> Any:
    return parts[r.rule.dialect.ops[op].operands[0].name]


def _take(r: Reading, op: str, parts: Parts, at: Any) -> Vector | Statement:
    """Lanes of a vector, each at the place that a list of integers names; a statement has none, and is what it is."""
    x = r.one_of_any_kind(_operand(r, op, parts))
    if isinstance(x, Statement):
        return x
    x = vector(x)
    places = _places(r, _field(r, op, parts), x)
    if x.uniform and r.part != "pattern":
        raise Unsupported("lanes of a constant of any number of lanes")
    if not x.uniform and not r.probing:
        anywhere = r.setting.probe("anywhere")
        with r.setting.where(r.setting.below(anywhere, places.length)):
            place = number(places.at(anywhere))
            r.claim(r.setting.below(place, x.count))
            x.at(r.here, place)  # of which vector it is, tells whether it is there
    r.claim(places.length.term > 0)
    r.setting.count(places.length)
    at_lane = x.at if x.uniform else lambda e, lane: x.at(e, number(places.at(lane)))
    return Vector(places.length, at_lane, is_place=x.is_place)


def _places(r: Reading, part: Any, x: Vector) -> Items:
    """The lanes that a take names: of a pattern, any that there are."""
    if isinstance(part, S.PVar) and part.name not in r.names:
        name = r.symbol(part.name)
        f = smt.Function(name, INT, INT)
        length = r.setting.count(integer(smt.Int(Symbol("item", name, "length"))))
        r.setting.premise(length.term > 0)

        def place(k: Integer) -> Integer:
            found = integer(f(k.term))
            inside = r.setting.below(found, x.count)
            r.setting.instance(
                "The lanes that a Gep takes are lanes of its operand.",
                smt.Implies(smt.And(k.term >= 0, k.term < length.term), inside),
            )
            return found

        place(integer(0))  # there is a first one
        made = Items(length, place)
        return made if part.ignored else r.bind(part.name, made)
    if r.part == "pattern" and isinstance(part, (S.PList, S.EList)):
        return sequences.listed([_named_place(r, i, x) for i in part.items])
    found = r.value(S.EName(part.name) if isinstance(part, S.PVar) else getattr(part, "value", part))
    return sequences.behind(r.setting, found) if isinstance(found, list) else items(found)


def _named_place(r: Reading, item: Any, x: Vector) -> Integer:
    """A lane that a pattern names, or gives the number of."""
    item = item.value if isinstance(item, S.PExpr) else item
    match item:
        case S.ENumber() | S.PLiteral():
            place = integer(whole(item))
        case S.EName(name=name) | S.PVar(name=name):
            if name not in r.names:
                unknown = integer(smt.Int(r.symbol(name)))
                if name.startswith("_"):
                    place = unknown
                else:
                    place = r.bind(name, unknown)
            else:
                place = number(r.names[name])
        case _:
            raise Unsupported("lanes that a pattern computes")
    if not x.uniform:
        r.setting.premise(r.setting.below(place, x.count))
    return place


def _join(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """The lanes of all operands behind one another."""
    info = r.rule.dialect.ops[op]
    found = r.many(parts[info.operands[0].name])
    single = f"{info.operands[0].name} scalar" in info.types
    return joined(r, found, single)


def _constants(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """A constant vector of a list of values."""
    dtype = r.element(at)
    found = []
    for s in sequences.segments(r.value(parts.get("values") or _field(r, op, parts))):
        if not isinstance(s, Items):
            raise Unsupported("a constant vector of nodes")
        found.append(Items(s.length, _of_dtype(r, s.at, dtype)))
    return replace(joined(r, list(found), single=True), constant=True)


def _of_dtype(r: Reading, at: Callable[[Integer], Any], dtype: str) -> Callable[[Integer], Datum]:
    def item(k: Integer) -> Datum:
        found = at(k)
        if isinstance(found, Integer):
            made = sequences.constant(found, dtype) if found.known is None else r.integer_of(found, dtype)
            return Datum(made, dtype)
        if isinstance(found, Expr) and found.sort is laws.BOOL and dtype == "bool":
            return Datum(laws.TRUTH(found), dtype)
        if not isinstance(found, Datum) or found.dtype != dtype:
            raise Unsupported("a constant at another dtype")
        return found

    return item


def joined(r: Reading, parts: Sequence[Items | Vector], single: bool) -> Vector:
    """Vectors behind one another; of single elements each has one lane."""
    for p in parts if len(parts) == 1 else ():
        if isinstance(p, Items):
            r.exists(p.length.term > 0)
    vectors = [_flattened(r, p, single) if isinstance(p, Items) else p for p in parts]
    if not vectors:
        raise Unsupported("nothing joined")
    if len(vectors) == 1:
        if not isinstance(parts[0], Items) and single:
            return Vector(integer(1), lambda e, lane: vectors[0].at(e, integer(0)))
        return vectors[0]
    for p, x in zip(parts, vectors, strict=True):
        if isinstance(p, Vector) and x.uniform and not single:
            raise Unsupported("a constant of any number of lanes among what is joined")
        if isinstance(p, Vector) and single and x.count.known != 1:
            r.exists(x.count.term == 1)
    counts = [x.count for x in vectors]
    begins, total = value_domains.starts(integer(0), counts)
    r.setting.boundaries += [x for x in begins[1:] if not any(x.same(y) for y in r.setting.boundaries)]

    def at(e: Expr, lane: Integer) -> Expr:
        found: Expr = value_domains.behind(sequences.UNKNOWN, lane, counts, lambda k, own: vectors[k].at(e, own))
        return found

    are_places = any(x.is_place for x in vectors)
    return Vector(total if total.known is not None else r.setting.count(total), at, is_place=are_places)


def _flattened(r: Reading, sequence: Items, single: bool) -> Vector:
    """The items of a sequence, which may have none, behind one another, each of so many lanes."""
    anywhere = r.setting.probe("anywhere")
    each = vector(sequence.at(anywhere))
    if single:
        with r.setting.where(r.setting.below(anywhere, sequence.length)):
            if not each.uniform and each.count.known != 1:
                r.claim(each.count.term == 1)
        return Vector(r.setting.count(sequence.length), lambda e, lane: vector(sequence.at(lane)).at(e, integer(0)))
    if each.uniform:
        raise Unsupported("constants of any number of lanes behind one another")
    if not same_everywhere(r.setting, each.count, lambda k: vector(sequence.at(k)).count):
        return _ragged(r, sequence)
    n = each.count
    r.setting.law(laws.positive_product, sequence.length, n)

    def at(e: Expr, lane: Integer) -> Expr:
        q, k = lane_roles.closed_place(lane, n, r.setting.divided)
        return vector(sequence.at(q)).at(e, k)

    return Vector(r.setting.count(sequence.length * n), at)


def _ragged(r: Reading, sequence: Items) -> Vector:
    """Vectors of different lanes behind one another: of which vector a lane is, and where that begins, only their lanes say."""
    s = r.setting
    count, part, start = s.parts_of(sequence.length, lambda k: vector(sequence.at(k)).count, r.part == "pattern")

    def at(e: Expr, lane: Integer) -> Expr:
        k, begin = part(lane), start(lane)
        return vector(sequence.at(k)).at(e, lane - begin)

    return Vector(s.count(count), at)


# axes


def _open(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """At every iteration of the axes, the block of lanes that belongs to it."""
    axes = r.axes(_field(r, op, parts))
    if _made_anew(r, axes):
        raise Unsupported("an axis that may be there with another length is opened")
    part = _operand(r, op, parts)
    width = sequences.width(r.setting, axes)
    below = r.type(part)
    if r.part == "pattern" and below is not None and r.lanes.is_open(below):
        own = r.lanes.of(r.rule.type_of(at))
        r.lanes.let(str(below.lanes), own * width)
    x = r.place(part)
    if x.uniform:
        return Vector(x.count, x.at, uniform=True)
    own = _own(x.count, width)
    if r.part == "pattern":
        count = r.lanes.of(r.rule.type_of(at))
        if not count.same(own):
            r.setting.premise(count.term == own.term)
    r.setting.law(laws.positive_product, width, own)

    def lane_of(e: Expr, lane: Integer) -> Expr:
        index = [laws.block(a, e) for a in axes.parts]
        iteration = value_domains.row_major(integer(0), index, map(laws.width, axes.parts))
        return x.at(e, lane_roles.opened_place(iteration, own, lane))

    return Vector(own, lane_of, axes=axes.parts, inside=x, of_vectors=x.of_vectors, is_place=x.is_place)


def _made_anew(r: Reading, axes: AxisList) -> bool:
    """True if a target states the number and the length of one of these axes: a graph may have an axis of that number and of
    another length. Those of the pattern are noted.
    """
    single = {a for a in axes.parts if a.head == "apply" and a.data is laws.SINGLE}
    if r.part == "pattern":
        r.setting.axes_found |= single
    return not single <= r.setting.axes_found


def _own(count: Integer, width: Integer) -> Integer:
    """The number of lanes that each iteration has of so many."""
    if width.known == 1:
        return count
    own, rest = count.divided_by(width)
    if not rest.terms:
        return own
    raise Unsupported("lanes that are no multiple of the iterations")


def _close(r: Reading, op: str, parts: Parts, at: Any) -> Vector | Statement:
    """The lanes of all iterations of the axes, side by side; a statement is done at all of them as it is, and has no lanes."""
    x, axes = r.one_of_any_kind(_operand(r, op, parts)), r.axes(_field(r, op, parts))
    if isinstance(x, Statement):
        return x
    x = vector(x)
    if not axes.parts or x.uniform:
        return replace(x, constant=False)
    everything = r.setting.together(axes.parts)
    width = sequences.width(r.setting, axes)
    if _made_anew(r, axes) and not r.probing:
        block, lane = (integer(smt.Int(r.setting.symbol(of))) for of in ("block", "lane"))
        elsewhere = r.setting.iteration(laws.moved(everything, block, r.here))
        r.claim(x.at(elsewhere, lane) == x.at(r.here, lane))  # of whatever length: else it would close another axis

    def lane_of(e: Expr, lane: Integer) -> Expr:
        block, own = lane_roles.closed_place(lane, x.count, r.setting.divided)
        there = r.setting.iteration(laws.moved(everything, block, e))
        return x.at(there, own)

    return Vector(r.setting.count(x.count * width), lane_of)


def _after(r: Reading, op: str, parts: Parts, at: Any) -> Vector | Register | Shared:
    """A value behind others: which these are, and at which iteration, is all that is known of them. It need not wait for a loop
    that the hardware runs.
    """
    found = r.one_of_any_kind(parts["passthrough"])
    if isinstance(found, Register):
        return registers.after(r, found, parts["deps"])
    if isinstance(found, Shared):
        return shared.after(r, found, parts["deps"])
    x = vector(found)
    x, before = (x, ()) if x.waits is None else x.waits
    waits = sorted({w.name: w for w in (*before, *loops.closed(r, parts["deps"]))}.values(), key=lambda w: w.name)
    if not waits:
        return replace(x, constant=False)
    may_go = [w for w in waits if w.idle is not smt.FALSE]
    if len(may_go) > 1:
        may_go = []

    def behind(ws: Sequence[Loops], e: Expr, lane: Integer) -> Expr:
        if not ws:
            return x.at(e, lane)
        f = smt.Function(Symbol("op", op, *(w.name for w in ws)), *([VALUE] * (1 + len(ws))), VALUE)
        return f(x.at(e, lane), *(w.function(e, 0) for w in ws))

    def at_lane(e: Expr, lane: Integer) -> Expr:
        found = behind(waits, e, lane)
        for w in may_go:
            found = smt.If(w.idle, behind([v for v in waits if v is not w], e, lane), found)
        return found

    return Vector(x.count, at_lane, waits=(x, tuple(waits)), is_place=x.is_place)


VECTOR_AXES: Final = ("Upcast", "Unroll")


def _range(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """A range: one that is vectorized is the place of its axis, of any other nothing is known."""
    kind, end, label = parts.get("axis"), parts["end"], parts.get("id")
    if r.part != "pattern":
        raise Unsupported("a range that is made")
    if kind is None and label is None:
        last = r.one(end)
        made = r.opaque(r.setting.symbol("range"), integer(1))
        r.setting.ends[made.at] = last
        return made
    if getattr(kind, "name", "") not in VECTOR_AXES or not isinstance(end, S.PConst) or not isinstance(label, S.PVar):
        raise Unsupported("a range that is not vectorized")
    if end.bound is None or label.ignored:
        raise Unsupported("a range without names")
    n, i = (r.bind(name, integer(smt.Int(Symbol("variable", name)))) for name in (end.bound, label.name))
    r.setting.count(n)
    axis = laws.SINGLE(i.term, n.term)
    r.setting.axes_found.add(axis)
    dtype = r.element(at)
    return Vector(integer(1), lambda e, lane: sequences.constant(laws.block(axis, e), dtype))


def _bitcast(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    part = _operand(r, op, parts)
    f = function(r, op, [r.element(part)], r.element(at))
    return lanewise(r, f, [r.one(part)], set())


def _mark(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """A node that says something of another one, and has its value."""
    return replace(r.place(parts["src"]), constant=False)


Meaning = Callable[["Reading", str, Parts, Any], Vector | Statement | Register | Shared | Branch]
_ROLES: Final[dict[str, Meaning]] = {
    "take": _take,
    "join": _join,
    "constants": _constants,
    "open": _open,
    "close": _close,
}
_NAMED: Final[dict[str, Meaning]] = {
    "PtrCat": _join,
    "Bitcast": _bitcast,
    "Index": loads_and_stores.index,
    "Load": loads_and_stores.load,
    "After": _after,
    "Invalid": loads_and_stores.invalid,
    "Range": _range,
    "Reduce": folds.reduce,
    "Store": loads_and_stores.store,
    "End": statements.end,
    "Barrier": shared.barrier,
    "If": statements.branch,
    "EndIf": statements.end_of_branch,
    "Group": loads_and_stores.group,
    "Noop": statements.nothing,
    "Wmma": matrices.product,
    **dict.fromkeys(MARKS, _mark),
}
READ: Final = frozenset(_NAMED)  # ops besides those of tensors, those that work lane by lane, and those that have roles
_OF_TENSORS: Final[dict[str, Meaning]] = {**views.MEANINGS, "Index": view_places.index}
