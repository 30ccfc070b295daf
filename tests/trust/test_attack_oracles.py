"""The oracles that judge random rules: folds in any order, what a rule assumes; and terms that agree at ordinary values."""

from __future__ import annotations

import random

import pytest

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.attack import conjectures, laws, orders, trial
from morok.prove.attack.terms import Term
from morok.prove.trust import sieve

GREAT = 4096.0  # of f16: one more is lost in it


def total(*items: float) -> tuple[UOp, sieve.World]:
    x = UOp.var("x", dtypes.f16.vec(len(items)))
    return UOp.new(Op.Reduce, (x,), Op.Add, dtypes.f16), sieve.World({x: items}, {})


def test_a_sum_of_floats_may_be_what_any_order_makes_of_it() -> None:
    graph, at = total(GREAT, 1.0, -GREAT)
    assert orders.free(graph)
    assert orders.permitted(graph, at, 1.0, random.Random(0))
    assert orders.permitted(graph, at, 0.0, random.Random(0))
    assert not orders.permitted(graph, at, 2.0, random.Random(0))


def test_what_is_folded_is_rounded_before() -> None:
    x, y = UOp.var("x", dtypes.f16.vec(2)), UOp.var("y", dtypes.f16.vec(2))
    graph = UOp.new(Op.Reduce, (x + y,), Op.Add, dtypes.f16)
    at = sieve.World({x: (GREAT, -GREAT), y: (1.0, 1.0)}, {})
    assert orders.permitted(graph, at, 0.0, random.Random(0))
    assert not orders.permitted(graph, at, 2.0, random.Random(0))  # the sums of x and of y, added


def test_integers_have_one_sum() -> None:
    x = UOp.var("x", dtypes.i8.vec(3))
    assert not orders.free(UOp.new(Op.Reduce, (x,), Op.Add, dtypes.i8))


@pytest.mark.parametrize(("assumed", "judged"), [("nsz", True), ("nnan", False), ("ninf", True)])
def test_a_rule_answers_for_what_it_assumes_alone(assumed: str, judged: bool) -> None:
    x = UOp.var("x", dtypes.f16)
    at = sieve.World({x: float("nan")}, {})
    assert trial.holds(frozenset({assumed}), (x,), at) is judged


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("Add(x: f16, 0.0) ~> x", False),
        ("Add(x: f16, 0.0) ~> x assuming nsz", True),
        ("Eq(x: f16, x) ~> true", False),
        ("Eq(x: f16, x) ~> true assuming nnan", True),
        ("Sub(x: f16, x) ~> 0.0", False),
        ("Sub(x: f16, x) ~> 0.0 assuming nnan", True),  # nor is any result one
        ("Mul(x: f16, 0.0) ~> 0.0 assuming nnan", False),
        ("Mul(x: f16, 0.0) ~> 0.0 assuming nnan, nsz", True),
    ],
)
def test_rules_hold_where_what_they_assume_does(text: str, state: bool) -> None:
    rule = trial.checked(f'group g "assumed"\n\nr: {text}\n')
    found = trial.fire(rule, "assumed", 60)
    assert found.times
    assert (found.different is None) is state


def test_terms_are_evaluated_as_ops_are() -> None:
    x, shift = Term("var", "x", "i8"), Term("literal", "8", "i8")
    assert conjectures.value(Term("op", "Shl", "i8", (x, shift)), {"x": 1}) is conjectures.NOTHING
    assert conjectures.value(Term("op", "Mul", "i8", (x, shift)), {"x": 127}) == -8


def test_laws_are_told_apart_by_special_values_alone() -> None:
    """Among a few hundred some are true, and some false; none of them at ordinary values."""
    found = {laws.law(random.Random(n)) for n in range(300)}
    assert len(found) > 200
    assert any("-0.0" in one for one in found)
    assert any("inf" in one for one in found)
