"""Mutation testing of rules: does the prover notice when a rule is changed?

Every mutant of a proved rule must be refuted, or never apply, or be a true rule itself: the last are listed, since each is either
an equivalent way to say the rule or a sign that a guard is stronger than it need be.

Run it: python -m morok.prove.mutate [FILE.rules ...] [--sample N] [--seed S]
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from morok.dialect import Dialect, OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.errors import RuleError

COMPARISONS: Final = {"<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",)}
ARITHMETIC: Final = {"+": "-", "-": "+", "*": "+", "//": "%", "%": "//", "<<": ">>", ">>": "<<", "and": "or", "or": "and"}
OPPOSITE: Final = {"zero": "one", "one": "zero", "true": "false", "false": "true", "vmin": "vmax", "vmax": "vmin"}
NEIGHBOURS: Final = 2  # other ops tried in place of one


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed rule: what was done to it, and whether that was to its guards."""

    rule: S.Rule
    change: str
    guard: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant.

    kind   "refuted", "ill-typed", "inapplicable", "true" (proved: a true rule itself), "unknown"
    """

    rule: str
    change: str
    kind: str
    detail: str = ""
    guard: bool = False

    @property
    def noticed(self) -> bool:
        return self.kind in ("refuted", "ill-typed", "inapplicable")


def neighbours(dialect: Dialect, name: str) -> list[str]:
    """Ops that could stand in this one's place: same typing."""
    info = dialect.ops.get(name)
    if info is None or not info.params:
        return []

    def alike(o: OpInfo) -> bool:
        return o.name != name and o.params == info.params and o.result == info.result and bool(o.solver)

    names = [o.name for o in dialect.ops.values() if alike(o)]
    start = sorted([*names, name]).index(name)
    turned = sorted(names)[start:] + sorted(names)[:start]
    return turned[:NEIGHBOURS]


def mutants(rule: S.Rule, dialect: Dialect) -> Iterator[Mutant]:
    """Every mutant of a rule that differs from it in one place."""
    for i, clause in enumerate(rule.clauses):
        if isinstance(clause, S.If):
            rest = (*rule.clauses[:i], *rule.clauses[i + 1 :])
            yield Mutant(dataclasses.replace(rule, clauses=rest), f"guard {i + 1} dropped", True)
        for changed, what in _changes(clause, dialect):
            clauses = (*rule.clauses[:i], changed, *rule.clauses[i + 1 :])
            yield Mutant(dataclasses.replace(rule, clauses=clauses), f"guard {i + 1}: {what}", isinstance(clause, S.If))
    for changed, what in _changes(rule.pattern, dialect):
        yield Mutant(dataclasses.replace(rule, pattern=changed), f"pattern: {what}", False)
    for changed, what in _changes(rule.target, dialect):
        yield Mutant(dataclasses.replace(rule, target=changed), f"target: {what}", False)


def _changes(tree: Any, dialect: Dialect) -> Iterator[tuple[Any, str]]:
    """The tree with one change, for every place and every change."""
    yield from _here(tree, dialect)
    for name in tree.__dataclass_fields__:
        value = getattr(tree, name)
        if isinstance(value, S.Syntax) and not isinstance(value, (S.Span, S.TypeSyntax)):
            for changed, what in _changes(value, dialect):
                yield dataclasses.replace(tree, **{name: changed}), what
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, S.Syntax) and not isinstance(item, (S.Span, S.TypeSyntax)):
                    for changed, what in _changes(item, dialect):
                        yield dataclasses.replace(tree, **{name: (*value[:i], changed, *value[i + 1 :])}), what


