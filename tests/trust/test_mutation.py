"""Mutation: what is changed in a proved rule is noticed, or is a true rule itself."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from morok.accuracy import judge_trial
from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.errors import LedgerError
from morok.prove import workers
from morok.prove.trust import differential, mutation, mutation_record
from morok.prove.trust.mutants import MEASURED, Mutant, mutants
from morok.prove.verdict import Verdict
from morok.rewrite import folders
from morok.tools import cli

TRUE = Path(__file__).parent.parent / "prove" / "true.rules"
BUDGET = 600_000
IN_RANGE = "Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) < n ~> x"


def rule(text: str) -> CheckedRule:
    return next(iter(check_text(f'group g "mutated"\n\nr: {text}\n    "a rule"\n').rules()))


def outcomes(checked: CheckedRule, *changes: str) -> dict[str, mutation.Outcome]:
    pairs = [(r, m) for r, m in mutation.every([checked]) if not changes or m.change in changes]
    return {o.change: o for o in mutation.run(pairs, BUDGET)}


def test_mutants_differ_from_the_rule_and_from_each_other() -> None:
    checked = rule(IN_RANGE)
    found = list(mutants(checked.syntax, checked.dialect))
    changes = [m.change for m in found]
    for expected in (
        "guard 1 dropped",
        "guard 1: < to <=",
        "guard 1: and to or",
        "guard 1: vmin to vmax",
        "guard 1: 0 to -1",
    ):
        assert expected in changes
    assert len(set(changes)) == len(changes)
    assert all(m.rule != checked.syntax for m in found)


def test_a_plainly_stronger_guard_is_no_mutant() -> None:
    changes = [m.change for m in mutants(rule(IN_RANGE).syntax, rule(IN_RANGE).dialect)]
    assert "guard 1: <= to <" not in changes
    assert "guard 1: 0 to 1" not in changes
    turned = rule("Mod(x: index, @const(n)) if not (vmin(x) <= 0 or vmax(x) >= n) ~> x")
    changes = [m.change for m in mutants(turned.syntax, turned.dialect)]
    assert "guard 1: <= to <" in changes  # under a `not` it is weaker
    assert "guard 1: 0 to 1" in changes


@pytest.mark.long
def test_guards_are_needed() -> None:
    found = outcomes(rule(IN_RANGE))
    for change in (
        "guard 1 dropped",
        "guard 1: < to <=",
        "guard 1: vmin to vmax",
        "guard 1: and to or",
        "guard 1: 0 to -1",
    ):
        assert found[change].noticed, change
    assert {o.change for o in found.values() if not o.noticed} == set()


@pytest.mark.long
def test_a_guard_stronger_than_its_proof_needs_is_a_finding() -> None:
    found = outcomes(
        rule("Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) + 1 < n ~> x"), "guard 1: < to <=", "guard 1: 1 to 0"
    )
    assert {o.kind for o in found.values()} == {"wider"}
    first, _ = mutation_record.findings(found.values(), {})
    assert "guard 1: < to <=" in first
    assert mutation_record.findings(found.values(), {"g.r": dict.fromkeys(found, "on purpose")}) == []


@pytest.mark.long
def test_a_wider_guard_is_found_at_the_numbers_that_the_rule_mentions() -> None:
    found = outcomes(
        rule(
            "Cast(Max(x: index, 0), i32) if vmax(x) < 1 << 31 and -(1 << 31) <= vmin(x) ~> Max(Cast(x, i32), const(0, i32))"
        ),
        "guard 1: < to <=",
    )
    assert found["guard 1: < to <="].kind == "wider"


@pytest.mark.long
def test_evaluation_shows_what_is_false_by_values() -> None:
    assert differential.counterexample(rule("Mod(x: i8, @const(n)) if n > 0 ~> x")) is not None
    assert differential.counterexample(rule("Lt(Neg(x: i8), Neg(y)) ~> Lt(y, x)")) is not None
    assert differential.counterexample(rule("Add[x: f16, @zero] ~> x")) is not None
    assert differential.counterexample(rule("Where(c, x: index?, Invalid) ~> x")) is not None
    assert differential.counterexample(rule(IN_RANGE)) is None
    assert differential.counterexample(rule("Add[x: f16, @zero] ~> x assuming nsz")) is None
    assert differential.counterexample(rule("Add[x: f16, @zero] ~> Neg(x) assuming nsz")) is not None


def credulous(rule: CheckedRule, *_: object) -> Verdict:
    return Verdict(rule.name, rule.file, rule.line, "proved")


def test_a_prover_that_calls_a_false_rule_true_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "judge", credulous)
    monkeypatch.setattr(mutation, "CROSS_CHECK", 1)
    checked = rule(IN_RANGE)
    found = mutation.run(mutation.every([checked]), BUDGET)
    assert {o.kind for o in found} == {"disputed", "ill-typed"} or {o.kind for o in found} == {"disputed"}
    assert "the prover says it is true" in mutation_record.findings(found, {})[0]


@pytest.mark.long
def test_a_mutant_that_ends_its_process_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "judge", lambda *_: os._exit(7))
    (found,) = outcomes(
        rule("Add(x: index, @const(c)) if c > 3 ~> Sub(x, const(-c, index))"), "guard 1: > to >="
    ).values()
    assert (found.kind, "died" in found.detail) == ("error", True)
    assert mutation_record.findings([found], {}) == [f"g.r: guard 1: > to >=: {found.detail}"]


def test_one_refutation_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    said = {"i8": "proved", "bool": "proved", "u8": "refuted"}

    def judge(rule: CheckedRule, *_: object) -> Verdict:
        dtypes = tuple(d for i in rule.instances for d in i.dtypes.values())
        asked.append(dtypes)
        worst = next(k for k in ("refuted", "unknown", "proved") if k in {said.get(d, "unknown") for d in dtypes})
        return Verdict(rule.name, rule.file, rule.line, worst)

    monkeypatch.setattr(workers, "judge", judge)
    checked = rule("And(x: (bool | int), x) ~> x")
    assert mutation.in_stages(checked, BUDGET).verdict == "refuted"
    assert asked == [("bool",), ("i8", "u8")]
    asked.clear()
    said["bool"] = "unknown"
    assert mutation.in_stages(checked, BUDGET).verdict == "unknown"
    assert asked == [("bool",), ("i8",)], "what is unknown at two kinds is left"
    asked.clear()
    said.update(dict.fromkeys(("bool", "u8", "i16", "i32", "i64", "u16", "u32", "u64"), "proved"))
    assert mutation.in_stages(checked, BUDGET).usable
    assert sorted(d for dtypes in asked for d in dtypes) == sorted(
        i.dtypes[v] for i in checked.instances for v in i.dtypes
    )


def test_a_changed_rule_is_mutated_whole_and_the_others_by_a_sample(tmp_path: Path) -> None:
    rules = list(check_file(TRUE).rules())[:6]
    entries = {r.name: mutation_record.entry(r, []) for r in rules}
    entries[rules[0].name] = mutation_record.entry(
        rules[0], [mutation.Outcome(rules[0].name, "guard 1 dropped", "unknown")]
    )
    mutation_record.write_record(tmp_path / "mutants.json", entries)
    record = mutation_record.read_record(tmp_path / "mutants.json")
    assert record == entries
    assert mutation_record.plan(rules, record, 0, "seed") == mutation_record.Plan((), ())
    record[rules[2].name] = replace(record[rules[2].name], digest="another")
    planned = mutation_record.plan(rules, record, 5, "seed")
    assert planned.changed == tuple(mutation.every([rules[2]]))
    assert len(planned.sample) == 5
    assert rules[2].name not in {r.name for r, _ in planned.sample}
    assert planned == mutation_record.plan(rules, record, 5, "seed")
    assert planned != mutation_record.plan(rules, record, 5, "another seed")


def test_branches_that_change_neighbouring_rules_merge(tmp_path: Path) -> None:
    entries = {r.name: mutation_record.entry(r, []) for r in list(check_file(TRUE).rules())[:4]}
    first, second = sorted(entries)[1:3]
    changed = {"base": {}, "ours": {first: "another"}, "theirs": {second: "a third"}}
    for side, digests in changed.items():
        said = {n: replace(e, digest=digests.get(n, e.digest)) for n, e in entries.items()}
        mutation_record.write_record(tmp_path / side, said)
    merged = subprocess.run(["git", "merge-file", "ours", "base", "theirs"], cwd=tmp_path)
    assert merged.returncode == 0
    record = mutation_record.read_record(tmp_path / "ours")
    assert (record[first].digest, record[second].digest) == ("another", "a third")


def test_a_run_that_is_interrupted_goes_on_where_it_ended(tmp_path: Path) -> None:
    rules = [rule("Add(x: i32, @zero) ~> x"), replace(rule("Mul(x: i32, @one) ~> x"), name="g.s")]
    path = tmp_path / "mutants.json"
    recorder = mutation_record.Recorder(path, {}, mutation.every(rules))

    def stop(outcome: mutation.Outcome) -> None:
        recorder.add(outcome)
        if recorder.entries:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mutation.run(mutation.every(rules), BUDGET, 1, stop)
    recorder.save()
    record = mutation_record.read_record(path)
    assert set(record) == {"g.r"}
    assert sum(record["g.r"].counts.values()) == len(mutation.every(rules[:1]))
    assert {r.name for r, _ in mutation_record.plan(rules, record, 0, "").changed} == {"g.s"}


def test_what_ended_in_an_error_is_not_recorded(tmp_path: Path) -> None:
    pairs = mutation.every([rule("Add(x: i32, @zero) ~> x")])
    recorder = mutation_record.Recorder(tmp_path / "mutants.json", {}, pairs)
    for r, m in pairs:
        recorder.add(mutation.Outcome(r.name, m.change, "error"))
    assert recorder.entries == {}


def test_a_lie_in_the_record_is_noticed() -> None:
    said = {"g.r": mutation_record.Entry("", {"true": 1}, {"true": ["a"], "wider": ["b"], "unknown": ["d"]})}

    def lies(change: str, kind: str) -> list[str]:
        return mutation_record.contradictions([mutation.Outcome("g.r", change, kind)], said)

    assert lies("a", "true") == lies("b", "wider") == lies("c", "refuted") == lies("c", "evaluated") == []
    assert lies("a", "refuted") == ["g.r: a: refuted, and recorded as true"]
    assert lies("d", "true") == lies("d", "refuted") == lies("d", "unknown") == []
    assert lies("c", "unknown")
    assert lies("a", "wider")
    assert lies("b", "true")
    assert lies("c", "true") == ["g.r: c: true, and recorded as noticed"]


NARROW = """group mutated "by the test"

