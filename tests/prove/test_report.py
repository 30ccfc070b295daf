"""Verdicts as text, JSON, JUnit, SARIF and GitHub annotations; exit statuses."""

from __future__ import annotations

import io
import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from morok.dsl.check import check_text
from morok.errors import Place, RuleTypeError
from morok.prove import api, report
from morok.prove.counterexample import Counterexample
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.verdict import Verdict, exit_status
from morok.prove.workers import judge

GOOD = Verdict("g.good", "a.rules", 3, "proved", ("i8: bit vectors",), 0.25, ("split",))
BAD = Verdict(
    "g.bad", "a.rules", 7, "refuted", message='x = 1: "<&>" 100%\nmore',
    counterexample={"dtype": "i8", "bindings": {"x": 1}, "lhs": 0, "rhs": 1, "confirmed": True},
)  # fmt: skip
HARD = Verdict("g.hard", "b.rules", 9, "unknown", message="out of resources")
ALL = [GOOD, BAD, HARD]


def test_json_is_what_is_promised() -> None:
    data = json.loads(report.render(ALL, "json"))
    assert set(data) == {"rules", "errors", "files", "summary"}
    assert {"name", "file", "line", "verdict", "scope", "seconds", "helpers"} <= set(data["rules"][0])
    assert data["rules"][0]["scope"] == ["i8: bit vectors"]
    assert data["rules"][1]["counterexample"]["confirmed"] is True
    assert data["summary"]["total"] == 3
    assert data["summary"]["refuted"] == 1


def test_text_names_place_and_reason_of_what_cannot_be_used() -> None:
    text = report.render(ALL, "text")
    assert "a.rules:7:" in text
    assert "g.bad is refuted" in text
    assert "g.hard is unknown" in text
    assert "3 rules: 1 proved, 1 refuted, 1 unknown" in text
    stream = io.StringIO()
    report.print_text(ALL, stream)
    assert stream.getvalue() == text  # plain where it is no terminal


def test_people_read_the_first_names_of_a_long_scope_and_programs_all() -> None:
    pairs = ", ".join(f"i8/f{n}" for n in range(40))
    wide = replace(GOOD, scope=(f"{pairs}: bit vectors", f"excluded by the guards: {pairs}"))
    text = report.render([wide], "text")
    assert text.count("i8/f7, 32 more") == 2
    assert "32 more: bit vectors" in text
    assert json.loads(report.render([wide], "json"))["rules"][0]["scope"] == list(wide.scope)


def test_junit_sarif_and_github_are_well_formed() -> None:
    suite = ET.fromstring(report.render(ALL, "junit"))
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    sarif = json.loads(report.render(ALL, "sarif"))
    results = sarif["runs"][0]["results"]
    assert [r["level"] for r in results] == ["error", "warning"]
    assert results[0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    lines = report.render(ALL, "github").splitlines()
    assert lines[0].startswith("::error file=a.rules,line=7,")
    assert "100%25%0Amore" in lines[0]
    assert lines[1].startswith("::warning file=b.rules,line=9,")


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        (("proved", "bounded", "approximate", "defined"), 0),
        (("proved", "refuted", "unknown"), 1),
        (("inapplicable",), 1),
        (("unknown", "proved"), 3),
        (("error", "unknown"), 4),
        ((), 0),
    ],
)
def test_exit_status(verdicts: tuple[str, ...], status: int) -> None:
    assert exit_status([Verdict("r", "f", 1, v) for v in verdicts]) == status


@pytest.mark.parametrize("form", report.FORMATS)
def test_a_counterexample_in_which_an_index_is_invalid_is_reported(form: str) -> None:
    """It was no JSON, and what was found of all other rules was lost with it."""
    text = "Where(c, Where(d, x: index?, Invalid), y: index?) ~> Where(And(c, d), x, Where(c, y, y))"
    found = judge(next(iter(check_text(f'group g "g"\n\nr: {text}\n').rules())), DEFAULT_BUDGET, False)
    assert found.counterexample is not None
    assert found.counterexample["lhs"] == "Invalid"
    assert "the pattern is Invalid" in report.render([found], form)


def test_what_no_evaluation_gave_is_null_in_json_and_not_a_word() -> None:
    found = Counterexample("i8", {"x": math.nan, "y": [1, None]}, None, -0.0, False)
    assert found.json() | {"dtype": ""} == {
        "dtype": "",
        "bindings": {"x": "nan", "y": [1, None]},
        "lhs": None,
        "rhs": "-0.0",
        "confirmed": False,
    }


def test_the_column_of_a_rule_is_told_as_that_of_a_mistake_is(tmp_path: Path) -> None:
    file = tmp_path / "a.rules"
    file.write_text('group g "g"\n\nfor op in binary [Sub] {\n    same: op(x: i32, y) ~> op(y, x)\n}\n')
    (found,) = api.prove(file, jobs=1)
    assert (found.verdict, found.line, found.column) == ("refuted", 4, 5)
    said = {form: report.render([found], form) for form in report.FORMATS}
    assert f"{file}:4:5: {found.code}" in said["text"]
    assert json.loads(said["json"])["rules"][0]["column"] == json.loads(said["jsonl"].splitlines()[0])["column"] == 5
    region = json.loads(said["sarif"])["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 4, "startColumn": 5}
    assert 'line="4" column="5"' in said["junit"]
    assert "line=4,col=5," in said["github"]


@pytest.mark.parametrize("kind", ["refuted", "unknown", "broken", "error"])
def test_only_what_is_proved_has_a_scope(kind: str) -> None:
    assert Verdict("g.r", "a.rules", 1, kind, ("any number of lanes",)).scope == ()
    assert replace(GOOD, verdict=kind).scope == ()
    assert GOOD.scope == Verdict("g.r", "a.rules", 1, "inapplicable", GOOD.scope).scope == ("i8: bit vectors",)


def test_a_file_s_name_ends_no_property_of_an_annotation() -> None:
    found = Verdict("g.r", "a,b:c%\n.rules", 3, "refuted")
    said = report.as_github(report.Report(verdicts=[found]))
    assert "file=a%2Cb%3Ac%25%0A.rules,line=3" in said


@pytest.mark.parametrize("form", ["junit", "text", "github"])
def test_what_terminals_obey_or_xml_cannot_say_is_escaped(form: str) -> None:
    odd = "\x1b[31mred\x1b[0m \x00 \x9b \uffff \ud800"
    mistake = RuleTypeError(odd, place=Place(f"b{odd}.rules", 3, 4))
    found = Verdict("g.r", f"a\n{odd}.rules", 3, "broken", message=f"raises {odd}\nmore")
    said = report.render([found], form, [mistake], [f"c{odd}.rules"])
    assert not {*"\x1b\x00\x9b\uffff\ud800"} & {*said}
    assert "raises \\x1b[31mred\\x1b[0m \\x00 \\x9b \\uffff \\ud800" in said
    if form == "junit":
        ET.fromstring(said)
