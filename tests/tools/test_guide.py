"""The guide: its generated parts are those of the program, its snippets run, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from morok.config import SETTINGS
from morok.errors import UsageError
from morok.ir.op import TABLE, Op
from morok.passes.pipeline import STAGES
from morok.tools.book import guide
from morok.tools.book.op_meanings import KINDS, MEANINGS
from morok.tools.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
TEXTS = {p.name: p.read_text(encoding="utf-8") for p in PAGES}
MADE_BY_RULES = "trace"  # changes with every rule that it shows firing


def test_every_op_has_a_meaning_and_one_place() -> None:
    listed = [op for ops in KINDS.values() for op in ops]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(TABLE.entries) == set(MEANINGS)
    assert len(listed) == len(Op)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    """If this fails: `morok docs --guide docs`."""
    parts = guide.all_parts(ROOT)
    text = TEXTS[page.name]
    shown = re.search(r"<!-- part trace -->\n\n(.*?)\n\n<!-- end -->", text, re.DOTALL)
    if shown is not None:
        parts[MADE_BY_RULES] = lambda: shown[1]
    assert guide.refreshed(text, parts) == text


def test_the_trace_is_real_and_has_every_stage() -> None:
    now = guide.trace(ROOT / "examples" / "add.py")
    kept = TEXTS["pipeline.md"]
    for text in (now, kept):
        titles = [
            line.removesuffix(" (no change)")
            for line in text.splitlines()
            if line.startswith("=== map_100x100: stage ")
        ]
        assert titles == [f"=== map_100x100: stage {s.number}: {s.name}" for s in STAGES]
        assert "define void @kernel_map_100x100(" in text
        assert "load <8 x float>" in text
    head = "=== map_100x100: stage 1"
    assert now.split(head)[0] in kept


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.long) if p.name == "symptoms.md" else p for p in PAGES],
    ids=lambda p: p.name,
)
def test_snippets_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = re.sub(r"<!-- part example:.*?<!-- end -->", "", TEXTS[page.name], flags=re.DOTALL)  # run by tests/tensor
    for code in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(code, page.name, "exec"), {"__name__": "guide"})


def test_links_settings_and_commands_exist() -> None:
    settings = {f"MOROK_{s.name}" for s in SETTINGS}
    for name, text in TEXTS.items():
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert (ROOT / "docs" / target).is_file(), f"{name} links to {target}"
        assert set(re.findall(r"MOROK_[A-Z_]+", text)) <= settings, name
        assert set(re.findall(r"`morok ([a-z]+)", text)) <= set(COMMANDS), name


def test_the_command_writes_what_is_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "examples").mkdir()
    pages = tmp_path / "docs"
    pages.mkdir()
    page = pages / "page.md"
    page.write_text("before\n<!-- part stages -->\nanything\n<!-- end -->\nafter\n")
    assert main(["docs", "--guide", str(pages)]) == 0
    assert "1 pages changed" in capsys.readouterr().out
    assert page.read_text().startswith("before\n<!-- part stages -->\n\n| stage | name |")
    assert "anything" not in page.read_text()
    assert main(["docs", "--guide", str(pages)]) == 0
    assert "0 pages changed" in capsys.readouterr().out
    with pytest.raises(UsageError, match="nonsense"):
        guide.refreshed("<!-- part nonsense -->\n<!-- end -->", guide.all_parts(tmp_path))
    assert main(["docs", "--guide", str(tmp_path / "none")]) == 2


def test_a_folder_without_the_guide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.md").write_text("# Nothing generated\n")
    assert main(["docs", "--guide", str(tmp_path)]) == 2
    assert "no page with a generated part" in capsys.readouterr().err
