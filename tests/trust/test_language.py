"""Compile-time expressions mean one thing: to the type checker, to evaluation, to generated code and to the prover."""

from __future__ import annotations

import builtins
import math
import random

import pytest
from clauses import UNSAYABLE, evaluated, matched, meant, rule_of, translated, written
from hypothesis import given, settings
from hypothesis import strategies as st

from morok.dsl import values
from morok.dsl.functions import BINARY, COMPARISONS, FUNCTIONS, UNARY
from morok.errors import RuleLimitError
from morok.ir.morok_dialect import MOROK

BOUNDS = [(-5, 7), (0, 3), (2, 2), (-4, -4), (-math.inf, math.inf), (0, math.inf), (-math.inf, 9), (-1, 2**70)]
NUMBERS = [0, 1, -1, 2, 3, 4, 7, 8, -3, 64, 4096, -(2**31), 2**66]


@pytest.mark.parametrize(
    "function", [*UNARY.values(), *BINARY.values(), *COMPARISONS.values(), *FUNCTIONS.values()], ids=lambda f: f.name
)
def test_an_entry_has_all_its_meanings(function):
    assert function.params
    assert callable(function.meaning)
    if function.fact:
        assert function.value in MOROK.facts or function.value in ("same", "dtype")
    else:
        assert callable(function.value)
    if isinstance(function.code, str) and function.code[0] == "_":
        assert values.NAMES[function.code] is function.value
    elif isinstance(function.code, str) and function.code.isidentifier():
        assert getattr(builtins, function.code) is function.value


def readings(lets, guard, a, b, low, high):
    rule = rule_of(lets, guard)
    found = {"evaluation": evaluated(rule, a, b, low, high), "prover": meant(rule, a, b, low, high)}
    if not (math.isinf(low) or math.isinf(high)) and "vm" not in f"{lets}{guard}":
        found["contracts"] = translated(rule, a, b, low, high)
    found["matcher"] = matched(lets, guard, a, b, low, high)
    return found


def agree(lets, guard, a, b, low, high):
    found = readings(lets, guard, a, b, low, high)
    said = {k: v for k, v in found.items() if v != UNSAYABLE}
    assert len(set(map(repr, said.values()))) == 1, (lets, guard, {"a": a, "b": b, "low": low, "high": high}, found)
    return found


@pytest.mark.long
@settings(max_examples=150)
@given(
    st.integers(0, 2**40),
    st.sampled_from(BOUNDS),
    st.sampled_from(NUMBERS),
    st.sampled_from(NUMBERS),
    st.integers(1, 3),
)
def test_random_clauses_mean_one_thing(seed, bounds, a, b, depth):
    lets, guard = written(random.Random(seed), depth)
    try:
        rule_of(lets, guard)
    except RuleLimitError:
        return  # numbers that may become too large
    agree(lets, guard, a, b, *bounds)


@pytest.mark.long
@pytest.mark.parametrize(
    "guard",
    [
        "inverse([a, b])[0] == 1",
        "inverse([a, b, 2])[1] == a",
        "inverse(inverse([a, b, 0])) == [a, b, 0]",
        "len(inverse([a])) == b",
        "len(inverse([k for k in 0..b])) == b",
        "others([a, b], 4)[0] == 1",
        "len(others([a], 3)) == b",
        "others([a], b) == [0, 1]",
        "others(others([a, 2], 5), 5) == [a, b]",
        "where(a < b, a, b) == min(a, b, 2)",
        "where(a // b > 0, a, b) > 1",
        "where(a > b, a // b, 3) > 2",
        "where(vmax(x) > a, b, a) < 2",
        "sum(where(k == a, b, 1) for k in 0..4) > 4",
    ],
)
@pytest.mark.parametrize("bounds", BOUNDS[:5])
def test_permutations_and_choices_mean_one_thing(guard, bounds):
    outcomes = {
        repr(agree([], guard, a, b, *bounds)["evaluation"]) for a in (-1, 0, 1, 2, 3, 7) for b in (-2, 0, 1, 2, 5)
    }
    assert len(outcomes) > 1


NAMES = [name for name, f in FUNCTIONS.items() if f.params == ("several",)] + ["sum"]
OF_ITEMS = [f"{name}([{items}])" for name in NAMES for items in ("a", "a, b", "b, 0, a")] + [
    f"{name}(a, b)" for name in NAMES[:-1]
]
OF_NUMBERS = [
    f"{name}({'a, b'[: 1 + 3 * (len(f.params) - 1)]})" for name, f in FUNCTIONS.items() if set(f.params) == {"int"}
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("term", [*OF_ITEMS, *(t for t in OF_NUMBERS if "is_pow2" not in t)])
def test_functions_of_few_numbers_mean_one_thing(term: str) -> None:
    """The divisor of -7 alone is 7, to all of them."""
    for a, b in ((-7, 3), (-8, 12), (0, 0), (12, -8)):
        for value in {a, abs(a), 0, 4}:
            agree([], f"{term} == {value}", a, b, 0, 3)
