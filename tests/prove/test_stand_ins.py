"""Dialects whose code looks at how a term is written: it is asked of unknowns, and cannot see that."""

from __future__ import annotations

from typing import Any

import pytest
from mistaken import Saturating, of_ops, with_op

from morok.dialect import verify
from morok.dsl.check import check_text
from morok.prove.workers import judge

DEEP = "Add(Add(Add(x, y), z), w)"


def verdict(d: Saturating, rule: str) -> str:
    (found,) = check_text(f'dialect {d.name}\ngroup g "g"\n\nr: {rule}\n').rules()
    return judge(found, 1_000_000, False).verdict


def lying(**state: Any) -> Saturating:
    made = of_ops("Add")
    for name, value in state.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("made", "rule", "expected"),
    [
        (lying(theory="mistaken:Deep"), f"{DEEP} ~> Add(Add(Add(y, x), z), z)", "refuted"),
        (lying(theory="mistaken:Deep"), f"{DEEP} ~> Add(w, Add(Add(y, x), z))", "proved"),
        (lying(theory="mistaken:Wrapped"), f"{DEEP} ~> Add(Add(Add(y, x), z), z)", "refuted"),
        (with_op(of_ops("Add"), "Add", solver="mistaken:less_where_deep"), f"Add({DEEP}, {DEEP}) ~> 0", "refuted"),
        (
            with_op(of_ops("Add"), "Add", solver="mistaken:less_where_deep"),
            f"{DEEP} ~> Add(w, Add(Add(y, x), z))",
            "proved",
        ),
    ],
)
def test_terms_are_said_by_their_values(made: Saturating, rule: str, expected: str) -> None:
    """No trial meets terms as long as those of the rule."""
    assert verify(made) == []
    assert verdict(made, rule) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("Sub(Neg(x), Neg(y)) ~> 0", "refuted"), ("Sub(Neg(Add(x, y)), Neg(Add(y, x))) ~> 0", "proved")],
)
def test_an_unknown_of_each_operand(rule: str, expected: str) -> None:
    """An assumption of a result is one about its own operand."""
    made = with_op(of_ops("Add", "Sub", "Neg"), "Neg", evaluate=lambda d, a: a // 2, solver="mistaken:half_in_terms")
    assert verify(made) == []
    assert verdict(made, rule) == expected
