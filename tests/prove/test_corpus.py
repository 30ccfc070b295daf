"""The corpora: what must be proved is proved, what must fail is refuted, and confirmed where it can be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.verdict import Verdict
from morok.prove.workers import judge

HERE = Path(__file__).parent
_found: dict[str, Verdict] = {}


def corpus(name: str) -> list[CheckedRule]:
    return list(check_file(HERE / f"{name}.rules").rules())


def verdict(rule: CheckedRule) -> Verdict:
    key = f"{rule.file}:{rule.name}"
    if key not in _found:
        _found[key] = judge(rule, DEFAULT_BUDGET, False)
    return _found[key]


def test_the_corpora_are_large_enough() -> None:
    assert len(corpus("false")) + len(corpus("structure_false")) >= 60


@pytest.mark.parametrize("rule", corpus("false"), ids=lambda r: r.name)
def test_false_rules_are_refuted_and_run(rule: CheckedRule) -> None:
    found = verdict(rule)
    assert found.verdict == "refuted", found.message
    assert found.counterexample is not None
    assert found.counterexample["confirmed"] is True, found.message
    assert set(found.counterexample) == {"dtype", "bindings", "lhs", "rhs", "confirmed"}


@pytest.mark.parametrize("rule", corpus("structure_false"), ids=lambda r: r.name)
def test_false_rules_about_structure_are_refuted(rule: CheckedRule) -> None:
    assert verdict(rule).verdict == "refuted", verdict(rule).message


@pytest.mark.parametrize("rule", corpus("true"), ids=lambda r: r.name)
def test_true_rules_are_proved_at_every_dtype(rule: CheckedRule) -> None:
    found = verdict(rule)
    assert found.verdict == ("defined" if rule.name == "scalar.fold" else "proved"), found.message
    covered = "; ".join(found.scope)
    for instance in rule.instances:
        for dtype in instance.dtypes.values():
            assert dtype in covered


@pytest.mark.parametrize("rule", corpus("structure_true"), ids=lambda r: r.name)
def test_true_rules_about_structure_are_proved(rule: CheckedRule) -> None:
    found = verdict(rule)
    assert found.usable, found.message
    assert (found.verdict == "bounded") == any(s.startswith("bounded: ") for s in found.scope)
