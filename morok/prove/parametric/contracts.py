"""The results of helpers at every size: what their contracts promise of it, as far as that is understood, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.encoding.freedom import conjuncts
from morok.prove.parametric import laws
from morok.prove.parametric.integers import INT, integer
from morok.prove.parametric.values import AxisList, Items
from morok.prove.semantics.term import Unsupported

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def result(r: Reading, extern: S.Extern, arguments: list[Any]) -> Any:
    """The result of a call of a helper: several as a tuple."""
    given = {p.name: a for p, a in zip(extern.params, arguments, strict=True)}
    for needed in extern.requires:
        if r.guarding:
            raise Unsupported(f"{extern.name} in a condition, where it may not be called")
        r.claim(_under(r, given, True, r.truth, needed))
    defined = _definition(extern)
    if defined is not None:
        return _under(r, given, r.guarding, r.value, defined)
    made = tuple(_unknown(r, extern, p) for p in extern.results)
    names = given | {p.name: v for p, v in zip(extern.results, made, strict=True)}
    for promise in extern.ensures:
        for c in conjuncts(promise):
            try:
                premise = _under(r, names, True, r.truth, c)
            except Unsupported:
                continue
            r.setting.premise(premise)
    return made if len(made) > 1 else made[0]


def _definition(extern: S.Extern) -> S.Expr | None:
    """The only result of a helper, where its contract says that: `ensures r == expression`."""
    if len(extern.results) != 1 or extern.partial:
        return None
    for e in extern.ensures:
        match e:
            case S.ECompare(ops=("==",), operands=(S.EName(name=name), value)) if name == extern.results[0].name:
                return value
    return None


def _under(r: Reading, names: dict[str, Any], guarding: bool, read: Callable[[S.Expr], Any], e: S.Expr) -> Any:
    """An expression of a contract, read where its names stand for these."""
    before, r.names = r.names, names
    was, r.guarding = r.guarding, guarding
    try:
        return read(e)
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
