"""False rules about launches and about what threads share: none is proved, and what graphs show is found on graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.marks import trust
from morok.prove import obligations
from morok.prove.solve import DEFAULT_BUDGET

HERE = Path(__file__).parent
trust("threads")
FALSE = [r for name in ("launched_false", "grouped_false") for r in check_file(HERE / f"{name}.rules").rules()]
# Graphs show what is stored and what is folded. They do not show what a helper might return, and has no need to, nor what happens
# where threads do not wait: the interpreter runs them in turn.
SHOWN = {
    "false_coordinates.turned", "false_launches.any_loop", "false_launches.all_loops", "false_launches.another",
    "false_masks.all_but_one", "false_masks.the_second", "false_masks.gate_lost", "false_masks.either",
    "false_masks.loops_lost",
    "false_parts.one_part", "false_parts.own_part", "false_parts.twice", "false_parts.same_range",
    "false_buffers.any_loop", "false_buffers.not_waited", "false_buffers.own_element", "false_buffers.not_folded",
    "false_buffers.one_place",
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("rule", FALSE, ids=lambda r: r.name)
def test_false_rules_are_not_proved(rule: CheckedRule) -> None:
    found = obligations.prove_rule(rule, DEFAULT_BUDGET)
    assert found.verdict == ("refuted" if rule.name in SHOWN else "unknown"), found.message
    assert found.counterexample is None or found.counterexample["confirmed"]
