"""The gate that rules pass before they become a matcher: it refuses rules without a usable verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from morok.arguments import shown
from morok.caller import caller
from morok.dialect import Dialect
from morok.errors import DialectError, UnprovedRuleError
from morok.handed import part
from morok.rewrite.parts import Standing

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedRule
    from morok.dsl.extent import Extents
    from morok.rewrite.files import RuleFile
    from morok.rewrite.ruleset import RuleSet


class Gate(Protocol):
    """The authority that admits rules: the prover's ledger (morok.prove.admission).

    Limits are extents beyond which a rule must not fire, because its proof does not reach further. They are keyed by rule name
    for a file, and by position for other sequences of rules, in which two rules may have the same name.
    """

    def unchanged(self, file: RuleFile) -> Mapping[str, Extents] | None:
        """The limits of a built-in file's rules; None unless exactly this content has been proved. Nothing is parsed."""

    def compared(self, file: RuleFile) -> Mapping[str, Extents] | None:
        """The same by a comparison with the ledger rule by rule; None unless all are proved. The result is remembered."""

    def admit(self, rules: Sequence[CheckedRule]) -> Mapping[int, Extents]:
        """The limits of rules by position; UnprovedRuleError or UntrustedHelperError if one may not fire. Nothing is proved."""

    def admit_file(self, file: RuleFile, prove: bool, trust_ledger: bool, trust_helpers: bool) -> Mapping[str, Extents]:
        """The limits of the rules of a pack's file; the flags and the errors are those of `load_rules`."""

    def verdicts(self, file: RuleFile) -> Mapping[str, str]:
        """The recorded verdicts on the rules of a built-in file, by rule name."""

    def sources(self) -> str:
        """A digest of the source files of the built-in dialect's ops and of the prover."""

    def dialect_digest(self, dialect: Dialect) -> str:
        """A digest of all that proofs about a foreign dialect may depend on, including its declarations."""


def gate() -> Gate:
    """The gate that morok/__init__.py hands in; loaded on first use."""
    found: Gate = part("gate")
    return found


def admit(rules: RuleSet, meant: str) -> None:
    """Let these rules fire. UnprovedRuleError if a rule has no usable verdict; UntrustedHelperError if it calls a helper that may
    not run; DialectError if the dialect has changed since rules were admitted. Nothing is proved here. Rules of sets made with
    unproved=True pass and stay marked as unproved.

    meant  the digest of their dialect as it is now (morok.rewrite.files.dialect_digest)
    """
    for mine in rules.parts:
        if mine.standing is Standing.ASK:
            mine.limits = gate().admit(mine.rules())
            mine.meant = meant
            mine.standing = Standing.ADMITTED
        elif mine.standing is Standing.ADMITTED and mine.meant not in ("", meant):
            what = f"dialect {shown(rules.dialect.name)} has changed since its rule {mine.names[0]} was admitted"
            expected = "the dialect that the rules were proved for"
            hint = "load the rules again with load_rules(..)"
            raise DialectError(what, place=caller(), expected=expected, hint=hint)


def admit_proved(rules: RuleSet, meant: str) -> None:
    """Let these rules fire in a pipeline, which takes no unproved rules: UnprovedRuleError for one. `meant` as for `admit`."""
    refuse_unproved(rules)
    admit(rules, meant)


def refuse_unproved(rules: RuleSet) -> None:
    """UnprovedRuleError for a set that was made with unproved=True, or has such a part."""
    if rules.unproved:
        what = f"rule {_first_unproved(rules)} belongs to a set made with unproved=True"
        hint = "an unproved set supports only `rewrite_node` and `apply`, on one node; load_rules(..) proves the rules of a file"
        expected = "proved rules, as load_rules(..) returns them"
        raise UnprovedRuleError(what, place=caller(), expected=expected, hint=hint)


def _first_unproved(rules: RuleSet) -> str:
    """The name of the first unproved rule of a set that has one."""
    for mine in rules.parts:
        if mine.standing is Standing.UNPROVED:
            return mine.names[0]
    inner = (*rules.blocks, *(() if rules.whole is None else (rules.whole,)))
    return _first_unproved(next(r for r in inner if r.unproved))
