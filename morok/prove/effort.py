"""The rules that take long to prove: guessed from what the ledger says of their last proof, so that the longest come first.

Verdicts and what they cost do not depend on the order; how long all of them take together does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.dsl.checked import CheckedRule
from morok.errors import LedgerError
from morok.prove import ledger

# What takes about a second
RESOURCES: Final = 3_000_000  # of the solver
INSTANCES: Final = 500


def efforts(rules: Sequence[CheckedRule]) -> list[float]:
    """For each rule about how many seconds its proof takes. Of what was never proved, only its instances are known."""
    known: dict[str, dict[str, float]] = {}
    for file in dict.fromkeys(r.file for r in rules):
        try:
            page = ledger.read_page(ledger.page_path(file))
        except LedgerError:  # damaged: who needs it says so
            continue
        known[file] = {name: record.resources / RESOURCES for name, record in (page.records if page else {}).items()}
    return [known.get(r.file, {}).get(r.own, 0.0) + len(r.instances) / INSTANCES for r in rules]
