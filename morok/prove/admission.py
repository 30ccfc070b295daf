"""Admission of rules: what the ledger says to the engine, which is handed this module as its gate (morok.rewrite.gate).

Limits are what rules decline to do: to fire beyond the extents of their proofs. No solver is imported, but where something is
proved on the spot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from morok.dialect import built_in
from morok.errors import DialectError, Place, UnprovedRuleError, VacuousRuleError
from morok.prove import ledger
from morok.rewrite import folders

if TYPE_CHECKING:
    from morok.dialect import Dialect
    from morok.dsl.checked import CheckedRule
    from morok.dsl.extent import Limits
    from morok.prove.page import Record
    from morok.rewrite.files import RuleFile


def unchanged(file: RuleFile) -> Mapping[str, Limits] | None:
    """The limits of a built-in file's rules; None unless these bytes are known to be proved. No rule is parsed."""
    limits = ledger.sealed(file.path, file.content)
    return limits if limits is not None else _limits_of(ledger.unchanged(file.path, file.content))


def compared(file: RuleFile) -> Mapping[str, Limits] | None:
    """The same, found out rule by rule, and remembered."""
    return _limits_of(ledger.compared(file.path, file.content, file.checked.rules()))


def _limits_of(records: Mapping[str, Record] | None) -> Mapping[str, Limits] | None:
    return None if records is None else ledger.declining(records, built_in=True)


def admit(rules: Sequence[CheckedRule]) -> Mapping[str, Limits]:
    """The limits of rules that may fire: each has a usable verdict, and helpers that keep their contracts.

    Else UnprovedRuleError, or UntrustedHelperError. Nothing is proved.
    """
    records = records_of(rules)
    _admit_helpers(rules, False)
    own = {r.name for r in rules if folders.is_built_in_rule(r)}
    built_in = ledger.declining({name: r for name, r in records.items() if name in own}, True)
    return built_in | ledger.declining({name: r for name, r in records.items() if name not in own}, False)


def admit_file(file: RuleFile, prove: bool, trust_ledger: bool, trust_helpers: bool) -> Mapping[str, Limits]:
    """The limits of the rules of a pack's file, as `load_rules` admits them."""
    known = ledger.unchanged(file.path, file.content, trust_ledger)
    if trust_helpers:  # first, as they are called where a rule is tried
        _admit_helpers(file.checked.rules(), True)
    if known is None:
        records = records_of(file.checked.rules(), prove=prove, trust_ledger=trust_ledger)
        ledger.compared(file.path, file.content, file.checked.rules(), trust_ledger)  # remembered for the next time
    else:
        records = {f"{file.pack}.{own}": record for own, record in known.items()}
    if not trust_helpers and (known is None or any(r.helpers for r in known.values())):
        _admit_helpers(file.checked.rules(), False)
    return ledger.declining(records, built_in=False)


def _admit_helpers(rules: Iterable[CheckedRule], trust_helpers: bool) -> None:
    from morok.prove import promises  # lazy: rules without helpers of their own do not ask

    promises.admit(rules, trust_helpers)


def checking(rules: Iterable[CheckedRule]) -> Mapping[str, Limits]:
    """The limits of the built-in rules among these that fire at every size: each firing beyond its proof is checked."""
    return ledger.checking(rules)


def verdicts(file: RuleFile) -> Mapping[str, str]:
    """The recorded verdicts on the rules of a built-in file, by their own names."""
    known = ledger.unchanged(file.path, file.content)
    if known is not None:
        return {name: record.verdict for name, record in known.items()}
    found = {r.own: ledger.recorded(r) for r in file.checked.rules()}
    return {name: record.verdict for name, record in found.items() if record is not None}


def dialect_digest(dialect: Dialect) -> str:
    """A digest of all that proofs about a foreign dialect may depend on, and of what it says of itself."""
    return ledger.dialect_digest(dialect)


def records_of(rules: Iterable[CheckedRule], *, prove: bool = False, trust_ledger: bool = False) -> dict[str, Record]:
    """The usable records of these rules, by the rules' names; UnprovedRuleError with the first that may not pass.

    prove         prove on the spot what no ledger vouches for, and remember it on this machine
    trust_ledger  let a pack's own ledger vouch for it
    """
    missing: list[tuple[CheckedRule, Record | None]] = []
    found: dict[str, Record] = {}
    for rule in rules:
        record = ledger.recorded(rule, trust_ledger)
        if record is None or record.verdict not in ledger.USABLE:
            missing.append((rule, record))
        else:
            found[rule.name] = record
    if missing and prove:
        from morok.prove.api import prove as prove_now  # lazy: what is recorded needs no prover

        unproved = [r for r, record in missing if record is None]
        verdicts = {v.name: v for v in prove_now(unproved, remember=True, contracts=False)} if unproved else {}
        judged = [(r, known or verdicts[r.name].record(ledger.rule_digest(r), r.own)) for r, known in missing]
        found |= {r.name: known for r, known in judged}
        missing = [(r, known) for r, known in judged if known.verdict not in ledger.USABLE]
    if missing:
        _refuse(missing)
    return found


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
        hint=f"run `morok prove --write {rule.file}`" if record is None else f"`morok prove {rule.file}` says why; mend the rule",
    )
