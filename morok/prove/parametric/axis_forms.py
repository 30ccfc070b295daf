"""One form for what rules say of lists of axes, however it is written: loops over items that have one name, and no negations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final

from morok.dsl import syntax as S

OTHER: Final = {"all": "any", "any": "all"}
OPPOSITE: Final = {"==": "!=", "!=": "=="}


def plain(e: S.Expr) -> S.Expr:
    """The same condition: `not any(..)` as `all(not ..)`, and its loops by items."""
    match e:
        case S.EUnary(
            op="not",
            operand=S.ECall(name="all" | "any" as quantifier, args=(S.EComprehension(condition=None) as over,)),
        ):
            return plain(S.ECall(OTHER[quantifier], (replace(over, body=_negated(over.body)),), span=e.span))
        case S.EUnary(op="not", operand=S.ECompare(ops=("==" | "!=",)) as compared):
            return _negated(compared)
        case S.ECall(name="all" | "any", args=(S.EComprehension() as over,)):
            return replace(e, args=(by_items(replace(over, body=plain(over.body))),))
    return e


def _negated(e: S.Expr) -> S.Expr:
    match e:
        case S.ECompare(ops=("==" | "!=" as op,)):
            return replace(e, ops=(OPPOSITE[op],))
        case S.EUnary(op="not"):
            return e.operand
    return S.EUnary("not", e, span=e.span)


def by_items(e: S.EComprehension) -> S.EComprehension:
    """The same loop with one name for an item: `p[0]`, `p[1]` for `i`, `n`; `p` for `a[i]` where i is nothing but its place."""
    if len(e.names) == 2:
        item = S.EName(e.names[0])
        parts = {name: S.EIndex(item, S.ENumber(k, str(k))) for k, name in enumerate(e.names)}
        body, condition = _inside(e, lambda at: parts.get(at.name) if isinstance(at, S.EName) else None)
        return replace(e, body=body, names=e.names[:1], condition=condition)
    match e:
        case S.EComprehension(
            names=(i,), sequence=S.ERange(S.ENumber(value=0), S.ECall("len", (S.EName() as whole,)), False)
        ):
            place = S.EName(i)
            item = S.EName(f"{whole.name}[{i}]")
            body, condition = _inside(e, lambda at: item if at == S.EIndex(whole, place) else None)
            if place not in (*S.walk(body), *(S.walk(condition) if condition else ())):
                return replace(e, body=body, names=(item.name,), sequence=whole, condition=condition)
    return e


def _inside(e: S.EComprehension, change: Callable[[S.Syntax], S.Expr | None]) -> tuple[S.Expr, S.Expr | None]:
    """The body and the condition of a loop, changed."""
    return _changed(e.body, change), _changed(e.condition, change)


def _changed(at: Any, change: Callable[[S.Syntax], S.Expr | None]) -> Any:
    """A tree with other parts, where there is a change for them."""
    if isinstance(at, tuple):
        return tuple([_changed(item, change) for item in at])
    if not isinstance(at, S.Syntax) or isinstance(at, S.Span):
        return at
    found = change(at)
    return (
        found
        if found is not None
        else replace(at, **{f.name: _changed(getattr(at, f.name), change) for f in fields(at)})
    )
