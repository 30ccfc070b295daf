"""Tensors of any rank at every size: views as maps of index vectors, and ops element by element.

A tensor is its rank, the sizes of its axes, and a function of an index vector. An index vector is a function of the axis, so that
a view of any rank changes it axis by axis. Two tensors are the same if they have one shape, and one element at an index vector of
which nothing is known but that it is inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from morok.prove import smt
from morok.prove.parametric import element_rules, laws
from morok.prove.parametric.number_ops import has_value
from morok.prove.parametric.op_functions import ring
from morok.prove.parametric.polynomials import INT, Integer, integer, within
from morok.prove.parametric.rule_values import Indices, Tensor, Vector
from morok.prove.parametric.sequences import chosen
from morok.prove.parametric.setting import Setting
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.symbol import Part, Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading

VALUE: Final = laws.VALUE
NOWHERE: Final = laws.NOWHERE
ABSENT: Final = smt.Const(Symbol("fixed", "absent"), VALUE)  # for elements that are read, and not their places


def is_tensor(node: Vector) -> bool:
    """True if a node is read as a tensor, and not as the place of an element."""
    return node.tensor is not None


def cell(name: Symbol) -> Applicable:
    """The function from an index vector to the element there, of a tensor of which nothing is known."""
    return smt.Function(Symbol("cell", name), VALUE, VALUE)


def opaque(r: Reading, name: Symbol) -> Tensor:
    """A tensor of which nothing is known."""
    s = r.setting
    # one without a name is told from others by its symbol alone
    told: Part = name.parts[0] if name.kind == "variable" else name
    known = r.shapes.known(told)
    rank = integer(smt.Int(Symbol("dimension", r.shapes.of_rank(told), "rank")) if known is None else known)
    size = smt.Function(Symbol("dimension", r.shapes.of_shape(told)), INT, INT)
    element = cell(name)
    s.premise(rank.term >= 0)
    s.for_all(rank, lambda k: size(k.term) >= 0, smt.TRUE)
    return Tensor(rank, lambda k: integer(size(k.term)), lambda i, absent: element(at_indices(s, rank, i)))


def scalar(value: Expr) -> Tensor:
    """One number, which is a tensor without axes."""
    return Tensor(integer(0), no_axis, lambda i, absent: value)


def of(v: Vector) -> Tensor:
    """The tensor that a node is."""
    if v.tensor is not None:
        return v.tensor
    if v.uniform:
        return scalar(v.at(smt.Const(Symbol("fixed", "zero"), laws.ITERATION), integer(0)))
    raise Unsupported("a node that is not read as a tensor")


def no_axis(k: Integer) -> Integer:
    raise Unsupported("an axis of a number")


def at_indices(s: Setting, rank: Integer, i: Indices) -> Expr:
    """An index vector as one value: the same one for the same indices."""
    return s.tuple_of(rank, lambda k: laws.NUMBER(i(k).term))


def elementwise(r: Reading, f: Callable[..., Expr], operands: Sequence[Vector]) -> Tensor | None:
    """An op element by element, of tensors of one shape and of numbers; None where an operand is not read as a tensor."""
    if any(x.tensor is None and not x.uniform for x in operands):
        return None
    tensors = [of(x) for x in operands]
    shaped = [t for t in tensors if t.rank.known != 0]
    if not shaped:
        return Tensor(integer(0), no_axis, lambda i, absent: f(*(t.element(i, absent) for t in tensors)))
    first = shaped[-1]
    for t in shaped[-2::-1]:
        first = _first_with_axes(t, first)
    for k, t in enumerate(shaped):
        for other in shaped[:k]:
            numbers = smt.Or(t.rank.term == 0, other.rank.term == 0)
            if not t.rank.same(other.rank):
                r.exists(smt.Or(numbers, t.rank.term == other.rank.term))
            alike(r, t, other, numbers)

    def element(i: Indices, absent: Expr) -> Expr:
        return f(*(t.element(i, ABSENT) for t in tensors))  # a number: computed is with zeros where there is no element

    return Tensor(first.rank, first.size, element)


def alike(r: Reading, a: Tensor, b: Tensor, unless: Expr, but: Integer | None = None) -> None:
    """Two tensors are of one shape, but for one axis."""

    def equal(k: Integer) -> Expr:
        for rank, to, back, only_if in r.setting.views.permuted if r.part != "pattern" else ():
            there = smt.And(only_if, within(k, 0, rank))
            r.setting.instance(
                "An axis is one of those that a permutation puts elsewhere.",
                smt.Implies(there, to(back(k)).term == k.term),
            )
        same = smt.Or(unless, a.size(k).term == b.size(k).term)
        return same if but is None else smt.Or(k.term == but.term, same)

    each(r, b.rank, equal)


def _first_with_axes(a: Tensor, b: Tensor) -> Tensor:
    if a.rank.same(b.rank):
        return a
    none = a.rank.term == 0
    return Tensor(
        integer(smt.If(none, b.rank.term, a.rank.term)), lambda k: chosen(none, b.size(k), a.size(k)), a.element
    )


# conditions for every axis


def each(r: Reading, length: Integer, condition: Callable[[Integer], Expr]) -> None:
    """A condition for every axis: known of what is matched, to be shown of what is built."""
    if r.part == "pattern" or not (r.guarding or r.probing):
        of_each(r.setting, r.part == "pattern", length, condition, smt.TRUE)


def of_each(s: Setting, known: bool, length: Integer, condition: Callable[[Integer], Expr], only_if: Expr) -> None:
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
        with s.where(s.below(k, length), only_if):
            s.claim(condition(k))


# comparison


def same(s: Setting, pattern: Tensor, target: Tensor, dtype: str) -> None:
    """Claim that two tensors have one shape, and one element at every index vector inside it."""
    if not pattern.rank.same(target.rank):
        s.claim(pattern.rank.term == target.rank.term)
    if 0 not in (pattern.rank.known, target.rank.known):
        axis = s.probe("axis")
        s.guard.append(s.below(axis, pattern.rank))
        s.claim(pattern.size(axis).term == target.size(axis).term)
        s.guard.pop()
    at = smt.Function(s.symbol("at"), INT, INT)
    # there may be no such index vector: only the elements are compared under this
    inside = smt.Bool(s.symbol("inside"))
    of_each(s, True, pattern.rank, lambda k: within(integer(at(k.term)), 0, pattern.size(k)), inside)

    def here(k: Integer) -> Integer:
        return integer(at(k.term))

    s.guard.append(inside)
    s.sides = frozenset({"pattern"})
    p = pattern.element(here, ABSENT)
    s.sides = frozenset({"target"})
    t = target.element(here, ABSENT)
    s.sides = frozenset()
    if p is not t:
        # of floats, what has no value has none in another order either: that is not asked
        partly = element_rules.relate(s, dtype, p, t) or dtype in ("index", "bool") or s.folded or s.algebra.rings
        s.guard += [has_value(s, p)] if partly else []
        for agrees in element_rules.agreement(s, dtype, p, t):
            s.claim(agrees)
        s.guard = s.guard[:-1] if partly else s.guard
    s.guard.pop()


def with_elements(
    r: Reading, op: str, dtype: str, of_lanes: Vector, f: Applicable, operands: Sequence[Vector]
) -> Vector:
    """A node that an op makes lane by lane, as a tensor, too."""
    if op in ("Add", "Mul"):
        ring(r, dtype)
    return replace(of_lanes, tensor=elementwise(r, f, operands))