in_range: Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) + 1 < n ~> x
    "narrower than need be"
"""


@pytest.mark.long
def test_the_command_runs_what_changed_and_tries_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, record, reasons = (tmp_path / n for n in ("narrow.rules", "mutants.json", "guards.json"))
    file.write_text(NARROW)
    monkeypatch.setattr(mutation_record, "record_path", lambda: record)
    monkeypatch.setattr(mutation_record, "accepted_path", lambda: reasons)

    def command(*more: str) -> tuple[int, str]:
        status = cli.main(["mutate", str(file), *more])
        return status, capsys.readouterr().out

    status, out = command("--write")
    assert status == 1
    assert "finding  narrow.mutated.in_range: guard 1: < to <=: still true" in out
    status, out = command("--sample", "0")
    assert status == 1
    assert "still true" in out
    assert "0 mutants" in out, "what the record says is a finding too"
    mutation_record.write_accepted(reasons, {"narrow.mutated.in_range": {"*": "for the test"}})
    assert command("--sample", "5")[0] == 0
    [(name, known)] = mutation_record.read_record(record).items()
    changes = [c if c != "guard 1: < to <=" else "another" for c in known.listed["wider"]]
    mutation_record.write_record(record, {name: replace(known, listed={"wider": ["no such mutant", *changes]})})
    status, out = command("--sample", "100")
    assert status == 1
    assert "guard 1: < to <=: wider, and recorded as noticed" in out
    file.write_text(NARROW.replace("vmax(x) + 1", "vmax(x)"))
    status, out = command("--sample", "0")
    assert status == 0
    assert "finding" not in out
    assert "0 mutants" not in out, "a rule that changed is mutated whatever is recorded"


def test_a_broken_record_is_an_error(tmp_path: Path) -> None:
    assert mutation_record.read_record(tmp_path / "none.json") == {}
    (tmp_path / "mutants.json").write_text("[1]")
    with pytest.raises(LedgerError):
        mutation_record.read_record(tmp_path / "mutants.json")


def test_a_changed_byte_of_a_record_is_noticed(tmp_path: Path) -> None:
    """Of what became of the mutants, and of the reasons for guards: neither is read if it is not what was written."""
    record, reasons = tmp_path / "mutants.json", tmp_path / "guards.json"
    mutation_record.write_record(
        record, {"a.b": mutation_record.Entry("0" * 16, {"wider": 1}, {"wider": ["guard 1 dropped"]})}
    )
    mutation_record.write_accepted(reasons, {"a.*": {"guard *": "on purpose"}})
    for path, read in ((record, mutation_record.read_record), (reasons, mutation_record.read_accepted)):
        whole = path.read_bytes()
        assert read(path)
        for k, byte in enumerate(whole):
            if not chr(byte).isspace():
                path.write_bytes(whole[:k] + bytes([byte ^ 1]) + whole[k + 1 :])
                with pytest.raises(LedgerError):
                    read(path)
    reasons.write_text('{"a.*": {"reasons": {"guard *": "by hand"}}}')
    with pytest.raises(LedgerError):
        mutation_record.read_accepted(reasons)
    assert mutation_record.read_accepted(reasons, unchecked=True) == {"a.*": {"guard *": "by hand"}}


@pytest.mark.long
def test_rules_that_are_measured_are_mutated_too() -> None:
    path = folders.rules_folder() / "target" / "transcendental.rules"
    name = "transcendental.exp2_f32"

    def changed(old: str, new: str) -> Verdict:
        text = path.read_text(encoding="utf-8")
        assert old in text
        return judge_trial(next(r for r in check_text(text.replace(old, new, 1)).rules() if r.name == name), [])

    assert changed("0.009618542", "0.0096561").verdict == "refuted"
    assert changed("-152.0", "-153.0").verdict == "approximate"
    checked = next(r for r in check_file(path).rules() if r.name == name)
    made = mutants(checked.syntax, checked.dialect)
    assert len(made) == sum(MEASURED)
    assert [m.change for m in made] == [m.change for m in mutants(checked.syntax, checked.dialect)]
    found = mutation.run([(checked, m) for m in made[:2]], BUDGET)
    assert {o.kind for o in found} <= {"refuted", "true"}


def test_numbers_are_nudged() -> None:
    checked = rule("Mul(x: f32, 2.0) ~> Add(x, x)")
    assert outcomes(checked, "pattern: 2.0 to 2.0078125")["pattern: 2.0 to 2.0078125"].noticed


@pytest.mark.long
def test_a_sample_of_the_corpus_is_noticed_or_true() -> None:
    names = {"scalar.in_range", "scalar.offset", "scalar.exact", "scalar.where", "scalar.min_max"}
    rules = [r for r in check_file(TRUE).rules() if r.name in names]
    pairs: tuple[tuple[CheckedRule, Mutant], ...] = mutation_record.plan(rules, {}, 0, "").changed[::2]
    found = mutation.run(pairs, BUDGET)
    assert [(o.rule, o.change) for o in found] == [(r.name, m.change) for r, m in pairs]
    assert sum(o.kind in ("evaluated", "refuted") for o in found) >= 15
    assert not [o for o in found if o.kind in ("error", "disputed")]
    assert sum(o.kind == "unknown" for o in found) <= 2


def test_every_recorded_finding_is_accepted_and_every_reason_is_of_one() -> None:
    record = mutation_record.read_record(mutation_record.record_path())
    accepted = mutation_record.read_accepted(mutation_record.accepted_path())
    wider = [
        mutation.Outcome(name, change, "wider") for name, e in record.items() for change in e.listed.get("wider", ())
    ]
    assert len(record) > 400
    assert [(o.rule, o.change) for o in wider if not mutation_record.is_accepted(o, accepted)] == []
    assert [name for name, e in record.items() if {"disputed", "error"} & set(e.counts)] == []
    for rules, changes in accepted.items():
        assert all(changes.values())
        assert any(mutation_record.is_accepted(o, {rules: changes}) for o in wider), f"nothing recorded is {rules}"
