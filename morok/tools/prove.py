"""Prove rule files or folders of them (default: the built-in rules)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from morok.errors import MorokError, RuleError, UsageError
from morok.prove.api import default_jobs, exit_status, packed_files, prove
from morok.prove.verdict import Verdict
from morok.rewrite.folders import rules_folder
from morok.rewrite.library import proofs_dir, rules_dir
from morok.tools import catalogue
from morok.tools.output import access_error
from morok.tools.reports import Reports, forms


class _Progress:
    """A counter of decided rules on stderr, if that is a terminal."""

    def __init__(self) -> None:
        self.count = self.total = 0
        self.status: Any = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        if not sys.stderr.isatty():
            yield
            return
        from rich.console import Console  # lazy: drawn on terminals alone

        with Console(stderr=True).status("proving") as self.status:
            yield

    def started(self, total: int) -> None:
        self.total = total
        if self.status is not None:
            self.status.update(f"0 of {total}")

    def done(self, verdict: Verdict) -> None:
        self.count += 1
        if self.status is not None:
            self.status.update(f"{self.count} of {self.total}; last {verdict.name}: {verdict.verdict}")


def run(args: argparse.Namespace) -> int:
    wanted = forms([*args.format, *(["json"] if args.json else [])] or ["text"])
    reports = Reports(wanted)
    for option in ("smt2", "only"):
        if getattr(args, option) == "":
            raise UsageError(
                f"--{option} names nothing", expected="a folder" if option == "smt2" else "a glob over rule names"
            )
    if args.compare and args.write:
        raise UsageError("--compare says where the ledger is wrong, --write makes it right", hint="give one of the two")
    refused = [f"--{n}" for n in ("write", "compare", "no_cache", "smt2", "bounds") if args.frozen and getattr(args, n)]
    if refused:
        raise UsageError(
            f"--frozen only reads the ledger, {refused[0].replace('_', '-')} asks the solver",
            hint="give one of the two",
        )
    with reports.open():
        try:
            return _bounds(args, reports) if args.bounds else _rules(args, reports)
        except BrokenPipeError:
            raise
        except (MorokError, OSError) as problem:
            error = (
                access_error(problem)
                if isinstance(problem, OSError) and not isinstance(problem, MorokError)
                else problem
            )
            assert isinstance(error, MorokError)
            for each in error.errors if isinstance(error, RuleError) else (error,):
                reports.mistake(each)
            print(error, file=sys.stderr)
            return 2
        except Exception as problem:
            text = f"internal error: {type(problem).__name__}: {problem}"
            reports.mistake(MorokError(text))
            print(f"morok prove: {text}", file=sys.stderr)
            return 4


def _rules(args: argparse.Namespace, reports: Reports) -> int:
    progress = _Progress()
    differences: list[str] = []
    notes: list[str] = []

    def done(verdict: Verdict) -> None:
        progress.done(verdict)
        reports.heard(verdict)

    paths = args.paths or [rules_folder()]
    reports.files = [str(file) for file, _ in packed_files(paths)]
    with progress.shown():
        reports.verdicts = verdicts = prove(
            paths,
            budget=args.budget,
            jobs=args.jobs,
            use_cache=not (args.no_cache or args.compare),
            write=args.write,
            only=args.only,
            smt2=args.smt2,
            trust_helpers=args.trust_helpers,
            frozen=args.frozen,
            rule_limit=args.rule_limit,
            time_limit=args.time_limit,
            done=done,
            total=progress.started,
            mistakes=reports.mistake,
            differs=differences.append if args.compare else None,
            notes=notes.append,
        )
    if args.write and not args.paths and not args.only and not reports.mistakes:
        catalogue.write(rules_dir(), proofs_dir(), {v.name: v.verdict for v in verdicts})
    if args.only and not verdicts and not reports.mistakes:
        of_packs = "a name is PACK.GROUP.RULE, or without the pack: `--only '*.RULE'` looks in every group"
        raise UsageError(f"no rule matches {args.only!r}", hint=of_packs if args.paths else "`morok rules` lists them")
    if reports.mistakes:
        print("\n\n".join(str(e) for e in reports.mistakes), file=sys.stderr)
    for difference in (*notes, *differences):
        print(f"morok prove: {difference}", file=sys.stderr)
    return 2 if reports.mistakes else exit_status(verdicts) or int(bool(differences))


def _bounds(args: argparse.Namespace, reports: Reports) -> int:
    from morok.prove import bounds_record  # lazy: loads the solver

    if args.paths or args.only or args.smt2 or args.compare:
        raise UsageError(
            "--bounds proves the functions of the op table", hint="leave out PATH, --only, --smt2 and --compare"
        )
    jobs = args.jobs or default_jobs()
    verdicts = bounds_record.verdicts(use_cache=not args.no_cache, write=args.write, jobs=jobs, budget=args.budget)
    reports.verdicts = verdicts
    for verdict in verdicts:
        reports.heard(verdict)
    return exit_status(verdicts)
