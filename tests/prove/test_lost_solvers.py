"""Processes of the solver that are killed in a conversation: no answer is made up, no proof recorded, and nothing else ends."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mistaken import HIGH, LOW, ops

from morok.dsl.check import check_text
from morok.errors import CheckWarning
from morok.ir.dtype import dtypes
from morok.ir.op import TABLE, Op
from morok.prove import bounds_proofs, dialect_agreement, intervals, smt, solve, workers
from morok.prove.answers import DEFAULT_BUDGET, Answer
from morok.prove.attack import trial
from morok.prove.bounds_check import check
from morok.prove.dialect_agreement import Agreement, Case
from morok.prove.lint import termination
from morok.prove.lint.termination import unordered
from morok.prove.semantics.plain import IntegerWorld
from morok.prove.semantics.term import Term
from morok.prove.smt import Expr, session
from morok.prove.smt.session import Died
from morok.prove.solve import Asserted, Model, ask, best
from morok.prove.symbol import Symbol
from tests.passes.test_bounds_check import copy
from tests.prove.test_mistaken_dialects import dialect, verify

X, Y = (smt.Int(Symbol("variable", n)) for n in "xy")


def conversations() -> Iterator[int]:
    """The processes that the solver's server has forked."""
    program = session._server.program
    assert program is not None
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(parent) == program.pid and state != "Z":
            yield int(stat.parent.name)


def kill(over: Any) -> None:
    """Kill every process of the server's that converses, that of `over` among them, which has answered once."""
    assert "there" in over.send('(echo "there")')
    killed = list(conversations())
    assert killed
    for pid in killed:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every conversation is with a process that was killed."""
    opened = session.session

    def killed() -> session.Session:
        over = opened()
        kill(over)
        return over

    monkeypatch.setattr(solve, "session", killed)


@pytest.fixture
def dying_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that has a model is killed when the first value is asked for."""
    value: Callable[[Model, Expr], Expr] = Model.value

    def asked(model: Model, e: Expr) -> Expr:
        monkeypatch.setattr(Model, "value", value)
        kill(model.over)
        return model.value(e)

    monkeypatch.setattr(Model, "value", asked)


@pytest.mark.usefixtures("dead")
def test_a_question_stays_open() -> None:
    found = ask([X > Y, Y > X], DEFAULT_BUDGET)
    assert found.answer is Answer.UNKNOWN
    assert found.timed_out


@pytest.mark.usefixtures("dead")
def test_there_is_no_best_model() -> None:
    assert best([X > 0], [(X > 1, 1)]) is None


def test_everything_is_possible_beside_conditions_that_are_lost() -> None:
    told = Asserted(200_000)
    told.add([X > Y])
    assert not told.possible(Y > X)
    kill(told.over)
    assert told.possible(Y > X)
    told.add([Y > 3])
    assert told.possible(smt.And(Y > X, Y < 0))


@pytest.mark.usefixtures("dead")
def test_a_fork_that_nobody_decides_goes_both_ways() -> None:
    explorer = intervals.Explorer(0, [X > Y])
    x, y = (intervals.Symbol(explorer, v) for v in (X, Y))
    assert list(explorer.paths(lambda: x > y)) == [True, False]


@pytest.mark.usefixtures("dying_models")
def test_a_model_that_is_lost_has_no_values() -> None:
    found = ask([X > Y], DEFAULT_BUDGET)
    with pytest.raises(Died):
        found.model.value(X)


@pytest.mark.usefixtures("dying_models")
def test_a_rule_whose_counterexample_is_lost_is_unknown_and_never_recorded() -> None:
    rule = next(iter(check_text("group g\n\nr: Mul(x: i32, y) if vmin(x) > 1 ~> x\n").rules()))
    lost = workers.judge(rule, DEFAULT_BUDGET, False)
    assert (lost.verdict, lost.final) == ("unknown", False)
    assert "the solver's process died" in lost.message
    again = workers.judge(rule, DEFAULT_BUDGET, False)
    assert (again.verdict, again.final) == ("refuted", True)


def test_a_measure_that_is_lost_orders_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = (
        check_text("group g\n\na: Cast(Where(c, x: A, y: A), B) ~> Where(c, Cast(x, B), Cast(y, B))\n").groups[0].rules
    )
    assert unordered(rules) == []
    found = best

    def lost(*asked: Any) -> Model | None:
        model = found(*asked)
        if model is not None:
            kill(model.over)
        return model

    monkeypatch.setattr(termination, "best", lost)
    assert [r.name for r in unordered(rules)] == ["g.a"]


@pytest.mark.usefixtures("dying_models")
def test_an_attack_finds_nothing_in_a_solver_that_is_lost() -> None:
    rule = next(iter(check_text("group g\n\nr: Mul(x: i32, y) if vmin(x) > 1 ~> x\n").rules()))
    assert trial.verdict_of(rule).verdict == "unknown"
    assert trial.verdict_of(rule).verdict == "refuted"


@pytest.mark.usefixtures("dying_models")
def test_an_access_whose_place_is_lost_is_undecided() -> None:
    with pytest.warns(CheckWarning, match="the solver gave up"):
        check(copy(16, 16, lambda r: r + 1), "copy")


@pytest.mark.usefixtures("dying_models")
def test_bounds_that_are_refuted_by_a_model_that_is_lost_are_refuted() -> None:
    wrong = dataclasses.replace(TABLE[Op.Max], bounds=lambda d, src, arg: (0, 0))
    found = bounds_proofs.judge(next(bounds_proofs._pointwise(wrong, dtypes.index)))
    assert found.answer is Answer.SAT
    assert "died" in found.counterexample


@pytest.mark.long
def test_a_dialect_is_not_believed_while_nobody_answers_and_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path))

    def lost(*_: object) -> bool:
        raise Died("gone")

    with monkeypatch.context() as here:
        here.setattr(dialect_agreement.Agreement, "of_constants", lost)
        found = verify(dialect())
        assert found
        assert all("the solver's" in e.message for e in found)
    assert verify(dialect()) == []


@pytest.mark.usefixtures("dead")
def test_a_theory_that_nobody_answers_for_is_not_called_impossible() -> None:
    class Attempt:
        def world(self) -> IntegerWorld:
            made = IntegerWorld("integers", limits={"sat": (LOW, HIGH)})
            made.assume(X > Y, Y > X * X)
            return made

    agreement = Agreement(ops()["Neg"], lambda world, d, a: Term(X), Attempt(), ["sat"], "sat")
    with pytest.raises(Died):
        agreement.of_constants([Case((1,), -1)])
