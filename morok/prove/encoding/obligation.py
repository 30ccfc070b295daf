"""The claim for the solver, and the alternative of the pattern that it is about."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.prove.cached_per_rule import once_a_rule
from morok.prove.kinds import Node
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term
from morok.prove.smt import TRUE, Expr


class Inapplicable(Exception):
    """This choice of alternatives cannot match at this instance."""


class OutOfSteps(Exception):
    """A rule goes over more items than one reading may: nothing is proved of it, and no other reading or search is tried."""


@dataclass(slots=True)
class Obligation:
    """The claim of a proof: the premises imply that the target is defined and equal to the pattern.

    applicable  what must be possible for the rule to apply at all; None: the premises
    laws        what the rule's proof rests on and is no matter of the rule: orders of commutative ops, identities, each by a name
                that says all of it but the encoding
    lemmas     (name, premises, claim) that it also rests on, here: what helpers require
    variables  (name, dtype, term) of everything the rule binds, to read counterexamples
    facts      (text, kind, number) of the bounds assumed
    labels     what variables and facts are called so far
    """

    premises: list[Expr] = field(default_factory=list)
    pattern: Node | None = None
    target: Node | None = None
    claim: Expr = TRUE
    applicable: list[Expr] | None = None
    laws: dict[str, Expr] = field(default_factory=dict)
    lemmas: list[tuple[str, tuple[Expr, ...], Expr]] = field(default_factory=list)
    variables: list[tuple[str, str, Term]] = field(default_factory=list)
    facts: list[tuple[str, str, Num]] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)

    def bind(self, label: str, dtype: str, term: Term) -> None:
        """Note what the rule binds, under a label that nothing else has."""
        self.variables.append((self.unique(label), dtype, term))

    def learn(self, label: str, kind: str, number: Num) -> None:
        """Note a number that is assumed or chosen, likewise."""
        self.facts.append((self.unique(label), kind, number))

    def unique(self, label: str) -> str:
        while label in self.labels:
            label += "'"
        self.labels.add(label)
        return label


# Combinations of alternatives and sizes of one reading of a rule. The built-in rule that needs most has 4,829; three sequences of
# up to three items, each of up to three lanes, have 59,319.
MOST_CHOICES: Final = 1 << 13


class Choices:
    """The option that is taken at each place where the matcher may choose; `advance` moves to the next combination."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.sizes: list[int] = []
        self.lanes: list[
            str
        ] = []  # at first, by the places in order, of what a number of lanes is chosen; "" of anything else
        self.at = 0
        self.left = MOST_CHOICES

    def restart(self) -> None:
        self.at = 0

    def pick(self, options: int, lanes: str = "") -> int:
        """The option that is taken here; `lanes` says of what it is the number of lanes, which is chosen in any case."""
        if self.at == len(self.taken):
            self.taken.append(0)
            self.sizes.append(options)
            if self.left == MOST_CHOICES:
                self.lanes.append(lanes)
        self.at += 1
        return self.taken[self.at - 1]

    def advance(self) -> bool:
        """True if there is another combination, which is taken next; OutOfSteps where there were too many, or will be."""
        self._expect()
        self.left -= 1
        if self.left < 0:
            raise OutOfSteps(f"more than {MOST_CHOICES:,} combinations of sizes and alternatives")
        del self.taken[self.at :], self.sizes[self.at :]
        while self.taken:
            if self.taken[-1] + 1 < self.sizes[-1]:
                self.taken[-1] += 1
                return True
            self.taken.pop()
            self.sizes.pop()
        return False

    def _expect(self) -> None:
        """OutOfSteps, at first, where numbers of lanes alone are too many to be combined: the rule may say which are equal."""
        among = {lanes: n for lanes, n in zip(self.lanes, self.sizes, strict=False) if lanes}
        if self.left == MOST_CHOICES < math.prod(among.values()):
            of = ", ".join([*list(among)[:4], ".."])
            what = f"{len(among)} variables ({of}) of any numbers of lanes, which are more than {MOST_CHOICES:,} combinations"
            raise OutOfSteps(f"{what}: write `x n` behind the types of those that have equally many")


@once_a_rule
def reads_lanes(rule: CheckedRule) -> bool:
    """True if a rule names the values of a vector constant, which one lane cannot stand for."""
    constants = (at for at in S.walk(rule.syntax.pattern) if isinstance(at, S.PConst))
    return any(at.kind in ("vconst", "anyconst") and at.name is not None for at in constants)
