"""What helpers give, at every size: what their contracts promise of it, as far as that is understood, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.freedom import conjuncts
from morok.prove.parametric import expressions, laws
from morok.prove.parametric.integers import INT, Integer, integer
from morok.prove.parametric.values import AxisList, Items
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def result(r: Reading, extern: S.Extern, arguments: list[Any]) -> Any:
    """What a call of a helper gives: several results as a tuple."""
    given = {p.name: a for p, a in zip(extern.params, arguments, strict=True)}
    defined = _definition(extern)
    if defined is not None:
        return _under(r, given, r.guarding, lambda: expressions.value(r, defined))
    made = tuple(_unknown(r, extern, p) for p in extern.results)
    names = given | {p.name: v for p, v in zip(extern.results, made, strict=True)}
    for promise in extern.ensures:
        for c in conjuncts(promise):
            try:
                premise = _under(r, names, True, lambda c=c: _promised(r, c))  # type: ignore[misc]
            except Unsupported:
                continue
            if premise is not None:
                r.setting.premise(premise)
    return made if len(made) > 1 else made[0]


def _definition(extern: S.Extern) -> S.Expr | None:
    """What the only result of a helper is, where its contract says that: `ensures r == expression`."""
    if len(extern.results) != 1 or extern.partial:
        return None
    for e in extern.ensures:
        match e:
            case S.ECompare(ops=("==",), operands=(S.EName(name=name), value)) if name == extern.results[0].name:
                return value
    return None


def _under(r: Reading, names: dict[str, Any], guarding: bool, read: Callable[[], Any]) -> Any:
    """The value of what is read where the names of a contract stand for these."""
    before, r.names = r.names, names
    was, r.guarding = r.guarding, guarding
    try:
        return read()
    finally:
        r.names, r.guarding = before, was


def _unknown(r: Reading, extern: S.Extern, p: S.Param) -> Any:
    kind = getattr(p.type, "name", "")
    what = f"{extern.name}.{p.name}"
    if kind == "int":
        return r.setting.unknown(what)
    if kind == "bool":
        return smt.Bool(r.setting.symbol(what))
    if kind == "seq":
        if _is_of_axes(extern, p.name):
            return AxisList((smt.Const(r.setting.symbol(what), laws.AXES),))
        f = smt.Function(r.setting.symbol(what), INT, INT)
        length = r.setting.count(r.setting.unknown(f"{what} length"))
        r.setting.premise(length.term >= 0)
        return Items(length, lambda k: integer(f(k.term)))
    raise Unsupported(f"{extern.name}, which gives a node")


def _is_of_axes(extern: S.Extern, name: str) -> bool:
    """Truth of a contract asking a result for the ids of axes, `c[i][0]`."""
    for e in S.walk(*extern.ensures):
        match e:
            case S.EIndex(sequence=S.EIndex(sequence=S.EName(name=n))) if n == name:
                return True
    return False


def _promised(r: Reading, e: S.Expr) -> Expr | None:
    """What a promise says: of sets of axes, or in general."""
    match e:
        case S.ECall(
            name="all",
            args=(
                S.EComprehension(
                    body=S.ECall(name="all", args=(S.EComprehension() as inner,)),
                    names=(part,),
                    sequence=parts,
                    condition=None,
                ),
            ),
        ):
            among = _among(inner)
            if among is not None and among[0] == part:
                return _all_among(r, expressions.value(r, parts), expressions.axes(r, S.EName(among[1])))
            distinct = _distinct(e)
            if distinct is not None:
                return smt.And(*(laws.DISTINCT(a) for a in expressions.axes(r, S.EName(distinct)).parts))
    return expressions.truth(r, e)


def _among(e: S.EComprehension) -> tuple[str, str] | None:
    """`any(p == q for q in c) for p in part`: (part, c)."""
    match e:
        case S.EComprehension(
            body=S.ECall(
                name="any",
                args=(
                    S.EComprehension(
                        body=S.ECompare(ops=("==",), operands=(S.EName(name=a), S.EName(name=b))),
                        names=(q,),
                        sequence=S.EName(name=c),
                        condition=None,
                    ),
                ),
            ),
            names=(p,),
            sequence=S.EName(name=part),
            condition=None,
        ) if {a, b} == {p, q} and p != q and c not in (p, q):
            return part, c
    return None


def _distinct(e: S.Expr) -> str | None:
    """`all(all(i == j or c[i][0] != c[j][0] for j in 0..len(c)) for i in 0..len(c))`: c."""
    match e:
        case S.ECall(
            args=(
                S.EComprehension(
                    body=S.ECall(
                        args=(
                            S.EComprehension(
                                body=S.EBinary(
                                    op="or",
                                    left=S.ECompare(ops=("==",), operands=(S.EName(name=i1), S.EName(name=j1))),
                                    right=S.ECompare(
                                        ops=("!=",),
                                        operands=(
                                            S.EIndex(sequence=S.EIndex(sequence=S.EName(name=c1), index=S.EName(name=i2)), index=S.ENumber(value=0)),
                                            S.EIndex(sequence=S.EIndex(sequence=S.EName(name=c2), index=S.EName(name=j2)), index=S.ENumber(value=0)),
                                        ),
                                    ),
                                ),
                                names=(j,),
                                sequence=inner,
                                condition=None,
                            ),
                        )
                    ),
                    names=(i,),
                    sequence=outer,
                    condition=None,
                ),
            )
        ) if {i1, j1} == {i2, j2} == {i, j} and i != j and c1 == c2 and _all_places(inner, c1) and _all_places(outer, c1):
            return c1
    return None


def _all_places(e: S.Expr, c: str) -> bool:
    match e:
        case S.ERange(start=S.ENumber(value=0), stop=S.ECall(name="len", args=(S.EName(name=name),)), inclusive=False):
            return name == c
    return False


def _all_among(r: Reading, parts: Any, c: AxisList) -> Expr | None:
    """Every axis of each of these lists is one of c's: of a sequence of lists that is said at every place."""
    whole = r.setting.together(c.parts)
    found: list[Expr] = []
    for part in parts if isinstance(parts, list) else [parts]:
        if isinstance(part, AxisList):
            found += [laws.AMONG(a, whole) for a in part.parts]
        elif isinstance(part, Items) and part.length.known is not None:
            for k in range(part.length.known):
                found += [laws.AMONG(a, whole) for a in expressions.axis_list_or_none(part.at(integer(k))).parts]
        elif isinstance(part, Items):
            r.setting.for_all(part.length, lambda k, p=part: _axes_among(p, k, whole))  # type: ignore[misc]
        else:
            raise Unsupported("lists of axes of no known kind")
    return smt.And(*found) if found else None


def _axes_among(part: Items, k: Integer, whole: Expr) -> Expr:
    return smt.And(*(laws.AMONG(a, whole) for a in expressions.axis_list_or_none(part.at(k)).parts))
