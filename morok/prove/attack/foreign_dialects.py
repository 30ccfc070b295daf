"""Dialects of others, and rules over them: some dialects are right, some have a mistake that no rule over them may get past.

A dialect is made from its name (morok.prove.attack.sketched_dialects).
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import itertools
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from morok import dialect as dialects
from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.errors import MorokError
from morok.prove import ledger
from morok.prove.attack import sketched_dialects
from morok.prove.attack.outcome import STATES, Outcome
from morok.prove.attack.rule_templates import templates
from morok.prove.attack.sketched_dialects import FUNCTIONS, WIDE, Attacked, Node, Sketch, fit, type_of
from morok.prove.rule_syntax import ops_of
from morok.prove.verdict import Verdict
from morok.prove.workers import prove_all
from morok.rewrite.ruleset import RuleSet

OTHERS: Final = "attacked_dialects"  # a module of nobody's that Morok knows
MISTAKES: Final = (
    "none",
    "none",
    "none",
    "evaluator",
    "evaluator",
    "key",
    "commutes",
    "constant",
    "values",
    "unknowns",
)
GRAPHS: Final = 12
BUDGET: Final = 3_000  # solver units an obligation
WORLDS: Final = 40


def sketch(rng: random.Random, ops: Sequence[str]) -> Sketch:
    """A random dialect, its mistake in one of these ops."""
    low, high = rng.choice(((0, 1), (0, 3), (-2, 1), (-4, 3), (-3, 3), (-8, 7), (0, 15), (-100, 100)))
    return Sketch(rng.choice(("clip", "wrap")), low, high, rng.choice(MISTAKES), rng.choice(ops))


@functools.cache
def others() -> Any:
    """The module of the dialects, loaded under a name outside of Morok: to the prover they are code of others, and digests of
    them cover that code alone, as they do for others.
    """
    spec = importlib.util.spec_from_file_location(OTHERS, sketched_dialects.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[OTHERS] = module
    spec.loader.exec_module(module)
    return module


def made(s: Sketch) -> Attacked:
    """The dialect of a sketch, as code of others makes it."""
    return cast(Attacked, others().Attacked(others().Sketch(*s)))


@functools.cache
def registered(name: str) -> Attacked:
    """The dialect of that name, known to rule files from then on."""
    found = made(Sketch.of(name))
    dialects.register(found)
    return found


# The rules, and how they fare.


def foreign(rng: random.Random) -> str:
    """A rule file over a random dialect."""
    rule = rng.choice(templates()["foreign"]).replace("OP", rng.choice(("Add", "Sub", "Max", "Min")))
    s = sketch(rng, [op for op in FUNCTIONS if f"{op}(" in rule or f"{op}[" in rule])
    rule = rule.replace("BELOW", str(s.high - 1)).replace("HIGH", str(s.high)).replace("LOW", str(s.low))
    registered(s.name)
    return f'dialect {s.name}\n\ngroup attack "a random rule"\n\nr: {rule}\n'


def rule_of(text: str) -> CheckedRule:
    registered(text.split()[1])
    return next(iter(check_text(text, "<attack>").rules()))


def verdict_of(rule: CheckedRule, budget: int) -> Verdict:
    """The verdict of `morok prove`, on the dialect and the rule."""
    return prove_all([rule], budget, 1, False)[0]


class Graphs:
    """Nodes that a pattern matches, all of one type: the dialect's, or the one that it does not list."""

    def __init__(self, rule: CheckedRule, rng: random.Random) -> None:
        self.rule, self.rng = rule, rng
        self.dialect = rule.dialect
        self.sketch = Sketch.of(rule.dialect.name)

    def make(self) -> Node:
        self.type = "n" if self.rng.random() < 0.7 else "wide"
        self.names: dict[str, Node] = {}
        return self.of(self.rule.syntax.pattern)

    def number(self) -> int:
        s = self.sketch
        return self.rng.choice((s.low, s.high, 0, self.rng.randint(s.low, s.high)))

    def of(self, p: S.Pattern) -> Node:
        match p:
            case S.PVar(name=name):
                leaf = ("const", self.number(), self.type) if self.rng.random() < 0.2 else ("var", name, self.type)
                return self.names.setdefault(name, leaf)
            case S.PConst():
                return "const", self.number(), self.type
            case S.PLiteral(value=v):
                return "const", v, self.type
            case S.POp(ops=(op, *_), args=args):
                operands = [self.of(a) for a in args]
                if p.commutative and self.rng.random() < 0.5:
                    operands.reverse()
                return (self.dialect.ops[op].key, *operands)
        raise AssertionError(p)


