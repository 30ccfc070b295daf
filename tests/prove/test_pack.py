"""Packs of rules about structure, written by reading the guides alone: judged without a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.marks import trusting
from morok.prove.answers import DEFAULT_BUDGET
from morok.prove.workers import judge

HERE = Path(__file__).parent
# True rules that are not proved: bounds of the indices of vectors; loops of which a range is named; any number of tensors joined;
# folds over axes of which some elements are no part, or of another op; a choice of elements.
OPEN = frozenset(
    {
        "memory.two_in_order",
        "loops.widened",
        "loops.by_two",
        "loops.backwards",
        "tensors.concat_in_concat",
        "tensors.sum_of_padded",
        "tensors.not_greatest_axis",
        "tensors.factor_out",
        "tensors.element_of_joined",
    }
)


def rules(name: str) -> list[CheckedRule]:
    return list(check_file(HERE / f"{name}.rules").rules())


@pytest.fixture(autouse=True)
def trusted() -> Iterator[None]:
    with trusting(["tests.prove.pack_helpers"]):
        yield


def test_a_third_of_the_pack_is_false() -> None:
    true, false = len(rules("pack_true")), len(rules("pack_false"))
    assert true + false >= 60
    assert 3 * false >= true


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rule", rules("pack_true"), ids=lambda r: r.name)
def test_what_is_true_at_every_size_is_proved(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == ("unknown" if rule.name in OPEN else "proved"), found.message
    assert not found.extents or rule.name in OPEN


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rule", rules("pack_false"), ids=lambda r: r.name)
def test_what_is_false_of_large_sizes_alone_is_refuted(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == "refuted", found.message
    assert found.counterexample is not None
    assert found.counterexample["confirmed"]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rule", rules("laws_false"), ids=lambda r: r.name)
def test_what_is_false_beside_it_is_not_proved(rule: CheckedRule) -> None:
    assert judge(rule, DEFAULT_BUDGET, False).verdict in ("refuted", "unknown")
