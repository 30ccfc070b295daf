"""Conditions about lists of axes that rules and contracts write as loops over the axes, and what they say of the whole lists."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from morok.dsl import syntax as S
from morok.prove.forms import conjuncts
from morok.prove.parametric.axis_forms import plain


class Difference(NamedTuple):
    """`[p for p in a if all(p[0] != q[0] for q in b)]`: the axes of one list that are not in another."""

    of: S.Expr
    without: S.Expr


class Quantified(NamedTuple):
    """`all(body for names in sequence)`, or `any`."""

    body: S.Expr
    names: tuple[str, ...]
    sequence: S.Expr


def quantified(e: S.Expr | None, quantifier: str) -> Quantified | None:
    """The parts of `all(...)` or `any(...)` over a sequence of which no item is left out, with one name for an item."""
    match e:
        case S.ECall(name=name, args=(S.EComprehension(names=(_,), condition=None) as over,)) if name == quantifier:
            return Quantified(over.body, over.names, over.sequence)
    return None


def _compared(e: S.Expr, op: str) -> tuple[S.Expr, S.Expr] | None:
    """The sides of one comparison by this operator."""
    match e:
        case S.ECompare(ops=(found,), operands=(left, right)) if found == op:
            return left, right
    return None


def difference(e: S.EComprehension) -> Difference | None:
    """The lists of `[p for p in a if all(p[0] != q[0] for q in b)]`."""
    inner = None if e.condition is None else quantified(plain(e.condition), "all")
    sides = None if inner is None else _compared(inner.body, "!=")
    if inner is None or sides is None or len(e.names) != 1 or e.body != S.EName(e.names[0]):
        return None
    (p,), (q,) = e.names, inner.names
    if p == q or {_id_of(side) for side in sides} != {p, q} or p in _names(inner.sequence):
        return None
    return Difference(e.sequence, inner.sequence)


def _id_of(e: S.Expr) -> str:
    """The name x in `x[0]`; else nothing."""
    match e:
        case S.EIndex(sequence=S.EName(name=x), index=S.ENumber(value=0)):
            return x
    return ""


def _pairs(e: S.Expr, quantifier: str, op: str, ids: bool) -> tuple[S.Expr, S.Expr] | None:
    """The lists a and b of `all(QUANTIFIER(p OP q for q in b) for p in a)`, of items or of their ids."""
    outer = quantified(e, "all")
    inner = None if outer is None else quantified(outer.body, quantifier)
    sides = None if inner is None else _compared(inner.body, op)
    if outer is None or inner is None or sides is None:
        return None
    (p,), (q,) = outer.names, inner.names
    if p == q or p in _names(inner.sequence):
        return None
    compared = {_id_of(side) for side in sides} == {p, q} if ids else sides in _both_ways(p, q)
    return (outer.sequence, inner.sequence) if compared else None


def apart(e: S.Expr) -> tuple[S.Expr, S.Expr] | None:
    """The lists a and b of `all(all(p[0] != q[0] for q in b) for p in a)`, which have no axis in common."""
    return _pairs(e, "all", "!=", ids=True)


def among(e: S.Expr) -> tuple[S.Expr, S.Expr] | None:
    """The lists a and b of `all(any(p == q for q in b) for p in a)`: every axis of a is one of b's."""
    return _pairs(e, "any", "==", ids=False)


def all_among(e: S.Expr) -> tuple[S.Expr, S.Expr] | None:
    """The lists parts and c of `all(all(any(p == q for q in c) for p in part) for part in parts)`."""
    outer = quantified(e, "all")
    found = None if outer is None else among(outer.body)
    if outer is None or found is None or found[0] != S.EName(outer.names[0]) or outer.names[0] in _names(found[1]):
        return None
    return outer.sequence, found[1]


def distinct(e: S.Expr) -> S.Expr | None:
    """The list c of `all(all(i == j or c[i][0] != c[j][0] for j in 0..len(c)) for i in 0..len(c))`: no axis is in it twice. For
    j in 0..i there is nothing to say of i == j.
    """
    outer = quantified(e, "all")
    inner = None if outer is None else quantified(outer.body, "all")
    if outer is None or inner is None:
        return None
    (i,), (j,), body = outer.names, inner.names, inner.body
    whole = S.EName(next((p[0] for side in _compared(_last(body), "!=") or () if (p := _place_of(side))), ""))
    sides = [
        (p[1] if (p := _place_of(side)) and p[0] == whole.name else "") for side in _compared(_last(body), "!=") or ()
    ]
    if i == j or whole.name in (i, j) or set(sides) != {i, j} or not _goes_over(outer.sequence, whole):
        return None
    match body:
        case S.EBinary(op="or", left=equal) if _compared(equal, "==") in _both_ways(i, j):
            return whole if _goes_over(inner.sequence, whole) else None
        case S.ECompare():
            return whole if _goes_to(inner.sequence, S.EName(i)) else None
    return None


def _last(e: S.Expr) -> S.Expr:
    """The part of `a or b` that holds where a does not."""
    return e.right if isinstance(e, S.EBinary) and e.op == "or" else e


def _both_ways(i: str, j: str) -> tuple[tuple[S.Expr, S.Expr], ...]:
    return (S.EName(i), S.EName(j)), (S.EName(j), S.EName(i))


