"""Findings of an adversary of the prover: false rules that were usable, and true rules beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge

HERE = Path(__file__).parent


def corpus(name: str) -> list[CheckedRule]:
    return list(check_file(HERE / f"{name}.rules").rules())


SOON = {"axes.fewer_lanes", "other_dtypes.divisor"}  # are refuted in less than a second


@pytest.mark.parametrize(
    "rule",
    [pytest.param(r, marks=[] if r.name in SOON else pytest.mark.long) for r in corpus("usable_once")],
    ids=lambda r: r.name,
)
def test_false_rules_that_were_usable_are_not(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict in ("refuted", "unknown", "inapplicable"), found.message


# True rules that no reading at every size proves: constants by lane that are cast, stores to places in views, and such places
# that may not be read.
NOT_READ = {"other_dtypes.in_lanes", "beside_views.stored", "beside_views.chosen"}


@pytest.mark.sampled(18)
@pytest.mark.parametrize("rule", corpus("usable_again"), ids=lambda r: r.name)
def test_true_rules_beside_them_are_usable(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == "unknown" if rule.name in NOT_READ else found.usable, found.message
