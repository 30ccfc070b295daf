"""The calls of helpers in rules: what their arguments are made up for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule


class UnmadeError(Exception):
    """The reason that no arguments can be made up."""


@dataclass(frozen=True, slots=True)
class Site:
    """One call of a helper in a rule."""

    rule: CheckedRule
    call: S.ECall

    def any_node(self, a: S.Expr) -> bool:
        """True if an argument is a variable of the pattern, which says of it no more than its dtype."""
        if not isinstance(a, S.EName):
            return False
        named = [at for at in S.walk(self.rule.syntax.pattern) if getattr(at, "name", None) == a.name]
        return bool(named) and not any(isinstance(at, (S.PBind, S.PSequence)) for at in named)


def sites(name: str, rules: Sequence[CheckedRule]) -> list[Site]:
    """The places where rules call a helper."""
    found = []
    for rule in rules:
        for at in S.walk(*rule.syntax.clauses, rule.syntax.target):
            if isinstance(at, S.ECall) and at.name == name:
                found.append(Site(rule, at))
    return found
