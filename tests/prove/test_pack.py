"""Packs of rules about structure, written by reading the guides alone: judged without a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.marks import trusting
from morok.prove import obligations
from morok.prove.answers import DEFAULT_BUDGET
from morok.prove.workers import judge

HERE = Path(__file__).parent
# True rules that are not proved: bounds of the indices of vectors; loops of which a range is named; any number of tensors joined;
# folds over axes of which some elements are no part; a choice of elements.
OPEN = frozenset(
    {
        "memory.two_in_order",
        "loops.widened",
        "loops.backwards",
        "tensors.concat_in_concat",
        "tensors.sum_of_padded",
        "tensors.factor_out",
        "tensors.element_of_joined",
    }
)
# Of the second pack, written after the simplifiers of compilers for vectors, loops and tensors: true rules that are not proved,
# or not at every size, and false ones that no graph refutes. Of floats that are doubled few sums overflow; lists whose sums, and
# sums of squares, are alike are rare, and so are tensors of six axes of which four have one element.
SECOND_OPEN = {
    "axes.closed_in_turn": "unknown",
    "axes.transposed": "unknown",
    "axes.chosen_alike": "unknown",
    "loops.at_least": "unknown",
    "loops.partitioned": "unknown",
    "loops.sum_of_products": "unknown",
    "loops.nothing_in_loops": "unknown",
    "memory.done_once": "unknown",
    "memory.read_lanes": "unknown",
    "tensors.greatest_of_joined": "unknown",
    "tensors.sum_of_repeated": "unknown",
}
SECOND_NOT_REFUTED = {
    "lanes.interleaved_to_eight": "unknown",
    "lanes.same_sums": "unknown",
    "lanes.cut_by_code": "unknown",
    "axes.turned_where_alike": "unknown",
    "loops.doubled_after": "unknown",
    "memory.alternative_for_all": "unknown",
    "memory.blended": "unknown",
    "memory.stored_in_parts_gated": "unknown",
    "tensors.four_units_moved": "unknown",
}

# Of the fourth pack: places that are products of lengths, loops of which the counter is folded, lanes that are stored one behind
# the other, and the axis that is left of any number of permuted ones.
FOURTH_OPEN = frozenset(
    {
        "lanes.rows_and_columns",
        "loops.chosen_one",
        "loops.how_many_below",
        "loops.sum_of_counter",
        "memory.lane_by_lane",
        "tensors.sum_of_turned",
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


@pytest.mark.sampled(84)
@pytest.mark.parametrize("rule", rules("pack_true"), ids=lambda r: r.name)
def test_what_is_true_at_every_size_is_proved(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == ("unknown" if rule.name in OPEN else "proved"), found.message
    assert not found.extents or rule.name in OPEN


@pytest.mark.long
@pytest.mark.parametrize("rule", rules("pack_false"), ids=lambda r: r.name)
def test_what_is_false_of_large_sizes_alone_is_refuted(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == "refuted", found.message
    assert found.counterexample is not None
    assert found.counterexample["confirmed"]


@pytest.mark.long
@pytest.mark.parametrize("rule", rules("laws_false"), ids=lambda r: r.name)
def test_what_is_false_beside_it_is_not_proved(rule: CheckedRule) -> None:
    assert judge(rule, DEFAULT_BUDGET, False).verdict in ("refuted", "unknown")


def test_a_third_of_the_second_pack_is_false() -> None:
    true, false = (rules(f"second_pack_{kind}") for kind in ("true", "false"))
    assert len(true) + len(false) >= 60
    assert 3 * len(false) >= len(true)
    assert {r.name for r in true} >= set(SECOND_OPEN)
    assert {r.name for r in false} >= set(SECOND_NOT_REFUTED)


@pytest.mark.long
@pytest.mark.parametrize("rule", rules("second_pack_true"), ids=lambda r: r.name)
def test_what_is_true_of_the_second_pack_is_never_refuted(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == SECOND_OPEN.get(rule.name, "proved"), found.message
    assert not found.extents or rule.name in SECOND_OPEN


@pytest.mark.long
@pytest.mark.parametrize("rule", rules("second_pack_false"), ids=lambda r: r.name)
def test_what_is_false_of_the_second_pack_is_not_usable_where_it_is_false(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == SECOND_NOT_REFUTED.get(rule.name, "refuted"), found.message


@pytest.mark.sampled(120)
@pytest.mark.parametrize("rule", rules("third_pack_false"), ids=lambda r: r.name)
def test_what_is_false_of_the_third_pack_is_not_usable_where_it_is_false(rule: CheckedRule) -> None:
    """Which graphs are tried hangs on the rule's name: not all that are large enough show of a rule that it is false."""
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict in ("refuted", "unknown"), found.message


@pytest.mark.sampled(72)
@pytest.mark.parametrize("rule", rules("fourth_pack_true"), ids=lambda r: r.name)
def test_what_is_true_of_the_fourth_pack_is_proved(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == ("unknown" if rule.name in FOURTH_OPEN else "proved"), found.message


@pytest.mark.sampled(90)
@pytest.mark.parametrize("rule", rules("fourth_pack_false"), ids=lambda r: r.name)
def test_what_is_false_of_the_fourth_pack_is_not_usable(rule: CheckedRule, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor would it be if no graph were tried: the proof alone does not show it."""
    monkeypatch.setattr(obligations, "evaluated", lambda _: (None, True))
    assert judge(rule, DEFAULT_BUDGET, False).verdict in ("refuted", "unknown")
