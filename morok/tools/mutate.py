"""Mutate rules, each in one place, and check that the mutants are detected."""

from __future__ import annotations

import argparse
import fnmatch

from morok.dsl.check import check_file
from morok.errors import UsageError
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.trust import mutation
from morok.prove.trust import mutation_record as records
from morok.tools.output import emit_json
from morok.tools.rule_paths import packed_files


def run(args: argparse.Namespace) -> int:
    rules = [r for path, pack in packed_files(args.paths) for r in check_file(path, pack=pack).rules()]
    if args.only:
        rules = [r for r in rules if fnmatch.fnmatch(r.name, args.only)]
        if not rules:
            raise UsageError(f"no rule matches {args.only!r}", hint="`morok rules` lists them")
    path = records.record_path()
    record = records.read_record(path)
    accepted = records.read_accepted(records.accepted_path(), args.write)
    seed = args.seed if args.seed is not None else "".join(records.meaning(r) for r in rules)
    planned = (
        records.Plan(tuple(mutation.every(rules)), ()) if args.all else records.plan(rules, record, args.sample, seed)
    )
    names = {r.name for r in rules}
    kept = record if args.only or args.paths else {n: e for n, e in record.items() if n in names}
    recorder = records.Recorder(path, kept, planned.changed)
    try:
        outcomes = mutation.run(
            [*planned.changed, *planned.sample], DEFAULT_BUDGET // 4, args.jobs, recorder.add if args.write else None
        )
    finally:
        if args.write:
            recorder.save()
            if accepted:
                records.write_accepted(records.accepted_path(), accepted)
    again = {o.rule for o in outcomes[: len(planned.changed)]}
    earlier = records.recorded((r for r in rules if r.name not in again), record)
    found = records.findings([*outcomes[: len(planned.changed)], *earlier], accepted)
    found += records.contradictions(outcomes[len(planned.changed) :], record)
    counts = records.summary(outcomes)
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
