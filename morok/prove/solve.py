"""Asking the solver: one fresh context for every question, a budget in the solver's own units, three-valued answers."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import z3
from z3 import z3core

from morok.prove.answers import DEFAULT_BUDGET as DEFAULT_BUDGET
from morok.prove.answers import Answer, Names, Result, unnamed
from morok.prove.semantics.graph import constants, without_arithmetic
from morok.prove.semantics.term import Expr, is_false, is_true

QUICK_BUDGET: Final = 100_000
LOGIC: Final = frozenset(
    {
        z3.Z3_OP_AND,
        z3.Z3_OP_OR,
        z3.Z3_OP_NOT,
        z3.Z3_OP_IMPLIES,
        z3.Z3_OP_EQ,
        z3.Z3_OP_ITE,
        z3.Z3_OP_XOR,
        z3.Z3_OP_DISTINCT,
        z3.Z3_OP_IFF,
    }
)
INTEGERS: Final = re.compile(r"\bInt\b|to_int\b")  # a sort of integers, or a conversion to it
SHARED: Final = re.compile(r"([?$]x)[0-9]+\b")
WALL_LIMIT_MS: Final = 120_000  # a safety net far beyond the budget; an answer that it cut short is never recorded


Answers = dict[tuple[str, int], Result]  # by unnamed question and budget


def version() -> str:
    return f"z3 {z3.get_version_string()}"


def question(conditions: Sequence[Expr]) -> str:
    """The conditions as an SMT-LIB script, for any solver: the same text in every process."""
    terms = [c.as_ast() for c in conditions] or [z3.BoolVal(True).as_ast()]
    most = (z3.Ast * (len(terms) - 1))(*terms[:-1])
    text = z3.Z3_benchmark_to_smtlib_string(z3.main_ctx().ref(), "a question", "", "unknown", "", len(terms) - 1, most, terms[-1])
    # the solver numbers what it shares by what else the process has built
    numbers: dict[str, str] = {}
    return SHARED.sub(lambda m: numbers.setdefault(m[0], f"{m[1]}{len(numbers)}"), text)


def ask(conditions: Sequence[Expr], budget: int, earlier: Answers | None = None, model: bool = True) -> Result:
    """Whether the conditions can hold together. What `earlier` says of the very same question is not asked again, unless it is
    answered by a `model` and that is wanted.

    Where the solver gives up, it is asked again with all arithmetic forgotten: what cannot hold for any functions in its place
    cannot hold for these.
    """
    plain = [c for c in conditions if not is_true(c)]
    if any(is_false(c) for c in plain) or falls(plain):
        return Result(Answer.UNSAT)
    text = question(plain)
    forgotten = without_arithmetic(plain, LOGIC) if "FloatingPoint" in text else None
    if forgotten is not None and falls(forgotten):
        return Result(Answer.UNSAT)
    found = _ask(text, budget, earlier, model)
    if found.answer is not Answer.UNKNOWN or forgotten is None:
        return found
    less = _ask(question(forgotten), min(budget, QUICK_BUDGET), earlier)
    return replace(less if less.answer is Answer.UNSAT else found, resources=found.resources + less.resources)


def falls(conditions: Sequence[Expr]) -> bool:
    """Whether simplifying, with what the conditions say of single constants put in, shows that they cannot hold together.

    Half of all obligations are decided so, in a fraction of the time that it takes to make a context and to read the question.
    """
    goal = z3.Goal()
    for c in conditions:
        z3core.Z3_goal_assert(goal.ctx.ref(), goal.goal, c.as_ast())
    left = _propagation()(goal)
    return len(left) == 1 and bool(left[0].inconsistent())


@functools.cache
def _propagation() -> Any:
    return z3.Then("simplify", "propagate-values")


def _ask(text: str, budget: int, earlier: Answers | None, model: bool = True) -> Result:
    """The question put as text, so that the solver meets the same whatever was built before in this process."""
    text, names = unnamed(text)
    key = (text, budget)
    known = None if earlier is None else earlier.get(key)
    if known is not None and not (model and known.answer is Answer.SAT):
        return replace(known, resources=0)
    result = _put(text, budget, names)
    if earlier is not None:
        earlier[key] = replace(result, model=None)  # a model would keep its context, tens of megabytes
    return result


def _put(text: str, budget: int, names: Names) -> Result:
    context = z3.Context()
    solver = _solver(text, context)
    solver.set(rlimit=budget, timeout=WALL_LIMIT_MS)
    solver.from_string(text)
    said = solver.check()
    used = _resources(solver)
    if said == z3.sat:
        return Result(Answer.SAT, used, Model(solver.model(), context, names))
    if said == z3.unsat:
        return Result(Answer.UNSAT, used)
    return Result(Answer.UNKNOWN, used, timed_out="timeout" in solver.reason_unknown() and used < budget)


def _solver(text: str, context: Any) -> Any:
    """z3's default, but where integers are multiplied: there, defined values are eliminated first."""
    if not INTEGERS.search(text):
        return z3.Solver(ctx=context)
    steps = [z3.Tactic(name, context) for name in ("simplify", "propagate-values", "solve-eqs", "smt")]
    return z3.Then(*steps).solver()


def _resources(solver: Any) -> int:
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in statistics.keys() else 0  # noqa: SIM118


class Model:
    """A model, read from the context of the expressions that made the question.

    names   what the question called their constants
    """

    def __init__(self, model: Any, context: Any, names: Names) -> None:
        self.model = model
        self.context = context
        self.names = names

    def value(self, e: Expr) -> Expr:
        """The numeral that `e` is in this model."""
        called = [(c, self.names[name]) for c in constants([e]) if (name := c.decl().name()) in self.names]
        e = z3.substitute(e, *((c, z3.Const(number, c.sort())) for c, number in called))
        found = self.model.eval(e.translate(self.context), model_completion=True)
        return found.translate(z3.main_ctx())
