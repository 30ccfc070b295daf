"""Rules about registers that loops fold into: what stores there besides, or looks, is not overlooked by the proof alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.marks import trusting
from morok.prove import judging, obligations
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge

HERE = Path(__file__).parent


def corpus(name: str) -> list[CheckedRule]:
    return list(check_file(HERE / f"{name}.rules").rules())


@pytest.mark.parametrize("rule", corpus("registers_false"), ids=lambda r: r.name)
def test_false_rules_are_not_proved_where_no_graph_is_tried(rule: CheckedRule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obligations, "evaluated", lambda *_a, **_k: (None, True))
    for module in (obligations, judging):
        monkeypatch.setattr(module, "searched", lambda *_a, **_k: None)
    with trusting(["morok.passes.accumulators"]):
        assert judge(rule, DEFAULT_BUDGET, False).verdict == "unknown"


@pytest.mark.parametrize("rule", corpus("registers_true"), ids=lambda r: r.name)
def test_true_rules_beside_them_are_proved(rule: CheckedRule) -> None:
    with trusting(["morok.passes.accumulators"]):
        found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == "proved", found.message
