"""The gate: where rules become a matcher, what nothing vouches for is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from morok.caller import caller
from morok.errors import UnprovedRuleError
from morok.rewrite.parts import Part, Standing

if TYPE_CHECKING:
    from morok.dsl.extent import Limits
    from morok.rewrite.ruleset import RuleSet


def admit(rules: RuleSet) -> None:
    """Let these rules fire: each has a usable verdict, and helpers that keep their contracts. Else UnprovedRuleError, or
    UntrustedHelperError. Nothing is proved here. Those that are unproved by their maker's word pass, and stay marked.
    """
    for part in rules.parts:
        if part.standing is Standing.ASK:
            part.limits = _ask(part)
            part.standing = Standing.ADMITTED


def checking(rules: RuleSet) -> Mapping[str, Limits]:
    """The limits of the built-in rules that fire at every size: under MOROK_CHECK=1 each firing beyond its proof is checked."""
    from morok.prove import ledger

    return ledger.checking(r for p in rules.parts if p.standing is Standing.ADMITTED for r in p.rules())


def _ask(part: Part) -> Mapping[str, Limits]:
    """What the part's rules do beyond the extents of their proofs."""
    from morok.prove import ledger, promises  # lazy: what was admitted when it was loaded does not ask

    records = ledger.admit(part.rules())
    promises.admit(part.rules())
    own = {r.name for r in part.rules() if ledger.is_built_in_rule(r)}
    built_in = ledger.declining({name: r for name, r in records.items() if name in own}, True)
    return built_in | ledger.declining({name: r for name, r in records.items() if name not in own}, False)


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