def _place_of(e: S.Expr) -> tuple[str, str] | None:
    """The names (c, i) in `c[i][0]`."""
    match e:
        case S.EIndex(sequence=S.EIndex(sequence=S.EName(name=c), index=S.EName(name=i)), index=S.ENumber(value=0)):
            return c, i
    return None


def _goes_over(e: S.Expr, c: S.EName) -> bool:
    """True if the expression is `0..len(c)`."""
    return _goes_to(e, S.ECall("len", (c,)))


def _goes_to(e: S.Expr, end: S.Expr) -> bool:
    """True if the expression is `0..end`."""
    match e:
        case S.ERange(start=S.ENumber(value=0), stop=stop, inclusive=False):
            return bool(stop == end)
    return False


def _closes_nothing(e: S.Expr | None, loop: str) -> bool:
    """True if the condition is `len(axes(loop)) == 0`."""
    match e:
        case S.ECompare(
            ops=("==",),
            operands=(
                S.ECall(name="len", args=(S.ECall(name="axes", args=(S.EName(name=name),)),)),
                S.ENumber(value=0),
            ),
        ):
            return name == loop
    return False


def without_axes(e: S.EComprehension) -> bool:
    """True if the expression is `[r for r in rs if len(axes(r)) == 0]`: the loops that close no axes."""
    return len(e.names) == 1 and e.body == S.EName(e.names[0]) and _closes_nothing(e.condition, e.names[0])


def of_each(e: S.EComprehension) -> bool:
    """True if the expression is `axes(r) for r in rs`: the axes that each loop closes."""
    return len(e.names) == 1 and e.condition is None and e.body == S.ECall("axes", (S.EName(e.names[0]),))


def covered(e: S.Expr) -> tuple[S.Expr, S.Expr] | None:
    """The lists c and parts of `all(any(any(p == q for p in part) for part in parts) for q in c)`: each axis of c is in one."""
    outer = quantified(e, "all")
    middle = None if outer is None else quantified(outer.body, "any")
    inner = None if middle is None else quantified(middle.body, "any")
    sides = None if inner is None else _compared(inner.body, "==")
    if outer is None or middle is None or inner is None or sides is None:
        return None
    (q,), (part,), (p,) = outer.names, middle.names, inner.names
    if len({q, part, p}) < 3 or inner.sequence != S.EName(part) or q in _names(middle.sequence):
        return None
    return (outer.sequence, middle.sequence) if sides in _both_ways(p, q) else None


def asked_of_nodes(rule: S.Rule) -> bool:
    """True if a rule asks for axes of anything but single loops that its pattern names."""
    everything = list(S.walk(rule.pattern, rule.target, *rule.clauses))
    loops = {
        at.value.name
        for at in everything
        if isinstance(at, S.PField) and at.name == "ranges" and isinstance(at.value, S.PVar)
    }
    of_loops: set[int] = set()
    for e in everything:
        match e:
            case S.EComprehension(body=body, names=(x,), sequence=S.EName(name=name), condition=condition) if (
                name in loops
            ):
                of_loops |= {
                    id(at) for part in (body, condition) if part is not None for at in S.walk(part) if _asks_axes(at, x)
                }
    return any(_asks_axes(at) and id(at) not in of_loops for at in everything)


def _asks_axes(at: S.Syntax, name: str | None = None) -> bool:
    """True if the expression is `axes(x)` or `inside(x)`, for this name or for any."""
    if not isinstance(at, S.ECall) or at.name not in ("axes", "inside"):
        return False
    return name is None or (at.name == "axes" and at.args == (S.EName(name),))


def says_no_axes(e: S.Expr, loops: str) -> bool:
    """True if the condition is `all(len(axes(r)) == 0 for r in loops)`, or the same as a sum."""
    found = quantified(all_empty(e) or e, "all")
    return found is not None and found.sequence == S.EName(loops) and _closes_nothing(found.body, found.names[0])


def closes_no_axes(rule: S.Rule, loops: str) -> bool:
    """True if a guard says that no loop of this name closes axes."""
    conditions = (c for clause in rule.clauses if isinstance(clause, S.If) for c in conjuncts(clause.condition))
    return any(says_no_axes(c, loops) for c in conditions)


def all_empty(e: S.Expr) -> S.Expr | None:
    """`all(len(x) == 0 for ..)` for `sum([len(x) for ..]) == 0`: no length is negative."""
    match _compared(e, "=="):
        case (
            S.ECall(name="sum", args=(S.EComprehension(body=S.ECall(name="len")) as over,)),
            S.ENumber(value=0) as zero,
        ):
            return S.ECall("all", (replace(over, body=S.ECompare(("==",), (over.body, zero))),))
    return None


def renumbered(e: S.EComprehension) -> tuple[S.Expr, S.Expr] | None:
    """The target and the lane k of `at(target, i, k) * step(source, i) for i, _n in source`."""
    match e:
        case S.EComprehension(
            body=S.EBinary(
                op="*",
                left=S.ECall(name="at", args=(target, S.EName(name=i), k)),
                right=S.ECall(name="step", args=(of, S.EName(name=j))),
            ),
            names=(axis, length),
            sequence=source,
            condition=None,
        ) if (
            i == j == axis != length and of == source and not {axis, length} & (_names(target) | _names(k) | _names(of))
        ):
            return target, k
    return None


def _names(e: S.Expr) -> set[str]:
    return {at.name for at in S.walk(e) if isinstance(at, S.EName)}
