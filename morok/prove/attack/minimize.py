"""The least rule that is still a finding: guards dropped, terms replaced by their parts, numbers made small."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.errors import RuleError
from morok.prove.attack.candidates import written
from morok.prove.attack.trial import checked

MOST: Final = 60  # rules that are tried on the way


def minimized(rule: CheckedRule, stands: Callable[[CheckedRule], bool]) -> CheckedRule:
    """A rule made from this one, as small as steps of one change make it, of which `stands` is still true."""
    left = MOST
    while left > 0:
        for changed in smaller(rule.syntax):
            left -= 1
            if left < 0:
                break
            try:
                made = checked(written(rule, changed))
            except RuleError:
                continue
            if stands(made):
                rule = made
                break
        else:
            break
    return rule


def smaller(rule: S.Rule) -> Iterator[S.Rule]:
    """Rules with one thing less, the largest steps first."""
    for i in range(len(rule.clauses)):
        yield dataclasses.replace(rule, clauses=(*rule.clauses[:i], *rule.clauses[i + 1 :]))
    for name in ("pattern", "target"):
        for changed in _reduced(getattr(rule, name)):
            yield dataclasses.replace(rule, **{name: changed})
    for i, clause in enumerate(rule.clauses):
        for changed in _reduced(clause):
            yield dataclasses.replace(rule, clauses=(*rule.clauses[:i], changed, *rule.clauses[i + 1 :]))


def _reduced(tree: Any) -> Iterator[Any]:
    """The tree with one of its parts replaced by a part of that, or by a smaller number."""
    if isinstance(tree, (S.Pattern, S.Expr)):
        yield from (c for c in S.children(tree) if isinstance(c, S.Pattern if isinstance(tree, S.Pattern) else S.Expr))
    if isinstance(tree, (S.ENumber, S.PLiteral)) and type(tree.value) is int and abs(tree.value) > 1:
        for v in (1, tree.value // 2, tree.value - 1 if tree.value > 0 else tree.value + 1):
            yield dataclasses.replace(tree, value=v, text=str(v))
    for field in tree.__dataclass_fields__:
        value = getattr(tree, field)
        if isinstance(value, S.Syntax) and not isinstance(value, (S.Span, S.TypeSyntax)):
            yield from (dataclasses.replace(tree, **{field: changed}) for changed in _reduced(value))
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, S.Syntax) and not isinstance(item, (S.Span, S.TypeSyntax)):
                    yield from (
                        dataclasses.replace(tree, **{field: (*value[:i], changed, *value[i + 1 :])})
                        for changed in _reduced(item)
                    )
