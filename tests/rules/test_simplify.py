"""Simplification as a whole: meaning, cost, idempotence, size."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from expressions import VARIABLES, cost, expressions, refines
from hypothesis import given, settings
from rulesets import rw

from morok.ir.dtype import dtypes
from morok.ir.expression_parser import parse
from morok.ir.op import Op
from morok.ir.uop import UOp

# Inputs and results of tinygrad's own tests of its symbolic rules (revision 7a2a3b5c71), with the cost of its results.
REFERENCE: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "symbolic.json").read_text())


@pytest.mark.sampled(9)
@pytest.mark.parametrize("case", REFERENCE, ids=[f"{n}-{c['test']}" for n, c in enumerate(REFERENCE)])
def test_reference(case: dict[str, Any]) -> None:
    before = parse(case["expression"])
    after = rw(before)
    assert cost(after) <= case["cost"], f"{after.text()} costs {cost(after)}, {case['reference']} costs {case['cost']}"
    assert rw(after) is after
    if all(n.src[0].op is Op.Const for n in before.toposort() if n.op is Op.Range):
        refines(before, after, 3000)


def test_some_results_are_cheaper_than_the_reference() -> None:
    costs = [(cost(rw(parse(case["expression"]))), case["cost"]) for case in REFERENCE]
    assert sum(ours < theirs for ours, theirs in costs) >= len(costs) // 20


@pytest.mark.long
@settings(max_examples=400)
@given(expressions())
def test_random_expressions_keep_their_meaning(e: UOp) -> None:
    after = rw(e)
    assert rw(after) is after
    refines(e, after, 500)


def grown(rng: random.Random, depth: int) -> UOp:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(VARIABLES) if rng.random() < 0.75 else UOp.const(rng.randrange(1, 17), dtypes.index)
    kind = rng.choice("++-*/%")
    a = grown(rng, depth - 1)
    if kind in "+-":
        b = grown(rng, depth - 1)
        return a + b if kind == "+" else a - b
    c = rng.choice((1, 2, 3, 4, 6, 8, 12, 16))
    return a * c if kind == "*" else a // c if kind == "/" else a % c


@pytest.mark.long
def test_deep_random_expressions_keep_their_meaning() -> None:
    for seed in range(300):
        e = grown(random.Random(seed), 5)
        after = rw(e)
        assert rw(after) is after
        refines(e, after, 200)


def test_a_long_sum_of_divisions() -> None:
    rw(VARIABLES[0] + 1)
    names = [UOp.var(f"n{i}", dtypes.index, 0, 100 + i) for i in range(10)]
    rng = random.Random(1)
    total = UOp.const(0, dtypes.index)
    for _ in range(50):
        v, d = rng.choice(names), rng.choice((2, 3, 4, 8))
        total = total + ((v // d) * d if rng.random() < 0.5 else (v * 3 + 1) % d)
    after = rw(total)
    assert cost(after) <= cost(total)
    refines(total, after, 200)


@pytest.mark.long
def test_a_chain_of_100_000_terms() -> None:
    x = VARIABLES[0]
    node = x
    for n in range(100_000):
        node = node + (n % 7)
    after = rw(node)
    assert after is x + sum(n % 7 for n in range(100_000))
