"""The outcomes of the mutants of the rules: their record beside the ledger, the changes since, the ones that must not stay."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from morok import atomic
from morok.dsl.checked import CheckedRule
from morok.errors import LedgerError, Place
from morok.prove.fingerprints import digest
from morok.prove.rule_syntax import canonical
from morok.prove.trust.mutants import mutants
from morok.prove.trust.mutation import KINDS, NOTICED, Outcome, Pair, every
from morok.rewrite import folders

CHECK: Final = "check"
SAVE: Final = 5.0  # seconds between two writings of what was found so far


@dataclass(frozen=True, slots=True)
class Entry:
    """The outcomes of all mutants of one rule.

    digest   of the rule's text and its helpers' contracts
    counts   mutants by kind
    listed   the changes that nobody noticed, by kind
    """

    digest: str
    counts: Mapping[str, int] = field(default_factory=dict)
    listed: Mapping[str, Sequence[str]] = field(default_factory=dict)


def meaning(rule: CheckedRule) -> str:
    """A name for a rule's mutants: its tree, its helpers' contracts, its dtypes, what is changed in it."""
    parts = [canonical(rule.syntax), *(canonical(e) for _, e in sorted(rule.externs.items()))]
    changes = [m.change for m in mutants(rule.syntax, rule.dialect)]
    return digest("\n".join([*parts, *map(str, rule.instances), *changes]))[:16]


def record_path() -> Path:
    return folders.proofs_folder() / "mutants.json"


def read_record(path: Path) -> dict[str, Entry]:
    """The entries by rule name; none if there is no such file. LedgerError if it is something else."""
    if not path.exists():
        return {}
    try:
        return {name: Entry(**whole(name, e)) for name, e in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise LedgerError(
            f"{path} is no record of mutants: {problem}", place=Place(str(path), 1), hint="remove it"
        ) from None


def write_record(path: Path, entries: Mapping[str, Entry]) -> None:
    rows = {
        n: {"digest": e.digest, "counts": dict(e.counts), "listed": dict(e.listed)} for n, e in sorted(entries.items())
    }
    _write(path, rows)


def _write(path: Path, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Rows by name, a line each, with the checksum by which they are known when they are read. Empty lines stand between them, so
    that branches which edit different rules merge.
    """
    lines = (f"{json.dumps(name)}: {json.dumps({**row, CHECK: checksum(name, row)})}" for name, row in rows.items())
    atomic.write(path, ("{\n" + ",\n\n".join(lines) + "\n}\n").encode())


def checksum(name: str, row: Mapping[str, Any]) -> str:
    return digest(json.dumps([name, row]))[:16]


