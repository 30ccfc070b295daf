"""Random index expressions, simplified, have the same value at every choice of values for their variables."""

from __future__ import annotations

import random

import pytest
from exhaustive import differences, everywhere, grid
from expressions import NESTED_SUM, VARIABLES, X, Y, environments, expressions, value
from hypothesis import given, settings
from hypothesis import strategies as st
from rulesets import rw

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp


def the_oracles_agree(e: UOp) -> None:
    at = grid([e])
    values, defined = everywhere(e, at)
    for i, env in enumerate(environments([e], 10_000)):
        if i % 97 == 0:
            expected = value(e, env)
            assert bool(defined[i]) == (expected is not None)
            assert expected is None or values[i] == expected


@pytest.mark.parametrize("examples", [15, pytest.param(150, marks=pytest.mark.long)])
def test_the_oracles_agree(examples: int) -> None:
    settings(max_examples=examples)(given(expressions())(the_oracles_agree))()


def test_a_difference_is_found() -> None:
    assert differences(X // 4, X // 5)
    assert differences((X - 4) // 4, X // 4 - 1)
    assert differences(X * 0, X * 0 // Y), "undefined where Y is 0"
    assert not differences(X * 0 // Y, X * 0), "what was undefined may be anything"


@pytest.mark.long
@settings(max_examples=2500)
@given(expressions())
def test_expressions_of_any_shape(e: UOp) -> None:
    after = rw(e)
    assert not differences(e, after), f"{e.text()} became {after.text()}: {differences(e, after)}"


@pytest.mark.long
@settings(max_examples=1200)
@given(
    NESTED_SUM,
    st.sampled_from((1, 2, 3, 4, 6, 8, 12, -2, -5)),
    st.sampled_from((Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod)),
)
def test_divisions_of_sums(s: UOp, d: int, op: Op) -> None:
    e = UOp.new(op, (s, UOp.const(d, dtypes.index)))
    after = rw(e)
    assert not differences(e, after), f"{e.text()} became {after.text()}: {differences(e, after)}"


def grown(rng: random.Random, depth: int) -> UOp:
    """An expression of the kind that addresses are: sums, products and divisions by constants and by variables."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(VARIABLES) if rng.random() < 0.75 else UOp.const(rng.randrange(-4, 17), dtypes.index)
    a = grown(rng, depth - 1)
    kind = rng.choice("++-*/%<mM")
    if kind in "+-<mM":
        b = grown(rng, depth - 1)
        return {"+": a + b, "-": a - b, "m": a.min(b), "M": a.max(b), "<": (a < b).where(a, b)}[kind]
    c = (
        UOp.const(rng.choice((1, 2, 3, 4, 6, 8, 12, 16, -3)), dtypes.index)
        if rng.random() < 0.8
        else Y + rng.randrange(2)
    )
    return a * c if kind == "*" else a // c if kind == "/" else a % c


@pytest.mark.long
def test_deep_expressions() -> None:
    for seed in range(3000):
        e = grown(random.Random(seed), 5)
        after = rw(e)
        assert not differences(e, after), f"{seed}: {e.text()} became {after.text()}: {differences(e, after)}"
