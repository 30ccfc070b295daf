"""Runs of the prover: what an earlier one has found is not asked again, limits of time, and the ledger alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.prove import api, fingerprints, found_earlier, ledger, promises, workers
from morok.prove.limits import Limits
from morok.prove.verdict import Verdict
from morok.tools.cli import main

TRUE = "double: Add(x: i32, x) ~> Mul(x, 2)"
FALSE = "wrong: Sub(x: i32, y) ~> Sub(y, x)"
HARD = "quotients: Idiv(Idiv(x: u64, y), z) ~> Idiv(Idiv(x, z), y)"
TEXT = f'group g "some"\n\n{TRUE}\n{FALSE}\n{HARD}\n'
ANSWERS = ["proved", "refuted", "unknown"]

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "pack.rules"
    file.write_text(TEXT)
    return file


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rules that a process was started for, in turn."""
    heard: list[str] = []
    whole = workers.prove_all

    def watched(rules: list[CheckedRule], *options: object) -> list[Verdict]:
        heard.extend(r.own for r in rules)
        return whole(rules, *options)  # type: ignore[arg-type]

    monkeypatch.setattr(workers, "prove_all", watched)
    return heard


@pytest.mark.long
def test_a_second_run_asks_nothing(pack: Path, asked: list[str]) -> None:
    first = api.prove(pack, jobs=1, budget=1)
    assert [v.verdict for v in first] == ANSWERS
    assert len(asked) == 3
    again = api.prove(pack, jobs=1, budget=1)
    assert len(asked) == 3
    assert [(v.name, v.verdict, v.message, v.scope) for v in again] == [
        (v.name, v.verdict, v.message, v.scope) for v in first
    ]
    assert again[1].counterexample == first[1].counterexample


