"""Random clauses of the rule language, and what they are worth in each of its readings."""

from __future__ import annotations

import math
import random
from typing import Any, Final

from interpreted_clauses import Concrete

from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.dsl.concrete import compiled
from morok.dsl.values import FAILURES, Steps
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.answers import Answer
from morok.prove.attack.guards import Clauses
from morok.prove.encoding.encoder import Encoder
from morok.prove.encoding.obligation import Choices, Inapplicable, OutOfSteps
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Unsupported, both, negation
from morok.prove.semantics.theory import Attempt
from morok.prove.solve import ask
from morok.rewrite.ruleset import RuleSet

NOTHING: Final = "no value"
UNSAYABLE: Final = "not said"


def written(rng: random.Random, depth: int) -> tuple[list[str], str]:
    """Some `let`, and a guard, over the constants a and b, and the bounds of an index."""
    integers = ("a", "b", "lo", "hi", "a", "b", "lo", "hi", "vmin(x)", "vmax(x)")
    clauses = Clauses(rng, {}, integers, items=("i", "k", "n"))
    return clauses.named(depth), clauses.condition(depth)


HEAD: Final = "Sub(Mul(x: index, @const(a)), @const(b)) let lo = vmin(x), hi = vmax(x)"


def rule_of(lets: list[str], guard: str) -> CheckedRule:
    """A rule that makes x where its guard holds."""
    named = "".join(f" let {one}" for one in lets)
    text = f'group g "random"\n\nr: {HEAD}{named} if {guard} ~> x\n    "a guard"\n'
    return next(iter(check_text(text).rules()))


def index(low: float, high: float) -> UOp:
    """A node with these bounds."""
    if low == -math.inf or high == math.inf:
        found = UOp.var("x", dtypes.index)
        if low != -math.inf:
            found = UOp.new(Op.Max, (found, UOp.const(int(low), dtypes.index)))
        if high != math.inf:
            found = UOp.new(Op.Min, (found, UOp.const(int(high), dtypes.index)))
    else:
        found = UOp.var("x", dtypes.index, int(low), int(high))
    assert (found.vmin, found.vmax) == (low, high)
    return found


def fires(rule: CheckedRule, node: UOp) -> bool:
    return RuleSet.of([rule], unproved=True).rewrite_node(node, None) is not None


def matched(lets: list[str], guard: str, a: int, b: int, low: float, high: float) -> Any:
    """What the matcher makes of the guard: it fires, its negation does, or neither."""
    x = index(low, high)
    node = UOp.new(Op.Sub, (UOp.new(Op.Mul, (x, UOp.const(a, dtypes.index))), UOp.const(b, dtypes.index)))
    holds, fails = (fires(rule_of(lets, g), node) for g in (guard, f"not ({guard})"))
    assert not (holds and fails)
    return True if holds else False if fails else NOTHING


class Evaluator(Concrete):
    """Evaluation with bounds."""

    def __init__(self, names: dict[str, Any], low: float, high: float) -> None:
        super().__init__(names)
        self.bounds = {"vmin": low, "vmax": high}

    def call(self, e: S.ECall) -> Any:
        return self.bounds[e.name] if e.name in self.bounds else super().call(e)


def evaluated(rule: CheckedRule, a: int, b: int, low: float, high: float) -> Any:
    reading = Evaluator({"a": a, "b": b}, low, high)
    try:
        for clause in rule.syntax.clauses:
            if isinstance(clause, S.If):
                return reading.value(clause.condition)
            reading.names[clause.names[0]] = reading.value(clause.value)
    except FAILURES:
        return NOTHING
    raise AssertionError("no guard")


def translated(rule: CheckedRule, a: int, b: int, low: int, high: int) -> Any:
    """By the Python functions of contracts, whose numbers are never infinite."""
    names: dict[str, Any] = {"a": a, "b": b}
    bounds = {"vmin": low, "vmax": high}
    steps = Steps()
    try:
        for clause in rule.syntax.clauses:
            if isinstance(clause, S.If):
                return compiled(clause.condition)(names, steps)
            value = clause.value
            known = isinstance(value, S.ECall) and value.name in bounds
            names[clause.names[0]] = bounds[value.name] if known else compiled(value)(names, steps)
    except FAILURES:
        return NOTHING
    raise AssertionError("no guard")


def number(reading: Encoder, value: float) -> Num:
    if math.isinf(value):
        return reading.numbers.infinity(1 if value > 0 else -1)
    found: Num = reading.numbers.const(int(value))
    return found


def meant(rule: CheckedRule, a: int, b: int, low: float, high: float) -> Any:
    """What the prover takes the guard for at these values."""
    world = Attempt("integers", 1.0, integers=True, builtin=True).world()
    reading = Encoder(rule, rule.instances[0], world, Choices())
    reading.names = {"a": number(reading, a), "b": number(reading, b)}
    for name, value in (("call_vmin", low), ("call_vmax", high)):
        setattr(reading, name, lambda _x, value=value: number(reading, value))
    exists: list[Any] = []
    try:
        for clause in rule.syntax.clauses:
            if isinstance(clause, S.If):
                truth, needed = reading.reading(lambda at=clause: reading.truth(at.condition))
                exists += [needed, truth.exists]
                return decided(world, exists, truth.value)
            value, needed = reading.reading(lambda at=clause: reading.expression(at.value))
            exists += [needed, reading.existence(value)]
            reading.names[clause.names[0]] = value
    except Inapplicable:
        return NOTHING
    except (Unsupported, OutOfSteps):
        return UNSAYABLE
    raise AssertionError("no guard")


def decided(world: Any, exists: list[Any], value: Any) -> Any:
    def possible(*conditions: Any) -> bool:
        found = ask([*world.axioms, *conditions], 200_000).answer
        if found is Answer.UNKNOWN:
            raise Unsupported("the solver does not say")
        return found is Answer.SAT

    there = both(*exists)
    outcomes = {
        NOTHING: possible(negation(there)),
        True: possible(there, value),
        False: possible(there, negation(value)),
    }
    found = [k for k, can_be in outcomes.items() if can_be]
    return found[0] if len(found) == 1 else UNSAYABLE
