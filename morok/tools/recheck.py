"""Put the obligations in the ledger of rule files (default: the built-in rules) to a second solver."""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from morok.dsl.checked import CheckedRule
from morok.errors import UsageError
from morok.prove import obligation_store
from morok.prove.obligation_store import Obligation
from morok.prove.trust import cross_check
from morok.rewrite.folders import rules_folder
from morok.tools.output import emit_json


@dataclass(slots=True)
class _Compared:
    """The obligations of rules, compared with the ledger.

    made    by the rules' names
    silent  the rules that the ledger has no record of
    other   the rules whose obligations are not those that were recorded
    absent  the rules of which the folder that was given has no obligations
    """

    folder: str | None
    made: dict[str, tuple[Obligation, ...]] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        return bool(self.silent or self.other or self.absent)

    def lines(self) -> list[str]:
        """The differences, as lines of text."""
        found = [f"no obligations in the ledger  {name}" for name in self.silent]
        found += [f"other obligations than were recorded  {name}" for name in self.other]
        if n := len(self.absent):
            hint = "" if self.made else "; PATH names the rules that it is of"
            found.append(f"no obligations of {n} {'rule' if n == 1 else 'rules'} in {self.folder}{hint}")
        return found

    def json(self) -> dict[str, Any]:
        return {
            "rules_without_obligations": self.silent,
            "rules_with_other_obligations": self.other,
            "rules_not_in_folder": self.absent,
        }


def _compared(rules: list[CheckedRule], args: argparse.Namespace, chance: random.Random) -> _Compared:
    """The obligations of these rules, or of a sample of them, made or read, and compared with their digests in the ledger."""
    found = _Compared(args.smt2)
    given = None if args.smt2 is None else obligation_store.read(Path(args.smt2))
    if given is not None:
        found.absent = [r.name for r in rules if r.name not in given]
        rules = [r for r in rules if r.name in given]
    if args.sample is not None and args.sample < len(rules):  # each rule has at least one obligation
        rules = chance.sample(rules, args.sample)
    found.made = cross_check.made(rules, args.jobs) if given is None else {r.name: given[r.name] for r in rules}
    for name, digest in cross_check.recorded(rules).items():
        if not digest:
            found.silent.append(name)
        elif digest != obligation_store.digest_of(found.made[name]):
            found.other.append(name)
    return found


def run(args: argparse.Namespace) -> int:
    if missing := cross_check.missing_solvers():
        raise UsageError(f"{' and '.join(missing)} is not installed", hint="pip install 'morok[dev]'")
    chance = random.Random(args.seed)
    compared = _compared(cross_check.rules_of(args.paths or [rules_folder()]), args, chance)
    asked = [q for name, obligations in compared.made.items() for q in cross_check.questions(name, obligations)]
    if args.sample is not None and args.sample < len(asked):
        asked = chance.sample(asked, args.sample)
    found = cross_check.report(cross_check.replies(asked, args.jobs, args.limit or cross_check.LIMIT_MS))
    if args.json:
        emit_json(
            {
                "obligations": found.obligations,
                "distinct": found.distinct,
                "answers": [{"solver": s, "answer": a, "count": n} for (s, a), n in found.counts.items()],
                "reasons": found.reasons,
                "disagreements": list(found.disagreements),
                "rules": found.rules,
                "rules_checked_whole": found.rules_checked,
                **compared.json(),
            }
        )
    else:
        for line in (*(f"disagreement  {d}" for d in found.disagreements), *compared.lines()):
            print(line)
        for reason, n in found.reasons.items():
            print(f"{n:6} {reason}")
        answers = [f"{n} {a} by {s}" for (s, a), n in found.counts.items()]
        print(
            f"{found.obligations} obligations ({found.distinct} distinct)",
            *([", ".join(answers)] if answers else []),
            sep=": ",
        )
        print(f"{found.rules_checked} of {found.rules} rules checked again in every obligation")
    return 1 if found.disagreements or compared.differs else 0
