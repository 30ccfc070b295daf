"""Put the ledger's obligations to a second solver: bitwuzla for bit vectors and floats, cvc5 for integers."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from morok.errors import UsageError
from morok.prove import obligation_store
from morok.prove.trust import cross_check
from morok.rewrite.folders import rules_folder
from morok.tools.output import emit_json


def run(args: argparse.Namespace) -> int:
    if missing := cross_check.missing_solvers():
        raise UsageError(f"{' and '.join(missing)} is not installed", hint="pip install 'morok[dev]'")
    chance = random.Random(args.seed)
    rules = cross_check.rules_of(rules_folder())
    if args.sample is not None and args.sample < len(rules):  # each rule has at least one obligation
        rules = chance.sample(rules, args.sample)
    given = None if args.smt2 is None else obligation_store.read(Path(args.smt2))
    made = cross_check.made(rules, args.jobs) if given is None else {r.name: given.get(r.name, ()) for r in rules}
    recorded = cross_check.recorded(rules)
    silent = [name for name, digest in recorded.items() if not digest]
    other = [n for n, digest in recorded.items() if digest and digest != obligation_store.digest_of(made[n])]
    asked = [q for name, obligations in made.items() for q in cross_check.questions(name, obligations)]
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
                "rules_without_obligations": silent,
                "rules_with_other_obligations": other,
            }
        )
    else:
        for line in found.disagreements:
            print(f"disagreement  {line}")
        for name in silent:
            print(f"no obligation  {name}")
        for name in other:
            print(f"other obligations than were recorded  {name}")
        for reason, n in found.reasons.items():
            print(f"{n:6} {reason}")
        print(f"{found.obligations} obligations ({found.distinct} distinct): ", end="")
        print(", ".join(f"{n} {a} by {s}" for (s, a), n in found.counts.items()))
        print(f"{found.rules_checked} of {found.rules} rules checked again in every obligation")
    return 1 if found.disagreements or silent or other else 0
