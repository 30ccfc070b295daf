"""Firings counted by the verdicts of their rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from morok.prove import ledger
from morok.rewrite import folders
from morok.rewrite.trace import Firing

OTHERS = "others"  # rules of packs, which have ledgers of their own


def verdicts() -> dict[str, str]:
    """The verdict of every built-in rule, by its name."""
    found: dict[str, str] = {}
    for path in sorted(folders.rules_folder().rglob("*.rules")):
        records = ledger.unchanged(path, path.read_bytes()) or {}
        found |= {name: record.verdict for name, record in records.items()}
    return found


def by_verdict(firings: Iterable[Firing]) -> dict[str, int]:
    """The number of firings for each verdict, the greatest first."""
    known = verdicts()
    return dict(Counter(known.get(f.rule, OTHERS) for f in firings).most_common())


def summary(firings: list[Firing]) -> str:
    """One line: "812 firings of 97 rules: 96.1 % proved, 3.9 % bounded"."""
    shares = ", ".join(f"{100 * n / len(firings):.1f} % {verdict}" for verdict, n in by_verdict(firings).items())
    rules = len({f.rule for f in firings})
    return f"{len(firings):,} firings of {rules} rules" + (f": {shares}" if shares else "")
