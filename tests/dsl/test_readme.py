"""The rules that rules/README.md shows are rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from morok.dsl.check import check_text
from morok.dsl.format import format_text
from morok.dsl.parse import parse_text
from morok.prove.api import prove
from morok.prove.ledger import USABLE
from morok.rewrite.examples import run_examples

TEXT = (Path(__file__).parents[2] / "rules" / "README.md").read_text(encoding="utf-8")
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.S | re.M)
BLOCKS = [b for language, b in FENCED if not language and not b.startswith("morok ")]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of helpers that the page shows, where Python finds it."""
    (module,) = (b for language, b in FENCED if language == "python")
    file = tmp_path / module.splitlines()[0].removeprefix("# ")
    file.parent.mkdir()
    file.write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.usefixtures("package")
def test_examples_check() -> None:
    assert len(BLOCKS) >= 2
    for block in BLOCKS:
        checked = check_text(block, "rules/README.md")
        assert list(checked.rules())
        outcome = run_examples(checked)
        assert not outcome.errors
        assert parse_text(format_text(block)) == parse_text(block)


@pytest.mark.long
@pytest.mark.usefixtures("package")
def test_every_rule_is_proved() -> None:
    rules = [r for block in BLOCKS for r in check_text(block, "rules/README.md").rules()]
    assert len(rules) >= 27
    verdicts = {v.name: v.verdict for v in prove(rules, jobs=1)}
    assert {name: v for name, v in verdicts.items() if v not in USABLE} == {}
    assert len(verdicts) == len(rules)


GATED = "Index { buffer: b, indices: [i: index], gate: Some(g) }"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ("Reduce { src, ranges: [], .. } ~> src", "proved"),
        ("Reduce { src: src: int, ranges: [], .. } ~> Neg(src)", "refuted"),
        ("Reduce { src, ranges: [r], .. } ~> src", "refuted"),
        (f"{GATED} ~> Index {{ buffer: b, indices: [Where(g, i, Invalid)] }}", "proved"),
        (f"{GATED} ~> Index {{ buffer: b, indices: [Where(g, Invalid, i)] }}", "refuted"),
        (f"{GATED} ~> Index {{ buffer: b, indices: [i] }}", "refuted"),
    ],
)  # fmt: skip
def test_folds_of_any_op_and_gates_of_any_lanes_are_told_from_false_ones(rule: str, verdict: str) -> None:
    (checked,) = check_text(f'group g "one"\n\nr: {rule}\n').rules()
    (found,) = prove([checked], jobs=1)
    assert found.verdict == verdict