def whole(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it was written, without its checksum; ValueError for any other."""
    rest = {field: value for field, value in row.items() if field != CHECK}
    if row.get(CHECK) != checksum(name, rest):
        raise ValueError(f"what it says of {name[:80]} is not what was written")
    return rest


def entry(rule: CheckedRule, outcomes: Iterable[Outcome]) -> Entry:
    """The entry to record for a rule all of whose mutants were judged."""
    mine = list(outcomes)
    counts = Counter(o.kind for o in mine)
    listed = {k: [o.change for o in mine if o.kind == k] for k in KINDS if k not in NOTICED and counts[k]}
    return Entry(meaning(rule), {k: counts[k] for k in KINDS if counts[k]}, listed)


class Recorder:
    """Puts rules into the record as soon as all their mutants are judged: what is interrupted goes on from there."""

    def __init__(self, path: Path, entries: Mapping[str, Entry], pairs: Iterable[Pair]) -> None:
        """entries  what stays as it is recorded
        pairs    every mutant of the rules that are judged
        """
        self.path = path
        self.entries = dict(entries)
        self._waiting: dict[str, tuple[CheckedRule, dict[str, Outcome | None]]] = {}
        for rule, mutant in pairs:
            self._waiting.setdefault(rule.name, (rule, {}))[1][mutant.change] = None
        self._saved = time.monotonic()

    def add(self, outcome: Outcome) -> None:
        if outcome.rule not in self._waiting:
            return
        rule, found = self._waiting[outcome.rule]
        found[outcome.change] = outcome
        judged = [o for o in found.values() if o is not None]
        if len(judged) < len(found):
            return
        del self._waiting[outcome.rule]
        if any(o.kind == "error" for o in judged):
            return  # it is not known what became of that one
        self.entries[rule.name] = entry(rule, judged)
        if time.monotonic() - self._saved > SAVE:
            self.save()

    def save(self) -> None:
        write_record(self.path, self.entries)
        self._saved = time.monotonic()


def accepted_path() -> Path:
    return folders.proofs_folder() / "guards.json"


def read_accepted(path: Path, unchecked: bool = False) -> dict[str, dict[str, str]]:
    """Guards that are stronger than their proofs need, on purpose: rule -> change -> the reason; rules and changes as globs.

    Reasons are written by hand. LedgerError of one that nobody has put on record (`write_accepted`), or that was changed since;
    with `unchecked` those without a checksum, which are new, are taken too.
    """
    if not path.exists():
        return {}
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        found = {rule: row if unchecked and CHECK not in row else whole(rule, row) for rule, row in rows.items()}
        return {rule: {str(change): str(why) for change, why in row["reasons"].items()} for rule, row in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as problem:
        hint = f"without its `{CHECK}` a rule's reasons are taken for new ones, which `morok mutate --write` puts on record"
        raise LedgerError(f"{path} is no list of reasons: {problem}", place=Place(str(path), 1), hint=hint) from None


def write_accepted(path: Path, accepted: Mapping[str, Mapping[str, str]]) -> None:
    """Put reasons on record."""
    _write(path, {rule: {"reasons": dict(reasons)} for rule, reasons in accepted.items()})


@dataclass(frozen=True, slots=True)
class Plan:
    """The mutants that a run judges.

    changed  every mutant of the rules that are not as they were recorded
    sample   some mutants of the others
    """

    changed: tuple[Pair, ...]
    sample: tuple[Pair, ...]


def plan(rules: Sequence[CheckedRule], record: Mapping[str, Entry], sample: int, seed: str) -> Plan:
    """Every mutant of the rules that changed; `sample` mutants of the others, by `seed`: the same for the same rules."""
    stale = [r for r in rules if r.name not in record or record[r.name].digest != meaning(r)]
    gone = {id(r) for r in stale}
    rest = every(r for r in rules if id(r) not in gone)
    return Plan(tuple(every(stale)), tuple(random.Random(seed).sample(rest, sample) if sample < len(rest) else rest))


def contradictions(outcomes: Iterable[Outcome], record: Mapping[str, Entry]) -> list[str]:
    """The points in which the record of these mutants is not what was found now. What was unknown may have become known."""
    out = []
    for o in outcomes:
        said = next((k for k, changes in record[o.rule].listed.items() if o.change in changes), None)
        if said not in (None if o.noticed else o.kind, "unknown"):
            out.append(f"{o.rule}: {o.change}: {o.kind}, and recorded as {said or 'noticed'}")
    return out


def recorded(rules: Iterable[CheckedRule], record: Mapping[str, Entry]) -> Iterator[Outcome]:
    """The outcomes that nobody noticed, by the record of these rules."""
    for rule in rules:
        if rule.name in record:
            for kind, changes in record[rule.name].listed.items():
                yield from (Outcome(rule.name, c, kind, "what `morok mutate` says of it") for c in changes)


def is_accepted(o: Outcome, accepted: Mapping[str, Mapping[str, str]]) -> bool:
    return any(
        fnmatchcase(o.rule, r) and any(fnmatchcase(o.change, c) for c in changes) for r, changes in accepted.items()
    )


def findings(outcomes: Iterable[Outcome], accepted: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The outcomes that must not stay as they are, in words."""
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
