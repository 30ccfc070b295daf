"""Admission of rules: what the ledger says to the engine, which is handed this module as its gate (morok.rewrite.gate).

Limits are what rules decline to do: to fire beyond the extents of their proofs. No solver is imported, but where something is
proved on the spot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from morok.dialect import Dialect, built_in
from morok.dsl.extent import Extents
from morok.errors import DialectError, LedgerError, Place, UnprovedRuleError, VacuousRuleError
from morok.prove import fingerprints, ledger
from morok.prove.page import Record

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedRule
    from morok.prove.verdict import Verdict
    from morok.rewrite.files import RuleFile


def unchanged(file: RuleFile) -> Mapping[str, Extents] | None:
    """The limits of a built-in file's rules; None unless these bytes are known to be proved. No rule is parsed."""
    limits = ledger.sealed(file.path, file.content)
    return limits if limits is not None else _limits_of(ledger.unchanged(file.path, file.content))


def compared(file: RuleFile) -> Mapping[str, Extents] | None:
    """The same, found out rule by rule, and remembered."""
    return _limits_of(ledger.compared(file.path, file.content, file.checked.rules()))


def _limits_of(records: Mapping[str, Record] | None) -> Mapping[str, Extents] | None:
    return None if records is None else ledger.declining(records)


def admit(rules: Sequence[CheckedRule]) -> Mapping[int, Extents]:
    """The limits of rules that may fire, by their places: each has a usable verdict, and helpers that keep their contracts.

    Else UnprovedRuleError, or UntrustedHelperError. Nothing is proved.
    """
    records = records_of(rules)
    _admit_helpers(rules, False)
    return {i: limits for i, r in enumerate(records) if (limits := ledger.limits_of(r))}


def admit_file(file: RuleFile, prove: bool, trust_ledger: bool, trust_helpers: bool) -> Mapping[str, Extents]:
    """The limits of the rules of a pack's file, as `load_rules` admits them."""
    # first: what is asked is asked of the dialect that these are of
    named = [r.name for g in file.index.groups for r in g.rules]
    known = ledger.unchanged(file.path, file.content, trust_ledger, file.foreign)
    if trust_helpers:  # first, as they are called where a rule is tried
        _admit_helpers(file.checked.rules(), True)
    if known is None:
        rules = list(file.checked.rules())
        found = records_of(rules, prove=prove, trust_ledger=trust_ledger)
        records = {r.name: record for r, record in zip(rules, found, strict=True)}
        ledger.compared(file.path, file.content, file.checked.rules(), trust_ledger)  # remembered for the next time
    else:
        records = {f"{file.pack}.{own}": record for own, record in known.items()}
    if not trust_helpers and (known is None or any(r.helpers for r in known.values())):
        _admit_helpers(file.checked.rules(), False)
    if records.keys() != set(named):  # a rule without a record would have no limits
        odd = ", ".join(sorted(records.keys() ^ set(named))[:3])
        what = f"the rules of {file.path} and their records have other names: {odd}"
        raise LedgerError(
            what, place=Place(str(file.path), 1), hint="remove the cache folder, and load the rules again"
        )
    return ledger.declining(records)


def _admit_helpers(rules: Iterable[CheckedRule], trust_helpers: bool) -> None:
    from morok.prove import promises  # lazy: rules without helpers of their own do not ask

    promises.admit(rules, trust_helpers)


def verdicts(file: RuleFile) -> Mapping[str, str]:
    """The recorded verdicts on the rules of a built-in file, by their own names."""
    known = ledger.unchanged(file.path, file.content)
    if known is not None:
        return {name: record.verdict for name, record in known.items()}
    found = {r.own: ledger.recorded(r) for r in file.checked.rules()}
    return {name: record.verdict for name, record in found.items() if record is not None}


def sources() -> str:
    """A digest of the files that the built-in dialect's ops and the prover are made of."""
    return fingerprints.source_bytes()


def dialect_digest(dialect: Dialect) -> str:
    """A digest of all that proofs about a foreign dialect may depend on, and of what it says of itself."""
    return ledger.dialect_digest(dialect)


def records_of(rules: Iterable[CheckedRule], *, prove: bool = False, trust_ledger: bool = False) -> list[Record]:
    """The usable records of these rules, in their order: several may have one name. UnprovedRuleError with the first that may not
    pass.

    prove         prove on the spot what no ledger vouches for, and remember it on this machine
    trust_ledger  let a pack's own ledger vouch for it
    """
    known = [(rule, ledger.recorded(rule, trust_ledger)) for rule in rules]
    unproved = [rule for rule, record in known if record is None]
    if unproved and prove:
        from morok.prove.api import prove as prove_now  # lazy: what is recorded needs no prover

        verdicts = iter(prove_now(unproved, remember=True, contracts=False))
        known = [(r, record or _record_of(r, next(verdicts))) for r, record in known]
    missing = [(r, record) for r, record in known if record is None or record.verdict not in ledger.USABLE]
    if missing:
        _refuse(missing)
    return [record for _, record in known if record is not None]


def _record_of(rule: CheckedRule, verdict: Verdict) -> Record:
    return verdict.record(verdict.digest or ledger.rule_digest(rule), rule.own)


def _closed(dialect: Dialect) -> tuple[str, ...]:
    from morok.prove import foreign  # lazy: rules of the built-in dialect are loaded without it

    return () if built_in(dialect) else foreign.closed(dialect)


def _refuse(missing: Sequence[tuple[CheckedRule, Record | None]]) -> None:
    rule, record = missing[0]
    why = "no proof of its present text is recorded" if record is None else f"its verdict is {record.verdict}"
    if record is None and (closed := _closed(rule.dialect)):
        why += f" (its dialect reaches {', '.join(closed)}, which counts as another in each process: nobody sees what it holds)"
    more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    kinds: dict[str, type[UnprovedRuleError]] = {"inapplicable": VacuousRuleError, "broken": DialectError}
    kind = kinds.get("" if record is None else record.verdict, UnprovedRuleError)
    raise kind(
        f"rule {rule.name} is not proved: {why}{more}" + (f"\n  {record.message}" if record and record.message else ""),
        place=Place(rule.file, rule.line),
        expected="a rule whose verdict is proved, bounded, approximate or defined",
        hint=f"run `morok prove --write {rule.file}`"
        if record is None
        else f"`morok prove {rule.file}` says why; mend the rule",
    )
