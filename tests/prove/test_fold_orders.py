"""Folds of floats are done in an order that nothing says, of items that have been rounded: what is folded stays whole."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_text
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge

APART = """n @ Reduce { src: OP(x: D, y), ranges: [], op: FOLD } if lanes(x) > 1 and lanes(n) == 1
    ~> OP(Reduce { src: x, ranges: [], op: FOLD, dtype: dtype(n) }, Reduce { src: y, ranges: [], op: FOLD, dtype: dtype(n) })"""
TREE = """n @ Reduce { src: x: D, ranges: [], op: FOLD } if lanes(x) == 3 and lanes(n) == 1
    ~> OP(OP(Gep(x, [2]), Gep(x, [0])), Gep(x, [1]))"""


def verdict(text: str, op: str, dtype: str) -> str:
    text = text.replace("OP", op).replace("FOLD", op).replace("D,", f"{dtype},")
    return judge(next(iter(check_text(f'group g "folds"\n\nr: {text}\n').rules())), DEFAULT_BUDGET, False).verdict


@pytest.mark.long
@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_what_floats_were_rounded_to_is_folded(op: str) -> None:
    assert verdict(APART, op, "f32") in ("unknown", "refuted")
    assert verdict(APART, op, "number") in ("unknown", "refuted")
    assert verdict(APART, op, "i32") == "proved"


@pytest.mark.parametrize(("op", "dtype"), [("Max", "f32"), ("Min", "f16"), ("Max", "i8")])
def test_greatest_and_least_are_what_they_are_in_any_order(op: str, dtype: str) -> None:
    assert verdict(APART, op, dtype) == "proved"


@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_the_items_themselves_are_folded_in_any_order(dtype: str) -> None:
    assert verdict(TREE, "Add", dtype) == "proved"
