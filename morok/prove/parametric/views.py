"""Views, and ops that make tensors of several or of nothing, as maps of index vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from morok import value_domains
from morok import view_meanings as meanings
from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.kinds import Parts, whole
from morok.prove.parametric import laws, row_major
from morok.prove.parametric.number_ops import has_value, is_valid, number
from morok.prove.parametric.polynomials import INT, Integer, integer, within
from morok.prove.parametric.quantified import every
from morok.prove.parametric.reductions import reduced
from morok.prove.parametric.rule_values import Indices, Items, Tensor, Vector, vector, zero
from morok.prove.parametric.rule_values import number as as_number
from morok.prove.parametric.sequences import UNKNOWN, behind, chosen, listed
from morok.prove.parametric.setting import DEEPEST, Setting
from morok.prove.parametric.static_fields import field
from morok.prove.parametric.tensor_rules import OPS
from morok.prove.parametric.tensors import NOWHERE, alike, at_indices, each, of
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.view_meanings import View

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

# operands and fields


def values(r: Reading, found: Sequence[Items | Vector]) -> tuple[Integer, Callable[[Integer], Expr]]:
    """Operands that are single numbers: how many, and the value of each."""
    sequence = behind(r.setting, found)

    def at(k: Integer) -> Expr:
        found = sequence.at(k)
        return laws.NUMBER(found.term) if isinstance(found, Integer) else vector(found).at(r.here, integer(0))

    return sequence.length, at


def sizes(r: Reading, found: Sequence[Items | Vector]) -> tuple[Integer, Indices]:
    """Operands that are sizes, or numbers of elements: how many, and the integers that they are, not negative."""
    s = r.setting
    length, at = values(r, found)

    def good(k: Integer) -> Expr:
        return smt.And(has_value(s, at(k)), is_valid(s, at(k)), number(s, at(k)).term >= 0)

    each(r, length, good)
    return length, lambda k: number(s, at(k))


def is_rank(r: Reading, length: Integer, rank: Integer) -> None:
    """A list has an item for every axis."""
    if not length.same(rank):
        r.exists(length.term == rank.term)


# views


def _made(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """A view, or what makes a tensor of several, or of nothing."""
    r.met_tensors = r.met_tensors or r.part == "pattern"
    tensor = _OPS[op](r, parts, r.element(at) if op in ("Pad", "ReduceAxis") else "")
    return Vector(integer(1), _no_lane, tensor=tensor)


def _no_lane(e: Expr, lane: Integer) -> Expr:
    raise Unsupported("a tensor where a number is read")


def _source(r: Reading, parts: Parts) -> Tensor:
    return of(r.one(parts["src"]))


def _reshape(r: Reading, parts: Parts, dtype: str) -> Tensor:
    s = r.setting
    x = _source(r, parts)
    found = r.numbered(parts["shape"])
    rank, size = sizes(r, found)
    if rank.known is None:
        _in_parts(r, x, rank, size, row_major.parts_of(found))
    r.exists(elements(s, x.rank, x.size) == elements(s, rank, size))

    def element(i: Indices, absent: Expr) -> Expr:
        place = _flat(s, rank, size, i)
        return x.element(digits(s, x.rank, x.size, place), absent)

    return Tensor(rank, size, element)


def _in_parts(r: Reading, x: Tensor, rank: Integer, size: Indices, parts: row_major.Parts) -> None:
    """Say the number of elements of a shape that is built of parts by theirs, and that of what is matched by the same parts."""
    s, shape = r.setting, at_indices(r.setting, rank, size)
    if r.part == "pattern":
        s.views.shapes.append((shape, rank, size))
        if x.rank.known is None:
            s.views.shapes.append((at_indices(s, x.rank, x.size), x.rank, x.size))
    if not row_major.several(parts) or s.trying:
        return
    s.pieces.add(shape)
    single = [(start, size(start)) for start, length in parts if length.known == 1]
    for _, n in single:
        s.count(n)
    for (j, m), (k, n) in pairwise(single):
        if (k - j).known == 1:
            s.count(m * n)
    for other, its_rank, its_size in [*s.views.shapes, (shape, rank, size)]:
        its = parts if other is shape else row_major.aligned(s, its_rank, its_size, parts, size)
        if its is not None:
            s.views.parts_of_shapes[other] = its
            counts = tuple(n for n, _ in row_major.digits(s, its_size, None, its))
            s.law(laws.elements_in_parts, other, counts, tuple(n for _, n in its))


def elements(s: Setting, rank: Integer, size: Indices) -> Expr:
    """The number of elements that a shape has."""
    if rank.known is None:
        return laws.SIZE(at_indices(s, rank, size))
    product = integer(1)
    for k in range(rank.known):
        product = product * size(integer(k))
    return s.count(product).term


def _flat(s: Setting, rank: Integer, size: Indices, i: Indices) -> Integer:
    """The place of an index vector in row-major order."""
    if rank.known is None:
        shape = at_indices(s, rank, size)
        vector = at_indices(s, rank, i)
        if shape in s.pieces:
            s.pieces.add(vector)
        found = laws.FLAT(shape, vector)
        if (parts := s.views.parts_of_shapes.get(shape)) is not None:
            s.law(laws.place_in_parts, found, tuple(row_major.digits(s, size, i, parts)), tuple(n for _, n in parts))
        return integer(found)
    axes = list(map(integer, range(rank.known)))
    place, product = value_domains.row_major(integer(0), map(i, axes), map(size, axes)), integer(1)
    for axis in axes:
        product = product * size(axis)
    s.digits(place, product, DEEPEST)
    return place


def digits(s: Setting, rank: Integer, size: Indices, place: Integer) -> Indices:
    """The index vector of a place in row-major order."""
    if rank.known is None:
        shape = at_indices(s, rank, size)
        return lambda k: integer(laws.DIGIT(shape, place.term, k.term))
    found = value_domains.index_at(place, [size(integer(k)) for k in range(rank.known)], s.divided)
    return lambda k: listed(list(found)).at(k)


def _element(r: Reading, x: Tensor, view: View[Integer, Expr], dtype: str = "") -> Tensor:
    """A view of a tensor: its elements, and zeros of a dtype where it has none."""
    if view.fits is not None:
        each(r, x.rank, view.fits)
    inside = view.inside

    def element(i: Indices, absent: Expr) -> Expr:
        def at(k: Integer) -> Integer:
            return i(view.follows(k))

        there = smt.TRUE if inside is None else every(r.setting, x.rank, lambda k: inside(k, at(k)))
        found = x.element(lambda k: view.place(k, at(k)), absent)
        if inside is None:
            return found
        return smt.If(there, found, absent if absent is NOWHERE else zero(dtype).at(r.setting.zero, integer(0)))

    return Tensor(x.rank, view.size, element)


def _permute(r: Reading, parts: Parts, dtype: str) -> Tensor:
    s = r.setting
    x = _source(r, parts)
    axes = field(r, parts["axes"], x.rank, INT)
    is_rank(r, axes.length, x.rank)
    each(r, x.rank, lambda k: within(axes.at(k), 0, x.rank))
    permutes = smt.TRUE
    if r.part != "pattern" and not is_permutation(s, axes):  # what is built must name every axis once
        if not r.surely:
            raise Unsupported("a permutation that a condition makes, or every item of a sequence")
        j, k = s.probe("axis"), s.probe("axis")
        with s.where(s.below(j, x.rank), s.below(k, x.rank)):
            r.claim(smt.Implies(axes.at(j).term == axes.at(k).term, j.term == k.term))
        permutes = smt.Bool(s.symbol("permutes"))
    back = inverse(s, axes, permutes)
    if not s.trying:
        s.views.permuted.append((x.rank, axes.at, lambda p: integer(back(p.term)), permutes))
    if permutes is not smt.TRUE:  # an inverse there is only if the claims hold that were made so far
        s.supposed.append(permutes)
    return _element(r, x, meanings.permute(x.size, axes.at, lambda p: integer(back(p.term))))


def _key(s: Setting, axes: Items) -> tuple[Expr, Expr]:
    """A list of axes, by what it has at any place."""
    with s.anywhere() as place:
        return axes.length.term, as_number(axes.at(place)).term


def is_permutation(s: Setting, axes: Items) -> bool:
    """True if the axes are known to name every axis once."""
    return _key(s, axes) in s.inverses


def inverse(s: Setting, axes: Items, only_if: Expr = smt.TRUE) -> Applicable:
    """The function from an axis of what is permuted to the axis of the result that it is. Where `only_if` holds, `axes` name each
    of them once.
    """
    key, rank = _key(s, axes), axes.length
    if key in s.inverses:
        return s.inverses[key]
    back = s.inverses[key] = smt.Function(s.symbol("axis of"), INT, INT)
    with s.anywhere() as place:
        direct = key[1].data if key[1].head == "apply" and key[1].args == (place.term,) else None

    def name(k: Integer) -> Expr:
        return as_number(axes.at(k)).term

    def returns(k: Integer) -> Expr:
        return back(name(k)) == k.term

    def found(p: Integer) -> Expr:
        k = integer(back(p.term))
        return smt.And(within(k, 0, rank), name(k) == p.term)

    if rank.known is not None:
        for k in map(integer, range(rank.known)):
            s.premise(smt.Implies(only_if, smt.And(returns(k), found(k))))
        return back
    s.for_all(rank, found, only_if, lambda p: back(p.term) == p.term, unless=direct)
    if direct is not None:
        s.for_all(rank, returns, only_if, lambda k: name(k) == k.term, unless=back)
    return back


def _expand(r: Reading, parts: Parts, dtype: str) -> Tensor:
    x = _source(r, parts)
    rank, size = sizes(r, r.numbered(parts["shape"]))
    is_rank(r, rank, x.rank)
    return _element(r, x, meanings.expand(UNKNOWN, x.size, size))


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
        is_rank(r, length, x.rank)
        found.append(at)
    return found[0], found[1]


def _shrink(r: Reading, parts: Parts, dtype: str) -> Tensor:
    x = _source(r, parts)
    begin, end = _edges(r, parts, x)
    view = meanings.shrink(UNKNOWN, x.size, begin, end)
    _box(r.setting, x.rank, begin, view.size)
    return _element(r, x, view)


def _pad(r: Reading, parts: Parts, dtype: str) -> Tensor:
    x = _source(r, parts)
    begin, end = _edges(r, parts, x)
    _box(r.setting, x.rank, begin, x.size)
    return _element(r, x, meanings.pad(UNKNOWN, x.size, begin, end), dtype)


def _box(s: Setting, rank: Integer, begin: Indices, size: Indices) -> None:
    """Note a part of a tensor, outside of which elements may add nothing."""
    if not s.trying:
        s.views.boxes.append((rank, begin, size))


def _flip(r: Reading, parts: Parts, dtype: str) -> Tensor:
    s = r.setting
    x = _source(r, parts)
    flags = field(r, parts["axes"], x.rank, laws.BOOL)
    is_rank(r, flags.length, x.rank)
    if not s.trying:
        s.views.flipped.append(flags)

    return _element(r, x, meanings.flip(UNKNOWN, x.size, flags.at))


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
        is_rank(r, t.rank, first.rank)
        alike(r, t, first, smt.FALSE, but=axis)
    lengths = [t.size(axis) for t in tensors]
    begins, total = value_domains.starts(integer(0), lengths)
    if not r.setting.trying:
        r.setting.views.cuts.append((first.rank, axis, begins[1:]))

    def element(i: Indices, absent: Expr) -> Expr:
        found: Expr = meanings.concat(UNKNOWN, axis, lengths, i, lambda part, at: tensors[part].element(at, absent))
        return found

    return Tensor(first.rank, lambda k: chosen(k.term == axis.term, total, first.size(k)), element)


def _reduce_axis(r: Reading, parts: Parts, dtype: str) -> Tensor:
    return reduced(r, parts, _source(r, parts), dtype)


def _axis(r: Reading, part: Any, rank: Integer) -> Integer:
    """The number of an axis."""
    if isinstance(part, S.PVar) and part.name not in r.names:
        made = integer(smt.Int(r.symbol(part.name)))
        return made if part.ignored else r.bind(part.name, made)
    part = part.value if isinstance(part, S.PExpr) else part
    if isinstance(part, (S.PLiteral, S.ENumber)):
        return integer(whole(part))
    value = r.value(S.EName(part.name) if isinstance(part, S.PVar) else part)
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
    "ReduceAxis": _reduce_axis,
}


MEANINGS: Final[dict[str, Callable[[Any, str, Parts, Any], Vector]]] = dict.fromkeys(OPS, _made)
