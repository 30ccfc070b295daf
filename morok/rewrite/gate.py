"""The gate: where rules become a matcher, what nothing vouches for is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morok.caller import caller
from morok.errors import UnprovedRuleError
from morok.rewrite.parts import Part, Standing

if TYPE_CHECKING:
    from morok.rewrite.ruleset import RuleSet


def admit(rules: RuleSet) -> None:
    """Let these rules fire: each has a usable verdict, and helpers that keep their contracts. Else UnprovedRuleError, or
    UntrustedHelperError. Nothing is proved here. Those that are unproved by their maker's word pass, and stay marked.
    """
    for part in rules.parts:
        if part.standing is Standing.ASK:
            _ask(part)
            part.standing = Standing.ADMITTED


def _ask(part: Part) -> None:
    from morok.prove import ledger, promises  # lazy: what was admitted when it was loaded does not ask

    ledger.admit(part.rules())
    promises.admit(part.rules())


def admit_proved(rules: RuleSet) -> None:
    """The same for a pipeline, which takes no unproved rules."""
    refuse_unproved(rules)
    admit(rules)


def refuse_unproved(rules: RuleSet) -> None:
    """UnprovedRuleError for rules that are unproved by their maker's word."""
    if rules.unproved:
        what = f"rule {_first_unproved(rules)} is of a set that was made with unproved=True"
        hint = "such a set serves `rewrite_node` and `apply`, one node at a time; load_rules(..) proves what a file says"
        expected = "rules that the ledger vouches for, as load_rules(..) gives them"
        raise UnprovedRuleError(what, place=caller(), expected=expected, hint=hint)


def _first_unproved(rules: RuleSet) -> str:
    """The name of a rule that is unproved by its maker's word, in a set that has one."""
    for part in rules.parts:
        if part.standing is Standing.UNPROVED:
            return part.names[0]
    inner = (*rules.blocks, *(() if rules.whole is None else (rules.whole,)))
    return _first_unproved(next(r for r in inner if r.unproved))
