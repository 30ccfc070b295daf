"""Operands that a struct pattern leaves open: they may be there, whoever reads the rule."""

from __future__ import annotations

import pytest

from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.ir.dtype import dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.prove.open_operands import completed
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge
from morok.rewrite.ruleset import RuleSet

B = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(4))
GATE, LOOP, FIVE = UOp.var("g", dtypes.bool), UOp.range(3, 0, AxisType.Loop), UOp.const(5, dtypes.i32)
STORE = B.index(0).store(FIVE)
NODES = {
    "Index": (B.index(0), B.index(0, gate=GATE), B.index(UOp.invalid_at(), gate=GATE)),
    "Load": (B.index(0).load(), UOp.new(Op.Load, (B.index(0), FIVE))),
    "Store": (STORE, B.index(0).store(FIVE, LOOP)),
    "End": (STORE.end(LOOP),),
    "Range": (LOOP, UOp.new(Op.Range, (UOp.const(3), STORE), LOOP.arg)),
}


def rule(text: str) -> CheckedRule:
    (found,) = check_text(f'group open "of what is not named"\n\nr: {text}\n').rules()
    return found


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("i @ Index { buffer: _b, .. } ~> i", {"indices", "gate"}),
        ("l @ Load { index: _p, .. } ~> l", {"alt"}),
        ("s @ Store { index: _p, value: _v, .. } ~> s", {"ranges"}),
        ("e @ End { body: _s, .. } ~> e", {"ranges"}),
        ("r @ Range { end: _e, .. } ~> r", set()),  # `..` ignores no effects
        ("l @ Load { index: _p } ~> l", set()),
    ],
)
def test_the_names_of_what_is_left_open_match_what_the_pattern_matches(text: str, named: set[str]) -> None:
    of = rule(text)
    filled = completed(of)
    before, after = ({f.name for f in S.walk(r.syntax.pattern) if isinstance(f, S.PField)} for r in (of, filled))
    assert after - before == named
    assert (filled is of) == (not named)
    fires = [
        [RuleSet.of([r], unproved=True).rewrite_node(n) is not None for n in NODES[text.split()[2]]]
        for r in (of, filled)
    ]
    assert fires[0] == fires[1]


@pytest.mark.parametrize(
    "text",
    [
        "End { body: s: void, .. } ~> End { body: s, ranges: [] }",
        "Store { index: Index(b: ptr(i32), i: index x 1), value: v: i32 x 1, .. } ~> Store(Index(b, i), v)",
        "Add(y: i32 x 1, Load { index: Index { buffer: _b: ptr(i32), indices: [Invalid], .. }, .. }) ~> y",
    ],
)
def test_what_is_left_open_may_be_there(text: str) -> None:
    found = judge(rule(text), DEFAULT_BUDGET, False)
    assert found.verdict == "refuted", found.message
    assert (found.counterexample or {})["confirmed"], found.message
