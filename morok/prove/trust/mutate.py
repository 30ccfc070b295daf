"""Mutation testing: does anybody notice when a rule is changed?

Every mutant of a proved rule must be refuted, never apply, or be a true rule itself. Most die by evaluation at 8 bits, which
costs a fiftieth of a proof; the solver judges the others. What is proved is listed: most are other ways to say the rule, but a
mutant whose guard lets more through is a finding against our guard. A mutant that evaluation shows to be false and that the
prover calls true is a finding against the prover.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from morok.dsl.checked import CheckedRule
from morok.errors import LedgerError, Place, RuleError
from morok.prove import digest, ledger
from morok.prove.stamp import digest as text_digest
from morok.prove.trust import sieve
from morok.prove.trust.mutants import Mutant, mutants, recheck

NOTICED: Final = ("evaluated", "refuted", "ill-typed", "inapplicable")
KINDS: Final = (*NOTICED, "true", "wider", "unknown", "error", "disputed")
CROSS_CHECK: Final = 10  # of so many mutants that evaluation refutes, one is shown to the prover too


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant.

    kind    "evaluated" (evaluation refuted it), "refuted" (the solver did), "ill-typed", "inapplicable", "true" (proved: a true
            rule itself), "wider" (proved, and by its guard it fires where the original does not), "unknown", "error",
            "disputed" (refuted by evaluation, and yet proved)
    detail  the counterexample, the scope of the proof, the graph on which it fires and the original does not
    """

    rule: str
    change: str
    kind: str
    detail: str = ""

    @property
    def noticed(self) -> bool:
        return self.kind in NOTICED


Pair = tuple[CheckedRule, Mutant]


def every(rules: Iterable[CheckedRule]) -> list[Pair]:
    return [(r, m) for r in rules for m in mutants(r.syntax, r.dialect)]


def run(pairs: Sequence[Pair], budget: int, jobs: int = 1) -> list[Outcome]:
    """The outcomes of these mutants, in their order. `budget` is in solver units an obligation."""
    from morok.prove import workers

    found: dict[int, Outcome] = {}
    asked: list[tuple[int, CheckedRule, str]] = []  # what the solver is to judge, and what evaluation has said of it
    for i, (original, mutant) in enumerate(pairs):
        try:
            rule = recheck(original, mutant.rule)
        except RuleError as why:
            found[i] = Outcome(original.name, mutant.change, "ill-typed", why.message)
            continue
        shown = sieve.counterexample(rule)
        if shown is not None:
            found[i] = Outcome(original.name, mutant.change, "evaluated", shown)
        if shown is None or len(found) % CROSS_CHECK == 0:
            asked.append((i, rule, shown or ""))
    for (i, rule, shown), verdict in zip(asked, workers.prove_all([r for _, r, _ in asked], budget, jobs, False), strict=True):
        original, mutant = pairs[i]
        detail = verdict.message or "; ".join(verdict.scope)
        if shown:
            if verdict.usable:
                found[i] = Outcome(original.name, mutant.change, "disputed", shown)
        elif not verdict.usable:
            found[i] = Outcome(original.name, mutant.change, verdict.verdict, detail)
        else:
            further = sieve.reaches_further(rule, original) if mutant.guard else None
            found[i] = Outcome(original.name, mutant.change, "wider" if further else "true", further or detail)
    return [found[i] for i in range(len(pairs))]


# The record of the last whole run, beside the ledger


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of all mutants of one rule.

    digest   of the rule's text and its helpers' contracts
    counts   mutants by kind
    listed   the changes that nobody noticed, by kind
    """

    digest: str
    counts: Mapping[str, int] = field(default_factory=dict)
    listed: Mapping[str, Sequence[str]] = field(default_factory=dict)


def meaning(rule: CheckedRule) -> str:
    """A name for what a rule's mutants are made of: its tree, its helpers' contracts, its dtypes."""
    parts = [digest.canonical(rule.syntax), *(digest.canonical(e) for _, e in sorted(rule.externs.items()))]
    return text_digest("\n".join([*parts, *map(str, rule.instances)]))[:16]


def record_path() -> Path:
    return ledger.proofs_folder() / "mutants.json"


def read_record(path: Path) -> dict[str, Entry]:
    """The entries by rule name; none if there is no such file. LedgerError if it is something else."""
    if not path.exists():
        return {}
    try:
        return {name: Entry(**e) for name, e in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as problem:
        raise LedgerError(f"{path} is no record of mutants: {problem}", place=Place(str(path), 1), hint="remove it") from None


def write_record(path: Path, entries: Mapping[str, Entry]) -> None:
    rows = (
        f"{json.dumps(name)}: {json.dumps({'digest': e.digest, 'counts': dict(e.counts), 'listed': dict(e.listed)})}"
        for name, e in sorted(entries.items())
    )
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def entries(rules: Iterable[CheckedRule], outcomes: Iterable[Outcome]) -> dict[str, Entry]:
    """What to record of rules all of whose mutants were judged."""
    by_rule: dict[str, list[Outcome]] = {}
    for o in outcomes:
        by_rule.setdefault(o.rule, []).append(o)
    out: dict[str, Entry] = {}
    for rule in rules:
        mine = by_rule.get(rule.name, [])
        counts = Counter(o.kind for o in mine)
        listed = {k: [o.change for o in mine if o.kind == k] for k in KINDS if k not in NOTICED and counts[k]}
        out[rule.name] = Entry(meaning(rule), {k: counts[k] for k in KINDS if counts[k]}, listed)
    return out


def accepted_path() -> Path:
    return ledger.proofs_folder() / "guards.json"


def read_accepted(path: Path) -> dict[str, dict[str, str]]:
    """Guards that are stronger than their proofs need, on purpose: rule -> change -> the reason; rules and changes as globs."""
    found: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run judges: every mutant of the rules that changed since they were recorded, and some of the others."""

    changed: tuple[CheckedRule, ...]
    pairs: tuple[Pair, ...]


def plan(rules: Sequence[CheckedRule], record: Mapping[str, Entry], sample: int, seed: str, most: int) -> Plan:
    """`sample` mutants of the rules as recorded, by `seed`; of those that changed every mutant, `most` in all."""
    stale = tuple(r for r in rules if r.name not in record or record[r.name].digest != meaning(r))
    gone = {id(r) for r in stale}
    rng = random.Random(seed)
    first = every(stale)
    if len(first) > most:
        first = rng.sample(first, most)
    rest = every(r for r in rules if id(r) not in gone)
    return Plan(stale, (*first, *(rng.sample(rest, sample) if sample < len(rest) else rest)))


def is_accepted(o: Outcome, accepted: Mapping[str, Mapping[str, str]]) -> bool:
    return any(fnmatchcase(o.rule, r) and any(fnmatchcase(o.change, c) for c in changes) for r, changes in accepted.items())


def findings(outcomes: Iterable[Outcome], accepted: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What must not stay as it is, in words."""
    out = []
    for o in outcomes:
        if o.kind == "disputed":
            out.append(f"{o.rule}: {o.change}: the prover says it is true, and {o.detail}")
        elif o.kind == "error":
            out.append(f"{o.rule}: {o.change}: {o.detail}")
        elif o.kind == "wider" and not is_accepted(o, accepted):
            out.append(f"{o.rule}: {o.change}: still true, so the guard may be weaker; then it fires on {o.detail}")
    return out


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    counts = Counter(o.kind for o in outcomes)
    return {"mutants": len(outcomes), **{k: counts[k] for k in KINDS}}
