"""Mutation: what is changed in a proved rule is noticed, or is a true rule itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.errors import LedgerError
from morok.prove.trust import mutate, sieve
from morok.prove.trust.mutants import Mutant, mutants

TRUE = Path(__file__).parent.parent / "prove" / "true.rules"
BUDGET = 600_000
IN_RANGE = "Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) < n ~> x"


def rule(text: str) -> CheckedRule:
    return next(iter(check_text(f'group g "mutated"\n\nr: {text}\n    "a rule"\n').rules()))


def outcomes(checked: CheckedRule, *changes: str) -> dict[str, mutate.Outcome]:
    pairs = [(r, m) for r, m in mutate.every([checked]) if not changes or m.change in changes]
    return {o.change: o for o in mutate.run(pairs, BUDGET)}


def test_mutants_differ_from_the_rule_and_from_each_other() -> None:
    checked = rule(IN_RANGE)
    found = list(mutants(checked.syntax, checked.dialect))
    changes = [m.change for m in found]
    for expected in ("guard 1 dropped", "guard 1: < to <=", "guard 1: and to or", "guard 1: vmin to vmax", "guard 1: 0 to -1"):
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


def test_guards_are_needed() -> None:
    found = outcomes(rule(IN_RANGE))
    for change in ("guard 1 dropped", "guard 1: < to <=", "guard 1: vmin to vmax", "guard 1: and to or", "guard 1: 0 to -1"):
        assert found[change].noticed, change
    assert {o.change for o in found.values() if not o.noticed} == set()


def test_a_guard_stronger_than_its_proof_needs_is_a_finding() -> None:
    found = outcomes(
        rule("Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) + 1 < n ~> x"), "guard 1: < to <=", "guard 1: 1 to 0"
    )
    assert {o.kind for o in found.values()} == {"wider"}
    first, _ = mutate.findings(found.values(), {})
    assert "guard 1: < to <=" in first
    assert mutate.findings(found.values(), {"g.r": dict.fromkeys(found, "on purpose")}) == []


def test_evaluation_shows_what_is_false_by_values() -> None:
    assert sieve.counterexample(rule("Mod(x: i8, @const(n)) if n > 0 ~> x")) is not None
    assert sieve.counterexample(rule("Lt(Neg(x: i8), Neg(y)) ~> Lt(y, x)")) is not None
    assert sieve.counterexample(rule("Add[x: f16, @zero] ~> x")) is not None
    assert sieve.counterexample(rule("Where(c, x: index?, Invalid) ~> x")) is not None
    assert sieve.counterexample(rule(IN_RANGE)) is None
    assert sieve.counterexample(rule("Add[x: f16, @zero] ~> x assuming nsz")) is None


def test_a_prover_that_calls_a_false_rule_true_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from morok.prove import workers
    from morok.prove.verdict import Verdict

    def credulous(rules: list[CheckedRule], *_: object) -> list[Verdict]:
        return [Verdict(r.name, r.file, r.line, "proved") for r in rules]

    monkeypatch.setattr(workers, "prove_all", credulous)
    monkeypatch.setattr(mutate, "CROSS_CHECK", 1)
    checked = rule(IN_RANGE)
    found = mutate.run(mutate.every([checked]), BUDGET)
    assert {o.kind for o in found} == {"disputed", "ill-typed"} or {o.kind for o in found} == {"disputed"}
    assert "the prover says it is true" in mutate.findings(found, {})[0]


def test_a_changed_rule_is_mutated_whole_and_the_others_by_a_sample(tmp_path: Path) -> None:
    rules = list(check_file(TRUE).rules())[:6]
    entries = mutate.entries(rules, [mutate.Outcome(rules[0].name, "guard 1 dropped", "refuted")])
    mutate.write_record(tmp_path / "mutants.json", entries)
    record = mutate.read_record(tmp_path / "mutants.json")
    assert record == entries
    assert mutate.plan(rules, record, 0, "seed", 100).pairs == ()
    record[rules[2].name] = replace(record[rules[2].name], digest="another")
    planned = mutate.plan(rules, record, 5, "seed", 100)
    assert planned.changed == (rules[2],)
    mine = mutate.every([rules[2]])
    assert planned.pairs[: len(mine)] == tuple(mine)
    assert len(planned.pairs) == len(mine) + 5
    assert planned == mutate.plan(rules, record, 5, "seed", 100)
    assert planned != mutate.plan(rules, record, 5, "another seed", 100)
    assert len(mutate.plan(rules, {}, 5, "seed", 3).pairs) == 3


def test_a_broken_record_is_an_error(tmp_path: Path) -> None:
    assert mutate.read_record(tmp_path / "none.json") == {}
    (tmp_path / "mutants.json").write_text("[1]")
    with pytest.raises(LedgerError):
        mutate.read_record(tmp_path / "mutants.json")


def test_a_sample_of_the_corpus_is_noticed_or_true() -> None:
    names = {"scalar.in_range", "scalar.offset", "scalar.exact", "scalar.where", "scalar.min_max"}
    rules = [r for r in check_file(TRUE).rules() if r.name in names]
    pairs: tuple[tuple[CheckedRule, Mutant], ...] = mutate.plan(rules, {}, 0, "seed 1", 30).pairs
    found = mutate.run(pairs, BUDGET)
    assert [(o.rule, o.change) for o in found] == [(r.name, m.change) for r, m in pairs]
    assert sum(o.kind in ("evaluated", "refuted") for o in found) >= 15
    assert not [o for o in found if o.kind in ("error", "disputed")]
    assert sum(o.kind == "unknown" for o in found) <= 2


def test_every_recorded_finding_is_accepted_and_every_reason_is_of_one() -> None:
    record = mutate.read_record(mutate.record_path())
    accepted = mutate.read_accepted(mutate.accepted_path())
    wider = [mutate.Outcome(name, change, "wider") for name, e in record.items() for change in e.listed.get("wider", ())]
    assert len(record) > 400
    assert [(o.rule, o.change) for o in wider if not mutate.is_accepted(o, accepted)] == []
    assert [name for name, e in record.items() if {"disputed", "error"} & set(e.counts)] == []
    for rules, changes in accepted.items():
        assert all(changes.values())
        assert any(mutate.is_accepted(o, {rules: changes}) for o in wider), f"nothing recorded is {rules}"
