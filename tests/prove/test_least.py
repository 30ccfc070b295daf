"""Counterexamples of least magnitude, in the notation of the language."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import pytest

from morok.dsl.check import check_text
from morok.ir.uop import UOp
from morok.prove import least, obligations
from morok.prove.answers import DEFAULT_BUDGET
from morok.prove.encoding.obligation import OutOfSteps
from morok.prove.replay import Firing
from morok.prove.trust import differential, least_graph


def refuted(rule: str) -> dict[str, Any]:
    (checked,) = check_text(f'group g "one"\n\nr: {rule}\n').rules()
    found = obligations.prove_rule(checked, DEFAULT_BUDGET)
    assert found.verdict == "refuted"
    assert found.counterexample is not None
    assert found.counterexample["confirmed"] is True
    return found.counterexample


@pytest.mark.parametrize(
    ("rule", "bindings", "values"),
    [
        ("Sub(x: i32, y) ~> Sub(y, x)", {"x": 0, "y": 1}, (-1, 1)),
        ("Idiv(x: i32, 4) ~> Shr(x, 2)", {"x": -1}, (0, -1)),
        ("Max(x: u8, y) ~> y", {"x": 1, "y": 0}, (1, 0)),
        ("Cast(Cast(x: i32, i8), i32) ~> x", {"x": 128}, (-128, 128)),
        ("Mod(x: index, @const(n)) if n > 5 ~> x", {"x": 6, "n": 6}, (0, 6)),
        (
            "Idiv(x: index, @const(d)) if d > 0 and vmin(x) > 100 ~> zero(x)",
            {"x": 101, "d": 1, "vmin.x": 101},
            (101, 0),
        ),
        ("Mul(x: f32, 2.0) ~> x", {"x": 1.0}, (2.0, 1.0)),
        ("Lt(x: f32, 1000.0) ~> true", {"x": 1000.0}, (False, True)),
        # a value and a bound of it that the rule asks for are others: with its value for both, no rule that holds there is false
        ("Max(x: i32, 0) if vmax(x) >= 1 ~> x", {"x": -1, "vmax.x": 1}, (0, -1)),
        (
            "Reduce { src: Where(Lt(r, c), @one: i32, @zero), ranges: [r @ Range(e: index)], op: Add }"
            " if free_of(c, r) and vmax(e) == 1 ~> Cast(Min(Max(c, 0), e), i32)",
            {"e": 0, "c": "undefined", "vmax.e": 1},
            (0, "undefined"),
        ),
        # numbers that are far from 0
        ("Idiv(x: i64, 1000003) ~> zero(x)", {"x": 1000003}, (1, 0)),
        ("Idiv(Mul(x: i64, 3), 3) ~> x", {"x": 2**63 // 3 + 1}, (-(2**63 // 3), 2**63 // 3 + 1)),
        ("Mul(x: i64, 0) if vmin(x) > 12345678901 ~> x", {"x": 12345678902, "vmin.x": 12345678902}, (0, 12345678902)),
        ("Idiv(Mul(x: i64, y), y) if vmin(y) > 2 ~> x", {"x": 2, "y": 1 << 62, "vmin.y": 1 << 62}, (-2, 2)),
        # at the lanes that a rule names, or asks for
        ("Mul(x: f32 x 100, y) ~> x", {"x": 1.0, "y": 0.0}, ([0.0] * 100, [1.0] * 100)),
        ("Neg(x: i32 x n) if n > 100 ~> x", {"x": 1}, ([-1] * 101, [1] * 101)),
        # a constant that has a name, whose number has none
        (
            "Reduce { src: Where(Lt(r, c), x @const(_v): index, @zero), ranges: [r @ Range(e: index)], op: Add }"
            " if free_of(c, r) and vmin(e) >= 0 ~> Mul(x, Min(Max(c, 0), e))",
            {"e": 0, "c": "undefined", "_const1": 0, "vmin.e": 0},
            (0, "undefined"),
        ),
    ],
)
def test_the_least_values_at_which_a_rule_is_false(
    rule: str, bindings: dict[str, Any], values: tuple[Any, Any]
) -> None:
    found = refuted(rule)
    assert found["bindings"] == bindings
    assert (found["lhs"], found["rhs"]) == values


def text_and_values(found: dict[str, Any]) -> tuple[str, list[Any]]:
    """The graph of a counterexample, and all values that it is given, one after the other."""
    at = [v for k, v in found["bindings"].items() if k not in ("graph", "becomes")]
    return found["bindings"]["graph"], [x for v in at for x in (v if isinstance(v, list) else [v])]


@pytest.mark.parametrize(
    ("rule", "graph"),
    [
        ("Vectorize(xs..) ~> Vectorize(xs[min(i, 2)] for i in 0..len(xs))", "Vectorize(v1: f32, v2: f32, v3: f32, v4: f32)"),
        ("Vectorize(x: int, y) ~> Vectorize(y, x)", "Vectorize(v1: i8, v2: i8)"),
        (
            "Gep { vector: x: u8, indices: is } if len(is) == 2 ~> Gep { vector: x, indices: [is[0], is[0]] }",
            "Gep(v1: u8x2, [1, 0])",
        ),
        ("Gep { vector: Vectorize(xs..), indices: [i] } ~> xs[0]", "Gep(Vectorize(v1: f32, v2: f32), [1])"),
        ("Flip { src: x: i32, axes: a } ~> x", 'Flip(Buffer(Unique(1), Device("CPU"), 2): i32, [true])'),
        (
            "w @ Where(c: bool, a @ @vconst, b @ @vconst) ~> a",
            "Where(v1: boolx2, VConst([false, true], boolx2), VConst([true, false], boolx2))",
        ),
        ("Neg(x: f32 x n) if n > 3 ~> Vectorize(Neg(Gep(x, [0])) for i in 0..n)", "Neg(v1: f32x4)"),
    ],
)  # fmt: skip
def test_the_least_graph_on_which_a_rule_is_false(rule: str, graph: str) -> None:
    found, values = text_and_values(refuted(rule))
    assert found == graph
    assert set(values) <= {0, 1}


@pytest.mark.parametrize(
    ("rule", "is_small"),
    [
        ("Permute { src: x: i32, axes: a } ~> Permute { src: x, axes: inverse(a) }", "axes of three"),
        ("Group(ss..: void) ~> Group(ss[min(i, 2)] for i in 0..len(ss))", "storage of one"),
        ("Reshape(Permute { src: x: i32, axes: a }, s..) ~> Reshape(x, s..)", "two axes of two"),
    ],
)
def test_sizes_of_a_counterexample_are_small(rule: str, is_small: str) -> None:
    graph, values = text_and_values(refuted(rule))
    assert set(values) <= {0, 1}
    if is_small == "storage of one":
        assert graph.count("Store") == 4
        assert graph.count("DefineGlobal") == graph.count(", 1), 0)")
    else:
        (numbers,) = re.findall(r"\), (\d+)\): i32", graph)
        assert int(numbers) <= 4
        assert all(int(n) <= 2 for n in re.findall(r"\d+", graph.partition("i32")[2]))


def test_the_search_for_a_lesser_graph_is_bounded_and_the_same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    (rule,) = check_text(
        'group g "one"\n\nr: Vectorize(xs..) ~> Vectorize(xs[min(i, 2)] for i in 0..len(xs))\n'
    ).rules()
    first = differential.counterexample(rule, differential.Trials(rule, rule.instances, large=True))
    assert first is not None
    judged: list[UOp] = []
    ask = differential.Judged.__call__

    def counted(self: differential.Judged, graph: UOp, instance: Any) -> Any:
        judged.append(graph)
        return ask(self, graph, instance)

    monkeypatch.setattr(differential.Judged, "__call__", counted)
    found = [least_graph.least_graph(rule, first).before for _ in range(2)]
    assert found[0] is found[1]
    assert len(judged) <= 2 * least_graph.JUDGED
    assert least_graph.weight(found[0]) < least_graph.weight(first.before)


@pytest.mark.parametrize(
    "rule",
    [
        "Cat(xs..) if len(xs) > 4 ~> Cat(xs[0] for i in 0..len(xs))",
        "Vectorize(xs..) if len(xs) > 4 ~> Vectorize(xs[0] for i in 0..len(xs))",
        "Gep { vector: x: i32, indices: is } if len(is) > 3 ~> Gep { vector: x, indices: [is[0] for i in is] }",
        "Add(x: f32 x n, y) if n > 8 ~> Vectorize(Gep(x, [i]) for i in 0..n)",
        "Gep(x: i32, [0, 2, 1, 3]) ~> x",
    ],
)
def test_a_rule_that_holds_together_at_large_sizes_alone_and_is_false_there_is_refuted(rule: str) -> None:
    _, values = text_and_values(refuted(rule))
    assert set(values) <= {0, 1}


def test_whatever_leaves_a_rule_without_a_proof_has_graphs_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_steps(*_: Any) -> None:
        raise OutOfSteps("too many")

    monkeypatch.setattr(obligations, "prove_any", out_of_steps)
    assert refuted("Vectorize(x: i32, y) ~> Vectorize(y, x)")["bindings"]["graph"] == "Vectorize(v1: i32, v2: i32)"


def test_small_is_by_absolute_value_and_by_digits() -> None:
    assert sorted([5, -3, 0, 3, -1], key=least.weight) == [0, -1, 3, -3, 5]
    assert sorted([0.1234, 2.0, 0.5, 1e300, math.inf, 0.0], key=least.weight) == [
        0.0,
        2.0,
        0.5,
        1e300,
        0.1234,
        math.inf,
    ]


@pytest.mark.parametrize(
    ("dtype", "given", "wanted", "false"),
    [
        ("i32", {"x": 1_000_003, "y": 77}, {"x": 1000, "y": 0}, lambda v: v["x"] >= 1000),
        ("i8", {"x": -100, "y": -100}, {"x": 0, "y": -9}, lambda v: v["y"] < -8),
        ("u8", {"x": 200, "y": 3}, {"x": 0, "y": 1}, lambda v: v["x"] != v["y"]),
        ("f32", {"x": 3.14159, "y": 2.5}, {"x": 4.0, "y": 0.0}, lambda v: v["x"] > 3.0),
        ("bool", {"x": True, "y": True}, {"x": False, "y": True}, lambda v: v["y"]),
    ],
)  # fmt: skip
def test_what_is_left_is_false_and_no_larger(
    dtype: str, given: dict[str, Any], wanted: dict[str, Any], false: Any
) -> None:
    asked: list[Mapping[str, Any]] = []

    def false_at(values: Mapping[str, Any]) -> bool:
        asked.append(values)
        return bool(false(values))

    assert least.least(given, dict.fromkeys(given, dtype), false_at) == wanted
    assert len(asked) <= least.TRIES


def test_the_number_of_evaluations_is_bounded_whatever_they_say() -> None:
    asked = 0

    def never(_: Mapping[str, Any]) -> bool:
        nonlocal asked
        asked += 1
        return False

    many = {f"x{i}": 2**62 + i for i in range(12)}
    assert least.least(many, dict.fromkeys(many, "i64"), never) == many
    assert asked <= least.TRIES


def test_what_is_no_number_stays() -> None:
    values = {"x": "undefined", "y": 9}
    assert least.least(values, {"x": "i32", "y": "i32"}, lambda _: True) == {"x": "undefined", "y": 0}


def test_a_counterexample_of_too_many_iterations_is_not_run() -> None:
    """A model may have a loop of billions: what would show that the rule is false does not end in anybody's lifetime."""
    text = "r: Reduce { src: x: i32, ranges: [Range(e: index)], op: Add } ~> x"
    (rule,) = check_text(f'group g "one"\n\n{text}\n').rules()
    firing = Firing(rule, rule.instances[0])
    assert firing.differing({"x": 3, "e": 4}) == (12, 3)
    assert firing.differing({"x": 3, "e": 1 << 40}) is None
