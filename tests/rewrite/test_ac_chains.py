"""Sums of sums are put in order once, when their terms are finished: what comes out is what addition by addition would give."""

from __future__ import annotations

import random

import pytest
from rule_text import rules as rules_of

import morok
from morok.errors import RewriteLimitError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.rewrite.engine import graph_rewrite, rewrite_all
from morok.rewrite.library import groups, symbolic
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.tiers import SYMBOLIC
from morok.rewrite.trace import Trace, tracing


def variable(i: int) -> UOp:
    return UOp.var(f"v{i:03}", dtypes.index, 0, 16)


def random_sum(rng: random.Random, depth: int) -> UOp:
    """A nest of additions, shared here and there, over variables, constants, products, quotients and remainders of such."""
    shared: list[UOp] = [variable(0)]

    def make(depth: int) -> UOp:
        kind = rng.random()
        if depth == 0 or kind < 0.05:
            return variable(rng.randrange(5)) if rng.random() < 0.8 else UOp.const(rng.randrange(-4, 9), dtypes.index)
        if kind < 0.1:
            return rng.choice(shared)
        if kind < 0.7:
            made = make(depth - 1) + make(depth - 1)
        else:
            by = rng.choice((2, 3, 4, 8))
            a = make(depth - 1)
            made = a * by if kind < 0.8 else a // by if kind < 0.9 else a % by
        shared.append(made)
        return made

    return make(depth)


@pytest.mark.long
def test_the_result_is_that_of_one_addition_after_the_other() -> None:
    plain = RuleSet(symbolic().parts)
    assert plain.whole is None
    assert symbolic().whole is not None
    rng = random.Random(7)
    for _ in range(150):
        x = random_sum(rng, 6)
        assert graph_rewrite(x, symbolic()) is graph_rewrite(x, plain), x.text()


def test_a_nest_is_put_in_order_in_one_step_wherever_it_stands() -> None:
    x = variable(40)
    for i in reversed(range(40)):
        x = variable(i) + x if i % 2 else x + variable(i)
    for y in (x, x % 7, (x * 3) // 2 < 9):
        with tracing(Trace()) as trace:
            graph_rewrite(y, symbolic())
        assert [f.rule for f in trace.firings].count("whole_sums.gather") == 1
        assert "commutative_canonicalization.sum" not in [f.rule for f in trace.firings]


def test_each_of_many_nests_inside_another_is_finished_once() -> None:
    """Sums of the first 1, 2, .. 300 terms, each used on its own: as many steps as terms, not its square."""
    x = variable(0) // 3 * 3
    parts = []
    for i in range(1, 300):
        x = x + (variable(i) * 2) // 2
        parts.append(x % 7)
    with tracing(Trace()) as trace:
        both = rewrite_all([UOp.sink(*parts), UOp.sink(*parts[::-1])], symbolic())
    assert len(trace.firings) < 1500
    assert both[0].src == both[1].src[::-1]


def test_what_is_inside_twice_is_counted_twice() -> None:
    x = variable(0) + variable(1)
    for _ in range(100):
        x = x + x
    assert morok.simplify(x) is variable(0) * 2**100 + variable(1) * 2**100


def test_a_deep_nest_needs_no_recursion() -> None:
    x = variable(0)
    for i in range(20_000):
        x = variable(i % 7) + x
    assert len(morok.simplify(x).toposort()) < 40


@pytest.mark.long
def test_a_nest_with_a_term_that_may_be_invalid_is_left_to_the_other_rules() -> None:
    x, y, z = (variable(i) for i in range(3))
    place = (x < 3).where(y, UOp.invalid_at())
    out = morok.simplify(z + (place + x) + (y + place) * -1)
    assert out.invalid
    assert out is graph_rewrite(z + (place + x) + (y + place) * -1, RuleSet(symbolic().parts))


def test_rules_fire_inside_an_ordered_nest() -> None:
    x, y, z = (variable(i) for i in range(3))
    assert morok.simplify(z + (x // 4 * 4 + y) + x % 4) is x + y + z


def test_floats_keep_their_order() -> None:
    x, y, z = (UOp.var(n, dtypes.f32) for n in "xyz")
    assert morok.simplify(z + (y + x)) is z + (y + x)


def test_a_circle_through_a_nest_names_its_rules() -> None:
    found = rules_of("grow: Max(x: index, y) ~> Add(Add(Max(x, y), x), y)")
    rules = RuleSet(found.parts, (), groups("whole_sums"))
    with pytest.raises(RewriteLimitError, match=r"cycle: t\.grow"):
        graph_rewrite(variable(0).max(variable(1)), rules)


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "gathered"),
    [pytest.param("Add(Add(x, y), 3)", 0, marks=pytest.mark.long), ("Add(3, Add(y, Add(x, y)))", 1)],
)
def test_a_nest_that_a_rule_made_is_gathered_where_it_is_not_in_order(made: str, gathered: int) -> None:
    found = rules_of(f"make: Max(x: index, y) ~> {made}")
    rules = RuleSet((*groups(*SYMBOLIC).parts, *found.parts), (), groups("whole_sums"))
    x, y = variable(0), variable(1)
    with tracing(Trace()) as trace:
        out = graph_rewrite(x.max(y), rules)
    assert out is (x + y * 2 if gathered else x + y) + 3
    fired = [f.rule for f in trace.firings]
    assert fired.count("whole_sums.gather") == gathered
    assert "commutative_canonicalization.sum" not in fired


def test_contracts_are_asserted_of_whole_nests_too() -> None:
    with morok.settings(check=True):
        x = variable(2) + (variable(1) + (variable(0) + 3))
        tiers = SYMBOLIC[: SYMBOLIC.index("commutative_canonicalization") + 1]
        assert graph_rewrite(x, groups(*tiers)) is variable(0) + variable(1) + variable(2) + 3
    assert x.op is Op.Add
