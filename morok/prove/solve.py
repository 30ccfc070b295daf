"""Asking the solver: a process of its own for every question, a budget in the solver's own units, three-valued answers."""

from __future__ import annotations

import functools
import importlib.metadata
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from morok.prove.answers import DEFAULT_BUDGET as DEFAULT_BUDGET
from morok.prove.answers import Answer, Result
from morok.prove.smt import TRUE, BoolVal, Const, Expr, FPVal, numeral, simplify, smtlib
from morok.prove.smt.propagate import refuted
from morok.prove.smt.ring import refuted_as_polynomials
from morok.prove.smt.session import Died, Session, session
from morok.prove.smt.simplifier import rebuilt
from morok.prove.smt.sorts import BOOL
from morok.prove.smt.term_graphs import kinds, unknowns, without_arithmetic, without_shifts
from morok.prove.symbol import Symbol

QUICK_BUDGET: Final = 100_000
WALL_LIMIT_MS: Final = 120_000  # a safety net far beyond the budget; an answer that it cut short is never recorded
# z3's default, but where integers are multiplied: there, defined values are eliminated first
ASK: Final = "(check-sat)"
ASK_OF_INTEGERS: Final = "(check-sat-using (then simplify propagate-values solve-eqs smt))"
# also of a tactic, which is an error to z3
GIVEN_UP: Final = re.compile(r"max\. resource limit exceeded|canceled|timeout")
_RESOURCES: Final = re.compile(r":rlimit (\d+)")

Answers = dict[tuple[str, int], Result]  # by question and budget


@functools.cache
def version() -> str:
    # the package's own releases come after
    return "z3 " + ".".join(importlib.metadata.version("z3-solver").split(".")[:3])


def obligation(conditions: Sequence[Expr]) -> str:
    """The conditions as a script for any solver, with a legend for people: the same text in every process."""
    text, script = smtlib.question(conditions)
    return f"{smtlib.legend(script)}{text}(check-sat)\n"


def ask(conditions: Sequence[Expr], budget: int, earlier: Answers | None = None, model: bool = True) -> Result:
    """The answer to whether the conditions can hold together.

    An answer to the very same question in `earlier` is taken, unless it is SAT and a `model` is wanted.

    Products of unknown bit vectors are compared as polynomials first. Where the solver gives up, it is asked again with all
    arithmetic forgotten, if there are floats, or with shifts by unknown amounts: conditions that cannot hold for any functions in
    their place cannot hold for these.
    """
    plain = [c for c in conditions if c is not TRUE]
    if refuted(plain) or refuted_as_polynomials(plain):
        return Result(Answer.UNSAT)
    forgotten = without_arithmetic(plain) if "Float" in kinds(plain) else None
    if forgotten is not None and refuted(forgotten):
        return Result(Answer.UNSAT)
    found = _ask(plain, budget, earlier, model)
    if found.answer is not Answer.UNKNOWN:
        return found
    weaker = without_shifts(plain) if forgotten is None else forgotten
    if weaker is None:
        return found
    less = _ask(weaker, QUICK_BUDGET, earlier, False)
    return replace(less if less.answer is Answer.UNSAT else found, resources=found.resources + less.resources)


def _ask(conditions: Sequence[Expr], budget: int, earlier: Answers | None, model: bool) -> Result:
    text, script = smtlib.question(conditions)
    key = (text, budget)
    known = None if earlier is None else earlier.get(key)
    if known is not None and not (model and known.answer is Answer.SAT):
        return replace(known, resources=0)
    result = _put(text, script, ASK_OF_INTEGERS if "Int" in kinds(conditions) else ASK, budget)
    if earlier is not None:
        earlier[key] = replace(result, model=None)  # a model keeps its process
    return result


