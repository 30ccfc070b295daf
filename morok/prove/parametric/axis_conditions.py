"""Conditions about lists of axes that rules and contracts write as loops over the axes, and what they say of the whole lists."""

from __future__ import annotations

from typing import NamedTuple

from morok.dsl import syntax as S


class Difference(NamedTuple):
    """`[p for p in a if all(p[0] != q[0] for q in b)]`: the axes of one list that are not in another."""

    of: S.Expr
    without: S.Expr


def difference(e: S.EComprehension) -> Difference | None:
    match e:
        case S.EComprehension(
            body=S.EName(name=kept),
            names=(p,),
            sequence=of,
            condition=S.ECall(
                name="all",
                args=(
                    S.EComprehension(
                        body=S.ECompare(ops=("!=",), operands=(left, right)), names=(q,), sequence=without, condition=None
                    ),
                ),
            ),
        ) if kept == p and p != q and {_id_of(left), _id_of(right)} == {p, q} and p not in _names(without):
            return Difference(of, without)
    return None


def _id_of(e: S.Expr) -> str:
    """The name x in `x[0]`; else nothing."""
    match e:
        case S.EIndex(sequence=S.EName(name=x), index=S.ENumber(value=0)):
            return x
    return ""


def apart(e: S.Expr) -> tuple[S.Expr, S.Expr] | None:
    """The lists a and b of `all(all(i != j for j, _m in b) for i, _n in a)`, which have no axis in common."""
    match e:
        case S.ECall(
            name="all",
            args=(
                S.EComprehension(
                    body=S.ECall(
                        name="all",
                        args=(
                            S.EComprehension(
                                body=S.ECompare(ops=("!=",), operands=(S.EName(name=x), S.EName(name=y))),
                                names=(j, m),
                                sequence=b,
                                condition=None,
                            ),
                        ),
                    ),
                    names=(i, n),
                    sequence=a,
                    condition=None,
                ),
            ),
        ) if {x, y} == {i, j} and len({i, j, m, n}) == 4 and not {i, n} & _names(b):
            return a, b
    return None


def among(e: S.Expr) -> tuple[S.Expr, S.Expr] | None:
    """The lists a and b of `all(any(p == q for q in b) for p in a)`: every axis of a is one of b's."""
    match e:
        case S.ECall(
            name="all",
            args=(
                S.EComprehension(
                    body=S.ECall(
                        name="any",
                        args=(
                            S.EComprehension(
                                body=S.ECompare(ops=("==",), operands=(S.EName(name=x), S.EName(name=y))),
                                names=(q,),
                                sequence=b,
                                condition=None,
                            ),
                        ),
                    ),
                    names=(p,),
                    sequence=a,
                    condition=None,
                ),
            ),
        ) if {x, y} == {p, q} and p != q and p not in _names(b):
            return a, b
    return None


def all_among(e: S.Expr) -> tuple[S.Expr, S.Expr] | None:
    """The lists parts and c of `all(all(any(p == q for q in c) for p in part) for part in parts)`."""
    match e:
        case S.ECall(name="all", args=(S.EComprehension(body=inner, names=(part,), sequence=parts, condition=None),)) if (
            (found := among(inner)) is not None and found[0] == S.EName(part) and part not in _names(found[1])
        ):
            return parts, found[1]
    return None


def distinct(e: S.Expr) -> S.Expr | None:
    """The list c of `all(all(i == j or c[i][0] != c[j][0] for j in 0..len(c)) for i in 0..len(c))`: no axis is in it twice."""
    match e:
        case S.ECall(
            name="all",
            args=(
                S.EComprehension(
                    body=S.ECall(
                        name="all",
                        args=(
                            S.EComprehension(
                                body=S.EBinary(
                                    op="or",
                                    left=S.ECompare(ops=("==",), operands=(S.EName(name=x), S.EName(name=y))),
                                    right=S.ECompare(ops=("!=",), operands=(left, right)),
                                ),
                                names=(j,),
                                sequence=inner,
                                condition=None,
                            ),
                        ),
                    ),
                    names=(i,),
                    sequence=outer,
                    condition=None,
                ),
            ),
        ):
            c, d = _place_of(left), _place_of(right)
            if c is None or d is None or c[0] != d[0] or i == j or {x, y} != {i, j} or {c[1], d[1]} != {i, j}:
                return None
            whole = S.EName(c[0])
            if c[0] not in (i, j) and _goes_over(inner, whole) and _goes_over(outer, whole):
                return whole
    return None


def _place_of(e: S.Expr) -> tuple[str, str] | None:
    """The names (c, i) in `c[i][0]`."""
    match e:
        case S.EIndex(sequence=S.EIndex(sequence=S.EName(name=c), index=S.EName(name=i)), index=S.ENumber(value=0)):
            return c, i
    return None


def _goes_over(e: S.Expr, c: S.EName) -> bool:
    """Truth of `0..len(c)`."""
    match e:
        case S.ERange(start=S.ENumber(value=0), stop=S.ECall(name="len", args=(name,)), inclusive=False):
            return bool(name == c)
    return False


def without_axes(e: S.EComprehension) -> bool:
    """Truth of `[r for r in rs if len(axes(r)) == 0]`: the loops that close no axes."""
    match e:
        case S.EComprehension(
            body=S.EName(name=kept),
            names=(r,),
            condition=S.ECompare(
                ops=("==",),
                operands=(
                    S.ECall(name="len", args=(S.ECall(name="axes", args=(S.EName(name=one),)),)),
                    S.ENumber(value=0),
                ),
            ),
        ):
            return kept == r == one
    return False


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
        ) if i == j == axis != length and of == source and not {axis, length} & (_names(target) | _names(k) | _names(of)):
            return target, k
    return None


def _names(e: S.Expr) -> set[str]:
    return {at.name for at in S.walk(e) if isinstance(at, S.EName)}
