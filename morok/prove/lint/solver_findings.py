"""Findings about the rules of a file, as the solver answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedFile, CheckedGroup, CheckedRule
from morok.dsl.syntax_text import expr_text
from morok.errors import EndlessGroupError, IdleGuardError, LintError, SelfMatchingRuleError, ShadowedRuleError
from morok.prove.lint import questions
from morok.prove.lint.termination import unordered

# class, message, span, hint
Finding = tuple[type[LintError], str, S.Span, str]


def solver_findings(checked: CheckedFile) -> list[Finding]:
    """Every finding in a file, in the order of its lines: one for all rules that a template makes."""
    found: dict[tuple[Any, ...], Finding] = {}
    for group in checked.groups:
        written = next((g for g in checked.syntax.groups if g.name == group.name), None)
        for finding in (*_rules(group), *_ends(group, written.ends if written is not None else ())):
            kind, message, span, _ = finding
            found.setdefault((kind, span.line, message), finding)
    return sorted(found.values(), key=lambda f: (f[2].line, f[2].column))


def _rules(group: CheckedGroup) -> Iterator[Finding]:
    for number, rule in enumerate(group.rules):
        own = rule.syntax.name
        for condition, how in questions.guards(rule):
            text = expr_text(condition)
            if how == "always":
                message = f"`{text}` always holds where the pattern has a value and the guards before it hold"
                yield IdleGuardError, message, condition.span, "leave it out"
            else:
                yield IdleGuardError, f"`{text}` never holds here", condition.span, "leave it out, or repair it"
        if questions.returns(rule):
            message = f"`{own}` applies to its own result, again and again"
            yield SelfMatchingRuleError, message, rule.syntax.span, "add a guard that its target fails"
        for above in group.rules[:number]:
            if questions.covers(above, rule):
                message = f"`{own}` never applies: `{above.own}` (line {above.line}) applies wherever it would"
                yield ShadowedRuleError, message, rule.syntax.span, "put it first, or remove it"
                break


def _named(rule: CheckedRule, group: CheckedGroup, name: str) -> bool:
    """True if a name of the file means a rule: its own, or that of its `for` block."""
    own = rule.own.removeprefix(group.name + ".")
    return own == name or own.startswith(name + ".")


def _ends(group: CheckedGroup, said: tuple[S.Ends, ...]) -> Iterator[Finding]:
    open_rules = unordered(group.rules)
    names = {name for e in said for name in e.names}
    for rule in open_rules:
        if not any(_named(rule, group, name) for name in names):
            message = f"nothing shows that the group {group.name} comes to an end with `{rule.syntax.name}`: no measure orders it"
            hint = f'if it ends for another reason, say so below the head of the group: @ends {rule.syntax.name} "why"'
            yield EndlessGroupError, message, rule.syntax.span, hint
    for e in said:
        for name in e.names:
            if not any(_named(rule, group, name) for rule in group.rules):
                yield (
                    EndlessGroupError,
                    f"there is no rule `{name}` in the group {group.name}",
                    e.span,
                    "remove the name",
                )
            elif not any(_named(rule, group, name) for rule in open_rules):
                message = f"`{name}` needs no reason to end: a measure orders it"
                yield EndlessGroupError, message, e.span, "remove the name"
