"""Places in views: elements by index vectors of any rank, for every lane of the indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from morok.prove import smt
from morok.prove.kinds import Parts
from morok.prove.parametric.number_ops import has_value, is_valid, number, truth
from morok.prove.parametric.polynomials import Integer, integer, within
from morok.prove.parametric.quantified import every
from morok.prove.parametric.row_major import parts_of, several
from morok.prove.parametric.rule_values import Items, Tensor, Vector, vector
from morok.prove.parametric.sequences import behind
from morok.prove.parametric.setting import same_everywhere
from morok.prove.parametric.tensor_rules import always_read
from morok.prove.parametric.tensors import NOWHERE, of, of_each
from morok.prove.parametric.views import is_rank
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def index(r: Reading, op: str, given: Parts, at: Any) -> Vector:
    """The place of an element of a view, for every lane of the indices: nowhere where its gate is false."""
    gate = r.optional(given.get("gate"))
    if r.part == "pattern" and not always_read(r.rule):
        raise Unsupported("a place that may not be read")
    s = r.setting
    buffer = of(r.one(given["buffer"]))
    found = r.numbered(given["indices"])
    sequence, parts = behind(s, found), parts_of(found)
    is_rank(r, sequence.length, buffer.rank)
    length = sequence.length
    premised = r.part == "pattern"
    count = _lanes_of_indices(r, sequence, buffer)
    if gate is not None and not (gate.uniform or gate.count.same(count)):
        fits = smt.Or(gate.count.term == 1, gate.count.term == count.term)
        of_each(s, r.part == "pattern", integer(1), lambda _: fits, smt.TRUE)

    def place(e: Expr, lane: Integer) -> Expr:
        def value(k: Integer) -> Expr:
            return _lane_of(vector(sequence.at(k)), count, e, lane)

        there = every(s, length, lambda k: is_valid(s, value(k)))
        defined = smt.TRUE
        if premised:
            defined = smt.Bool(s.symbol("defined"))
            s.defined.append(defined)
        opened = smt.TRUE
        if gate is not None:
            allowed = _lane_of(gate, count, e, lane)
            of_each(s, premised, integer(1), lambda _: has_value(s, allowed), defined)
            opened = truth(s, allowed)
        asked = smt.And(defined, opened)
        for start, many in parts if several(parts) and not premised else ((integer(0), length),):

            def has(k: Integer, start: Integer = start) -> Expr:
                return has_value(s, value(start + k))

            def inside(k: Integer, start: Integer = start) -> Expr:
                return s.below(number(s, value(start + k)), buffer.size(start + k))

            of_each(s, premised, many, has, asked)
            of_each(s, premised, many, inside, smt.And(asked, there))
        return smt.If(smt.And(opened, there), buffer.element(lambda k: number(s, value(k)), NOWHERE), NOWHERE)

    return Vector(count, place)


def _lane_of(x: Vector, count: Integer, e: Expr, lane: Integer) -> Expr:
    """A lane of an index or gate, which has `count` lanes or one."""
    if x.count.known == 1:
        return x.at(e, integer(0))
    if x.uniform or x.count.same(count):
        return x.at(e, lane)
    return smt.If(x.count.term == 1, x.at(e, integer(0)), x.at(e, lane))


def _lanes_of_indices(r: Reading, indices: Items, buffer: Tensor) -> Integer:
    """The lanes of a place: of its indices each has as many, or one, which serves all."""
    s, length = r.setting, indices.length

    def own(k: Integer) -> Integer:
        one = vector(indices.at(k))
        return integer(1) if one.uniform else one.count

    each = own(s.probe("anywhere"))
    if same_everywhere(s, each, own):
        return each
    if length.known is not None:
        counts = [own(integer(k)) for k in range(length.known)]
        if all(c.same(counts[0]) for c in counts):
            return counts[0]
        count = s.unknown("lanes of places") if r.part == "pattern" else r.wanted
        one_has_all = smt.Or(*(c.term == count.term for c in counts))
        of_each(s, r.part == "pattern", integer(1), lambda _: one_has_all, smt.TRUE)
    elif r.part == "pattern":
        count, widest = s.unknown("lanes of places"), s.unknown("widest")
        s.premise(count.term > 0)
        s.premise(smt.Or(count.term == 1, smt.And(within(widest, 0, length), own(widest).term == count.term)))
        s.premise(smt.Implies(within(widest, 0, length), buffer.size(widest).term >= 0))
    else:
        count = r.wanted
        narrow = smt.Bool(s.symbol("narrow"))

        def asked(k: Integer) -> Expr:
            return smt.And(own(k).term > 0, buffer.size(k).term >= 0)

        s.for_all(length, lambda k: smt.Not(own(k).term == count.term), narrow, asked)
        r.claim(smt.Or(count.term == 1, smt.Not(narrow)))
    of_each(s, r.part == "pattern", length, lambda k: smt.Or(own(k).term == 1, own(k).term == count.term), smt.TRUE)
    return count
