"""Rules that may drop the axes of a tensor: they are proved of numbers, and a number has no axes."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from morok.dialect import Dialect
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule

_NUMBERS: Final = (S.PConst, S.PLiteral, S.PType)


def may_drop_axes(rule: CheckedRule, of_axes: Set[str] | None) -> bool:
    """True if the target of a rule may have fewer axes than a tensor that its pattern matches.

    A proof compares the axes of both sides where the root of the pattern is an op that makes or changes axes. At any other root
    it may be a proof about numbers, whatever ops the rule names elsewhere.

    of_axes  these ops; None in a dialect without tensors
    """
    pattern, dialect = rule.syntax.pattern, rule.dialect
    if of_axes is None or _of_axes(pattern, of_axes):
        return False
    return not _kept(pattern, _with_axes(rule.syntax.target, dialect), dialect)


def _of_axes(pattern: S.Pattern, of_axes: Set[str]) -> bool:
    """True if the root of all that a pattern matches is one of these ops."""
    match pattern:
        case S.PBind():
            return _of_axes(pattern.inner, of_axes)
        case S.PAlternatives():
            return all(_of_axes(option, of_axes) for option in pattern.options)
        case S.POp():
            return of_axes >= set(pattern.ops)
        case S.PStruct():
            return pattern.op in of_axes
    return False


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
