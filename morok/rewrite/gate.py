"""The gate: rules become a matcher here, and a rule that nothing vouches for is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from morok.caller import caller
from morok.errors import UnprovedRuleError
from morok.handed import part
from morok.rewrite.parts import Standing

if TYPE_CHECKING:
    from morok.dialect import Dialect
    from morok.dsl.checked import CheckedRule
    from morok.dsl.extent import Limits
    from morok.rewrite.files import RuleFile
    from morok.rewrite.parts import Part
    from morok.rewrite.ruleset import RuleSet


class Gate(Protocol):
    """The authority that vouches for rules: the prover's ledger (morok.prove.admission).

    Limits are what rules decline to do: to fire beyond the extents of their proofs. Of a file's rules they are given by name, of
    others, of which two may have one name, by the place among them.
    """

    def unchanged(self, file: RuleFile) -> Mapping[str, Limits] | None:
        """The limits of a built-in file's rules; None unless these bytes are known to be proved. Nothing is parsed."""

    def compared(self, file: RuleFile) -> Mapping[str, Limits] | None:
        """The same, found out rule by rule, and remembered."""

    def admit(self, rules: Sequence[CheckedRule]) -> Mapping[int, Limits]:
        """The limits of rules that may fire; UnprovedRuleError or UntrustedHelperError. Nothing is proved."""

    def admit_file(self, file: RuleFile, prove: bool, trust_ledger: bool, trust_helpers: bool) -> Mapping[str, Limits]:
        """The limits of the rules of a pack's file, as `load_rules` admits them."""

    def checking(self, rules: Sequence[CheckedRule]) -> Mapping[int, Limits]:
        """The limits of the built-in rules among these that fire at every size: each firing beyond its proof is checked."""

    def verdicts(self, file: RuleFile) -> Mapping[str, str]:
        """The recorded verdicts on the rules of a built-in file, by their own names."""

    def sources(self) -> str:
        """A digest of the files that the built-in dialect's ops and the prover are made of."""

    def dialect_digest(self, dialect: Dialect) -> str:
        """A digest of all that proofs about a foreign dialect may depend on, its own declarations included."""


def gate() -> Gate:
    """The gate that the package hands in (morok/__init__.py); loaded when first asked for."""
    found: Gate = part("gate")
    return found


def admit(rules: RuleSet) -> None:
    """Let these rules fire: each has a usable verdict, and helpers that keep their contracts. Else UnprovedRuleError, or
    UntrustedHelperError. Nothing is proved here. Those that are unproved by their maker's word pass, and stay marked.
    """
    for mine in rules.parts:
        if mine.standing is Standing.ASK:
            mine.limits = gate().admit(mine.rules())
            mine.standing = Standing.ADMITTED


def checking(mine: Part) -> Mapping[int, Limits]:
    """The limits of the built-in rules that fire at every size, by their places: under MOROK_CHECK=1 each firing beyond its proof
    is checked.
    """
    return gate().checking(mine.rules()) if mine.standing is Standing.ADMITTED else {}


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
    for mine in rules.parts:
        if mine.standing is Standing.UNPROVED:
            return mine.names[0]
    inner = (*rules.blocks, *(() if rules.whole is None else (rules.whole,)))
    return _first_unproved(next(r for r in inner if r.unproved))
