"""Rules tried without a solver: fired on random graphs that their patterns match, and both sides evaluated.

The graphs are made at 8 bits (and f16, bool, index) where the rule admits that: narrow dtypes reach their ends soonest. What a
trial finds is a counterexample beyond doubt; that it finds none proves nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final
from zlib import crc32

from morok.dsl.checked import CheckedRule, Instance
from morok.errors import IRError, UndefinedError
from morok.ir import number
from morok.ir.dtype import DType
from morok.ir.interpret import INVALID, evaluate
from morok.ir.uop import UOp
from morok.prove.trust.graphs import Maker, Unmakeable, environment
from morok.rewrite.ruleset import RuleSet

NARROW: Final = frozenset({"i8", "u8", "f16", "bool", "index"})
TRIES: Final = 400  # graphs made for a rule
ENVIRONMENTS: Final = 6  # choices of values for the variables of a graph on which it fired


def narrow(rule: CheckedRule) -> tuple[Instance, ...]:
    """The instances of a rule at narrow dtypes; all of them where there is none."""
    found = tuple(i for i in rule.instances if NARROW.issuperset(i.dtypes.values()))
    return found or rule.instances


def same(d: DType, a: Any, b: Any) -> bool:
    """Whether two values of a dtype are one: lane by lane, by bits, NaNs alike, Invalid only itself."""
    if a is INVALID or b is INVALID:
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(d, x, y) for x, y in zip(a, b, strict=True))
    return number.same_value(d.scalar(), a, b)


def value(node: UOp, env: dict[UOp, Any]) -> Any:
    """The value of a node; None where it is undefined."""
    try:
        return evaluate(node, env)
    except UndefinedError:
        return None


def graphs(rule: CheckedRule, tries: int, instances: tuple[Instance, ...] | None = None) -> Iterator[tuple[UOp, random.Random]]:
    """Up to `tries` graphs that the rule's pattern matches, the same in every process; Unmakeable if the pattern has no maker."""
    rng = random.Random(crc32(rule.name.encode()))
    chosen = instances or narrow(rule)
    for _ in range(tries):
        lanes = 3 if "vconst" in rule.name or rng.random() < 0.1 else 1
        try:
            yield Maker(rule, rng.choice(chosen), rng, lanes).make(rule.syntax.pattern), rng
        except IRError:  # no such node: constants out of a dtype's range made a vector constant a scalar one
            continue


def differs(before: UOp, after: UOp, rng: random.Random) -> str | None:
    """Values at which two graphs differ, in words; None if a few trials found none."""
    if after.dtype is not before.dtype:
        return f"{before.text()} is {before.dtype.name}, {after.text()} is {after.dtype.name}"
    for _ in range(ENVIRONMENTS):
        env = environment(before, rng)
        expected = value(before, env)
        if expected is None:
            continue
        got = value(after, env)
        if got is None or not same(before.dtype, expected, got):
            shown = ", ".join(f"{k.text()} = {v}" for k, v in env.items())
            return f"{before.text()} is {expected}, {after.text()} is {'undefined' if got is None else got} at {shown}"
    return None


def has_value(node: UOp, rng: random.Random) -> bool:
    """Whether a node is defined at some of a few values of its variables: rules about what never is are of no use."""
    return any(value(node, environment(node, rng)) is not None for _ in range(ENVIRONMENTS))


def counterexample(rule: CheckedRule, tries: int = TRIES) -> str | None:
    """A graph and values at which the rule, as its matcher applies it, is false; None if a few hundred trials found none."""
    if rule.syntax.assuming:  # it is not bit equality that such a rule claims
        return None
    rules = RuleSet.of([rule])
    try:
        for before, rng in graphs(rule, tries):
            try:
                hit = rules.rewrite_node(before)
            except ArithmeticError:  # the rule calls a helper with what its contract excludes: that is for the prover to see
                return None
            if hit is not None and (found := differs(before, hit[0], rng)) is not None:
                return found
    except Unmakeable:
        return None
    return None


def reaches_further(changed: CheckedRule, original: CheckedRule, tries: int = 10 * TRIES) -> str | None:
    """A graph with a value on which the changed rule fires and the original does not; None if no trial found one."""
    ours, theirs = RuleSet.of([changed]), RuleSet.of([original])
    try:
        for before, rng in graphs(original, tries):
            if ours.rewrite_node(before) is not None and theirs.rewrite_node(before) is None and has_value(before, rng):
                return before.text()
    except (Unmakeable, IRError, ArithmeticError):
        return None
    return None