def value(s: Sketch, node: Node, at: Mapping[str, int]) -> int:
    """The meaning of a node, stated apart from the dialect."""
    if node[0] == "var":
        return at[node[1]]
    if node[0] == "const":
        return int(node[1])
    values = [value(s, n, at) for n in node[1:]]
    found = FUNCTIONS[node[0].capitalize()](*values)
    return s.within(found) if type_of(node) == "n" else fit("wrap", -WIDE, WIDE, found)


def variables(node: Node) -> set[str]:
    return {node[1]} if node[0] == "var" else set() if node[0] == "const" else set().union(*map(variables, node[1:]))


def worlds(s: Sketch, names: Sequence[str], at: str, rng: random.Random) -> Iterator[dict[str, int]]:
    """Values of variables: all there are where they are few, else edges and random ones."""
    low, high = (s.low, s.high) if at == "n" else (-WIDE, WIDE)
    if (high - low + 1) ** len(names) <= WORLDS:
        yield from (
            dict(zip(names, vs, strict=True)) for vs in itertools.product(range(low, high + 1), repeat=len(names))
        )
        return
    for _ in range(WORLDS):
        yield {
            n: rng.choice((low, high, 0, rng.randint(low, high), rng.randint(-4, 4) if at != "n" else high))
            for n in names
        }


def fire(rule: CheckedRule, rng: random.Random) -> tuple[int, bool, str]:
    """The number of firings, True if any changed something, and a difference, if there is one."""
    graphs = Graphs(rule, rng)
    rules = RuleSet.of([rule], unproved=True)
    s = graphs.sketch
    times, changed = 0, False
    for _ in range(GRAPHS):
        before = graphs.make()
        try:
            hit = rules.rewrite_node(before, None)
        except MorokError:
            continue
        if hit is None:
            continue
        after = hit[0]
        times, changed = times + 1, changed or after != before
        for at in worlds(s, sorted(variables(before)), type_of(before), rng):
            one, other = value(s, before, at), value(s, after, at)
            if one != other or type_of(before) != type_of(after):
                return times, changed, f"{before} is {one}, {after} is {other} at {at}"
    return times, changed, ""


def put(text: str, name: str, budget: int = BUDGET) -> Outcome:
    """A rule over a dialect of its own put to trial; and once more as if the dialect had been edited after it was proved."""
    rule = rule_of(text)
    rng = random.Random(name)
    times, changed, shown = fire(rule, rng)
    if not times:
        return Outcome("never")
    verdict = verdict_of(rule, budget)
    if not verdict.usable:
        return Outcome(
            verdict.verdict if verdict.verdict in STATES else "refuted", times, 0, changed, message=verdict.message
        )
    scope = "; ".join(verdict.scope)
    if not shown and (stale := edited(rule, text, rng)):
        shown, scope = stale, f"{scope}; recorded before the dialect was edited, and still believed"
    return Outcome("false" if shown else "usable", times, 0, changed, shown, scope)


def edited(rule: CheckedRule, text: str, rng: random.Random) -> str:
    """A difference that the rule makes once an evaluator of its dialect is another, where a record of it would still count."""
    s = Sketch.of(rule.dialect.name)
    recorded = ledger.rule_digest(rule)
    for op in ops_of(rule):
        other = made(s)
        evaluate = others().evaluator(s._replace(mistake="evaluator", wrong=op), op)
        other.ops = {**other.ops, op: dataclasses.replace(other.ops[op], evaluate=evaluate)}
        again = next(iter(check_text(text, "<attack>", other).rules()))
        if ledger.rule_digest(again) == recorded and (shown := fire(again, rng)[2]):
            return shown
    return ""