def _here(at: Any, dialect: Dialect) -> Iterator[tuple[Any, str]]:
    if isinstance(at, S.POp) and len(at.ops) == 1:
        for other in neighbours(dialect, at.ops[0]):
            if not at.commutative or dialect.ops[other].commutative:
                yield dataclasses.replace(at, ops=(other,)), f"{at.ops[0]} to {other}"
        if not at.commutative and len(at.args) == 2 and at.args[0] != at.args[1] and not isinstance(at.args[1], S.PType):
            yield dataclasses.replace(at, args=at.args[::-1]), f"operands of {at.ops[0]} exchanged"
    elif isinstance(at, S.ECall):
        for other in neighbours(dialect, at.name):
            yield dataclasses.replace(at, name=other), f"{at.name} to {other}"
        if at.name in OPPOSITE:
            yield dataclasses.replace(at, name=OPPOSITE[at.name]), f"{at.name} to {OPPOSITE[at.name]}"
        info = dialect.ops.get(at.name)
        if info is not None and len(at.args) == 2 and at.args[0] != at.args[1] and not isinstance(at.args[1], S.EType):
            yield dataclasses.replace(at, args=at.args[::-1]), f"operands of {at.name} exchanged"
    elif isinstance(at, S.PConst) and at.kind in OPPOSITE:
        yield dataclasses.replace(at, kind=OPPOSITE[at.kind]), f"@{at.kind} to @{OPPOSITE[at.kind]}"
    elif isinstance(at, (S.PLiteral, S.ENumber)):
        if isinstance(at.value, bool):
            yield dataclasses.replace(at, value=not at.value, text=str(not at.value).lower()), f"{at.text} negated"
        elif isinstance(at.value, int):
            for v in (at.value + 1, at.value - 1):
                yield dataclasses.replace(at, value=v, text=str(v)), f"{at.text} to {v}"
    elif isinstance(at, S.ECompare):
        for i, op in enumerate(at.ops):
            for other in COMPARISONS[op]:
                yield dataclasses.replace(at, ops=(*at.ops[:i], other, *at.ops[i + 1 :])), f"{op} to {other}"
    elif isinstance(at, S.EBinary) and at.op in ARITHMETIC:
        yield dataclasses.replace(at, op=ARITHMETIC[at.op]), f"{at.op} to {ARITHMETIC[at.op]}"
    elif isinstance(at, S.EUnary) and at.op in ("not", "-"):
        yield at.operand, f"{at.op} dropped"


def recheck(original: CheckedRule, mutant: S.Rule) -> CheckedRule:
    """The mutant as a rule of its own; RuleError if it makes no sense."""
    from morok.dsl.check import check_text
    from morok.dsl.format import format_file

    group = S.Group("mutant", "", original.context, (dataclasses.replace(mutant, doc="a mutant", examples=()),))
    file = S.File("<mutant>", original.dialect.name, original.helpers, tuple(original.externs.values()), (group,))
    rules: Iterator[CheckedRule] = check_text(format_file(file), "<mutant>").rules()
    return next(rules)


def judge(original: CheckedRule, mutant: Mutant, budget: int) -> Outcome:
    """What the prover says of a mutant."""
    from morok.prove.workers import judge as prove

    try:
        rule = recheck(original, mutant.rule)
    except RuleError as why:
        return Outcome(original.name, mutant.change, "ill-typed", why.message, mutant.guard)
    verdict = prove(rule, budget, False)
    kind = "true" if verdict.usable else verdict.verdict
    return Outcome(original.name, mutant.change, kind, verdict.message or "; ".join(verdict.scope), mutant.guard)


def run(rules: Sequence[CheckedRule], budget: int, sample: int | None = None, seed: int = 0) -> list[Outcome]:
    """The outcomes of all mutants of these rules, or of a seeded sample of them."""
    every = [(r, m) for r in rules for m in mutants(r.syntax, r.dialect)]
    if sample is not None and sample < len(every):
        every = random.Random(seed).sample(every, sample)
    return [judge(r, m, budget) for r, m in every]


def main(arguments: Sequence[str] | None = None) -> int:
    from morok.dsl.check import check_file
    from morok.prove.api import rule_files
    from morok.prove.ledger import rules_folder
    from morok.prove.solve import DEFAULT_BUDGET

    options = argparse.ArgumentParser(prog="python -m morok.prove.mutate", description=__doc__)
    options.add_argument("paths", nargs="*", type=Path, help="rule files or folders (default: the built-in rules)")
    options.add_argument("--sample", type=int, help="so many mutants, chosen at random")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--budget", type=int, default=DEFAULT_BUDGET // 4)
    given = options.parse_args(arguments)
    rules = [r for f in rule_files(given.paths or [rules_folder()]) for r in check_file(f).rules()]
    outcomes = run(rules, given.budget, given.sample, given.seed)
    for o in outcomes:
        if not o.noticed:
            sys.stdout.write(f"{o.kind:<8} {o.rule}: {o.change}\n")
    counts = {k: sum(o.kind == k for o in outcomes) for k in ("refuted", "ill-typed", "inapplicable", "true", "unknown", "error")}
    sys.stdout.write(f"{len(outcomes)} mutants: " + ", ".join(f"{n} {k}" for k, n in counts.items()) + "\n")
    return 0 if counts["error"] == 0 else 4


if __name__ == "__main__":
    sys.exit(main())
