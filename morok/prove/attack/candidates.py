"""Candidates: the random rule of a seed and a number, as the text of a rule file."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from morok.dsl import syntax as S
from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.dsl.format import format_file
from morok.errors import RuleError
from morok.prove.attack import conjectures, op_laws, themes
from morok.prove.attack.fact_rules import facts
from morok.prove.attack.fold_rules import folds
from morok.prove.attack.foreign_dialects import foreign
from morok.prove.attack.guards import clauses_of, holding
from morok.prove.attack.memory_rules import memory
from morok.prove.attack.promised import promised
from morok.prove.attack.random_terms import FLOATS
from morok.prove.attack.view_rules import tensors
from morok.prove.rule_syntax import ops_of
from morok.prove.trust.mutants import mutants
from morok.rewrite.library import rules_dir

# The theme of each candidate, in turn: what finds most is tried most.
SCHEDULE: Final = (
    "algebra", "conditional", "law", "lanes", "structure", "expanded", "rare", "memory", "dropped", "mutant",
    "nearly", "law", "lanes", "library", "folds", "conditional", "tensors", "folds", "rare", "dropped",
    "foreign", "expanded", "alike", "rare", "tensors", "conjecture", "ends", "algebra", "anything", "foreign",
    "through", "elsewhere", "rare", "promised", "facts", "rare", "assumed", "conjecture", "folds", "memory",
)  # fmt: skip

# What rules may assume that evaluation can judge.
JUDGED: Final = frozenset({"nsz", "nnan", "ninf"})
ASSUMED: Final = (("nsz",), ("nsz",), ("nnan",), ("nnan", "nsz"), ("ninf",), ("nnan", "ninf"), ("nnan", "ninf", "nsz"))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule file of one rule, and the theme that made it."""

    theme: str
    text: str


def candidate(seed: int, number: int) -> Candidate:
    """The candidate of this number: the same for the same seed."""
    theme = SCHEDULE[number % len(SCHEDULE)]
    rng = random.Random(f"{seed} {number}")
    if theme == "rare":
        rounds, place = divmod(number, len(SCHEDULE))
        turn = rounds * SCHEDULE.count(theme) + SCHEDULE[:place].count(theme)
        return Candidate(theme, _text(themes.rare(rng, turn)))
    return Candidate(theme, MADE[theme](rng))


def _text(rule: str) -> str:
    return f'group attack "a random rule"\n\nr: {rule}\n'


def _plain(name: str) -> Callable[[random.Random], str]:
    make = themes.THEMES[name]
    return lambda rng: _text(make(rng))


def mutant(rng: random.Random) -> str:
    """A rule that holds, changed in one place."""
    text = _text(themes.THEMES[rng.choice(("algebra", "conditional", "lanes", "structure"))](rng))
    try:
        rule = next(iter(check_text(text).rules()))
    except RuleError:
        return text
    changed = mutants(rule.syntax, rule.dialect)
    return written(rule, rng.choice(changed).rule) if changed else text


def library(rng: random.Random) -> str:
    """A built-in rule, under one more guard, or changed in one place. Rules of rare ops are taken as often as others."""
    by_op = _library()
    rule = rng.choice(by_op[rng.choice(sorted(by_op))])
    roll = rng.random()
    if roll < 0.3:
        changed = mutants(rule.syntax, rule.dialect)
        return written(rule, rng.choice(changed).rule) if changed else written(rule, rule.syntax)
    clauses = (*rule.syntax.clauses, *clauses_of(holding(rng))) if roll < 0.7 else rule.syntax.clauses
    return written(rule, dataclasses.replace(rule.syntax, clauses=clauses))


def written(original: CheckedRule, rule: S.Rule) -> str:
    """A rule as a file of its own, with the helpers that it calls."""
    group = S.Group(
        "attack", "", original.context, (dataclasses.replace(rule, name="r", doc="a random rule", examples=()),)
    )
    file = S.File("<attack>", original.dialect.name, original.helpers, tuple(original.externs.values()), (group,))
    return format_file(file)


@functools.cache
def _library() -> Mapping[str, Sequence[CheckedRule]]:
    """The built-in rules that graphs can be made for, by op: not those measured, or whose floats round otherwise; nor those that
    put an index of the hardware in place of a range: that has a value only in a kernel that is launched.
    """
    found: dict[str, list[CheckedRule]] = {}
    for path in sorted(rules_dir().rglob("*.rules")):
        for rule in check_file(path).rules():
            if rule.syntax.within is None and set(rule.syntax.assuming) <= JUDGED:
                for op in ops_of(rule):
                    found.setdefault(op, []).append(rule)
    return found


def assumed(rng: random.Random) -> str:
    """A rule that holds of floats, or does not, as a rule that assumes something of them."""
    while True:
        made = rng.choice((themes.algebra, op_laws.law, conjectures.conjecture))(rng)
        if any(d in made for d in FLOATS):
            return _text(f"{made} assuming {', '.join(rng.choice(ASSUMED))}")


MADE: Final[Mapping[str, Callable[[random.Random], str]]] = {
    "folds": lambda rng: _text(folds(rng)),
    "facts": lambda rng: _text(facts(rng)),
    "memory": lambda rng: _text(memory(rng)),
    "assumed": assumed,
    **{name: _plain(name) for name in themes.THEMES},
    "mutant": mutant,
    "library": library,
    "foreign": foreign,
    "promised": promised,
    "tensors": lambda rng: _text(tensors(rng)),
}
