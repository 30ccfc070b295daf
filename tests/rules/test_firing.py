"""Every pointwise rule fires on graphs made from its pattern, and what it makes has the value of what it took."""

from __future__ import annotations

import random
from typing import Any
from zlib import crc32

import pytest

from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.errors import IRTypeError, UndefinedError
from morok.ir import number
from morok.ir.dtype import DType
from morok.ir.interpret import INVALID, evaluate
from morok.ir.uop import UOp
from morok.prove.trust.graphs import Maker, environment
from morok.rewrite.library import rules_dir
from morok.rewrite.ruleset import RuleSet

FOLDERS = ("algebra", "index")
RULES = [r for folder in FOLDERS for p in sorted((rules_dir() / folder).glob("*.rules")) for r in check_file(p).rules()]
POINTWISE = [r for r in RULES if r.pointwise and not r.syntax.assuming]
TRIES = 40_000  # graphs made for a rule, until enough have fired
ENOUGH = 12


def same(d: DType, a: Any, b: Any) -> bool:
    if a is INVALID or b is INVALID:
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(d, x, y) for x, y in zip(a, b, strict=True))
    return number.same_value(d.scalar(), a, b)


def value(node: UOp, env: dict[UOp, Any]) -> Any:
    try:
        return evaluate(node, env)
    except UndefinedError:
        return None


def fire(rule: CheckedRule) -> int:
    """How often the rule fired; asserts that each time the value stayed."""
    rng = random.Random(crc32(rule.name.encode()))
    rules = RuleSet.of([rule])
    fired = 0
    for _ in range(TRIES):
        lanes = 3 if "vconst" in rule.name or rng.random() < 0.1 else 1
        try:
            before = Maker(rule, rng.choice(rule.instances), rng, lanes).make(rule.syntax.pattern)
        except IRTypeError:  # no such node: constants out of a dtype's range made a vector constant a scalar one
            continue
        hit = rules.rewrite_node(before)
        if hit is None:
            continue
        after = hit[0]
        assert after.dtype is before.dtype
        for _ in range(6):
            env = environment(before, rng)
            expected = value(before, env)
            if expected is not None:
                got = value(after, env)
                shown = {k.text(): v for k, v in env.items()}
                assert got is not None, f"{before.text()} is {expected}, {after.text()} is undefined at {shown}"
                assert same(before.dtype, expected, got), f"{before.text()} is {expected}, {after.text()} is {got} at {shown}"
        fired += 1
        if fired == ENOUGH:
            break
    return fired


@pytest.mark.parametrize("rule", POINTWISE, ids=lambda r: r.name)
def test_fires_and_keeps_the_value(rule: CheckedRule) -> None:
    assert fire(rule) > 0, "the generator found no graph on which it applies"
