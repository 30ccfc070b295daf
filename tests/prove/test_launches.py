"""False rules about launches and about what threads share: none is proved, and what graphs show is found on graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.marks import trust
from morok.prove import obligations
from morok.prove.forms import about_launches
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.trust import sieve

HERE = Path(__file__).parent
trust("threads")
FALSE = [r for name in ("launched_false", "grouped_false") for r in check_file(HERE / f"{name}.rules").rules()]
# Graphs show what is stored and what is folded. They do not show what a helper might return, and has no need to, nor what happens
# where threads do not wait: the interpreter runs them in turn.
SHOWN = {
    "false_launches.any_loop", "false_launches.all_loops", "false_launches.another",
    "false_masks.all_but_one", "false_masks.the_second", "false_masks.gate_lost", "false_masks.either",
    "false_masks.loops_lost",
    "false_parts.one_part", "false_parts.own_part", "false_parts.twice", "false_parts.same_range",
    "false_buffers.not_waited", "false_buffers.own_element", "false_buffers.not_folded", "false_buffers.one_place",
}  # fmt: skip


# A model of these is no counterexample in itself: the sides are other terms, which may have the same value. Graphs show that
# they differ.
DOUBTFUL = {"false_parts.own_part", "false_buffers.not_waited", "false_buffers.not_folded"}


@pytest.mark.parametrize("rule", FALSE, ids=lambda r: r.name)
def test_false_rules_are_refuted_by_their_reading(rule: CheckedRule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obligations, "searched", lambda rule: None)
    found = obligations.prove_rule(rule, DEFAULT_BUDGET)
    plain = about_launches(rule) and rule.name not in DOUBTFUL
    assert found.verdict == ("refuted" if plain else "unknown"), found.message
    assert rule.name not in DOUBTFUL - SHOWN


@pytest.mark.parametrize("rule", [r for r in FALSE if r.name in SHOWN], ids=lambda r: r.name)
def test_false_rules_change_what_graphs_do(rule: CheckedRule) -> None:
    assert sieve.counterexample(rule) is not None
