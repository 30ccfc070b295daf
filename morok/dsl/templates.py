"""`for op in binary [Add, Mul] { rules }`: the rules written out, once per op."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from morok.dialect import Dialect
from morok.dsl import syntax as S


@lru_cache(maxsize=64)
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name != "span")


def substitute(node: Any, name: str, op: str) -> Any:
    """`node` with `op` in place of the template variable `name`; parts that do not mention it are the same objects."""
    if isinstance(node, tuple):
        items = tuple(substitute(i, name, op) for i in node)
        return node if all(a is b for a, b in zip(items, node, strict=True)) else items
    if not isinstance(node, S.Syntax):
        return node
    changed: dict[str, Any] = {}
    kind: Any = type(node)
    for f in _field_names(kind):
        old = getattr(node, f)
        if old.__class__ is str:
            # the places where an op is named; a rule or a binding keeps its name
            mentions = old == name and ((isinstance(node, S.EName | S.ECall | S.PVar) and f == "name") or f == "op")
            new: Any = op if mentions and not isinstance(node, S.EBinary | S.EUnary) else old
        elif f == "ops" and isinstance(node, S.POp):
            new = tuple(op if o == name else o for o in old)
            new = old if new == old else new
        else:
            new = substitute(old, name, op)
        if new is not old:
            changed[f] = new
    return replace(node, **changed) if changed else node


def ops_of(template: S.Template, dialect: Dialect) -> tuple[str, ...]:
    """The ops of a template: those it lists, or all of its kind."""
    return template.ops or tuple(n for n, info in dialect.ops.items() if info.kind == template.kind)


def expand(template: S.Template, dialect: Dialect) -> Iterator[tuple[S.Rule, str]]:
    """(rule, suffix of its name) for each op; within an op in the written order."""
    for op in ops_of(template, dialect):
        for rule in template.rules:
            yield substitute(rule, template.variable, op), op
