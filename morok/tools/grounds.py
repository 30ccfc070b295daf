"""The grounds of a proof for all sizes: the laws and premises that it needs, of all those available."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from morok.dsl.checked import CheckedRule
from morok.prove import smt
from morok.prove.answers import Answer
from morok.prove.encoding.obligation import Choices, OutOfSteps
from morok.prove.parametric.proof import Asks, NotShown, Question, questions, within_reach
from morok.prove.parametric.setting import Proves
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr

SHARE: Final = 0.05  # part of a rule's budget for each reduced question
MOST_ASKED: Final = 150  # most reduced questions for each rule; after that, the current grounds are reported


class Ground(NamedTuple):
    """The part of one question that its proof needs.

    laws   the distinct laws, in words
    known  instances of these laws, and premises
    claim  the conclusion
    """

    laws: tuple[str, ...]
    known: tuple[Expr, ...]
    claim: Expr


@dataclass(slots=True)
class Asked:
    """The remaining number of reduced questions."""

    left: int


def grounds(rule: CheckedRule, ask: Asks, proves: Proves | None) -> list[Ground]:
    """The grounds of each question of a rule's proof for all sizes, for each choice among its alternatives; [] without such a
    proof.
    """
    if not within_reach(rule):
        return []
    found: list[Ground] = []
    choices, left = Choices(), Asked(MOST_ASKED)
    try:
        while True:
            found += [needed(q, ask, left) for q in questions(rule, choices, ask, proves) if q.claims]
            if not choices.advance():
                return found
    except (NotShown, Unsupported, OutOfSteps):
        return []


def needed(asked: Question, ask: Asks, most: Asked) -> Ground:
    """A question without superfluous parts: tries to drop whole laws, then halves of the premises, quarters, and so on."""
    kept = asked.known
    claim = smt.Not(asked.claim)

    def enough(some: list[Expr]) -> bool:
        most.left -= 1
        return ask("of less", [*some, claim], SHARE, model=False).answer is Answer.UNSAT

    for law in dict.fromkeys(asked.laws.values()):
        less = [c for c in kept if asked.laws.get(c) != law]
        if most.left > 0 and enough(less):
            kept = less
    size = (len(kept) + 1) // 2
    while size:
        at = 0
        while at < len(kept) and most.left > 0:
            less = kept[:at] + kept[at + size :]
            if enough(less):
                kept = less
            else:
                at += size
        size = (size + 1) // 2 if size > 1 else 0
    return Ground(tuple(dict.fromkeys(asked.laws[c] for c in kept if c in asked.laws)), tuple(kept), asked.claim)