def _put(text: str, script: smtlib.Script, command: str, budget: int) -> Result:
    limits = f"(set-option :rlimit {budget})\n(set-option :timeout {WALL_LIMIT_MS})\n"
    over = session()
    try:
        said = over.send(f"{limits}{text}{command}\n(get-info :reason-unknown)\n(get-info :rlimit)\n")
    except Died:
        over.close()
        return Result(Answer.UNKNOWN, timed_out=True)
    answer = said.partition("\n")[0].strip()
    spent = _RESOURCES.search(said)
    used = int(spent[1]) if spent is not None else 0
    if answer == "sat":
        return Result(Answer.SAT, used, Model(over, script))
    over.close()
    if answer == "unsat":
        return Result(Answer.UNSAT, used)
    if answer != "unknown" and not GIVEN_UP.search(answer):
        raise ValueError(f"the solver does not read a question: {said[:500]}")
    return Result(Answer.UNKNOWN, used, timed_out="timeout" in said and used < budget)


class Model:
    """A model of a question, in the solver that was asked.

    script   of the question: what its unknowns are called there
    """

    def __init__(self, over: Session, script: smtlib.Script) -> None:
        self.over = over
        self.script = script

    def value(self, e: Expr) -> Expr:
        """The numeral of `e` in this model; an unknown of that name where its sort has no numerals.

        Died if the process that has the model ended.
        """
        constants, functions = unknowns([e])
        others = {id(c): _any_of(c) for c in constants if id(c) not in self.script.names}
        there = {id(f) for f in functions if id(f) in self.script.names}
        [plain] = rebuilt([e], others, lambda at: None if at.head != "apply" or id(at.data) in there else _any_of(at))
        plain = simplify(plain)
        if plain.head == "value":
            return plain
        before, (text,) = self.script.conditions([plain])
        said = self.over.send("\n".join([*before, f"(eval {text} :completion true)"]))
        if "root-obj" in said:  # an algebraic number: twenty digits of it
            said = self.over.send(
                f"(set-option :pp.decimal true)(set-option :pp.decimal_precision 20)(eval {text} :completion true)"
            )
        found = smtlib.value(said, e.sort)
        return Const(Symbol("library", found), e.sort) if isinstance(found, str) else numeral(e.sort, found)

    def __del__(self) -> None:
        self.over.close()


def _any_of(e: Expr) -> Expr:
    """Some value of the sort of a term, of which a question says nothing."""
    sort = e.sort
    if sort is BOOL:
        return BoolVal(False)
    if sort.kind == "Float":
        return FPVal(0.0, sort)
    if sort.kind == "Uninterpreted":
        return Const(Symbol("fixed", "any"), sort)
    return numeral(sort, 0)


def best(conditions: Sequence[Expr], wishes: Sequence[tuple[Expr, int]]) -> Model | None:
    """A model of the conditions in which as much weight of the wishes holds as can; None where nobody finds one."""
    script = smtlib.Script()
    before, texts = script.conditions([*conditions, *(wish for wish, _ in wishes)])
    asserted = [f"(assert {t})" for t in texts[: len(conditions)]]
    asserted += [f"(assert-soft {t} :weight {w})" for t, (_, w) in zip(texts[len(conditions) :], wishes, strict=True)]
    over = session()
    try:
        answer = over.send("\n".join([f"(set-option :timeout {WALL_LIMIT_MS})", *before, *asserted, ASK]))
    except Died:
        answer = "unknown"
    if answer.strip() != "sat":
        over.close()
        return None
    return Model(over, script)


class Asserted:
    """Conditions that are asserted one after another, and asked about with one more.

    budget  in the solver's units, for each question
    lost    the solver's process died, and nobody knows the conditions any more: everything is possible
    """

    def __init__(self, budget: int) -> None:
        self.over = session()
        self.script = smtlib.Script()
        self.lost = False
        self._send(f"(set-option :rlimit {budget})")

    def add(self, conditions: Sequence[Expr]) -> None:
        before, texts = self.script.conditions(conditions)
        self._send("\n".join([*before, *(f"(assert {t})" for t in texts)]))

    def possible(self, condition: Expr) -> bool:
        """False only where it is shown that the condition cannot hold beside those that are asserted."""
        before, (text,) = self.script.conditions([condition])
        return self._send("\n".join([*before, f"(push)(assert {text})(check-sat)(pop)"])) != "unsat"

    def _send(self, script: str) -> str:
        """The solver's answer; "" where it is lost."""
        if not self.lost:
            try:
                return self.over.send(script).strip()
            except Died:
                self.lost = True
        return ""

    def __del__(self) -> None:
        self.over.close()
