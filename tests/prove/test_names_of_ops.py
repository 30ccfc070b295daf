"""Ops of other dialects that are called as ops of Morok: their meaning is what their dialect declares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from two_sizes import BIG, OPS, TwoSizes, dialect, op, term

from morok.dialect import OperandInfo, OpInfo
from morok.dsl.check import check_text
from morok.errors import MorokError
from morok.ir.morok_dialect import MOROK
from morok.prove.workers import judge
from morok.rewrite.ruleset import RuleSet

NEUTRAL = "Zap"
X, Y = OperandInfo("x"), OperandInfo("y")
FIELD: dict[str, Any] = {"fields": ("f",), "field_kinds": {"f": "ints"}}
LIST: dict[str, Any] = {"fields": ("f",), "field_kinds": {"f": "consts"}}
FORMS: dict[str, tuple[OpInfo, tuple[str, ...]]] = {
    "without operands": (
        OpInfo("", "", (), types="result in big"),
        ("Add(OP(), x: big) ~> x", "OP() ~> const(0, big)", "Add(x: big, y) ~> OP()"),
    ),
    "of one": (
        op("Flip", 1, lambda d, a: d[1] - a),
        ("OP(OP(x)) ~> x", "OP(x) ~> x", "OP(@const(c)) ~> eval(OP, c)", "OP(0: big) ~> 1000"),
    ),
    "of two": (
        op("First", 2, lambda d, a, b: a),
        ("OP(x: big, y) ~> x", "OP(x: big, y) ~> OP(y, x)", "Add(OP(x, y), z) ~> Add(z, OP(x, y))"),
    ),
    "of three": (
        op("Where", 3, lambda d, a, b, c: a if c else b),
        ("OP(x, x, y) ~> x", "OP(x, y, 0) ~> x", "OP(x, y, 1: big) ~> x"),
    ),
    "without a meaning": (
        OpInfo("", "", (X, Y), types="result = x; y = x"),
        ("OP(x, x) ~> x", "Add(OP(x, y), z) ~> Add(z, OP(x, y))"),
    ),
    "with a field": (
        OpInfo("", "", (X,), types="result ~ x", **FIELD),
        (
            "OP { x: OP { x: z, f: a }, f: b } ~> OP { x: z, f: b }",
            "OP { x: z, f: [0] } ~> z",
            "Add(x: big, y) ~> OP(x, [0, 0])",
        ),
    ),
    "with constants": (
        OpInfo("", "", (), types="result in big", **LIST),
        ("Add(@vconst(a), y: big) ~> y", "Add(@anyconst(a), y: big) ~> y", "OP { f: [0, 1] } ~> const(0, big)"),
    ),
    "of many": (
        OpInfo("", "", (OperandInfo("x", many=True),), types="result ~ x"),
        ("OP(x, y) ~> OP(y, x)", "OP(x) ~> x", "OP(xs..) if lanes(xs[0]) == 1 ~> xs[0]"),
    ),
}


def judged(name: str, info: OpInfo, rule: str) -> tuple[str, str]:
    """The verdict on a rule over an op of this name, and its message without the name; or that it is no rule."""
    d = dialect(ops={**OPS, name: replace(info, name=name, key=name)})
    try:
        (found,) = check_text(f'dialect {d.name}\ngroup g "g"\n\nr: {rule.replace("OP", name)}\n').rules()
    except MorokError:
        return "no rule", ""
    verdict = judge(found, 100_000, False)
    return verdict.verdict, str(verdict.message).replace(name, NEUTRAL)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("form", "rule"), [(form, rule) for form, (_, rules) in FORMS.items() for rule in rules])
def test_no_name_of_an_op_means_anything(form: str, rule: str) -> None:
    info, _ = FORMS[form]
    expected = judged(NEUTRAL, info, rule)
    assert expected[0] != "error"
    others = {name: judged(name, info, rule) for name in MOROK.ops if name not in OPS}
    assert {name: found for name, found in others.items() if found != expected} == {}


def vectors() -> TwoSizes:
    """A dialect whose constants by lane are called otherwise than Morok's, and whose op of that name is a sum."""
    listed = OpInfo("Row", "Row", (), types="result in big", role="constants", **LIST)
    return dialect(
        ops={**OPS, "Row": listed, "VConst": replace(OPS["Add"], name="VConst", key="VConst")},
        operands=lambda self, n: () if n[0] in ("const", "var", "Row") else n[2:],
        attr=lambda self, n, name: n[2],
        lanes_of=lambda self, n: n[2] if n[0] == "Row" else self.lanes_of(n[2]),  # as many as it has
    )


def test_constants_by_lane_are_those_of_the_op_with_that_role() -> None:
    d = vectors()
    text = f'dialect {d.name}\ngroup g "g"\n\nr: Add(@vconst(a), y) if a[1] == 7 ~> y\n'
    rules = RuleSet.of(list(check_text(text).rules()), unproved=True)
    y = ("Row", BIG, (0, 0))
    assert rules.rewrite_node(term(d, "Add", ("Row", BIG, (3, 7)), y)) is not None
    assert rules.rewrite_node(term(d, "Add", ("Row", BIG, (7, 3)), y)) is None
    assert rules.rewrite_node(term(d, "Add", term(d, "VConst", y, y), y)) is None


def test_a_dialect_without_constants_by_lane_has_no_pattern_of_them() -> None:
    d = dialect()
    with pytest.raises(MorokError, match="has no vector constants"):
        check_text(f'dialect {d.name}\ngroup g "g"\n\nr: Add(@vconst, y) ~> y\n')
