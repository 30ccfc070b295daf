"""The rules that rules/README.md shows are rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from morok.dsl.check import check_text
from morok.dsl.format import format_text
from morok.dsl.parse import parse_text
from morok.rewrite.examples import run_examples

TEXT = (Path(__file__).parents[2] / "rules" / "README.md").read_text(encoding="utf-8")
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.S | re.M)
BLOCKS = [b for language, b in FENCED if not language and not b.startswith("morok ")]


def test_examples_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (module,) = (b for language, b in FENCED if language == "python")
    file = tmp_path / module.splitlines()[0].removeprefix("# ")
    file.parent.mkdir()
    file.write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    assert len(BLOCKS) >= 2
    for block in BLOCKS:
        checked = check_text(block, "rules/README.md")
        assert list(checked.rules())
        outcome = run_examples(checked)
        assert not outcome.errors
        assert parse_text(format_text(block)) == parse_text(block)
