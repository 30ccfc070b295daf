"""`eval` of numbers that its dtype does not hold: proofs and matchers mean the same."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_text
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.answers import DEFAULT_BUDGET
from morok.prove.workers import judge
from morok.rewrite.ruleset import RuleSet

BEYOND = {
    "u8": "Mul(x: u8, @const(c)) if eval(Lt, c, 257) ~> zero(x)",
    "a computed number": "Mul(x: u8, @const(c)) let m = vmax(x) if m == 255 and eval(Lt, c, m + 2) ~> zero(x)",
    "i32": "Mul(x: i32, @const(c)) if eval(Ge, 4294967296, c) and eval(Ge, c, 0) ~> zero(x)",
    "in a let": "Mul(x: i8, @const(c)) let t = eval(Max, c, 128) if t > 127 or c == 0 ~> x",
    "below 0": "Mul(x: u8, @const(c)) if eval(Gt, c, -1) ~> x",
}


@pytest.mark.parametrize("rule", BEYOND.values(), ids=BEYOND)
def test_a_number_that_the_dtype_does_not_hold_has_no_value(rule: str) -> None:
    (made,) = check_text(f"group g\n\nr: {rule}\n", "f.rules").rules()
    assert judge(made, DEFAULT_BUDGET, False).verdict == "inapplicable"
    d = getattr(dtypes, rule.partition(": ")[2].partition(",")[0])
    assert RuleSet.of([made], unproved=True).rewrite_node(UOp.new(Op.Mul, (UOp.var("x", d), UOp.const(5, d)))) is None


def test_a_float_is_rounded_as_a_constant_is() -> None:
    """0.1 is no f16: what is compared is the f16 that it is rounded to."""
    rule = "Max(x: f16, @const(c)) if eval(Lt, c, 0.1) and not eval(Lt, c, 0.0999755859375) ~> x"
    (made,) = check_text(f"group g\n\nr: {rule}\n", "f.rules").rules()
    assert judge(made, DEFAULT_BUDGET, False).verdict == "inapplicable"
    node = UOp.new(Op.Max, (UOp.var("x", dtypes.f16), UOp.const(0.0999755859375, dtypes.f16)))
    assert RuleSet.of([made], unproved=True).rewrite_node(node) is None
