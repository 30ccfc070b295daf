"""Asking the solver: one fresh context for every question, a budget in the solver's own units, three-valued answers."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import z3

from morok.prove.semantics.term import Expr

DEFAULT_BUDGET: Final = 3_000_000  # solver resource units an obligation: about one second
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
SHARED: Final = re.compile(r"([?$]x)[0-9]+\b")
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
    """The conditions as an SMT-LIB script, for any solver: the same text in every process."""
    terms = [c.as_ast() for c in conditions] or [z3.BoolVal(True).as_ast()]
    most = (z3.Ast * (len(terms) - 1))(*terms[:-1])
    text = z3.Z3_benchmark_to_smtlib_string(z3.main_ctx().ref(), "a question", "", "unknown", "", len(terms) - 1, most, terms[-1])
    # the solver numbers what it shares by what else the process has built
    numbers: dict[str, str] = {}
    return SHARED.sub(lambda m: numbers.setdefault(m[0], f"{m[1]}{len(numbers)}"), text)


def ask(conditions: Sequence[Expr], budget: int) -> Result:
    """Whether the conditions can hold together.

    First with all arithmetic forgotten: what cannot hold for any functions in its place cannot hold for these.
    """
    plain = [c for c in conditions if not z3.is_true(c)]
    if any(z3.is_false(c) for c in plain):
        return Result(Answer.UNSAT)
    forgotten = without_arithmetic(plain) if "FloatingPoint" in question(plain) else None
    if forgotten is None:
        return _ask(plain, budget)
    quick = _ask(forgotten, min(budget, QUICK_BUDGET))
    if quick.answer is Answer.UNSAT:
        return quick
    found = _ask(plain, budget)
    return Result(found.answer, found.resources + quick.resources, found.model, found.timed_out)


def without_arithmetic(conditions: Sequence[Expr]) -> list[Expr] | None:
    """The conditions with every term of floats, bit vectors and numbers that is computed replaced by an unknown.

    Equal terms (one node of the solver) become equal unknowns, so that what rests on congruence alone is decided without their
    meaning; every model of the conditions is one of the result. None if nothing is computed.
    """
    names: dict[int, Expr] = {}
    done: dict[int, Expr] = {}
    todo = list(conditions)
    while todo:
        at = todo[-1]
        if at.get_id() in done:
            todo.pop()
            continue
        if at.num_args() and not _is_logic(at):
            names[at.get_id()] = done[at.get_id()] = z3.Const(f"computed!{len(names)}", at.sort())
            todo.pop()
            continue
        waiting = [c for c in at.children() if c.get_id() not in done]
        if waiting:
            todo.extend(waiting)
            continue
        todo.pop()
        done[at.get_id()] = at.decl()(*(done[c.get_id()] for c in at.children())) if at.num_args() else at
    return [done[c.get_id()] for c in conditions] if names else None


def _is_logic(e: Expr) -> bool:
    """Connectives, equality and choice: what is kept."""
    return e.decl().kind() in LOGIC


def _ask(plain: Sequence[Expr], budget: int) -> Result:
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
    if not any(_has(c, z3.is_int) for c in conditions):
        return z3.Solver(ctx=context)
    steps = [z3.Tactic(name, context) for name in ("simplify", "propagate-values", "solve-eqs", "smt")]
    return z3.Then(*steps).solver()


def _has(e: Expr, kind: Callable[[Expr], bool]) -> bool:
    """Whether a term of this kind stands anywhere in the expression."""
    todo, seen = [e], set()
    while todo:
        at = todo.pop()
        if at.get_id() not in seen:
            seen.add(at.get_id())
            if kind(at):
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