@pytest.mark.long
def test_an_answer_is_one_of_a_budget_and_a_meaning(pack: Path, asked: list[str]) -> None:
    api.prove(pack, jobs=1, budget=1)
    api.prove(pack, jobs=1, budget=2)
    assert sorted(asked[3:]) == sorted(asked[:3])
    pack.write_text(TEXT.replace("Sub(y, x)", "Sub(y, y)"))
    api.prove(pack, jobs=1, budget=1)
    assert asked[6:] == ["g.wrong"]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "part", ["dsl/match/node_code.py", "ir/bounds.py", "rewrite/engine.py", "prove/replay.py", "dsl/grammar.lark"]
)
def test_an_answer_is_one_of_what_has_a_part_in_it(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "morok"
    shutil.copytree(fingerprints._PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprints, "_PACKAGE", copy)

    def bytes_now() -> str:
        fingerprints.answering_bytes.cache_clear()
        return fingerprints.answering_bytes()

    before = bytes_now()
    (copy / part).write_text((copy / part).read_text() + "\n# another\n")
    changed = bytes_now()
    monkeypatch.undo()
    assert before == bytes_now() != changed


@pytest.mark.long
def test_an_answer_of_other_files_is_found_anew(pack: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    api.prove(pack, jobs=1, budget=1)
    monkeypatch.setattr(found_earlier, "answering_bytes", lambda: "others")
    api.prove(pack, jobs=1, budget=1)
    assert sorted(asked[3:]) == sorted(asked[:3])


@pytest.mark.long
def test_a_rule_keeps_its_verdict_under_another_name(pack: Path, asked: list[str]) -> None:
    api.prove(pack, jobs=1, budget=1, write=True)
    records = len(json.loads(ledger.page_path(pack).read_text())["rules"])
    pack.write_text(TEXT.replace("double:", "twice:").replace("wrong:", "turned:").replace("group g", "group h"))
    found = api.prove(pack, jobs=1, budget=1, write=True)
    assert len(asked) == 3
    assert [(v.name, v.verdict) for v in found] == list(
        zip(("pack.h.twice", "pack.h.turned", "pack.h.quotients"), ANSWERS, strict=True)
    )
    page = json.loads(ledger.page_path(pack).read_text())
    assert [r["name"] for r in page["rules"]] == ["h.twice"]
    assert records == 1


@pytest.mark.long
def test_a_run_that_was_killed_goes_on(pack: Path, tmp_path: Path) -> None:
    program = (
        "import os\nfrom morok.prove import api\n"
        f"api.prove({str(pack)!r}, jobs=1, budget=1, done=lambda v: os.kill(os.getpid(), 9))\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program], check=False, env={**os.environ, "MOROK_CACHE_DIR": str(tmp_path / "cache")}
    )
    assert killed.returncode == -signal.SIGKILL
    found = api.prove(pack, jobs=1, budget=1)
    assert [v.verdict for v in found] == ANSWERS
    assert sum(v.recorded_earlier for v in found) == 1


@pytest.mark.long
def test_an_interrupt_while_the_ledger_is_written_leaves_it_whole(pack: Path, tmp_path: Path) -> None:
    """At whatever rule it comes: a page is the old one or the new one, and what was found is not asked again."""
    api.prove(pack, jobs=1, budget=1, write=True)
    before = ledger.page_path(pack).read_text()
    pack.write_text(TEXT.replace("Mul(x, 2)", "Mul(2, x)"))
    command = [
        sys.executable,
        "-m",
        "morok",
        "prove",
        "--write",
        "--jobs",
        "1",
        "--budget",
        "1",
        "--format",
        "jsonl",
        str(pack),
    ]
    environment = {**os.environ, "MOROK_CACHE_DIR": str(tmp_path / "another")}
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert run.stdout is not None
    assert "verdict" in json.loads(run.stdout.readline())
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=120)
    assert "Traceback" not in said
    assert run.returncode in (130, 1)  # 1: it was done already
    page = ledger.page_path(pack)
    assert [p.name for p in page.parent.iterdir()] == [page.name]
    if run.returncode == 130:
        assert page.read_text() == before
    again = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert again.returncode == 1
    assert ledger.read_page(page) is not None
    assert [r["name"] for r in json.loads(page.read_text())["rules"]] == ["g.double"]


@pytest.mark.long
def test_a_limit_of_time_makes_unknown_what_it_ends_and_nothing_is_recorded(
    pack: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    judge = workers.judge

    def slow(rule: CheckedRule, budget: int, keep: bool, told: str) -> Verdict:
        if rule.own == "g.quotients":
            time.sleep(60)
        return judge(rule, budget, keep, told)

    monkeypatch.setattr(workers, "judge", slow)
    found = api.prove(pack, jobs=2, budget=1, rule_limit=1.0, only="*.quotients")
    assert [v.verdict for v in found] == ["unknown"]
    assert "within 1 s" in found[0].message
    found = api.prove(pack, jobs=1, budget=1, time_limit=1e-9)
    assert [v.verdict for v in found] == ["unknown"] * 3
    assert all("--time-limit" in v.message and v.code == "MRK209" for v in found)
    monkeypatch.setattr(workers, "judge", judge)
    asked.clear()
    assert [v.verdict for v in api.prove(pack, jobs=1, budget=1)] == ANSWERS
    assert len(asked) == 3


def test_the_time_of_all_rules_begins_with_reading(
    pack: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    read = api.read_bytes

    def slow(file: Path) -> bytes:
        time.sleep(0.2)
        return read(file)

    monkeypatch.setattr(api, "read_bytes", slow)
    found = api.prove(pack, jobs=1, budget=1, time_limit=0.1)
    assert [v.verdict for v in found] == ["unknown"] * 3
    assert all("--time-limit" in v.message and not v.final for v in found)
    assert asked == []  # no solver is loaded for it


def test_no_contract_is_tested_when_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_helpers.py").write_text("import morok\n\n\n@morok.helper\ndef two(c):\n    return 2\n")
    file = tmp_path / "pack.rules"
    extern = "extern two(c: const) -> (f: const)\n    ensures f == 2"
    file.write_text(
        f'helpers "slow_helpers"\n\n{extern}\n\ngroup g "g"\n\nr: Shl(x: i32, @const(c)) if c == 1 let f = two(c) ~> Mul(x, f)\n'
    )
    monkeypatch.setattr(promises, "_tested", lambda *_: pytest.fail("it is tested"))
    (found,) = api.prove(file, jobs=1, trust_helpers=True, time_limit=1e-9)
    assert found.verdict == "unknown"


def test_what_is_recorded_is_not_forgotten_when_the_time_is_over(pack: Path, asked: list[str], tmp_path: Path) -> None:
    pack.write_text(f'group g "some"\n\n{TRUE}\n')
    api.prove(pack, jobs=1, write=True)
    page = ledger.page_path(pack).read_text()
    assert [v.verdict for v in api.prove(pack, jobs=1, write=True, time_limit=1e-9)] == ["proved"]
    shutil.rmtree(tmp_path / "cache")  # as on another machine, which does not trust the page
    assert [v.verdict for v in api.prove(pack, jobs=1, write=True, time_limit=1e-9)] == ["unknown"]
    assert ledger.page_path(pack).read_text() == page
    pack.write_text(f'group g "some"\n\n{TRUE.replace("Mul(x, 2)", "Mul(2, x)")}\n')
    api.prove(pack, jobs=1, write=True, time_limit=1e-9)
    assert json.loads(ledger.page_path(pack).read_text())["rules"] == []


def test_limits_say_what_ended_the_work() -> None:
    now = time.monotonic()
    assert Limits().reached(now) == ""
    assert "within 3 s" in Limits(rule=3.0).reached(now - 4)
    assert "--time-limit" in Limits.of(None, 1e-9).reached(now)


@pytest.mark.long
def test_frozen_is_the_ledger_or_nothing_and_no_solver(pack: Path, tmp_path: Path, capsys: Captured) -> None:
    pack.write_text(f'group g "some"\n\n{TRUE}\n')
    assert main(["prove", str(pack)]) == 0  # this machine knows it, the ledger does not
    assert main(["prove", "--frozen", str(pack)]) == 3
    assert "MRK209" in capsys.readouterr().out
    assert main(["prove", "--write", str(pack)]) == 0
    program = (
        "import sys\n"
        "for name in ('z3', 'cvc5', 'bitwuzla'): sys.modules[name] = None\n"
        "from morok.tools.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    environment = {**os.environ, "MOROK_CACHE_DIR": str(tmp_path / "another machine")}

    def frozen() -> int:
        line = [sys.executable, "-c", program, "prove", "--frozen", str(pack)]
        return subprocess.run(line, check=False, capture_output=True, env=environment).returncode

    assert frozen() == 0
    pack.write_text(f'group g "some"\n\n{TRUE.replace("Mul(x, 2)", "Mul(2, x)")}\n')
    assert frozen() == 3
    capsys.readouterr()


def test_options_that_need_a_solver_are_refused_with_frozen(pack: Path, capsys: Captured) -> None:
    for option in ("--write", "--compare", "--no-cache", "--bounds"):
        assert main(["prove", "--frozen", option, str(pack)]) == 2
    for option in ("--rule-limit", "--time-limit"):
        for value in ("0", "-1", "soon", "nan", "inf"):
            assert main(["prove", option, value, str(pack)]) == 2
    assert "MRK902" in capsys.readouterr().err


@pytest.mark.long
def test_who_watches_hears_how_many_there_are_and_of_each(pack: Path) -> None:
    told: list[object] = []
    api.prove(pack, jobs=1, budget=1, total=told.append, done=lambda v: told.append(v.name))
    assert told[0] == 3
    assert sorted(map(str, told[1:])) == sorted(f"pack.{r.own}" for r in check_text(TEXT).rules())
    told.clear()
    api.prove(pack, jobs=1, budget=1, total=told.append, done=lambda v: told.append(v.name))
    assert (told[0], len(told)) == (3, 4)
