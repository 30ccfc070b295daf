"""Rules about registers and stores that the proof alone judges: no graph that is drawn shows the false ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.errors import UndefinedError
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.interpret import evaluate, run
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.marks import trusting
from morok.prove import judging, obligations
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge
from morok.rewrite.ruleset import RuleSet

HERE = Path(__file__).parent


def corpora(what: str) -> list[CheckedRule]:
    return [r for of in ("registers", "stores") for r in check_file(HERE / f"{of}_{what}.rules").rules()]


@pytest.mark.parametrize("rule", corpora("false"), ids=lambda r: r.name)
def test_false_rules_are_not_proved_where_no_graph_is_tried(rule: CheckedRule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obligations, "evaluated", lambda *_a, **_k: (None, True))
    for module in (obligations, judging):
        monkeypatch.setattr(module, "searched", lambda *_a, **_k: None)
    with trusting(["morok.passes.accumulators"]):
        assert judge(rule, DEFAULT_BUDGET, False).verdict == "unknown"


@pytest.mark.parametrize("rule", corpora("true"), ids=lambda r: r.name)
def test_true_rules_beside_them_are_proved(rule: CheckedRule) -> None:
    with trusting(["morok.passes.accumulators"]):
        found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == "proved", found.message


def test_a_lane_stores_over_what_another_one_uses() -> None:
    rule = next(r for r in corpora("false") if r.name == "false_lanes.twice")
    place = UOp.new(Op.DefineGlobal, (), 1, dtypes.i32.ptr(4, AddrSpace.GLOBAL)).index(2)
    stored = place.store(place.load() + 1)
    made = RuleSet.of([rule], unproved=True).rewrite_node(stored)
    assert made is not None
    memory = {1: [5, 6, 7, 8]}
    run(stored, memory)
    assert memory == {1: [5, 6, 8, 8]}
    with pytest.raises(UndefinedError):
        run(made[0], memory)


def test_a_register_holds_nothing_before_the_first_store() -> None:
    rule = next(r for r in corpora("false") if r.name == "false_loads.cleared")
    register = UOp.new(Op.DefineReg, (), 0, dtypes.i32.ptr(1, AddrSpace.REG))
    cleared = register.index(0).store(UOp.const(0, dtypes.i32))
    made = RuleSet.of([rule], unproved=True).rewrite_node(cleared)
    assert made is not None
    behind, then = (UOp.new(Op.After, (register, s)).index(0).load() for s in (cleared, made[0]))
    assert evaluate(behind) == 0
    with pytest.raises(UndefinedError):
        evaluate(then)
