"""Fuzz the prover: random rules are judged by the prover, fired by their matchers, and both sides evaluated."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from morok.prove.api import default_jobs
from morok.prove.attack import campaign, corpus
from morok.prove.attack.campaign import Report
from morok.prove.attack.features import KINDS
from morok.prove.attack.outcome import STATES
from morok.tools.options import ATTACK_RULES
from morok.tools.output import emit_json


def run(args: argparse.Namespace) -> int:
    rules = args.rules if args.rules is not None or args.time is not None else ATTACK_RULES
    report = campaign.run(args.seed, rules, args.time, args.jobs or default_jobs(), _progress(rules))
    if args.keep is not None and report.findings:
        left = len(report.findings) - corpus.keep(args.keep, report)
        if left:
            print(
                f"{left} findings have a dialect or helpers of their own, and are not kept in {args.keep}",
                file=sys.stderr,
            )
    if args.format == "json":
        emit_json(report.json())
    else:
        print("\n".join(lines(report)))
    return 1 if report.findings or (args.quotas and any(map(report.rare, KINDS))) else 0


def _progress(rules: int | None) -> Callable[[Report], None] | None:
    """A function that prints a run's progress on the terminal; None if stderr is none."""
    if not sys.stderr.isatty():
        return None

    def shown(report: Report) -> None:
        of = f" of {rules}" if rules is not None else ""
        print(f"\r{report.rules}{of} rules, {len(report.findings)} findings ", end="", file=sys.stderr, flush=True)

    return shown


def lines(report: Report) -> list[str]:
    """The report as text."""
    found: list[str] = []
    for f in report.findings:
        found += [
            f"finding: rule {f.number} of seed {report.seed} ({f.theme}) is usable and false",
            "",
            f.text.strip(),
            "",
        ]
        found += [f"  proof: {f.scope}", f"  shown: {f.shown}", ""]
    for number, message, _ in report.errors:
        found.append(f"error: rule {number} of seed {report.seed}: {message}")
    states = ", ".join(f"{n} {s}" for s in STATES if (n := report.of_state(s)))
    found.append(f"{report.rules} rules of seed {report.seed} in {report.seconds:.0f} s: {states}")
    found.append(
        f"{report.counted} are usable and fired with two sides that differ, {report.large} of them at 5 to 64 lanes or items"
    )
    for kind in KINDS:
        rare = report.rare(kind)
        less = f"; fewer than 100 in 100,000: {', '.join(f'{n} {k}' for n, k in rare.items())}" if rare else ""
        found.append(f"{kind}: {len(KINDS[kind]) - len(rare)} of {len(KINDS[kind])}{less}")
    found.append(f"{len(report.findings)} findings")
    return found
