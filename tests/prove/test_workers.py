"""Proving in processes: the same verdicts, and an answer for every rule whatever happens to a process."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections import deque
from pathlib import Path

import pytest

from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.prove import ledger, processes, workers
from morok.prove.limits import Limits
from morok.prove.verdict import Verdict

TEXT = 'group g "some"\n\n' + "\n".join(f"r{i}: Add(x: i32, {i}) ~> Add({i}, x)" for i in range(4))


def rules() -> list[CheckedRule]:
    return list(check_text(TEXT).rules())


def test_verdicts_come_in_the_order_of_the_rules_and_are_heard_of() -> None:
    heard: list[str] = []
    found = workers.prove_all(rules(), 10_000, 2, False, lambda _, v: heard.append(v.name))
    assert [v.name for v in found] == [f"g.r{i}" for i in range(4)]
    assert sorted(heard) == [v.name for v in found]
    assert all(v.verdict == "proved" for v in found)


def test_the_process_that_asks_collects_its_garbage_meanwhile() -> None:
    frozen: list[int] = []
    workers.prove_all(rules(), 10_000, 2, False, lambda _, v: frozen.append(gc.get_freeze_count()))
    assert frozen == [0] * 4


def test_a_process_that_dies_is_an_error_of_its_rule_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(rule: CheckedRule, budget: int, keep: bool, told: str) -> Verdict:
        if rule.name == "g.r1":
            os._exit(9)
        return Verdict(rule.name, rule.file, rule.line, "proved")

    monkeypatch.setattr(workers, "judge", judge)
    found = workers.prove_all(rules(), 1, 2, False)
    assert [v.verdict for v in found] == ["proved", "error", "proved", "proved"]
    assert not found[1].final


def test_a_process_that_hangs_is_killed_and_its_answer_never_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(rule: CheckedRule, budget: int, keep: bool, told: str) -> Verdict:
        if rule.name == "g.r2":
            time.sleep(60)
        return Verdict(rule.name, rule.file, rule.line, "proved")

    monkeypatch.setattr(workers, "judge", judge)
    found = workers.prove_all(rules(), 1, 2, False, limits=Limits(rule=0.5))
    assert [v.verdict for v in found] == ["proved", "proved", "unknown", "proved"]
    assert not multiprocessing.active_children()
    assert not found[2].final


def test_what_goes_wrong_inside_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(workers, "prove_rule", broken)
    found = workers.judge(rules()[0], 1, False)
    assert found.verdict == "error"
    assert "RuntimeError: broken" in found.message


def proved_by(monkeypatch: pytest.MonkeyPatch, jobs: int) -> list[Verdict]:
    """The verdicts of a prover that says only which process it is, in the order in which they come."""

    def judge(rule: CheckedRule, budget: int, keep: bool, told: str) -> Verdict:
        return Verdict(rule.name, rule.file, rule.line, "proved", message=str(os.getpid()))

    monkeypatch.setattr(workers, "judge", judge)
    heard: list[Verdict] = []
    workers.prove_all(rules(), 1, jobs, False, lambda _, v: heard.append(v))
    return heard


def test_a_process_does_one_proof_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({v.message for v in proved_by(monkeypatch, 1)}) == 1


def test_a_task_has_a_process_of_its_own_where_none_stays() -> None:
    found = dict(processes.in_processes(deque(range(4)), lambda _: os.getpid(), lambda _, why: 0, 1))
    assert len(set(found.values())) == 4


def test_measurements_share_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "is_measured", lambda rule: True)
    assert len({v.message for v in proved_by(monkeypatch, 1)}) == 1


def test_the_rules_of_most_instances_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'group g "some"\n\na: Add(x: i32, 1) ~> Add(1, x)\nb: Add(x: int, y) ~> Add(y, x)\nc: Neg(Neg(x: i32)) ~> x'
    monkeypatch.setattr("test_workers.rules", lambda: list(check_text(text).rules()))
    assert [v.name for v in proved_by(monkeypatch, 1)] == ["g.b", "g.a", "g.c"]


def test_what_took_long_when_it_was_proved_last_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pack.rules"
    file.write_text(TEXT)
    monkeypatch.setattr("test_workers.rules", lambda: list(check_file(file).rules()))
    page = ledger.page_path(file)
    spent = {"g.r0": 10, "g.r1": 3_000_000, "g.r2": 0, "g.r3": 6_000_000}
    records = {name: ledger.Record(name, "0" * 32, "proved", resources=n) for name, n in spent.items()}
    ledger.write_page(page, ledger.Page(file.name, records))
    assert [v.name for v in proved_by(monkeypatch, 1)] == ["g.r3", "g.r1", "g.r0", "g.r2"]
    page.write_text("{")  # what is damaged is nobody's guide
    assert [v.name for v in proved_by(monkeypatch, 1)] == sorted(spent)


def test_one_process_measures_while_another_proves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(rule: CheckedRule, budget: int, keep: bool, told: str) -> Verdict:
        if rule.name in ("g.r2", "g.r3"):  # proved for as long as the others are measured
            while len(list(tmp_path.iterdir())) < 2:
                time.sleep(0.01)
        else:
            (tmp_path / rule.name).touch()
        return Verdict(rule.name, rule.file, rule.line, "proved", message=str(os.getpid()))

    monkeypatch.setattr(workers, "is_measured", lambda rule: rule.name in ("g.r0", "g.r1"))
    monkeypatch.setattr(workers, "judge", judge)
    *measured, second, third = workers.prove_all(rules(), 1, 2, False)
    assert len({v.message for v in measured}) == 1
    assert measured[0].message not in (second.message, third.message)
