"""The lanes of the constants that clauses and target make: where the pattern has no node of as many, those of a node beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Sort


def beside(rule: CheckedRule, operands: Sequence[S.Expr]) -> Mapping[int, S.Expr]:
    """For constants among the operands of an op that works lane by lane, by identity, a node among them of the same type."""
    nodes = {rule.types[id(a)]: a for a in reversed(operands) if id(a) in rule.types and not is_constant(rule, a)}
    return {id(a): nodes[t] for a in operands if (t := rule.types.get(id(a))) in nodes and is_constant(rule, a)}


def is_constant(rule: CheckedRule, e: S.Expr) -> bool:
    """True if an operand is a value that becomes a constant, or has a dtype that the rule states."""
    if isinstance(e, S.ECall) and e.name == "const":
        return isinstance(e.args[1], S.EType)
    return rule.sorts.get(id(e)) in (Sort.VALUE, Sort.OTHER)


def lanes_said(rule: CheckedRule, e: S.Expr, operands: Sequence[S.Expr]) -> int | None:
    """The number of lanes that a constant has whatever is beside it; None where the pattern, or a node beside it, tells."""
    ty = rule.types.get(id(e))
    if ty is None or not is_constant(rule, e):
        return None
    if isinstance(ty.lanes, int):
        return ty.lanes
    return None if ty.lanes in set(_matched(rule)) or id(e) in beside(rule, operands) else 1


def _matched(rule: CheckedRule) -> Iterator[int | str]:
    """The numbers of lanes, or their names, that parts of the pattern have."""
    for p in S.walk(rule.syntax.pattern):
        if (ty := rule.types.get(id(p))) is not None:
            yield ty.lanes
