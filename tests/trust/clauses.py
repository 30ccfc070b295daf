"""Random clauses of the rule language, and what they are worth in each of its readings."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.dsl.concrete import Concrete, compiled
from morok.dsl.values import FAILURES, Steps
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.answers import Answer
from morok.prove.encoding.encoder import Encoder
from morok.prove.encoding.obligation import Choices, Inapplicable, OutOfSteps
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Unsupported, both, negation
from morok.prove.semantics.theory import Attempt
from morok.prove.solve import ask
from morok.rewrite.ruleset import RuleSet

NOTHING: Final = "no value"
UNSAYABLE: Final = "not said"
LARGE: Final = (2**31, -(2**63), 2**64 - 1, 4096, 4097, 65537)


class Writer:
    """Random well-typed expressions over the constants a and b, the bounds lo and hi of an index, and what clauses name."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.integers = ["a", "b", "lo", "hi"]
        self.sequences: list[str] = []
        self.fresh = 0

    def pick(self, *options: Callable[[], str]) -> str:
        return self.rng.choice(options)()

    def clauses(self, depth: int) -> tuple[list[str], str]:
        """Some `let`, and a guard over them."""
        lets = []
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            name = self.name()
            if self.rng.random() < 0.5:
                lets.append(f"{name} = {self.integer(depth)}")
                self.integers.append(name)
            else:
                lets.append(f"{name} = {self.sequence(depth - 1)}")
                self.sequences.append(name)
        return lets, self.condition(depth)

    def name(self) -> str:
        self.fresh += 1
        return f"u{self.fresh}"

    def integer(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0:
            if rng.random() < 0.6:
                return rng.choice(self.integers)
            return str(rng.choice(LARGE) if rng.random() < 0.1 else rng.randint(-3, 9))
        one = lambda: self.integer(depth - 1)  # noqa: E731
        many = lambda: self.sequence(depth - 1)  # noqa: E731
        return self.pick(
            lambda: f"({one()} {rng.choice(['+', '-', '*', '//', '%'])} {one()})",
            lambda: f"({one()} {rng.choice(['+', '-', '*', '//', '%', '&', '|', '^', '<<', '>>'])} {one()})",
            lambda: f"({rng.choice('-~')} {one()})",
            lambda: f"{rng.choice(['tdiv', 'tmod', 'min', 'max', 'gcd'])}({one()}, {one()})",
            lambda: f"{rng.choice(['min', 'max', 'gcd', 'sum', 'len'])}({many()})",
            lambda: f"{rng.choice(['abs', 'log2'])}({one()})",
            lambda: f"{many()}[{one()}]",
            lambda: f"{many()}[{rng.randint(0, 2)}]",
            lambda: f"width({self.axes(depth - 1)})",
            lambda: f"step({self.axes(depth - 1)}, {rng.randint(0, 3)})",
            lambda: f"at({self.axes(depth - 1)}, {rng.randint(0, 3)}, {one()})",
            lambda: rng.choice(["vmin(x)", "vmax(x)"]),
            lambda: rng.choice(self.integers),
        )

    def axes(self, depth: int) -> str:
        if self.rng.random() < 0.3:
            return f"zip({self.sequence(depth)}, {self.sequence(depth)})"
        pairs = [f"[{self.rng.randint(0, 3)}, {self.integer(depth - 1)}]" for _ in range(self.rng.randint(1, 3))]
        return f"[{', '.join(pairs)}]"

    def sequence(self, depth: int) -> str:
        """A sequence of integers."""
        rng = self.rng
        if depth <= 0:
            if self.sequences and rng.random() < 0.5:
                return rng.choice(self.sequences)
            return f"[{', '.join(self.integer(0) for _ in range(rng.randint(0, 3)))}]"
        return self.pick(
            lambda: f"[{', '.join(self.integer(depth - 1) for _ in range(rng.randint(0, 3)))}]",
            lambda: f"[{self.sequence(depth - 1)}.., {self.integer(depth - 1)}]",
            lambda: f"[{self.sequence(depth - 1)}.., {self.sequence(depth - 1)}..]",
            lambda: self.comprehension(depth, self.integer),
            lambda: self.comprehension(depth, self.integer),
        )

    def comprehension(self, depth: int, body: Callable[[int], str]) -> str:
        rng = self.rng
        shadowed = ["a", "k", "lo", "u1"]
        name, other = rng.sample(shadowed, 2)
        kind = rng.random()
        if kind < 0.4:
            start = rng.choice(["0", "1", "-1", self.integer(0)])
            over = f"{start}{rng.choice(['..', '..='])}({self.integer(depth - 1)} % 4)"
        elif kind < 0.8:
            over = self.sequence(depth - 1)
        else:
            over = f"zip({self.sequence(depth - 1)}, {self.sequence(depth - 1)})"
        names = name if kind < 0.8 else f"{name}, {other}"
        outer, hidden = self.integers, self.sequences
        self.integers = [*outer, *names.split(", "), name]
        self.sequences = [s for s in hidden if s not in names.split(", ")]
        inner = body(depth - 1)
        filtered = f" if {self.condition(depth - 1)}" if rng.random() < 0.4 else ""
        self.integers, self.sequences = outer, hidden
        return f"[{inner} for {names} in {over}{filtered}]"

    def condition(self, depth: int) -> str:
        rng = self.rng
        one = lambda: self.integer(depth - 1)  # noqa: E731
        if depth <= 0:
            return f"{self.integer(0)} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {self.integer(0)}"
        return self.pick(
            lambda: f"{one()} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {one()}",
            lambda: f"{one()} {rng.choice(['<', '=='])} {one()} {rng.choice(['<=', '!='])} {one()}",
            lambda: f"({self.condition(depth - 1)} {rng.choice(['and', 'or'])} {self.condition(depth - 1)})",
            lambda: f"({self.condition(depth - 1)} {rng.choice(['and', 'or'])} {self.condition(depth - 1)})",
            lambda: f"(not {self.condition(depth - 1)})",
            lambda: f"is_pow2({one()})",
            lambda: f"{rng.choice(['all', 'any'])}({self.comprehension(depth, self.condition)})",
            lambda: f"({self.sequence(depth - 1)} {rng.choice(['==', '!='])} {self.sequence(depth - 1)})",
        )


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
