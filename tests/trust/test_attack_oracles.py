"""The oracles that judge random rules: folds in any order, what a rule assumes; and terms that agree at ordinary values."""

from __future__ import annotations

import random

import pytest

from morok.ir.dtype import dtypes
from morok.ir.op import TABLE, Op
from morok.ir.ops.transcendental import TOLERANCE
from morok.ir.uop import UOp
from morok.prove.attack import conjectures, machine_code, makers, op_laws, orders, trial
from morok.prove.attack.random_terms import Term
from morok.prove.trust import differential

GREAT = 4096.0  # of f16: one more is lost in it


def total(*items: float) -> tuple[UOp, differential.World]:
    x = UOp.var("x", dtypes.f16.vec(len(items)))
    return UOp.new(Op.Reduce, (x,), Op.Add, dtypes.f16), differential.World({x: items}, {})


def test_a_sum_of_floats_may_be_what_any_order_makes_of_it() -> None:
    graph, at = total(GREAT, 1.0, -GREAT)
    assert orders.free(graph)
    assert orders.permitted(graph, at, 1.0, random.Random(0))
    assert orders.permitted(graph, at, 0.0, random.Random(0))
    assert not orders.permitted(graph, at, 2.0, random.Random(0))


def test_what_is_folded_is_rounded_before() -> None:
    x, y = UOp.var("x", dtypes.f16.vec(2)), UOp.var("y", dtypes.f16.vec(2))
    graph = UOp.new(Op.Reduce, (x + y,), Op.Add, dtypes.f16)
    at = differential.World({x: (GREAT, -GREAT), y: (1.0, 1.0)}, {})
    assert orders.permitted(graph, at, 0.0, random.Random(0))
    assert not orders.permitted(graph, at, 2.0, random.Random(0))  # the sums of x and of y, added


def test_integers_have_one_sum() -> None:
    x = UOp.var("x", dtypes.i8.vec(3))
    assert not orders.free(UOp.new(Op.Reduce, (x,), Op.Add, dtypes.i8))


@pytest.mark.parametrize(("assumed", "judged"), [("nsz", True), ("nnan", False), ("ninf", True)])
def test_a_rule_answers_for_what_it_assumes_alone(assumed: str, judged: bool) -> None:
    x = UOp.var("x", dtypes.f16)
    at = differential.World({x: float("nan")}, {})
    assert trial.holds(frozenset({assumed}), (x,), at) is judged


@pytest.mark.sampled(9)
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


COUNTED = """helpers "morok.passes.gpudims"

extern coordinate(r: index) -> (h: index, step: int)?
    ensures counts(h, r, step)

group attack "launches"
@context Launch;

r: r @ Range {{ end: @const(n): index, .. }} let (h, step) = coordinate(r) => {target}
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("target", "right"),
    [("Mod(Idiv(h, step), n)", True), ("Mod(Idiv(h, step), n - 1)", False), ("Idiv(h, step + 1)", False)],
)
def test_an_index_of_the_hardware_is_judged_by_all_threads(target: str, right: bool) -> None:
    """It has no value elsewhere: `morok attack` took that for a finding. A loop of 8 is counted by two dimensions."""
    rule = trial.checked(COUNTED.format(target=target))
    fared = [trial.fire(rule, f"{n}", 20) for n in range(6)]
    assert sum(f.times for f in fared) >= 3
    assert all(f.different is None for f in fared if f.times) is right


def test_a_target_that_is_no_node_is_a_difference() -> None:
    rule = trial.checked(
        'group g "axes"\n\nr: Contract { src: x: i8, axes: a } ~> Contract { src: x, axes: [a.., a..] }\n'
    )
    fared = [trial.fire(rule, f"{n}", 10) for n in range(4)]
    found = [f for f in fared if f.different is not None]
    assert found
    assert all(f.times for f in found)
    assert "no node" in str(found[0].different)


@pytest.mark.parametrize("op", sorted(TOLERANCE, key=lambda op: op.name), ids=lambda op: op.name)
def test_machine_code_is_not_held_to_values_within_a_tolerance(op: Op) -> None:
    """A machine's Rsqrt was, and 1 / sqrt(x) is rounded twice."""
    x = UOp.var("x", dtypes.f64)
    assert not machine_code.compilable(UOp.new(op, (x,) * len(TABLE[op].operands)))


@pytest.mark.long
def test_graphs_for_rules_about_tensors_have_up_to_eight_axes() -> None:
    """What is wrong beyond a few axes is met, and axes of no element and of one."""
    rule = trial.checked(
        'group g "tensors"\n\nr: Flip { src: x, axes: a } if all(k > 4 or not a[k] for k in 0..len(a)) ~> x\n'
    )
    graphs = makers.Graphs(rule, rule.instances[0], random.Random(0))
    shapes = [g.shape for k in range(400) if (g := graphs.make(k % 2 == 1)) is not None]
    assert {len(s) for s in shapes} >= set(range(9))
    assert {n for s in shapes for n in s} >= {0, 1, 2, 3}
    assert any(trial.fire(rule, f"{n}", 100).different for n in range(20))


def test_terms_are_evaluated_as_ops_are() -> None:
    x, shift = Term("var", "x", "i8"), Term("literal", "8", "i8")
    assert conjectures.value(Term("op", "Shl", "i8", (x, shift)), {"x": 1}) is conjectures.NOTHING
    assert conjectures.value(Term("op", "Mul", "i8", (x, shift)), {"x": 127}) == -8


@pytest.mark.long
def test_laws_are_told_apart_by_special_values_alone() -> None:
    """Among a few hundred some are true, and some false; none of them at ordinary values."""
    found = {op_laws.law(random.Random(n)) for n in range(300)}
    assert len(found) > 200
    assert any("-0.0" in one for one in found)
    assert any("inf" in one for one in found)


@pytest.mark.parametrize(
    "pattern",
    [
        "Sub(_a @ Neg(x: i32), _a @ Neg(y))",
        "Sub(Permute { src: _a @ Neg(x: i32), axes: p }, Permute { src: _a @ Neg(y), axes: p })",
    ],
)
def test_names_that_are_ignored_stand_for_nodes_of_their_own(pattern: str) -> None:
    rule = trial.checked(f'group g "one"\n\nr: {pattern} ~> zero(x)\n')
    made = [graph for graph, _, _ in differential.graphs_at(rule, 40, rule.instances)]
    assert any(len({n for n in graph.toposort() if n.op is Op.Neg}) == 2 for graph in made)
