"""Known verdicts, reproduced: 79 rules of other systems at the dtypes where they were once judged by another prover.

`catalogue.json` holds, by rule and dtype: pattern, target, verdict.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from morok.dsl.check import check_text
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge

ROWS = json.loads((Path(__file__).parent / "catalogue.json").read_text())


@pytest.mark.sampled(60)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["id"])
def test_known_verdicts(row: dict[str, dict[str, list[str]]]) -> None:
    for dtype, (pattern, target, wanted) in row["rules"].items():
        text = f'group catalogue "a row"\n\nr: {pattern} ~> {target}\n    "a row"\n'
        rule = next(iter(check_text(text).rules()))
        found = judge(rule, DEFAULT_BUDGET, False)
        assert found.verdict == wanted, (dtype, pattern, target, found.message)
