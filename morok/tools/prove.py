"""Prove rule files or folders of them (default: the built-in rules).

Exit status: 0 every rule is usable; 1 some rule is refuted, can never fire, or relies on a contract that is false; 2 usage, parse
or type error; 3 none of these, but some verdict is unknown, or contracts are untested; 4 an internal error. With --compare also 1
where a verdict, its scope, the resources that it took or its obligations are not what the ledger says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from morok.errors import MorokError, UsageError
from morok.names import SHOWN
from morok.prove.report import FORMATS, print_text, render
from morok.prove.verdict import Verdict
from morok.tools.output import at_least


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help=".rules files or folders (default: the built-in rules)")
    parser.add_argument("--json", action="store_true", help="print one JSON document; the same as --format json")
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        metavar="F[=FILE]",
        help=f"{', '.join(FORMATS)}; with =FILE into a file; repeatable",
    )
    parser.add_argument("--jobs", type=at_least(1), metavar="N", help="worker processes (default: one a core)")
    parser.add_argument("--budget", type=at_least(1), metavar="UNITS", help="solver resource units an obligation; deterministic")
    parser.add_argument("--no-cache", action="store_true", help="prove everything anew")
    parser.add_argument("--write", action="store_true", help="record the verdicts in the ledger")
    parser.add_argument(
        "--compare", action="store_true", help="prove everything anew; exit 1 where the ledger says other than what was found"
    )
    parser.add_argument("--smt2", metavar="DIR", help="write the obligations as SMT-LIB, one file a rule")
    parser.add_argument("--bounds", action="store_true", help="instead of rules: the transfer functions of the ops' bounds")
    parser.add_argument("--trust-helpers", action="store_true", help="run the Python helpers of packs to test their contracts")
    parser.add_argument("--only", metavar="GLOB", help="only rules whose name matches")


@contextmanager
def _progress() -> Iterator[Callable[[Verdict], None] | None]:
    """A counter on a terminal's stderr; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    count = 0
    with Console(stderr=True).status("proving") as status:

        def done(verdict: Verdict) -> None:
            nonlocal count
            count += 1
            status.update(f"{count} proved or refuted; last {verdict.name}: {verdict.verdict}")

        yield done


def _forms(args: argparse.Namespace) -> list[tuple[str, str]]:
    """(format, file) pairs; the file is empty for stdout."""
    wanted = [*args.format, *(["json"] if args.json else [])] or ["text"]
    pairs = []
    for item in wanted:
        form, named, file = item.partition("=")
        if form not in FORMATS:
            raise UsageError(f"there is no format {form!r}", expected=", ".join(FORMATS))
        if named and not file:
            raise UsageError(f"--format {item} names no file", hint=f"--format {form} prints it")
        pairs.append((form, file))
    if sum(not file for _, file in pairs) > 1:
        raise UsageError("two formats for one standard output", hint="give all but one a file: --format junit=report.xml")
    return pairs


def _write_catalogue(verdicts: list[Verdict]) -> None:
    from morok.rewrite.library import proofs_dir, rules_dir
    from morok.tools import catalogue

    catalogue.write(rules_dir(), proofs_dir(), {v.name: v.verdict for v in verdicts})


def run(args: argparse.Namespace) -> int:
    from morok.prove.api import exit_status, prove

    forms = _forms(args)
    for option in ("smt2", "only"):
        if getattr(args, option) == "":
            raise UsageError(f"--{option} names nothing", expected="a folder" if option == "smt2" else "a glob over rule names")
    if args.compare and args.write:
        raise UsageError("--compare says where the ledger is wrong, --write makes it right", hint="give one of the two")
    if args.bounds:
        return _bounds(args, forms)
    differences: list[str] = []
    notes: list[str] = []
    try:
        with _progress() as done:
            verdicts = prove(
                args.paths or None,
                budget=args.budget,
                jobs=args.jobs,
                use_cache=not (args.no_cache or args.compare),
                write=args.write,
                only=args.only,
                smt2=args.smt2,
                trust_helpers=args.trust_helpers,
                done=done,
                differs=differences.append if args.compare else None,
                notes=notes.append,
            )
    except (MorokError, OSError):
        raise
    except Exception as problem:
        print(f"morok prove: internal error: {type(problem).__name__}: {problem}", file=sys.stderr)
        return 4
    if args.write and not args.paths and not args.only:
        _write_catalogue(verdicts)
    if args.only and not verdicts:
        raise UsageError(f"no rule matches {args.only!r}", hint="`morok rules` lists them")
    _print(verdicts, forms)
    for difference in (*notes, *differences):
        print(f"morok prove: {difference}", file=sys.stderr)
    return exit_status(verdicts) or int(bool(differences))


def _bounds(args: argparse.Namespace, forms: list[tuple[str, str]]) -> int:
    from morok.prove import bounds_record
    from morok.prove.api import default_jobs, exit_status

    if args.paths or args.only or args.smt2 or args.compare:
        raise UsageError("--bounds proves the functions of the op table", hint="leave out PATH, --only, --smt2 and --compare")
    jobs = args.jobs or default_jobs()
    verdicts = bounds_record.verdicts(use_cache=not args.no_cache, write=args.write, jobs=jobs, budget=args.budget)
    _print(verdicts, forms)
    return exit_status(verdicts)


def _print(verdicts: list[Verdict], forms: list[tuple[str, str]]) -> None:
    for form, file in forms:
        if file:
            Path(file).write_text(render(verdicts, form), encoding="utf-8", errors=SHOWN)
        elif form == "text":
            print_text(verdicts, sys.stdout)
        else:
            sys.stdout.write(render(verdicts, form))
