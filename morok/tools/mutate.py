"""Change proved rules in one place each, and see that it is noticed: by evaluation at 8 bits, or by the prover.

Without --all: every mutant of the rules that changed since proofs/mutants.json was written, and a sample of the others'.

Exit status: 0 nothing to mend; 1 a guard that may be weaker, or a mutant that the prover calls true and evaluation false;
2 usage, parse or type error.
"""

from __future__ import annotations

import argparse

from morok.errors import UsageError
from morok.tools.output import at_least, emit_json, rule_files

SAMPLE = 120
MOST = 240  # mutants of changed rules, where many changed at once


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help=".rules files or folders (default: the built-in rules)")
    parser.add_argument("--all", action="store_true", help="every mutant of every rule")
    parser.add_argument("--only", metavar="GLOB", help="only rules whose name matches")
    parser.add_argument(
        "--sample", type=at_least(0), default=SAMPLE, metavar="N", help=f"mutants of unchanged rules (default: {SAMPLE})"
    )
    parser.add_argument("--seed", metavar="TEXT", help="chooses the sample (default: the rules themselves)")
    parser.add_argument("--jobs", type=at_least(1), default=1, metavar="N", help="worker processes")
    parser.add_argument("--write", action="store_true", help="record what became of the rules all of whose mutants were judged")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    import fnmatch

    from morok.dsl.check import check_file
    from morok.prove.solve import DEFAULT_BUDGET
    from morok.prove.trust import mutate

    rules = [r for path in rule_files(args.paths) for r in check_file(path).rules()]
    rules = [r for r in rules if r.syntax.within is None]  # those are measured, not proved
    if args.only:
        rules = [r for r in rules if fnmatch.fnmatch(r.name, args.only)]
        if not rules:
            raise UsageError(f"no rule matches {args.only!r}", hint="`morok rules` lists them")
    record = mutate.read_record(mutate.record_path())
    if args.all:
        planned = mutate.Plan(tuple(rules), tuple(mutate.every(rules)))
    else:
        seed = args.seed if args.seed is not None else "".join(mutate.meaning(r) for r in rules)
        planned = mutate.plan(rules, record, args.sample, seed, MOST)
    outcomes = mutate.run(planned.pairs, DEFAULT_BUDGET // 4, args.jobs)
    found = mutate.findings(outcomes, mutate.read_accepted(mutate.accepted_path()))
    if args.write:
        judged = {(o.rule, o.change) for o in outcomes}
        whole = [r for r in planned.changed if all((r.name, m.change) in judged for _, m in mutate.every([r]))]
        kept = {} if args.all and not args.only and not args.paths else record
        mutate.write_record(mutate.record_path(), {**kept, **mutate.entries(whole, outcomes)})
    counts = mutate.summary(outcomes)
    if args.json:
        rows = [{"rule": o.rule, "change": o.change, "kind": o.kind, "detail": o.detail} for o in outcomes]
        emit_json({"outcomes": rows, "findings": found, "summary": counts})
    else:
        for o in outcomes:
            if not o.noticed:
                print(f"{o.kind:<8} {o.rule}: {o.change}")
        for line in found:
            print(f"finding  {line}")
        print(", ".join(f"{n} {k}" for k, n in counts.items() if n or k == "mutants"))
    return 1 if found else 0
