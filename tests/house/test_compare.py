"""The net: it sees what changed, and nothing where nothing did."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from house import compare, pages
from house.bad_texts import mistaken
from house.commands import COMMANDS, LINES
from house.expression_texts import Expressions
from house.tensor_texts import Program

ROOT = Path(__file__).resolve().parents[2]
Captured = pytest.CaptureFixture[str]


def recorded(folder: Path, **entries: str) -> Path:
    folder.mkdir()
    pages.write(folder / "texts.txt", entries)
    return folder


def test_equal_recordings_have_no_difference(tmp_path: Path, capsys: Captured) -> None:
    first, second = recorded(tmp_path / "a", one="1\n2", two=""), recorded(tmp_path / "b", two="", one="1\n2")
    assert compare.main(["compare", str(first), str(second)]) == 0
    assert capsys.readouterr().out.strip() == "no difference"


def test_entries_that_differ_in_the_same_lines_are_one_difference(tmp_path: Path, capsys: Captured) -> None:
    first = recorded(tmp_path / "a", one="x\nold", two="y\nold", three="z", gone="g")
    second = recorded(tmp_path / "b", one="x\nnew", two="y\nnew", three="z", come="c")
    found = compare.differences(first, second)["texts.txt"]
    assert found[("-old", "+new")] == ["one", "two"]
    assert sorted(keys[0] for lines, keys in found.items() if lines[0].startswith("only in")) == ["come", "gone"]
    assert compare.main(["compare", str(first), str(second)]) == 1
    assert "4 entries differ, in 3 ways" in capsys.readouterr().out


def test_a_page_that_one_recording_lacks_is_a_difference(tmp_path: Path) -> None:
    first, second = recorded(tmp_path / "a", one="1"), recorded(tmp_path / "b", one="1")
    pages.write(second / "more.txt", {})
    assert list(compare.differences(first, second)) == ["more.txt"]


def test_a_line_like_a_heading_does_not_end_its_entry(tmp_path: Path) -> None:
    pages.write(tmp_path / "p.txt", {"one": f"{pages.HEAD}no heading\nlast"})
    assert pages.read(tmp_path / "p.txt") == {"one": [f" {pages.HEAD}no heading", "last"]}


def test_times_folders_and_addresses_are_not_recorded() -> None:
    text = "/tmp/a/b took 1.25 s at 0x7f00deadbeef; 0x3FF0000000000000"
    assert pages.scrubbed(text, {"/tmp": "T", "/tmp/a": "A"}) == "A/b took <time> at <address>; 0x3FF0000000000000"


def test_texts_of_a_seed_are_the_same() -> None:
    import random

    assert Expressions(3).text() == Expressions(3).text()
    assert Program(3).text() == Program(3).text()
    assert mistaken("Add(x: i32, y)", random.Random(3)) == mistaken("Add(x: i32, y)", random.Random(3))


def test_every_command_is_run() -> None:
    from morok.tools.cli import COMMANDS as THERE_ARE

    assert set(COMMANDS) == set(THERE_ARE)
    assert {line.partition(" ")[0] for line in LINES} >= set(COMMANDS)


@pytest.mark.long
def test_two_recordings_of_a_checkout_are_equal(tmp_path: Path) -> None:
    quick = [p for p in compare.PARTS if p not in ("library", "corpora")]
    for name in ("a", "b"):
        compare.record(sys.executable, tmp_path / name, quick, 0.005, ROOT)
    assert compare.differences(tmp_path / "a", tmp_path / "b") == {}
    assert len(pages.read(tmp_path / "a" / "simplify.txt")) == 200


@pytest.mark.long
def test_a_part_records_what_users_see(tmp_path: Path) -> None:
    compare.record(sys.executable, tmp_path, ["simplify"], 0.001, ROOT)
    found = pages.read(tmp_path / "simplify.txt")
    assert len(found) == 40
    assert any("identity_and_zero" in line for lines in found.values() for line in lines)
