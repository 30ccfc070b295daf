"""Mutation: what is changed in a proved rule is noticed, or is a true rule itself."""

from __future__ import annotations

from pathlib import Path

from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.prove import mutate

HERE = Path(__file__).parent
BUDGET = 600_000


def rule(text: str) -> CheckedRule:
    return next(iter(check_text(f'group g "mutated"\n\nr: {text}\n    "a rule"\n').rules()))


def test_mutants_differ_from_the_rule_and_from_each_other() -> None:
    checked = rule("Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) < n ~> x")
    changes = [m.change for m in mutate.mutants(checked.syntax, checked.dialect)]
    for expected in (
        "guard 1 dropped",
        "guard 1: <= to <",
        "guard 1: < to <=",
        "guard 1: and to or",
        "guard 1: vmin to vmax",
        "guard 1: 0 to 1",
    ):
        assert expected in changes
    assert all(m.rule != checked.syntax for m in mutate.mutants(checked.syntax, checked.dialect))


def test_guards_are_needed() -> None:
    checked = rule("Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) < n ~> x")
    found = {o.change: o for o in mutate.run([checked], BUDGET)}
    for change in (
        "guard 1 dropped",
        "guard 1: < to <=",
        "guard 1: vmin to vmax",
        "guard 1: vmax to vmin",
        "guard 1: and to or",
        "guard 1: 0 to -1",
    ):
        assert found[change].kind == "refuted", change
    # the only survivors ask for more than is needed, or say the same
    assert {o.change for o in found.values() if not o.noticed} == {"guard 1: <= to <", "guard 1: 0 to 1"}


def test_a_sample_of_the_corpus_is_noticed_or_true() -> None:
    names = {"scalar.in_range", "scalar.offset", "scalar.division", "scalar.exact", "scalar.where", "scalar.min_max"}
    rules = [r for r in check_file(HERE / "true.rules").rules() if r.name in names]
    outcomes = mutate.run(rules, BUDGET, sample=40, seed=1)
    assert len(outcomes) == 40
    assert sum(o.kind == "refuted" for o in outcomes) >= 20
    for o in outcomes:
        assert o.kind in ("refuted", "ill-typed", "inapplicable", "true", "unknown"), (o.rule, o.change, o.detail)
    assert sum(o.kind == "unknown" for o in outcomes) <= 2
    again = mutate.run(rules, BUDGET, sample=40, seed=1)
    assert [(o.rule, o.change, o.kind) for o in outcomes] == [(o.rule, o.change, o.kind) for o in again]
