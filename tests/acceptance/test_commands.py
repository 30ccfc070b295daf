"""The acceptance bullets about commands: exit statuses, codes, one JSON document each."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import morok
from acceptance.notation import ROOT, command
from morok.errors import LedgerError, MorokError, RuleTypeError, UnknownNameError, UnprovedRuleError, VacuousRuleError
from morok.tools import doctor
from morok.tools.cli import COMMANDS, main

GOOD = 'group good "true ones"\n\nback: Sub(Add(x: i32, y), y) ~> x\n    "wrapping included"\n'
FALSE = 'group bad "false ones"\n\nshift: Idiv(x: i32, 4) ~> Shr(x, 2)\n    "Idiv truncates, Shr rounds down"\n'
VACUOUS = 'group bad "never fires"\n\nnever: Add(x: i32, @const(c)) if c > 3 and c < 2 ~> x\n    "impossible"\n'
ILL_TYPED = 'group bad "mixed"\n\nmixed: Add(x: i32, y: f32) ~> x\n    "two dtypes"\n'
UNKNOWN_OP = 'group bad "unknown"\n\nunknown: Addd(x: i32, y) ~> x\n    "no such op"\n'
SYNTAX = 'group bad "open"\n\nopen: Add(x: i32, y ~> x\n    "unclosed"\n'

Captured = pytest.CaptureFixture[str]


def write(folder: Path, text: str, name: str = "my.rules") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def document(capsys: Captured) -> Any:
    """The one JSON document on stdout, and nothing else there."""
    return json.loads(capsys.readouterr().out)


# prove


def test_a_true_rule_is_proved(tmp_path: Path, capsys: Captured) -> None:
    assert main(["prove", "--json", str(write(tmp_path, GOOD))]) == 0
    report = document(capsys)
    (rule,) = report["rules"]
    assert set(report) >= {"rules", "summary"}
    assert set(rule) >= {"name", "file", "line", "verdict", "scope", "seconds", "helpers"}
    assert (rule["name"].endswith("good.back"), rule["line"], rule["verdict"]) == (True, 3, "proved")


def test_a_false_rule_is_refuted_with_a_confirmed_counterexample(tmp_path: Path, capsys: Captured) -> None:
    file = write(tmp_path, FALSE)
    assert main(["prove", "--json", str(file)]) == 1
    (rule,) = document(capsys)["rules"]
    found = rule["counterexample"]
    assert rule["verdict"] == "refuted"
    assert found["confirmed"] is True
    assert found["dtype"] == "i32"
    x = int(found["bindings"]["x"])
    assert (int(found["lhs"]), int(found["rhs"])) == (-(-x // 4) if x < 0 else x // 4, x >> 2)
    assert int(found["lhs"]) != int(found["rhs"])
    with pytest.raises(UnprovedRuleError) as caught:
        morok.load_rules(file)
    assert caught.value.code == "MRK201"
    assert f"{file}:3" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "status", "code", "line"),
    [(ILL_TYPED, 2, "MRK102", 3), (UNKNOWN_OP, 2, "MRK103", 3), (SYNTAX, 2, "MRK101", 3)],
    ids=["ill-typed", "unknown op", "syntax error"],
)
def test_each_mistake_has_its_code(
    text: str, status: int, code: str, line: int, tmp_path: Path, capsys: Captured
) -> None:
    file = write(tmp_path, text)
    for name in ("prove", "check"):
        assert main([name, str(file)]) == status
        said = capsys.readouterr().err
        assert code in said
        assert f"{file}:{line}:" in said
        assert "Traceback" not in said
    with pytest.raises(MorokError) as caught:
        morok.load_rules(file)
    assert caught.value.code == code
    if code == "MRK102":
        assert isinstance(caught.value, RuleTypeError)
    if code == "MRK103":
        assert isinstance(caught.value, UnknownNameError)
        assert "Add" in str(caught.value)  # the name that was meant


def test_a_vacuous_rule_is_inapplicable(tmp_path: Path, capsys: Captured) -> None:
    file = write(tmp_path, VACUOUS)
    assert main(["prove", "--json", str(file)]) == 1
    (rule,) = document(capsys)["rules"]
    assert rule["verdict"] == "inapplicable"
    assert main(["prove", str(file)]) == 1
    said = capsys.readouterr()
    assert "MRK202" in said.out + said.err
    with pytest.raises(UnprovedRuleError) as caught:
        morok.load_rules(file)
    assert isinstance(caught.value, VacuousRuleError)


@pytest.mark.long
def test_an_unknown_verdict_is_status_3(tmp_path: Path, capsys: Captured) -> None:
    hard = 'group hard "hard"\n\nquotients: Idiv(Idiv(x: u64, y), z) ~> Idiv(Idiv(x, z), y)\n    "true"\n'
    assert main(["prove", "--json", "--no-cache", "--budget", "1", str(write(tmp_path, hard))]) == 3
    (rule,) = document(capsys)["rules"]
    assert rule["verdict"] == "unknown"


def test_a_refuted_rule_outweighs_a_true_one(tmp_path: Path, capsys: Captured) -> None:
    write(tmp_path, GOOD, "a.rules")
    write(tmp_path, FALSE, "b.rules")
    assert main(["prove", str(tmp_path)]) == 1
    assert main(["prove", "--only", "*good*", str(tmp_path)]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif", "github"])
def test_formats(form: str, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "report"
    assert main(["prove", "--format", f"{form}={out}", str(write(tmp_path, FALSE))]) == 1
    assert capsys.readouterr().out == ""
    text = out.read_text()
    assert "shift" in text
    if form in ("json", "sarif"):
        json.loads(text)
    if form == "junit":
        import xml.etree.ElementTree as ET

        assert ET.fromstring(text).iter("failure")


# the other commands


def test_check(tmp_path: Path, capsys: Captured) -> None:
    file = write(tmp_path, GOOD + '\nneg: Neg(Neg(x: i32)) ~> x\n    "twice"\n    example Neg(Neg(y: i32)) ~> y: i32\n')
    assert main(["check", "--json", str(file)]) == 0
    report = document(capsys)
    assert (report["errors"], report["rules"]) == ([], 2)
    wrong = write(
        tmp_path, GOOD + '\nneg: Neg(Neg(x: i32)) ~> x\n    "twice"\n    example Neg(Neg(y: i32)) ~> 3\n', "wrong.rules"
    )
    assert main(["check", str(wrong)]) == 2
    assert "MRK107" in capsys.readouterr().err


def test_lint_findings_fail_only_when_strict(tmp_path: Path, capsys: Captured) -> None:
    file = write(tmp_path, 'group lint "lint"\n\nidle: Sub(x: i32, y) ~> x\n')  # y is bound and never used
    assert main(["check", "--json", str(file)]) == 0
    assert "MRK111" in {f["code"] for f in document(capsys)["lint"]}
    assert main(["check", "--strict", str(file)]) == 1
    capsys.readouterr()


def test_several_mistakes_are_all_reported(tmp_path: Path, capsys: Captured) -> None:
    text = 'group t "t"\n\na: Addd(x: i32, y) ~> x\nb: Sub(x: i32, y ~> x\nc: Mul(x: i32, y) ~> z\nd: Add(x: i32, y) ~> x\n'
    assert main(["check", "--json", str(write(tmp_path, text))]) == 2
    assert [e["line"] for e in document(capsys)["errors"]] == [3, 4, 5]


def test_fmt(tmp_path: Path, capsys: Captured) -> None:
    file = write(tmp_path, 'group   t  "t"\n# a comment\na:   Sub( x:i32,y )   ~>   x\n')
    assert main(["fmt", "--check", str(file)]) == 1
    capsys.readouterr()
    assert main(["fmt", "--check", "--json", str(file)]) == 1
    assert document(capsys) == {"changed": [str(file)], "written": False}
    before = file.read_text()
    assert before == 'group   t  "t"\n# a comment\na:   Sub( x:i32,y )   ~>   x\n'
    assert main(["fmt", str(file)]) == 0
    assert main(["fmt", "--check", str(file)]) == 0
    after = file.read_text()
    assert "# a comment" in after
    assert "a: Sub(x: i32, y) ~> x" in after
    assert main(["fmt", "--check", str(write(tmp_path, SYNTAX))]) == 2
    capsys.readouterr()


@pytest.mark.long
def test_explain(tmp_path: Path, capsys: Captured) -> None:
    assert main(["explain", "identity_and_zero.add_zero"]) == 0
    said = capsys.readouterr().out
    assert "add_zero: Add[x: !float, @zero] ~> x" in said
    assert "verdict: proved" in said
    assert main(["explain", "MRK201"]) == 0
    assert "usable verdict" in capsys.readouterr().out
    assert main(["explain", "--json", "add_zero"]) == 0
    (row,) = document(capsys)["rules"]
    assert (row["name"], row["verdict"]) == ("identity_and_zero.add_zero", "proved")
    assert main(["explain", "--json", "mrk101"]) == 0
    assert document(capsys)["code"] == "MRK101"
    assert main(["explain", "shift", "--json", "--rules", str(write(tmp_path, FALSE))]) == 0
    (row,) = document(capsys)["rules"]
    assert (row["verdict"], row["counterexample"]["confirmed"]) == ("refuted", True)
    assert main(["explain", "no_such.rule"]) == 2
    assert main(["explain", "MRK999"]) == 2
    capsys.readouterr()


def test_simplify(tmp_path: Path, capsys: Captured) -> None:
    assert main(["simplify", "Idiv(Add(Mul(x: index[0..=31], 4), 3), 4)"]) == 0
    assert capsys.readouterr().out == "x: index[0..=31]\n"
    assert main(["simplify", "--json", "Add(x: i32, 0)"]) == 0
    report = document(capsys)
    assert (report["before"], report["after"]) == ("Add(x: i32, 0)", "x: i32")
    assert [f["rule"] for f in report["fired"]] == ["identity_and_zero.add_zero"]
    file = write(tmp_path, 'group d "d"\n\nshift: Add(x: int, x) ~> Shl(x, 1)\n    "wrapping included"\n')
    assert main(["simplify", "Add(x: i32, x)", "--rules", str(file)]) == 0
    assert capsys.readouterr().out == "Shl(x: i32, 1)\n"
    assert main(["simplify", "--trace", "Add(x: i32, 0)"]) == 0
    assert "identity_and_zero.add_zero" in capsys.readouterr().out
    assert main(["simplify", "Add(x: i32"]) == 2
    assert "MRK402" in capsys.readouterr().err
    assert main(["simplify", "Add(x: i32, 0)", "--rules", str(write(tmp_path, FALSE, "false.rules"))]) == 2
    assert "MRK201" in capsys.readouterr().err


PROGRAM = "import sys\nfrom morok import Tensor\nprint((Tensor([1.0, 2.0]) + 1).tolist(), sys.argv[1:])\n"


@pytest.mark.long
def test_run_and_trace(tmp_path: Path) -> None:
    program = write(tmp_path, PROGRAM, "program.py")
    result = command("run", program, "a", "--b")
    assert (result.returncode, result.stdout) == (0, "[2.0, 3.0] ['a', '--b']\n"), result.stderr
    saved = tmp_path / "trace.json"
    result = command("trace", "--save", saved, program)
    assert result.returncode == 0, result.stderr
    sections = [line for line in result.stdout.splitlines() if line.startswith("=== ")]
    assert len(sections) == 22
    # and nothing but what passes and stages did: it can be piped
    assert result.stdout.startswith("--- schedule: pass 1: ")
    assert "[2.0, 3.0]" not in result.stdout
    assert result.stderr == "[2.0, 3.0] []\n"
    assert any("(no change)" in line for line in sections)
    assert "firings" in json.loads(saved.read_text())


def test_rules(capsys: Captured) -> None:
    assert main(["rules", "--json"]) == 0
    rows = document(capsys)["rules"]
    assert len(rows) > 300
    usable = {"proved", "bounded", "approximate", "defined"}
    assert {r["name"]: r["verdict"] for r in rows if r["verdict"] not in usable} == {}
    assert main(["rules", "--count", "--json"]) == 0
    assert document(capsys)["rules"] == len(rows)


def test_pipeline(capsys: Captured) -> None:
    assert main(["pipeline", "--json"]) == 0
    assert [s["number"] for s in document(capsys)["stages"]] == list(range(1, 23))


def test_config(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOROK_NOOPT", "1")
    assert main(["config", "--json"]) == 0
    rows = {r["name"]: r for r in document(capsys)["settings"]}
    assert {
        "MOROK_DEBUG",
        "MOROK_NOOPT",
        "MOROK_DEVECTORIZE",
        "MOROK_DEVICE",
        "MOROK_CHECK",
        "MOROK_TRACE",
        "MOROK_CACHE_DIR",
        "MOROK_FAST_MATH",
    } <= set(rows)
    assert (rows["MOROK_NOOPT"]["source"], rows["MOROK_DEVICE"]["source"]) == ("environment", "default")
    assert all(r["meaning"] for r in rows.values())
    monkeypatch.setenv("MOROK_DEVICE", "TOASTER")
    assert main(["config"]) == 2
    said = capsys.readouterr().err
    assert "MRK901" in said
    assert "CPU, CUDA or NULL" in said


def test_doctor(capsys: Captured) -> None:
    assert main(["doctor", "--json"]) == 0
    assert {"morok", "python", "CPU", "CUDA", "rules"} <= set(document(capsys))


def test_doctor_says_that_the_ledger_is_damaged(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def damaged() -> None:
        raise LedgerError("no ledger")

    monkeypatch.setattr(doctor, "catalogue", damaged)
    assert main(["doctor", "--json"]) == 0
    assert "no ledger" in document(capsys)["rules"]


def test_wrong_use(tmp_path: Path, capsys: Captured) -> None:
    assert main(["prov"]) == 2
    assert "did you mean prove" in capsys.readouterr().err
    missing = tmp_path / "missing"
    for name in ("prove", "check", "fmt", "run", "trace"):
        assert main([name, str(missing)]) == 2, name
        said = capsys.readouterr()
        assert str(missing) in said.err
        assert said.out == ""
    nowhere = missing / "report"
    file = write(tmp_path, GOOD)
    for arguments in (["--format", f"json={nowhere}"], ["--no-cache", "--smt2", str(file / "folder")]):
        assert main(["prove", *arguments, str(file)]) == 2
        assert str(arguments[-1]).removeprefix("json=") in capsys.readouterr().err
    assert main(["trace", "--save", str(nowhere), str(write(tmp_path, PROGRAM, "program.py"))]) == 2
    assert str(nowhere) in capsys.readouterr().err
    assert main([]) == 2
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    assert f"morok {name}" in capsys.readouterr().out


# the gate


@pytest.mark.long
def test_a_changed_rule_is_refused_until_it_is_proved_again(tmp_path: Path) -> None:
    """In a copy of the library: a comment may change, a rule's meaning may not; a proof of the new meaning opens the gate."""
    hide = shutil.ignore_patterns("__pycache__")
    for name in ("morok", "rules", "proofs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=hide)
    file = tmp_path / "rules" / "algebra" / "identity.rules"
    text = file.read_text()
    environment = {"PYTHONPATH": str(tmp_path), "MOROK_CACHE_DIR": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}

    def morok_command(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "morok", *arguments]
        return subprocess.run(
            line, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment, check=False
        )

    assert text.count("add_zero: Add[x: !float, @zero] ~> x") == 1
    file.write_text("# a comment changes no meaning\n" + text)
    result = morok_command("simplify", "Add(x: i32, 0)")
    assert (result.returncode, result.stdout) == (0, "x: i32\n"), result.stderr
    program = write(tmp_path, "from morok import Tensor\nprint((Tensor([1.0]) + 1).tolist())\n", "program.py")
    file.write_text(text.replace("add_zero: Add[x: !float, @zero] ~> x", "add_zero: Add[x: !float, @one] ~> x"))
    for arguments in (["simplify", "Add(x: i32, 0)"], ["run", str(program)]):
        result = morok_command(*arguments)
        assert result.returncode == 2, arguments
        assert "MRK201" in result.stderr
        assert "identity_and_zero.add_zero" in result.stderr
        assert "Traceback" not in result.stderr
    assert morok_command("prove", "--only", "identity_and_zero.add_zero", str(file)).returncode == 1
    file.write_text(text.replace("add_zero: Add[x: !float, @zero] ~> x", "add_zero: Add[x: int, @zero] ~> x"))
    assert morok_command("simplify", "Add(x: i32, 0)").returncode == 2
    proved = morok_command("prove", "--write", str(file))
    assert proved.returncode == 0, proved.stdout + proved.stderr
    result = morok_command("simplify", "Add(x: i32, 0)")
    assert (result.returncode, result.stdout) == (0, "x: i32\n"), result.stderr
