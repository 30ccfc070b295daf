"""Mistakes in rule files: in every report, with line and column; and verdicts for the rules that have none."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from morok.dsl.check import partly_checked
from morok.errors import InternalProofError, UndecidedRuleError, UnprovedRuleError
from morok.prove.api import prove
from morok.prove.report import FORMATS
from morok.prove.verdict import Verdict
from morok.tools.cli import main

Captured = pytest.CaptureFixture[str]

TEXT = """\
group g "one true, one open, one of two types"

good: Sub(Add(x: i32, y), y) ~> x
open: Add(x: i32, y ~> x
mixed: Add(x: i32, y: f32) ~> x
wrong: Sub(x: i32, y) ~> Sub(y, x)
"""
MISTAKES = [("MRK101", 4, 10), ("MRK102", 5, 8)]


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "wrong.rules"
    file.write_text(TEXT)
    (tmp_path / "empty.rules").write_text('group e "no rules"\n')
    return file


def reports(folder: Path, *arguments: str) -> tuple[int, dict[str, str]]:
    """The status, and what every format says in a file of its own."""
    forms = [option for f in FORMATS for option in ("--format", f"{f}={folder / f}")]
    status = main(["prove", *forms, *arguments])
    return status, {f: (folder / f).read_text() for f in FORMATS}


def test_every_format_has_every_mistake_and_every_verdict(wrong: Path, capsys: Captured) -> None:
    status, said = reports(wrong.parent, str(wrong), str(wrong.parent / "empty.rules"))
    assert status == 2
    capsys.readouterr()
    files = [str(wrong), str(wrong.parent / "empty.rules")]

    found = json.loads(said["json"])
    assert [(e["code"], e["line"], e["column"]) for e in found["errors"]] == MISTAKES
    assert {e["file"] for e in found["errors"]} == {str(wrong)}
    assert {r["name"].removeprefix("wrong."): r["verdict"] for r in found["rules"]} == {
        "g.good": "proved",
        "g.wrong": "refuted",
    }
    assert found["files"] == files
    assert found["summary"]["mistakes"] == 2

    lines = [json.loads(line) for line in said["jsonl"].splitlines()]
    assert [(e["error"]["code"], e["error"]["line"], e["error"]["column"]) for e in lines if "error" in e] == MISTAKES
    assert sorted((r["name"], r["verdict"]) for r in lines if "name" in r) == sorted(
        (r["name"], r["verdict"]) for r in found["rules"]
    )
    assert lines[-1]["files"] == files
    assert lines[-1]["summary"]["total"] == 2
    assert ["summary" in line for line in lines].index(True) == len(lines) - 1

    cases = list(ET.fromstring(said["junit"]))
    errors = [c for c in cases if c.find("error") is not None]
    assert [(c.get("name"), int(c.get("line", "")), int(c.get("column", ""))) for c in errors] == MISTAKES
    assert {c.get("file") for c in cases} == set(files)
    assert [c.get("name") for c in cases if c.find("failure") is not None] == ["wrong"]

    (run,) = json.loads(said["sarif"])["runs"]
    places = [(r["ruleId"], r["locations"][0]["physicalLocation"]["region"]) for r in run["results"]]
    assert [(i, p["startLine"], p["startColumn"]) for i, p in places if i.startswith("MRK1")] == MISTAKES
    assert {i for i, _ in places} <= {r["id"] for r in run["tool"]["driver"]["rules"]}
    assert len(run["artifacts"]) == 2

    for code, line, column in MISTAKES:
        assert f"::error file={wrong},line={line},col={column},title={code}::" in said["github"]
        assert f"{wrong}:{line}:{column}: {code}: " in said["text"]
    assert "2 mistakes" in said["text"]


def test_a_report_is_there_where_nothing_could_be_proved(tmp_path: Path, capsys: Captured) -> None:
    status, said = reports(tmp_path, str(tmp_path / "nowhere.rules"))
    assert status == 2
    assert all("MRK902" in text for text in said.values())
    assert "does not exist" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_takes_no_verdict_from_others(wrong: Path, capsys: Captured) -> None:
    folder = wrong.parent / "pack"
    folder.mkdir()
    (folder / "gone.rules").symlink_to(folder / "nothing")
    (folder / "good.rules").write_text('group g "one"\n\ngood: Add(x: i32, 0) ~> x\n')
    assert main(["prove", "--json", str(folder)]) == 2
    found = json.loads(capsys.readouterr().out)
    assert [(e["code"], e["file"]) for e in found["errors"]] == [("MRK903", str(folder / "gone.rules"))]
    assert [(r["name"], r["verdict"]) for r in found["rules"]] == [("pack.g.good", "proved")]
    with pytest.raises(OSError, match="No such file"):
        prove(folder)
    assert main(["check", "--json", str(folder)]) == 2
    checked = json.loads(capsys.readouterr().out)
    assert (checked["errors"], checked["rules"]) == (found["errors"], 1)


def test_the_sound_rules_of_a_file_with_mistakes_are_recorded_and_the_file_is_not(
    wrong: Path, capsys: Captured
) -> None:
    wrong.write_text(TEXT.replace("wrong: Sub(x: i32, y) ~> Sub(y, x)\n", ""))
    assert main(["prove", "--write", "--json", str(wrong)]) == 2
    (rule,) = json.loads(capsys.readouterr().out)["rules"]
    assert rule["verdict"] == "proved"
    assert main(["prove", "--json", str(wrong)]) == 2
    again = json.loads(capsys.readouterr().out)
    assert [e["code"] for e in again["errors"]] == ["MRK101", "MRK102"]
    assert [r["verdict"] for r in again["rules"]] == ["proved"]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ('helpers "morok.ir.quotients"\nextern scaled(x: index, c: const) -> (s: index)\n    ensures s == nothing\ngroup g "g"\n'
         "r: Mul(x: index, 2)\n    let h = scaled(x, 2)\n    => h\ns: Add(x: index, 0) ~> x\n", ["g.s"]),
        ('helpers "no.such.module"\nextern scaled(x: index, c: const) -> (s: index)\n    ensures s == x * c\ngroup g "g"\n'
         "r: Mul(x: index, 2)\n    let h = scaled(x, 2)\n    => h\ns: Add(x: index, 0) ~> x\n", ["g.s"]),
        ('group g "a"\nr: Add(x: i8, 0) ~> x\ngroup g "b"\nr: Sub(x: i8, 0) ~> x\n', ["g.r"]),
        ("group g 3\nr: Add(x: i8, 0) ~> x\n", ["g.r"]),
        ('group "g"\nr: Add(x: i8, 0) ~> x\ngroup h\ns: Add(x: i8, 0) ~> x\n', ["h.s"]),
        ('dialect 3\ngroup g "g"\nr: Add(x: i8, 0) ~> x\n', []),
    ],
    ids=["contract", "module", "second group", "head of a group", "group without a name", "dialect"],
)  # fmt: skip
def test_a_rule_is_sound_only_if_what_it_stands_on_is(text: str, whole: list[str]) -> None:
    checked, errors = partly_checked(text)
    assert errors
    assert ([] if checked is None else [r.name for r in checked.rules()]) == whole


def test_each_verdict_has_a_code_of_its_own_and_is_still_an_unproved_rule() -> None:
    codes = {
        kind: Verdict("r", "f", 1, kind).code for kind in ("refuted", "unknown", "inapplicable", "broken", "error")
    }
    assert codes["refuted"] == "MRK201"
    assert codes["unknown"] == UndecidedRuleError.code == "MRK209"
    assert codes["error"] == InternalProofError.code == "MRK211"
    assert len(set(codes.values())) == 5
    assert issubclass(UndecidedRuleError, UnprovedRuleError)
    assert issubclass(InternalProofError, UnprovedRuleError)


def test_no_code_is_that_of_two_errors() -> None:
    from morok import errors

    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.MorokError)]
    codes = [c.code for c in classes if "code" in vars(c)]
    assert len(set(codes)) == len(codes)


def test_check_looks_at_the_sound_rules_of_a_file_with_mistakes(wrong: Path, capsys: Captured) -> None:
    wrong.write_text(
        TEXT + "unused: And(x: i32, y) ~> x\nshown: Neg(Neg(x: i32)) ~> x\n    example Neg(Neg(y: i32)) ~> 3\n"
    )
    assert main(["check", "--json", str(wrong)]) == 2
    said = json.loads(capsys.readouterr().out)
    assert [(e["code"], e["line"], e["column"]) for e in said["errors"]][:2] == MISTAKES
    assert [e["code"] for e in said["errors"]][2:] == ["MRK107"]
    assert ("MRK111", 7) in {(f["code"], f["line"]) for f in said["lint"]}
    assert said["rules"] == 4


NAMELESS = (
    "Mul(x: i32, 1) ~> x", "(Add | Sub)(x: i32, 0) ~> x", "@zero ~> 1", "nothing", "Reduce { src", "nameless ~> x", "Add(x, (y"
)  # fmt: skip
AROUND = """\
helpers "promised"
HERE
extern negative(n: index) -> (y: index)?
    ensures n + y == 0
HERE
group g "one group"
HERE
good: Sub(Add(x: i32, y), y) ~> x
HERE
longer: Sub(x: i32, y)
    if vmin(y) == 0
    ~> Sub(x, y)
    "of four lines"
HERE
for op in binary [Add, Sub] {
    each: op(x: i32, @zero) ~> op(x, 0)
    HERE
    last: op(x: i32, @one) ~> op(x, 1)
}
HERE
called: Neg(x: index) let y = negative(x) => y
"""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("line", NAMELESS)
@pytest.mark.parametrize("place", range(AROUND.count("HERE")))
def test_a_rule_without_a_name_costs_the_rules_around_it_nothing(place: int, line: str) -> None:
    """A broken line took the rule, the head or the extern above it with it."""
    parts = AROUND.split("HERE")
    text = "".join([*parts[: place + 1], line, *parts[place + 1 :]])
    expected, none = partly_checked("".join(parts), "broken")
    found, mistakes = partly_checked(text, "broken")
    assert not none
    assert [r.name for r in found.rules()] == [r.name for r in expected.rules()]
    assert [e.place.line for e in mistakes if e.place][-1] == text.split(line)[0].count("\n") + 1
