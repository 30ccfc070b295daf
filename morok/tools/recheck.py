"""Put the ledger's obligations to a second solver: bitwuzla for bit vectors and floats, cvc5 for integers.

Exit status: 0 no solver disagrees; 1 some obligation has a counterexample, or a rule left no obligation; 2 usage.
"""

from __future__ import annotations

import argparse

from morok.errors import UsageError
from morok.tools.output import at_least, emit_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sample", type=at_least(1), metavar="N", help="so many obligations only, chosen by --seed")
    parser.add_argument("--seed", default="0", metavar="TEXT")
    parser.add_argument("--limit", type=at_least(1), metavar="MS", help="milliseconds an obligation (default: 500)")
    parser.add_argument("--jobs", type=at_least(1), default=1, metavar="N", help="worker processes")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    import random

    from morok.prove import ledger
    from morok.prove.trust import second

    if missing := second.missing_solvers():
        raise UsageError(f"{' and '.join(missing)} is not installed", hint="pip install 'morok[dev]'")
    folder = ledger.proofs_folder()
    asked = [q for store in second.stores(folder) for q in second.questions(store)]
    if args.sample is not None and args.sample < len(asked):
        asked = random.Random(args.seed).sample(asked, args.sample)
    found = second.report(second.replies(asked, args.jobs, args.limit or second.LIMIT_MS))
    silent = second.silent_rules(folder)
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
            }
        )
    else:
        for line in found.disagreements:
            print(f"disagreement  {line}")
        for name in silent:
            print(f"no obligation  {name}")
        for reason, n in found.reasons.items():
            print(f"{n:6} {reason}")
        print(f"{found.obligations} obligations ({found.distinct} distinct): ", end="")
        print(", ".join(f"{n} {a} by {s}" for (s, a), n in found.counts.items()))
        print(f"{found.rules_checked} of {found.rules} rules checked again in every obligation")
    return 1 if found.disagreements or silent else 0
