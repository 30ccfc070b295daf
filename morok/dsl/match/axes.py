"""Rules that may drop the axes of a tensor: they are proved of numbers, and a number has no axes."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from morok.dialect import Dialect, Tensors
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule

_NUMBERS: Final = (S.PConst, S.PLiteral, S.PType)


def may_drop_axes(rule: CheckedRule) -> bool:
    """True if the target of a rule may have fewer axes than a tensor that its pattern matches. Rules that name an op that makes
    axes, or changes them, are proved of tensors.
    """
    pattern, clauses, target = rule.syntax.pattern, rule.syntax.clauses, rule.syntax.target
    dialect = rule.dialect
    if not isinstance(dialect, Tensors) or not dialect.of_axes.isdisjoint(S.ops_named(pattern, *clauses, target)):
        return False
    return not _kept(pattern, _with_axes(target, dialect), dialect)


def _elementwise(dialect: Dialect, ops: tuple[str, ...]) -> bool:
    return all(dialect.ops[op].params for op in ops)


def _kept(pattern: S.Pattern, names: Set[str], dialect: Dialect) -> bool:
    """True if what is bound to these names has all axes of a match."""
    match pattern:
        case S.PVar():
            return pattern.name in names
        case S.PBind():
            return pattern.name in names or _kept(pattern.inner, names, dialect)
        case S.PAlternatives():
            return all(_kept(option, names, dialect) for option in pattern.options)
        case S.POp():
            return _elementwise(dialect, pattern.ops) and all(_kept(a, names, dialect) for a in pattern.args)
    return isinstance(pattern, _NUMBERS)


def _with_axes(target: S.Expr, dialect: Dialect) -> frozenset[str]:
    """The names in a target whose axes it has."""
    if isinstance(target, S.EName):
        return frozenset({target.name})
    if isinstance(target, S.ECall) and target.name in dialect.ops and _elementwise(dialect, (target.name,)):
        return frozenset().union(*[_with_axes(a, dialect) for a in target.args])
    return frozenset()


__all__ = ["may_drop_axes"]
