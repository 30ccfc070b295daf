"""Tensors of any rank at every size: views as maps of index vectors, and ops element by element.

A tensor is its rank, the sizes of its axes, and a function of an index vector. An index vector is a function of the axis, so that
a view of any rank changes it axis by axis. Two tensors are the same if they have one shape, and one element at an index vector of
which nothing is known but that it is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from morok.dialect import built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.prove import smt
from morok.prove.kinds import Parts
from morok.prove.parametric import laws
from morok.prove.parametric.integers import INT, Integer, integer, within
from morok.prove.parametric.numbers import has_value, is_valid, number, truth
from morok.prove.parametric.quantified import every
from morok.prove.parametric.sequences import chosen, listed
from morok.prove.parametric.setting import DEEPEST, Setting, occurs
from morok.prove.parametric.values import Indices, Items, Tensor, Vector, items, vector, zero
from morok.prove.parametric.values import number as as_number
from morok.prove.rule_syntax import ops_of
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

VALUE: Final = laws.VALUE
NOWHERE: Final = smt.Const(Symbol("fixed", "nowhere"), VALUE)
VIEWS: Final = frozenset({"Reshape", "Permute", "Expand", "Pad", "Shrink", "Flip"})
OPS: Final = VIEWS | {"Concat", "Iota"}


def about_tensors(rule: CheckedRule) -> bool:
    """Truth of a rule speaking of views, or of what makes tensors."""
    return built_in(rule.dialect) and not OPS.isdisjoint(ops_of(rule))


def result_is_one(rule: CheckedRule) -> bool:
    """Truth of a rule of tensors being about one, and not about the place of an element."""
    pattern = rule.syntax.pattern
    while isinstance(pattern, S.PBind):
        pattern = pattern.inner
    ops = pattern.ops if isinstance(pattern, S.POp) else (pattern.op,) if isinstance(pattern, S.PStruct) else ()
    return "Index" not in ops


def is_tensor(node: Vector) -> bool:
    """Truth of a node being read as a tensor, and not as the place of an element."""
    return node.tensor is not None


# tensors of which nothing is known, and constants


def opaque(r: Reading, name: Symbol) -> Tensor:
    """A tensor of which nothing is known."""
    s = r.setting
    rank = integer(smt.Int(Symbol("dimension", r.shapes.of_rank(name.label), "rank")))
    size = smt.Function(Symbol("dimension", r.shapes.of_shape(name.label)), INT, INT)
    element = smt.Function(Symbol("cell", name), VALUE, VALUE)
    s.premise(rank.term >= 0)
    s.for_all(rank, lambda k: size(k.term) >= 0, smt.TRUE)
    return Tensor(rank, lambda k: integer(size(k.term)), lambda i, absent: element(_at(s, rank, i)))


def scalar(value: Expr) -> Tensor:
    """One number, which is a tensor without axes."""
    return Tensor(integer(0), _no_axis, lambda i, absent: value)


def of(v: Vector) -> Tensor:
    """The tensor that a node is."""
    if v.tensor is not None:
        return v.tensor
    if v.uniform:
        return scalar(v.at(smt.Const(Symbol("fixed", "zero"), laws.ITERATION), integer(0)))
    raise Unsupported("a node that is not read as a tensor")


def _no_axis(k: Integer) -> Integer:
    raise Unsupported("an axis of a number")


def _at(s: Setting, rank: Integer, i: Indices) -> Expr:
    """An index vector as one value: the same one for the same indices."""
    return s.tuple_of(rank, lambda k: laws.NUMBER(i(k).term))


def elementwise(r: Reading, f: Callable[..., Expr], operands: Sequence[Vector]) -> Tensor | None:
    """An op element by element, of tensors of one shape and of numbers; None where an operand is not read as a tensor."""
    if any(x.tensor is None and not x.uniform for x in operands):
        return None
    tensors = [of(x) for x in operands]
    shaped = [t for t in tensors if t.rank.known != 0]
    if not shaped:
        return Tensor(integer(0), _no_axis, lambda i, absent: f(*(t.element(i, absent) for t in tensors)))
    first = shaped[-1]
    for t in shaped[-2::-1]:
        first = _first_with_axes(t, first)
    for k, t in enumerate(shaped):
        for other in shaped[:k]:
            numbers = smt.Or(t.rank.term == 0, other.rank.term == 0)
            if not t.rank.same(other.rank):
                r.exists(smt.Or(numbers, t.rank.term == other.rank.term))
            _each(r, t.rank, lambda a, t=t, o=other, n=numbers: smt.Or(n, t.size(a).term == o.size(a).term))  # type: ignore
    return Tensor(first.rank, first.size, lambda i, absent: f(*(t.element(i, zero_absent(absent)) for t in tensors)))


def zero_absent(absent: Expr) -> Expr:
    if absent is NOWHERE:
        raise Unsupported("a place of what is computed")
    return absent


def _first_with_axes(a: Tensor, b: Tensor) -> Tensor:
    if a.rank.same(b.rank):
        return a
    none = a.rank.term == 0
    return Tensor(integer(smt.If(none, b.rank.term, a.rank.term)), lambda k: chosen(none, b.size(k), a.size(k)), a.element)


# what an op has for every axis


def _each(r: Reading, length: Integer, condition: Callable[[Integer], Expr]) -> None:
    """A condition for every axis: known of what is matched, to be shown of what is built."""
    if r.part == "pattern" or not (r.guarding or r.probing):
        _of_each(r.setting, r.part == "pattern", length, condition, smt.TRUE)


def _of_each(s: Setting, known: bool, length: Integer, condition: Callable[[Integer], Expr], only_if: Expr) -> None:
    """A premise, or a claim, for every axis."""
    if known and length.known is not None:
        for axis in map(integer, range(length.known)):
            s.premise(smt.Implies(only_if, condition(axis)))
    elif known:
        s.for_all(length, condition, only_if)
    elif length.known is not None:
        for axis in map(integer, range(length.known)):
            s.claim(smt.Implies(only_if, condition(axis)))
    else:
        k = s.probe("axis")
        s.guard += [s.below(k, length), only_if]
        s.claim(condition(k))
        del s.guard[-2:]


def _behind(r: Reading, found: Sequence[Items | Vector]) -> Items:
    """Operands behind one another, each a value."""
    parts = [p if isinstance(p, Items) else listed([p]) for p in found]
    if not parts:
        return listed([])
    starts, total = [], integer(0)
    for p in parts:
        starts.append(total)
        total = total + p.length

    def at(k: Integer) -> Any:
        if k.known is not None:
            for p, start in zip(parts, starts, strict=True):
                if p.length.known is None or start.known is None:
                    break
                if start.known <= k.known < start.known + p.length.known:
                    return p.at(k - start)
        one = parts[-1].at(k - starts[-1])
        for p, start in list(zip(parts, starts, strict=True))[-2::-1]:
            if p.length.known != 0:
                one = chosen(k.term < (start + p.length).term, p.at(k - start), one)
        return one

    return Items(total, at)


def values(r: Reading, found: Sequence[Items | Vector]) -> tuple[Integer, Callable[[Integer], Expr]]:
    """Operands that are single numbers: how many, and the value of each."""
    sequence = _behind(r, found)

    def at(k: Integer) -> Expr:
        return vector(sequence.at(k)).at(r.here, integer(0))

    return sequence.length, at


def sizes(r: Reading, found: Sequence[Items | Vector]) -> tuple[Integer, Indices]:
    """Operands that are sizes, or numbers of elements: how many, and the integers that they are, not negative."""
    s = r.setting
    length, at = values(r, found)

    def good(k: Integer) -> Expr:
        return smt.And(has_value(s, at(k)), number(s, at(k)).term >= 0)

    _each(r, length, good)
    return length, lambda k: number(s, at(k))


def _is(r: Reading, length: Integer, rank: Integer) -> None:
    if not length.same(rank):
        r.exists(length.term == rank.term)


def field(r: Reading, part: Any, length: Integer, sort: smt.Sort) -> Items:
    """A list of numbers, or of truths, of so many items: of a pattern any, as far as it names none."""
    if isinstance(part, S.PVar) and part.name not in r.names:
        f = smt.Function(r.symbol(part.name), INT, sort)
        made = Items(length, lambda k: f(k.term) if sort is laws.BOOL else integer(f(k.term)))
        return made if part.ignored else r.bind(part.name, made)
    if r.part == "pattern" and isinstance(part, (S.PList, S.EList)):
        return listed([_written(i) for i in part.items])
    value = r.value(S.EName(part.name) if isinstance(part, S.PVar) else getattr(part, "value", part))
    found = _behind(r, value) if isinstance(value, list) else items(value)
    return Items(found.length, lambda k: _of_sort(found.at(k), sort))


def _of_sort(value: Any, sort: smt.Sort) -> Any:
    if sort is laws.BOOL:
        if isinstance(value, Expr) and value.sort is sort:
            return value
        raise Unsupported("a truth where there is none")
    return as_number(value)


def _written(item: Any) -> Any:
    """A number, or a truth, that a pattern writes."""
    item = item.value if isinstance(item, S.PExpr) else item
    match item:
        case S.ENumber(value=known) | S.PLiteral(value=known):
            return smt.BoolVal(known) if isinstance(known, bool) else integer(int(known))
    raise Unsupported("a static field of which a part is named")


# views


def made(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """A view, or what makes a tensor of several, or of nothing."""
    tensor = _OPS[op](r, parts, r.element(at) if op == "Pad" else "")
    return Vector(integer(1), _no_lane, tensor=tensor)


def _no_lane(e: Expr, lane: Integer) -> Expr:
    raise Unsupported("a tensor where a number is read")


def _source(r: Reading, parts: Parts) -> Tensor:
    return of(r.one(parts["src"]))


def _reshape(r: Reading, parts: Parts, dtype: str) -> Tensor:
    s = r.setting
    x = _source(r, parts)
    rank, size = sizes(r, r.numbered(parts["shape"]))
    r.exists(_elements(s, x.rank, x.size) == _elements(s, rank, size))

    def element(i: Indices, absent: Expr) -> Expr:
        place = _flat(s, rank, size, i)
        return x.element(_digits(s, x.rank, x.size, place), absent)

    return Tensor(rank, size, element)


def _elements(s: Setting, rank: Integer, size: Indices) -> Expr:
    """How many elements a shape has."""
    if rank.known is None:
        return laws.SIZE(_at(s, rank, size))
    product = integer(1)
    for k in range(rank.known):
        product = product * size(integer(k))
    return s.count(product).term


def _flat(s: Setting, rank: Integer, size: Indices, i: Indices) -> Integer:
    """The place of an index vector in row-major order."""
    if rank.known is None:
        return integer(laws.FLAT(_at(s, rank, size), _at(s, rank, i)))
    place, product = integer(0), integer(1)
    for axis in map(integer, range(rank.known)):
        place, product = place * size(axis) + i(axis), product * size(axis)
    s.digits(place, product, DEEPEST)
    return place


def _digits(s: Setting, rank: Integer, size: Indices, place: Integer) -> Indices:
    """The index vector of a place in row-major order."""
    if rank.known is None:
        shape = _at(s, rank, size)
        return lambda k: integer(laws.DIGIT(shape, place.term, k.term))
    found: list[Integer] = []
    for k in range(rank.known - 1, 0, -1):
        place, digit = s.divided(place, size(integer(k)))
        found.insert(0, digit)
    found = [place, *found][: rank.known]
    return lambda k: listed(list(found)).at(k)


def _permute(r: Reading, parts: Parts, dtype: str) -> Tensor:
    s = r.setting
    x = _source(r, parts)
    axes = field(r, parts["axes"], x.rank, INT)
    _is(r, axes.length, x.rank)
    _each(r, x.rank, lambda k: within(axes.at(k), 0, x.rank))
    if r.part != "pattern" and not r.probing:  # what is built must name every axis once
        j, k = s.probe("axis"), s.probe("axis")
        s.guard += [s.below(j, x.rank), s.below(k, x.rank)]
        r.claim(smt.Implies(axes.at(j).term == axes.at(k).term, j.term == k.term))
        del s.guard[-2:]
    back = inverse(s, x.rank, lambda k: as_number(axes.at(k)))
    return Tensor(
        x.rank,
        lambda k: x.size(axes.at(k)),
        lambda i, absent: x.element(lambda p: i(integer(back(p.term))), absent),
    )


def inverse(s: Setting, rank: Integer, axes: Indices) -> Applicable:
    """The function from an axis of what is permuted to the axis of the result that it is. `axes` name each of them once."""
    with s.anywhere() as place:
        key = (rank.term, axes(place).term)
    if key in s.inverses:
        return s.inverses[key]
    back = s.inverses[key] = smt.Function(s.symbol("axis of"), INT, INT)
    direct = key[1].data if key[1].head == "apply" and key[1].args == (place.term,) else None

    def returns(k: Integer) -> Expr:
        return back(axes(k).term) == k.term

    def found(p: Integer) -> Expr:
        k = integer(back(p.term))
        return smt.And(within(k, 0, rank), axes(k).term == p.term)

    if rank.known is not None:
        s.premises += [law(integer(k)) for law in (returns, found) for k in range(rank.known)]
        return back
    s.for_all(rank, found, smt.TRUE, lambda p: back(p.term) == p.term, unless=direct)
    if direct is not None:
        s.for_all(rank, returns, smt.TRUE, lambda k: axes(k).term == k.term, unless=back)
    return back


def _expand(r: Reading, parts: Parts, dtype: str) -> Tensor:
    x = _source(r, parts)
    rank, size = sizes(r, r.numbered(parts["shape"]))
    _is(r, rank, x.rank)
    _each(r, x.rank, lambda k: smt.Or(x.size(k).term == 1, x.size(k).term == size(k).term))

    def element(i: Indices, absent: Expr) -> Expr:
        return x.element(lambda k: chosen(x.size(k).term == 1, integer(0), i(k)), absent)

    return Tensor(x.rank, size, element)


def _edges(r: Reading, parts: Parts, x: Tensor) -> tuple[Indices, Indices]:
    """The begins and the ends of a Pad or Shrink: of a list of both, half each."""
    begins, ends = parts["begins"], parts["ends"]
    if isinstance(begins, list) and isinstance(ends, list) and not ends:
        half, odd = divmod(len(begins), 2)
        if odd:
            raise Unsupported("edges of which half are begins")
        begins, ends = begins[:half], begins[half:]
    found = []
    for part in (begins, ends):
        length, at = sizes(r, r.numbered(part))
        _is(r, length, x.rank)
        found.append(at)
    return found[0], found[1]


def _shrink(r: Reading, parts: Parts, dtype: str) -> Tensor:
    x = _source(r, parts)
    begin, end = _edges(r, parts, x)
    _each(r, x.rank, lambda k: smt.And(begin(k).term <= end(k).term, end(k).term <= x.size(k).term))
    return Tensor(x.rank, lambda k: end(k) - begin(k), lambda i, absent: x.element(lambda k: i(k) + begin(k), absent))


def _pad(r: Reading, parts: Parts, dtype: str) -> Tensor:
    s = r.setting
    x = _source(r, parts)
    begin, end = _edges(r, parts, x)
    filled = zero(dtype).at(s.zero, integer(0))

    def element(i: Indices, absent: Expr) -> Expr:
        nothing = absent if absent is NOWHERE else filled
        inside = every(s, x.rank, lambda k: within(i(k) - begin(k), 0, x.size(k)))
        return smt.If(inside, x.element(lambda k: i(k) - begin(k), absent), nothing)

    return Tensor(x.rank, lambda k: begin(k) + x.size(k) + end(k), element)


def _flip(r: Reading, parts: Parts, dtype: str) -> Tensor:
    x = _source(r, parts)
    flags = field(r, parts["axes"], x.rank, laws.BOOL)
    _is(r, flags.length, x.rank)

    def element(i: Indices, absent: Expr) -> Expr:
        return x.element(lambda k: chosen(flags.at(k), x.size(k) - 1 - i(k), i(k)), absent)

    return Tensor(x.rank, x.size, element)


def _iota(r: Reading, parts: Parts, dtype: str) -> Tensor:
    _, size = sizes(r, r.numbered([parts["end"]]))
    return Tensor(integer(1), lambda k: size(integer(0)), lambda i, absent: laws.NUMBER(i(integer(0)).term))


def _concat(r: Reading, parts: Parts, dtype: str) -> Tensor:
    """Tensors behind each other along an axis: the place along it tells which of them an element is of."""
    found = r.many(parts["sources"])
    if not found or any(isinstance(f, Items) for f in found):
        raise Unsupported("any number of tensors behind each other")
    tensors = [of(vector(f)) for f in found]
    first = tensors[0]
    axis = _axis(r, parts["axis"], first.rank)
    r.exists(within(axis, 0, first.rank))
    for t in tensors[1:]:
        _is(r, t.rank, first.rank)
        _each(r, first.rank, lambda k, t=t: smt.Or(k.term == axis.term, t.size(k).term == first.size(k).term))  # type: ignore
    starts, total = [], integer(0)
    for t in tensors:
        starts.append(total)
        total = total + t.size(axis)

    def element(i: Indices, absent: Expr) -> Expr:
        def of_part(t: Tensor, start: Integer) -> Expr:
            return t.element(lambda k: chosen(k.term == axis.term, i(k) - start, i(k)), absent)

        at = of_part(tensors[-1], starts[-1])
        for t, start in list(zip(tensors, starts, strict=True))[-2::-1]:
            at = smt.If(i(axis).term < (start + t.size(axis)).term, of_part(t, start), at)
        return at

    return Tensor(first.rank, lambda k: chosen(k.term == axis.term, total, first.size(k)), element)


def _axis(r: Reading, part: Any, rank: Integer) -> Integer:
    """The number of an axis."""
    if isinstance(part, S.PVar) and part.name not in r.names:
        made = integer(smt.Int(r.symbol(part.name)))
        return made if part.ignored else r.bind(part.name, made)
    if isinstance(part, S.PLiteral):
        return integer(int(part.value))
    value = r.value(S.EName(part.name) if isinstance(part, S.PVar) else getattr(part, "value", part))
    if not isinstance(value, Integer):
        raise Unsupported("an axis that is no number")
    return value


_OPS: Final[dict[str, Callable[[Any, Parts, str], Tensor]]] = {
    "Reshape": _reshape,
    "Permute": _permute,
    "Expand": _expand,
    "Shrink": _shrink,
    "Pad": _pad,
    "Flip": _flip,
    "Iota": _iota,
    "Concat": _concat,
}


# places


def index(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """The place of an element of a view, for every lane of the indices."""
    if r.optional(parts.get("gate")) is not None:
        raise Unsupported("a gated place of a view")
    s = r.setting
    buffer = of(r.one(parts["buffer"]))
    found = r.numbered(parts["indices"])
    sequence = _behind(r, found)
    _is(r, sequence.length, buffer.rank)
    length = sequence.length
    premised = r.part == "pattern"
    count = _lanes_of_indices(r, sequence, buffer)

    def place(e: Expr, lane: Integer) -> Expr:
        def value(k: Integer) -> Expr:
            one = vector(sequence.at(k))
            if one.count.known == 1:
                return one.at(e, integer(0))
            if one.uniform or one.count.same(count):
                return one.at(e, lane)
            return smt.If(one.count.term == 1, one.at(e, integer(0)), one.at(e, lane))

        there = every(s, length, lambda k: is_valid(s, value(k)))
        defined = smt.TRUE
        if premised:
            defined = smt.Bool(s.symbol("defined"))
            s.defined.append(defined)
        _of_each(s, premised, length, lambda k: has_value(s, value(k)), defined)
        _of_each(s, premised, length, lambda k: within(number(s, value(k)), 0, buffer.size(k)), smt.And(defined, there))
        return smt.If(there, buffer.element(lambda k: number(s, value(k)), NOWHERE), NOWHERE)

    return Vector(count, place)


def _lanes_of_indices(r: Reading, indices: Items, buffer: Tensor) -> Integer:
    """The lanes of a place: of its indices each has as many, or one, which serves all."""
    s, length = r.setting, indices.length

    def own(k: Integer) -> Integer:
        one = vector(indices.at(k))
        return integer(1) if one.uniform else one.count

    with s.anywhere() as place:
        each = own(place)
    if not occurs(place, each):
        return each
    if length.known is not None:
        counts = [own(integer(k)) for k in range(length.known)]
        if any(not c.same(counts[0]) for c in counts):
            raise Unsupported("indices of different lanes")
        return counts[0]
    if r.part == "pattern":
        count, widest = s.unknown("lanes of places"), s.unknown("widest")
        s.premise(count.term > 0)
        s.premise(smt.Or(count.term == 1, smt.And(within(widest, 0, length), own(widest).term == count.term)))
        s.premise(smt.Implies(within(widest, 0, length), buffer.size(widest).term >= 0))
    else:
        count = r.wanted
        narrow = smt.Bool(s.symbol("narrow"))
        at_sizes = lambda k: smt.And(own(k).term > 0, buffer.size(k).term >= 0)  # noqa: E731
        s.for_all(length, lambda k: smt.Not(own(k).term == count.term), narrow, at_sizes)
        r.claim(smt.Or(count.term == 1, smt.Not(narrow)))
    _of_each(s, r.part == "pattern", length, lambda k: smt.Or(own(k).term == 1, own(k).term == count.term), smt.TRUE)
    return count


# comparison


def same(s: Setting, pattern: Tensor, target: Tensor, dtype: str) -> None:
    """Claim that two tensors have one shape, and one element at every index vector inside it."""
    if not pattern.rank.same(target.rank):
        s.claim(pattern.rank.term == target.rank.term)
    axis = s.probe("axis")
    s.guard.append(s.below(axis, pattern.rank))
    s.claim(pattern.size(axis).term == target.size(axis).term)
    s.guard.pop()
    at = smt.Function(s.symbol("at"), INT, INT)
    inside = smt.Bool(s.symbol("inside"))  # there may be no such index vector: only the elements are compared under this
    _of_each(s, True, pattern.rank, lambda k: within(integer(at(k.term)), 0, pattern.size(k)), inside)

    def here(k: Integer) -> Integer:
        return integer(at(k.term))

    absent = smt.Const(Symbol("fixed", "absent"), VALUE)
    s.guard.append(inside)
    p, t = pattern.element(here, absent), target.element(here, absent)
    if dtype in ("index", "bool") and p is not t:
        s.guard.append(has_value(s, p))
        s.claim(has_value(s, t))
        s.claim(number(s, p).term == number(s, t).term if dtype == "index" else truth(s, p) == truth(s, t))
        s.guard.pop()
    else:
        s.claim(p == t)
    s.guard.pop()


def with_elements(r: Reading, op: str, of_lanes: Vector, f: Applicable, operands: Sequence[Vector]) -> Vector:
    """A node that an op makes lane by lane, as a tensor, too."""
    if op == "Where":
        r.setting.selections.add(f)
    return replace(of_lanes, tensor=elementwise(r, f, operands))
