"""The questions that prove a rule at every size, and what comes of asking them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from morok.dsl.checked import CheckedRule
from morok.prove import smt
from morok.prove.answers import Answer, Result
from morok.prove.encoding.obligation import Choices, OutOfSteps
from morok.prove.parametric import laws
from morok.prove.parametric.integers import integer, within
from morok.prove.parametric.reading import Reading
from morok.prove.parametric.statements import same, statement
from morok.prove.parametric.values import Statement, vector
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

SHARE: Final = 0.2  # of a rule's budget, for each question


class Asks(Protocol):
    def __call__(self, name: str, conditions: list[Expr], share: float, model: bool = True) -> Result: ...


@dataclass(frozen=True, slots=True)
class Proof:
    """Truth of a rule having been shown to hold at every size; where it was not, why."""

    holds: bool
    why: str = ""


def parametric_proof(rule: CheckedRule, ask: Asks) -> Proof:
    """The proof of a rule at every size, one question for each choice among the alternatives of its pattern.

    It proves and never refutes. That pattern and guards can be met at all is for others to show: here only that what is known
    of them is no contradiction.
    """
    if not within_reach(rule):
        return Proof(False, "a rule of values that are computed with")
    choices = Choices()
    while True:
        choices.restart()
        try:
            conditions, claim = question(rule, choices)
        except Unsupported as why:
            return Proof(False, str(why))
        if ask(f"{rule.name} at every size", [*conditions, smt.Not(claim)], SHARE, model=False).answer is not Answer.UNSAT:
            return Proof(False, "not shown")
        if ask(f"{rule.name}: what is known", conditions, SHARE, model=False).answer is Answer.UNSAT:
            return Proof(False, "what is known is a contradiction")
        try:
            if not choices.advance():
                return Proof(True)
        except OutOfSteps as why:
            return Proof(False, str(why))


def within_reach(rule: CheckedRule) -> bool:
    """Truth of a rule saying all of its result: not within a tolerance, nor under what it assumes of floats."""
    return rule.syntax.within is None and not rule.syntax.assuming


def question(rule: CheckedRule, choices: Choices) -> tuple[list[Expr], Expr]:
    """Premises about one lane of a rule's result, and the claim that must follow."""
    reading = Reading(rule, choices)
    setting = reading.setting
    here = setting.iteration(smt.Const(Symbol("fixed", "here"), laws.ITERATION))
    pattern, target = reading.sides()
    if isinstance(pattern, Statement):
        same(setting, here, pattern, statement(target))
        claim = smt.And(*setting.claims)
        setting.close()
        return [*setting.premises, *setting.laws], claim
    pattern, target = vector(pattern), vector(target)
    lane = integer(smt.Int(Symbol("fixed", "lane")))
    setting.count(pattern.count)
    inside = within(lane, 0, pattern.count)
    if not target.uniform:
        setting.count(target.count)
        if not target.count.same(pattern.count):
            setting.claim(target.count.term == pattern.count.term)
    setting.below(lane, pattern.count)
    setting.guard.append(inside)
    setting.claim(pattern.at(here, lane) == target.at(here, lane))
    setting.guard.pop()
    claim = smt.And(*setting.claims)
    setting.close()
    return [*setting.premises, *setting.laws], claim


__all__ = ["Proof", "parametric_proof", "question"]
