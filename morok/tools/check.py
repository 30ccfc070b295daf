"""Parse, type-check and lint rule files, and run their examples, without a solver."""

from __future__ import annotations

import argparse
import sys

from morok.dsl.check import partly_checked
from morok.dsl.file_bytes import unreadable
from morok.dsl.lint import lint
from morok.dsl.parse import MAX_ERRORS, read
from morok.errors import MorokError, RuleError
from morok.marks import trust
from morok.prove.lint import findings as solver_lint
from morok.rewrite.examples import run_examples
from morok.tools.output import emit_json
from morok.tools.rule_paths import packed_files


def run(args: argparse.Namespace) -> int:
    errors: list[MorokError] = []
    findings: list[MorokError] = []
    files = packed_files(args.paths)
    rules = examples = 0
    for path, pack in files:
        try:
            checked, mistakes = partly_checked(read(path), str(path), pack=pack)
        except RuleError as refused:
            checked, mistakes = None, list(refused.errors)
        except OSError as denied:
            checked, mistakes = None, [unreadable(path, denied)]
        errors += mistakes[:MAX_ERRORS]
        if checked is None:
            continue
        rules += sum(1 for _ in checked.rules())
        found = lint(checked)
        if args.strict:
            known = {(f.code, f.place) for f in found}
            found += [f for f in solver_lint(checked) if (f.code, f.place) not in known]
        findings += found
        if args.trust_helpers and checked.syntax.helpers is not None:
            trust(checked.syntax.helpers)
        outcome = run_examples(checked)
        examples += outcome.count
        errors += outcome.errors
    if args.json:
        wrong, doubtful = [e.json() for e in errors], [f.json() for f in findings]
        emit_json({"errors": wrong, "lint": doubtful, "files": len(files), "rules": rules})
    else:
        for problem in [*errors, *findings]:
            print(problem, file=sys.stderr)
        print(f"{len(files)} files, {rules} rules, {examples} examples: {len(errors)} errors, {len(findings)} findings")
    return 2 if errors else 1 if findings and args.strict else 0
