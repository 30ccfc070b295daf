"""Every helper of the built-in rules that takes no context keeps its contract, by the tests that helpers of packs have to pass.

Those that take one are called by the tests of their passes, with `MOROK_CHECK=1` among others.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rulesets import checked_files

from morok.dsl.checked import CheckedRule
from morok.ir.dtype import dtypes
from morok.ir.uop import UOp
from morok.prove.examination import CALLS, Examination

RULES = [r for file in checked_files() for r in file.rules() if r.externs]
X, Y = (UOp.var(n, dtypes.index, -20, 99) for n in "xy")


def of_helper(name: str) -> list[CheckedRule]:
    return [r for r in RULES if name in r.externs]


HELPERS = sorted({name for r in RULES if r.context is None for name in r.externs})
# of the others rules believe nothing
PROMISING = [name for name in HELPERS if of_helper(name)[0].externs[name].ensures]


def digits(rng: random.Random) -> Iterator[tuple[Any, ...]]:
    d = rng.randint(1, 9)
    yield (X * rng.randint(1, 4) + Y).max(0), d * rng.randint(1, 9), d


def remainder_pair(rng: random.Random) -> Iterator[tuple[Any, ...]]:
    n, k = rng.randint(2, 9), rng.choice((-3, -1, 1, 2))
    x = X * rng.randint(1, 3) + Y
    quotient, remainder = x // n * (k * n), (x + n * rng.randint(-2, 2)) % n * k
    yield (rng.choice((Y + quotient + remainder, Y + remainder + quotient, quotient + remainder)),)


MAKERS: dict[str, Callable[[random.Random], Iterator[tuple[Any, ...]]]] = {
    "digits": digits,
    "remainder_pair": remainder_pair,
}


def examination(name: str, function: Any) -> Examination:
    rules = of_helper(name)
    made = Examination(rules[0].externs[name], rules, function, (), lambda _: None)
    made.maker = MAKERS.get(name)
    return made


def helper(name: str) -> Any:
    return getattr(importlib.import_module(str(of_helper(name)[0].helpers)), name)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "merged_below" else pytest.mark.long) for n in HELPERS]
)
def test_the_contract_is_kept(name: str) -> None:
    made = examination(name, helper(name))
    state, message = made.run()
    assert state == "tested", message
    assert made.calls >= CALLS


def off(result: Any) -> Any:
    """A result with its last part one too great; or denied, a number too."""
    if isinstance(result, tuple):
        return (*result[:-1], off(result[-1]))
    if isinstance(result, UOp) and result.dtype is dtypes.bool:
        return result.ne(True)
    return not result if isinstance(result, bool) else int(not result) if isinstance(result, int) else result + 1


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PROMISING)
def test_a_contract_that_is_not_kept_is_found(name: str) -> None:
    inner = helper(name)

    def wrong(*args: Any) -> Any:
        result = inner(*args)
        return None if result is None else off(result)

    wrong.__dict__.update(inner.__dict__)
    state, message = examination(name, wrong).run()
    assert state == "false", name
    assert "breaks what it ensures" in message
