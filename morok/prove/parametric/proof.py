"""The questions that prove a rule at every size, and what comes of asking them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.prove import smt
from morok.prove.answers import Answer, Result
from morok.prove.encoding.obligation import Choices, OutOfSteps
from morok.prove.parametric import element_rules, laws, tensors
from morok.prove.parametric.instances import close
from morok.prove.parametric.laws import NONE, UNSAID
from morok.prove.parametric.number_ops import has_value
from morok.prove.parametric.polynomials import TIMES, integer, within
from morok.prove.parametric.reading import LengthAsked, Reading
from morok.prove.parametric.rule_values import Statement, Vector, place, vector
from morok.prove.parametric.setting import Proves, Setting, TooMany
from morok.prove.parametric.statements import same, statement
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.smt.term_graphs import subterms
from morok.prove.symbol import Symbol

SHARE: Final = 0.2  # of a rule's budget, for each question


class Asks(Protocol):
    def __call__(self, name: str, conditions: list[Expr], share: float, model: bool = True) -> Result: ...


@dataclass(frozen=True, slots=True)
class Proof:
    """Result of a proof at every size: true if the rule was shown to hold; otherwise the reason."""

    holds: bool
    why: str = ""


def parametric_proof(rule: CheckedRule, ask: Asks, proves: Proves | None = None) -> Proof:
    """The proof of a rule at every size, one question for each choice among the alternatives of its pattern; where these do not
    show it, by what rules about single numbers say that are proved.

    It proves and never refutes. That pattern and guards can be met at all is for others to show: here only that what is known
    of them is no contradiction.
    """
    if not within_reach(rule):
        return Proof(False, "a rule of values that are computed with")
    choices = Choices()
    while True:
        try:
            why = _shown(rule, choices, ask, proves)
            if why:
                return Proof(False, why)
            if not choices.advance():
                return Proof(True)
        except (Unsupported, OutOfSteps) as problem:
            return Proof(False, str(problem))


def never_met(rule: CheckedRule, ask: Asks) -> bool:
    """True if pattern and guards contradict each other at every size, at each choice among the alternatives."""
    if not within_reach(rule):
        return False
    choices = Choices()
    try:
        while True:
            _lengths(rule, choices, ask)
            choices.restart()
            if (
                ask(f"{rule.name} at any size", question(rule, choices).known, SHARE, model=False).answer
                is not Answer.UNSAT
            ):
                return False
            if not choices.advance():
                return True
    except (Unsupported, OutOfSteps, NotShown):
        return False


def _shown(rule: CheckedRule, choices: Choices, ask: Asks, proves: Proves | None) -> str:
    """The reason that one choice among the alternatives is not shown to be right; nothing where it is."""
    try:
        found = questions(rule, choices, ask, proves)
    except NotShown:
        return "not shown"
    known = (ask(f"{rule.name}: what is known", q.known, SHARE, model=False).answer for q in found)
    return "what is known is a contradiction" if Answer.UNSAT in known else ""


def _about_blocks(r: Reading) -> None:
    """Bounds of where blocks begin: k * n is on the same side of 0 as k, and, of so many blocks, not behind the last one."""
    s = r.setting
    for t in [t for t in s.terms() if t.head == "apply" and t.data is TIMES]:
        for a, b in itertools.permutations(map(s.polynomial, t.args)):
            s.law(laws.sign_of_product, a, b)
            if (many := r.lengths_there.get(b.term)) is not None:
                s.law(laws.sign_of_product, a, many - 1 - b)


class NotShown(Exception):
    """A claim that does not follow, as far as the solver can tell."""


def questions(rule: CheckedRule, choices: Choices, ask: Asks, proves: Proves | None) -> list[Question]:
    """The questions that show one choice among the alternatives to be right: by rules about single numbers only where it is not
    shown without. NotShown where none do.
    """
    lengths = _lengths(rule, choices, ask)
    try:
        return [*lengths, *_questions(rule, choices, ask)]
    except NotShown:
        return [*lengths, *_questions(rule, choices, ask, proves, by_numbers=True)]


def _lengths(rule: CheckedRule, choices: Choices, ask: Asks) -> list[Question]:
    """The questions that show that no range of a rule has a negative length, outside of conditions: each from what is known
    before it, as what follows takes the difference of its ends for its length. NotShown where one does not.
    """
    found: list[Question] = []
    if not any(isinstance(at, S.ERange) for part in (*rule.syntax.clauses, rule.syntax.target) for at in S.walk(part)):
        return found
    choices.restart()
    while (one := _length(rule, choices, len(found))) is not None:
        if ask(f"{rule.name}: a length", one.conditions, SHARE, model=False).answer is not Answer.UNSAT:
            raise NotShown
        found.append(one)
        choices.restart()
    return found


def _length(rule: CheckedRule, choices: Choices, number: int) -> Question | None:
    """The question whether one range has no negative length; None where there are no more."""
    reading = Reading(rule, choices, number)
    try:
        reading.sides()
    except LengthAsked as asked:
        setting = reading.setting
        setting.only(asked.claim)
        setting.count(asked.length)
        setting.compared(asked.length, integer(0))
        _about_blocks(reading)
        close(setting)
        return Question(setting.premises, setting.laws, asked.claim, 1, False)
    return None


def _questions(
    rule: CheckedRule, choices: Choices, ask: Asks, proves: Proves | None = None, by_numbers: bool = False
) -> list[Question]:
    """One question of all claims together; where that is more than the solver can do, one of each."""

    def follows(asked: Question) -> bool:
        return ask(f"{rule.name} at every size", asked.conditions, SHARE, model=False).answer is Answer.UNSAT

    choices.restart()
    claims = None
    found: list[Question] = []
    try:
        whole = question(rule, choices, None, proves, by_numbers)
        if by_numbers and not whole.related:
            raise NotShown
        if follows(whole):
            return [whole]
        claims = whole.claims
    except TooMany:
        pass
    while claims is None or len(found) < claims:
        choices.restart()
        one = question(rule, choices, len(found), proves, by_numbers)
        if one.claims == 1 or not follows(one):
            raise NotShown
        found.append(one)
        claims = one.claims
    return found


def within_reach(rule: CheckedRule) -> bool:
    """True if a rule fixes its result: it has no tolerance, and assumes nothing of floats but that sums may be regrouped."""
    return rule.syntax.within is None and {*rule.syntax.assuming} <= {"reassoc"}


class Question(NamedTuple):
    """Premises about one lane of a rule's result, instances of laws, and the claim that must follow: one of so many, or all. Of
    the laws some are rules about numbers where it is `related` by these.
    """

    premises: list[Expr]
    laws: dict[Expr, str]  # with the law in words
    claim: Expr
    claims: int
    related: bool

    @property
    def known(self) -> list[Expr]:
        return [*self.premises, *self.laws]

    @property
    def conditions(self) -> list[Expr]:
        """Conditions that cannot be together where the claim follows."""
        return [*self.known, smt.Not(self.claim)]


def question(
    rule: CheckedRule, choices: Choices, only: int | None = None, proves: Proves | None = None, by_numbers: bool = False
) -> Question:
    """The question whether a rule holds at every size, or whether one of its claims does."""
    reading = Reading(rule, choices)
    setting = reading.setting
    setting.elements.proves, setting.elements.regrouping = proves, bool(rule.syntax.assuming)
    pattern, target = reading.sides()
    if isinstance(pattern, Statement):
        same(setting, reading.here, pattern, statement(target))
    elif reading.tensors and tensors.is_tensor(pattern):
        tensors.same(
            setting, tensors.of(vector(pattern)), tensors.of(vector(target)), reading.element(rule.syntax.pattern)
        )
    else:
        one, other = place(pattern), place(target)
        if one.is_place != other.is_place:  # a value, and a place: what is there
            one, other = (v if v.held is None else v.held() for v in (one, other))
        _same_lane(setting, reading, one, other, by_numbers)
    claims = setting.claims
    if only is not None:
        setting.only(claims[only])
    claim = smt.And(*setting.claims) if setting.claims else smt.TRUE  # none where both sides do nothing
    close(setting)
    return Question(setting.premises, setting.laws, claim, len(claims), setting.elements.related)


def _same_lane(setting: Setting, r: Reading, pattern: Vector, target: Vector, by_numbers: bool) -> None:
    """Claim that any lane of two vectors is the same, or any place of two elements of storage; `by_numbers`: the same number."""
    if pattern.of_vectors is not target.of_vectors and not target.uniform:
        raise Unsupported("an element that may be a vector in place of another value, or the other way round")
    lane = integer(smt.Int(Symbol("fixed", "lane")))
    setting.count(pattern.count)
    inside = within(lane, 0, pattern.count)
    if not target.uniform:
        setting.count(target.count)
        if not target.count.same(pattern.count):
            setting.claim(target.count.term == pattern.count.term)
    setting.below(lane, pattern.count)
    wanted = pattern.at(r.here, lane)
    setting.guard += [inside, *setting.defined]
    given = target.at(r.here, lane)
    if pattern.looked_at is not None:
        setting.guard.append(pattern.looked_at.at(r.here, lane))
    dtype = r.element(r.rule.syntax.pattern)
    same = wanted == given
    if element_rules.relate(setting, dtype, wanted, given, whole=True):
        setting.guard.append(has_value(setting, wanted))
    elif by_numbers and dtype in ("index", "bool"):
        setting.elements.related = True
        setting.guard.append(has_value(setting, wanted))
        same = smt.And(*element_rules.agreement(setting, dtype, wanted, given))
    # no value where a condition, or a gate, has none
    without = [NONE] * bool(setting.selections) + [UNSAID] * (UNSAID in set(subterms([wanted])))
    setting.claim(smt.Or(*(wanted == w for w in without), same))
    setting.guard.clear()


__all__ = ["Proof", "never_met", "parametric_proof", "question"]
