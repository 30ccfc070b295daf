"""The rules that rules/README.md shows are rules."""

from __future__ import annotations

import re
from pathlib import Path

from morok.dsl.check import check_text, run_examples
from morok.dsl.format import format_text
from morok.dsl.parse import parse_text

TEXT = (Path(__file__).parents[2] / "rules" / "README.md").read_text(encoding="utf-8")
BLOCKS = [b for b in re.findall(r"```\n(.*?)```", TEXT, re.S) if not b.startswith("morok ")]


def test_examples_check() -> None:
    assert len(BLOCKS) >= 2
    for block in BLOCKS:
        checked = check_text(block, "rules/README.md")
        assert list(checked.rules())
        outcome = run_examples(checked)
        assert not outcome.errors
        assert parse_text(format_text(block)) == parse_text(block)
