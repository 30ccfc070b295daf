"""Asking the solver: one fresh context for every question, a budget in the solver's own units, three-valued answers."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import z3

from morok.prove.semantics.term import Expr

DEFAULT_BUDGET: Final = 3_000_000  # solver resource units an obligation: about one second
WALL_LIMIT_MS: Final = 120_000  # a safety net far beyond the budget; an answer that it cut short is never recorded


class Answer(enum.Enum):
    UNSAT = "unsat"
    SAT = "sat"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Result:
    """What the solver said.

    resources   its count of its own work, which does not depend on the machine
    model       for SAT
    timed_out   the wall limit, not the budget, ended it
    """

    answer: Answer
    resources: int = 0
    model: Any = None
    timed_out: bool = False


def version() -> str:
    return f"z3 {z3.get_version_string()}"


def question(conditions: Sequence[Expr]) -> str:
    """The conditions as an SMT-LIB script, for any solver."""
    solver = z3.Solver()
    solver.add(*conditions)
    return str(solver.to_smt2())


def ask(conditions: Sequence[Expr], budget: int) -> Result:
    """Whether the conditions can hold together."""
    plain = [c for c in conditions if not z3.is_true(c)]
    if any(z3.is_false(c) for c in plain):
        return Result(Answer.UNSAT)
    # as text, so that the solver meets the same question whatever was built before in this process
    text = question(plain)
    context = z3.Context()
    solver = _solver(plain, context)
    solver.set("rlimit", budget)
    solver.set("timeout", WALL_LIMIT_MS)
    solver.from_string(text)
    said = solver.check()
    used = _resources(solver)
    if said == z3.unsat:
        return Result(Answer.UNSAT, used)
    if said == z3.sat:
        return Result(Answer.SAT, used, Model(solver.model(), context))
    return Result(Answer.UNKNOWN, used, timed_out="timeout" in solver.reason_unknown() and used < budget)


def _solver(conditions: Sequence[Expr], context: Any) -> Any:
    """z3's default, but where integers are multiplied: there, defined values are eliminated first."""
    if not any(_has_integers(c) for c in conditions):
        return z3.Solver(ctx=context)
    steps = [z3.Tactic(name, context) for name in ("simplify", "propagate-values", "solve-eqs", "smt")]
    return z3.Then(*steps).solver()


def _has_integers(e: Expr) -> bool:
    todo, seen = [e], set()
    while todo:
        at = todo.pop()
        if at.get_id() in seen:
            continue
        seen.add(at.get_id())
        if z3.is_int(at):
            return True
        todo.extend(at.children())
    return False


def _resources(solver: Any) -> int:
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in statistics.keys() else 0  # noqa: SIM118


class Model:
    """A model, read from the context of the expressions that made the question."""

    def __init__(self, model: Any, context: Any) -> None:
        self.model = model
        self.context = context

    def value(self, e: Expr) -> Expr:
        """The numeral that `e` is in this model."""
        found = self.model.eval(e.translate(self.context), model_completion=True)
        return found.translate(z3.main_ctx())
