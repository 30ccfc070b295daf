"""Folds over axes of tensors: functions of what an element is at every index along these axes.

An element of a fold is one value for a box of indices and the element at each. Two are the same if their boxes are, and the
elements at each index (docs/ops.md: a fold has an order, which depends on nothing but its op and what is folded). Of integers and
truths the order means nothing, so that their folds may be taken apart, joined and gone through otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.kinds import Parts
from morok.prove.parametric import folds, kept_axes, laws
from morok.prove.parametric.op_functions import exact, function, ring
from morok.prove.parametric.polynomials import INT, Integer, integer, within
from morok.prove.parametric.rule_values import Folded, Folding, Indices, Items, Remaining, Tensor, items
from morok.prove.parametric.rule_values import number as as_number
from morok.prove.parametric.sequences import behind, chosen, listed
from morok.prove.parametric.setting import Setting
from morok.prove.parametric.static_fields import written
from morok.prove.parametric.tensors import NOWHERE, each
from morok.prove.rule_syntax import ops_of
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Applicable, Expr
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def reduced(r: Reading, parts: Parts, x: Tensor, dtype: str) -> Tensor:
    """A tensor folded over some of its axes, which are gone."""
    s = r.setting
    by = folding(r, folds.op_of(r, parts), dtype)
    axes, parts_of_axes = _axes(r, parts["axes"])
    if axes.length.known == 0:  # of one element, combined with what adds nothing
        return x
    each(r, axes.length, lambda k: within(_at(axes, k), 0, x.rank))
    distinct = smt.TRUE
    if r.part != "pattern" and kept_axes.known(s, x.rank, axes, parts_of_axes) is None:
        if not r.surely:
            raise Unsupported("a fold that a condition makes, or every item of a sequence")
        if axes.length.known != 1:
            distinct = _claim_distinct(r, axes)
    kept = kept_axes.without(s, x.rank, axes, parts_of_axes, distinct)
    if distinct is not smt.TRUE:  # axes are left only if the claims hold that were made so far
        s.supposed.append(distinct)

    def element(i: Indices, absent: Expr) -> Expr:
        if absent is NOWHERE:
            raise Unsupported("a place of what is computed")

        def of(b: Indices) -> Expr:
            return x.element(
                lambda p: b(p) if kept.gone(p) is smt.TRUE else chosen(kept.gone(p), b(p), i(kept.place(p))), absent
            )

        return fold(s, by, kept, x.size, of)

    return Tensor(kept.count, lambda j: x.size(kept.axis(j)), element)


def _at(axes: Items, k: Integer) -> Integer:
    return as_number(axes.at(k))


def _claim_distinct(r: Reading, axes: Items) -> Expr:
    """Claim that no axis is listed twice; the truth of which further claims may suppose."""
    s = r.setting
    j, k = s.probe("item"), s.probe("item")
    with s.where(s.below(j, axes.length), s.below(k, axes.length)):
        r.claim(smt.Implies(_at(axes, j).term == _at(axes, k).term, j.term == k.term))
    return smt.Bool(s.symbol("distinct"))


def _axes(r: Reading, part: Any) -> tuple[Items, list[Items]]:
    """A list of axes, and the lists that it consists of: of a pattern any."""
    if isinstance(part, S.PVar) and part.name not in r.names:
        f, length = (
            smt.Function(r.symbol(part.name), INT, INT),
            integer(smt.Int(Symbol("item", r.symbol(part.name), "length"))),
        )
        r.setting.premise(length.term >= 0)
        made = Items(r.setting.count(length), lambda k: integer(f(k.term)))
        return (made if part.ignored else r.bind(part.name, made)), [made]
    if r.part == "pattern" and isinstance(part, (S.PList, S.EList)):
        made = listed([written(r, i, INT) for i in part.items])
        return made, [made]
    value = r.value(S.EName(part.name) if isinstance(part, S.PVar) else getattr(part, "value", part))
    given = value if isinstance(value, list) else [value]
    parts = [listed([v]) if isinstance(v, Integer) else items(v) for v in given]
    together = behind(r.setting, parts)
    return Items(together.length, lambda k: _at(together, k)), parts


def folding(r: Reading, op: str, dtype: str) -> Folding:
    """The way in which an op folds values of a dtype."""
    nothing = folds.nothing(r, op, dtype)
    if op not in folds.REGROUPING or not (exact(r, dtype) or folds.compares(r, op, dtype)):
        return Folding(op, dtype, nothing)
    combine = folds.combining(r, op, dtype)
    outward = _outward(r, op, dtype)
    found = ring(r, dtype)
    if op == "Add" and found is not None:
        times, zero = found
        return Folding(op, dtype, zero, combine, times if "Mul" in ops_of(r.rule) else None, outward=outward)
    return Folding(op, dtype, nothing, combine, idempotent=op in ("Max", "Min") or dtype == "bool", outward=outward)


def _outward(r: Reading, op: str, dtype: str) -> dict[Applicable, Callable[[], Folding]]:
    """The functions of one operand that may be computed of a fold, of another op or the same, instead of its elements."""
    return {
        function(r, g, [dtype]): partial(folding, r, of, dtype)
        for g, of in folds.taken_out(r, op, dtype).items()
        if g in ops_of(r.rule) and len(r.rule.dialect.ops[g].params) == 1
    }


def fold(
    s: Setting, by: Folding, kept: Remaining, size: Indices, element: Callable[[Indices], Expr], part: bool = False
) -> Expr:
    """The value of a fold of elements over the axes that are gone: the same for the same elements."""
    with s.indices() as b, s.anywhere() as p:
        key = (by.op, by.dtype, kept.rank.term, kept.gone(p), size(p).term, element(b))
    found = s.folds.get(key)
    if found is None:
        found = s.folds[key] = smt.Const(s.symbol("fold"), laws.VALUE)
        s.folded[found] = Folded(by, kept, size, element, part, s.within)
    s.folded[found].sides.update(s.sides)
    return found


__all__ = ["fold", "folding", "reduced"]
