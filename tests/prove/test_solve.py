"""Asking the solver: what is decided without it, what is not asked twice, what an answer costs, and what happens when it dies."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.prove import smt, solve
from morok.prove.answers import DEFAULT_BUDGET, Answer, Result
from morok.prove.obligations import prove_rule
from morok.prove.semantics.floats import FORMATS
from morok.prove.smt import Expr, process, session, smtlib
from morok.prove.smt.propagate import refuted
from morok.prove.smt.term_graphs import constants, kinds, without_arithmetic, without_shifts
from morok.prove.solve import Answers, Asserted, ask, obligation
from morok.prove.symbol import Symbol
from morok.prove.verdict import Verdict
from morok.prove.workers import judge


def name(of: str) -> Symbol:
    return Symbol("variable", of)


X, Y, Z = (smt.Int(name(n)) for n in "xyz")
A, B = (smt.Bool(name(n)) for n in "ab")
V = smt.BitVec(name("v"), 8)
F = smt.Function(Symbol("function", "f"), smt.IntSort(), smt.IntSort())
F16, F64 = (smt.FPSort(*FORMATS[f]) for f in ("f16", "f64"))
CIRCLE = [X > Y, Y > Z, Z > X]


@pytest.mark.parametrize(
    "conditions",
    [
        [A, smt.Not(A)],
        [A, smt.Implies(A, B), smt.Not(B)],
        [X == 3, X > 5],
        [V == 3, V + 1 != 4],
        [smt.BoolVal(False)],
        [X > Y, smt.Implies(X > Y, A), smt.Not(A)],
    ],
)
def test_what_falls_by_simplifying_alone_is_unsat_at_no_cost(conditions: list[Expr]) -> None:
    assert refuted(conditions)
    found = ask(conditions, 1)
    assert found.answer is Answer.UNSAT
    assert found.resources == 0


@pytest.mark.parametrize(
    "conditions",
    [
        [],
        [A],
        [A, smt.Implies(A, B)],
        [X == 3, X < 5],
        [V == 3],
        CIRCLE,
        [X == 3, Y == 3],
        [X == Y, Y == 4],
        [X > Y, smt.Or(A, X > Y)],
    ],
)
def test_nothing_else_is_refuted_by_simplifying(conditions: list[Expr]) -> None:
    assert not refuted(conditions)


def test_the_same_question_is_asked_once_within_one_budget() -> None:
    earlier: Answers = {}
    first, again = (ask(CIRCLE, 100_000, earlier) for _ in range(2))
    assert (first.answer, again.answer) == (Answer.UNSAT, Answer.UNSAT)
    assert first.resources > 0
    assert again.resources == 0
    assert set(earlier) == {(smtlib.question(CIRCLE)[0], 100_000)}
    assert ask(CIRCLE, 200_000, earlier).resources == first.resources


def test_giving_up_is_remembered_for_its_budget_only_and_a_model_never() -> None:
    earlier: Answers = {}
    assert ask(CIRCLE, 1, earlier).answer is Answer.UNKNOWN
    assert ask(CIRCLE, 1, earlier).answer is Answer.UNKNOWN
    assert ask(CIRCLE, 100_000, earlier).answer is Answer.UNSAT
    for _ in range(2):
        found = ask([X > Y, Y > Z], 100_000, earlier)
        assert found.answer is Answer.SAT
        assert found.model.value(X).data > found.model.value(Z).data


def test_a_tactic_that_gives_up_is_no_error() -> None:
    """Where integers are multiplied the solver is a chain of tactics, each of which may run out."""
    conditions = [X * Y * Z == 77777, X > 1, Y > X, Z > Y, smt.If(X * X > Y, X, Y) * Z == X * X * X]
    for budget in (1, 5, 20, 50, 100, 200, 365, 500, 1000, 2000):
        assert ask(conditions, budget).answer in (Answer.UNKNOWN, Answer.UNSAT)


def test_constants_are_found_once_each_and_below_functions() -> None:
    assert constants([F(X) + Y > 3, smt.If(A, X, Z) == Y]) == [X, Y, A, Z]
    assert constants([smt.BoolVal(True)]) == []


def test_the_kinds_of_sorts_are_those_of_all_terms() -> None:
    u = smt.Const(name("u"), F16)
    assert kinds([]) == set()
    assert kinds([A, V == 3]) == {"Bool", "BitVec"}
    assert kinds([F(X) == 0]) == {"Bool", "Int"}
    assert kinds([smt.fpIsNaN(u), smt.ToReal(X) > 0]) == {"Bool", "Float", "Int", "Real"}
    assert kinds([smt.ToInt(smt.Real(name("r"))) == 3]) == {"Bool", "Int", "Real"}


def test_a_substitution_simplifies() -> None:
    there = smt.Substitution([(X, smt.IntVal(2)), (A, smt.BoolVal(True))])
    assert there(smt.And(X + X == 4, A)) is smt.TRUE
    assert there(X > 2) is smt.FALSE
    assert there(Y > X) is smt.simplify(Y > 2)


def test_arithmetic_is_forgotten_and_congruence_kept() -> None:
    forgotten = without_arithmetic([X + Y == Z, smt.Not(Z == X + Y)])
    assert forgotten is not None
    assert ask(forgotten, 100_000).answer is Answer.UNSAT
    assert without_arithmetic([A, smt.Or(A, X == Y)]) is None
    weaker = without_arithmetic([X + 1 == X + 2])
    assert weaker is not None
    assert ask(weaker, 100_000).answer is Answer.SAT


def test_shifts_by_any_amount_are_forgotten_and_amounts_compared() -> None:
    x, a, b = (smt.BitVec(name(n), 64) for n in "xab")
    near = [smt.ULT(a, 30), smt.ULT(b, 30)]
    for shifted in (lambda x, by: x << by, lambda x, by: x >> by, smt.LShR):
        forgotten = without_shifts([*near, shifted(shifted(x, a), b) != shifted(x, b + a)])
        assert forgotten is not None
        assert ask(forgotten, 200_000).answer is Answer.UNSAT
        weaker = without_shifts([*near, shifted(shifted(x, a), b) != shifted(x, a)])
        assert weaker is not None
        assert ask(weaker, 200_000).answer is Answer.SAT
    assert without_shifts([x << 3 == a, a + b == x]) is None


def test_questions_that_differ_in_names_alone_are_one_and_cost_the_same() -> None:
    p, q, r = (smt.Int(name(n)) for n in ("x#0", "y.1", "and then"))
    assert smtlib.question([X > Y, F(Y) > Z])[0] == smtlib.question([p > q, F(q) > r])[0]
    assert smtlib.question([X > Y, F(Y) > Z])[0] != smtlib.question([X > Y, F(Y) > X])[0]
    assert smtlib.question([X > 3])[0] != smtlib.question([X > 4])[0]
    assert ask([p > q, q > r, r > p], 100_000).resources == ask(CIRCLE, 100_000).resources
    assert "; %1 variable(y.1)" in obligation([p > q])


def test_a_model_speaks_of_what_was_asked_about_and_completes_the_rest() -> None:
    p = smt.Int(name("p"))
    found = ask([p > Y, F(Y) == p, Y == 7, A], 100_000)
    assert found.answer is Answer.SAT
    assert found.model.value(Y).data == 7
    assert found.model.value(p).data > 7
    assert found.model.value(F(Y) == p) is smt.TRUE
    assert found.model.value(A) is smt.TRUE
    other = smt.Function(Symbol("function", "g"), smt.IntSort(), smt.IntSort())
    for e in (Z, F(Z), other(Y) + p, smt.If(B, Z, Y)):
        assert found.model.value(e).head == "value"


def test_a_model_has_values_of_every_sort() -> None:
    element = smt.DeclareSort("Element")
    e, f = (smt.Const(name(n), element) for n in "ef")
    r, x = smt.Real(name("r")), smt.Const(name("h"), F16)
    found = ask([e != f, r * r == 2, r > 0, smt.fpIsNaN(x), V == 200], 3_000_000)
    assert found.answer is Answer.SAT
    assert found.model.value(e) is not found.model.value(f)
    assert abs(float(found.model.value(r).data) ** 2 - 2) < 1e-12
    assert found.model.value(smt.fpIsNaN(x)) is smt.TRUE
    assert found.model.value(V).data == 200
    assert found.model.value(e == f) is smt.FALSE


def test_that_conditions_can_hold_is_remembered_where_nobody_asks_how() -> None:
    earlier: Answers = {}
    first = ask([X > Y, Y > Z], 100_000, earlier, model=False)
    again = ask([Y > Z, Z > X], 100_000, earlier, model=False)
    assert (first.answer, again.answer) == (Answer.SAT, Answer.SAT)
    assert first.resources > 0
    assert again.resources == 0
    found = ask([Y > Z, Z > X], 100_000, earlier)
    assert found.model.value(Y).data > found.model.value(X).data


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The questions that the solver is asked, as they come."""
    questions: list[str] = []
    put = solve._put

    def listening(question: str, script: smtlib.Script, command: str, budget: int) -> Result:
        questions.append(question)
        return put(question, script, command, budget)

    monkeypatch.setattr(solve, "_put", listening)
    return iter([questions])


def test_arithmetic_is_forgotten_only_where_the_solver_gives_up(heard: Iterator[list[str]]) -> None:
    questions = next(heard)
    x, y, z = (smt.Const(name(n), F64) for n in "xyz")
    less = smt.fpLT(smt.fpMul(smt.NEAREST, x, y), z)
    neither = [smt.Or(A, less), smt.Or(A, smt.Not(less)), smt.Or(smt.Not(A), B), smt.Or(smt.Not(A), smt.Not(B))]
    u, v = (smt.Const(name(n), F16) for n in "uv")
    assert ask([smt.fpLT(smt.fpAdd(smt.NEAREST, u, u), v), smt.Or(A, B)], 3_000_000).answer is Answer.SAT
    assert len(questions) == 1
    questions.clear()
    assert ask(neither, 1000).answer is Answer.UNSAT
    assert len(questions) == 2
    assert "fp.mul" in questions[0]
    assert "fp.mul" not in questions[1]


def test_asserted_conditions_stay_and_one_more_is_dropped() -> None:
    told = Asserted(200_000)
    told.add([X > Y])
    assert told.possible(Y > Z)
    assert told.possible(X + F(Z) < Y) is True
    told.add([Y > Z])
    assert not told.possible(Z > X)
    assert told.possible(Z < X)


# What an answer costs


def hard(seed: int) -> Sequence[Expr]:
    a, b, c = (smt.BitVec(name(n), 6 + seed % 3) for n in "abc")
    return [smt.UDiv(a, b | 1) * (b | 1) + smt.URem(a, b | 1) == a + c, c * c == seed, a * b == seed + 1]


def costs(seeds: Sequence[int]) -> dict[int, int]:
    return {seed: ask(hard(seed), 300_000).resources for seed in seeds}


@pytest.mark.long
def test_a_question_costs_the_same_first_hundredth_in_another_order_and_in_a_thread() -> None:
    seeds = list(range(12))
    first = costs(seeds)
    assert len({n for n in first.values() if n}) > 3
    for _ in range(5):
        costs(seeds[:4])
    assert costs(seeds[::-1]) == first
    inside: list[dict[int, int]] = []
    threads = [threading.Thread(target=lambda: inside.append(costs(seeds))) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert inside == [first, first]


RULES = """group g "some"

a: Mul(Add(x: i8, y), z) ~> Add(Mul(x, z), Mul(y, z))
b: Idiv(Mul(x: index, 6), 3) ~> Mul(x, 2)
c: Add(x: f32, -0.0) ~> x
d: Mod(x: i16, y) if vmin(x) >= 0 and vmax(x) < vmin(y) ~> x
"""


@pytest.mark.long
def test_a_rule_costs_the_same_under_another_order_of_rules() -> None:
    rules = list(check_text(RULES).rules())

    def spent(order: Sequence[CheckedRule]) -> dict[str, tuple[object, ...]]:
        verdicts = [prove_rule(r, 3_000_000, True) for r in order]
        return {v.name: (v.verdict, v.resources, v.obligations) for v in verdicts}

    first = spent(rules)
    assert all(verdict == "proved" for verdict, *_ in first.values())
    assert spent(rules[::-1]) == first
    assert spent([*rules[2:], *rules[:2]]) == first


@pytest.mark.long
def test_a_question_costs_the_same_in_another_process() -> None:
    program = "import sys; sys.path.insert(0, 'tests/prove'); from test_solve import costs; print(costs([3, 1, 2]))"
    said = [
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert said == [f"{costs([3, 1, 2])}\n"] * 2


# The solver's processes


def test_a_solver_that_dies_leaves_its_question_open(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dead:
        def send(self, script: str) -> str:
            raise session.Died("gone")

        def close(self) -> None:
            pass

    monkeypatch.setattr(solve, "session", Dead)
    found = ask(CIRCLE, 100_000)
    assert found.answer is Answer.UNKNOWN
    assert found.timed_out


def test_a_solver_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PATIENCE", 0.3)
    a, b, c = (smt.BitVec(name(n), 64) for n in "abc")
    found = ask([smt.UDiv(a, b) * smt.URem(b, c) == smt.URem(c, a) * a * b + 12345, a * b * c == 77777], 2_000_000_000)
    assert found.answer is Answer.UNKNOWN
    assert found.timed_out


def test_a_server_that_is_gone_is_started_again() -> None:
    ask(CIRCLE, 100_000)
    control = session._server.control
    assert control is not None
    control.shutdown(2)  # as if it had been killed
    assert ask(CIRCLE, 100_000).answer is Answer.UNSAT


@pytest.mark.parametrize("missing", ["fork", "executable", "descriptors"])
def test_without_processes_the_solver_is_asked_here(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    if missing == "descriptors":
        monkeypatch.setattr(session.socket, "socketpair", refuse)
    else:
        monkeypatch.setattr(session._server, "control", None)
        if missing == "fork":
            monkeypatch.delattr(session.os, "fork")
        else:
            monkeypatch.setattr(session.sys, "executable", "")
    assert isinstance(session.session(), process.Context)
    found = ask([X * X == 49, X < 0], 100_000)
    assert found.model.value(X).data == -7
    assert ask(CIRCLE, 100_000).answer is Answer.UNSAT


def refuse(*_: object) -> object:
    raise OSError("no more descriptors")


def test_a_forked_child_shares_the_server() -> None:
    ask(CIRCLE, 100_000)
    child = os.fork()
    if child == 0:
        os._exit(0 if ask(CIRCLE, 100_000).answer is Answer.UNSAT else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ask(CIRCLE, 100_000).answer is Answer.UNSAT


@pytest.mark.long
def test_an_interrupt_ends_a_question_and_its_process() -> None:
    program = (
        "import signal, sys, threading, os\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        "sys.path.insert(0, 'tests/prove')\n"
        "from test_solve import ask, smt, name\n"
        "ask([smt.Int(name('x')) > smt.Int(name('y')) * smt.Int(name('y'))], 1000)\n"
        "a, b, c = (smt.BitVec(name(n), 64) for n in 'abc')\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    ask([smt.UDiv(a, b) * smt.URem(b, c) == smt.URem(c, a) * a * b + 12345, a * b * c == 77777], 2_000_000_000)\n"
        "except KeyboardInterrupt:\n"
        "    print('ended')\n"
    )
    started = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert started.stdout == "ended\n"
    assert started.stderr == ""


@pytest.mark.long
def test_processes_end_with_whoever_asks() -> None:
    program = (
        "import sys; sys.path.insert(0, 'tests/prove'); from test_solve import ask, session, X\n"
        "found = ask([X > 3], 1000)\n"  # a model keeps its process
        "print(session._server.program.pid, flush=True)\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stdout
    deadline = time.monotonic() + 20
    while _runs(int(said)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(int(said))


@pytest.mark.long
@pytest.mark.parametrize(
    "program",
    [
        "session.start()",
        "found = ask([X > Y], 1000)",  # a model keeps its process
        "ring = [ask([X > Y], 1000)]; ring[0].model.ring = ring; del ring; gc.collect()",
        "Asserted(1000).add([X > Y]); session._server.control.shutdown(2); Asserted(1000)",  # the server is started again
        "ask([X > Y], 1000); child = os.fork()\n"
        "if child == 0: sys.exit(ask(CIRCLE, 100_000).answer is not Answer.UNSAT)\n"
        "assert os.waitpid(child, 0)[1] == 0; assert session._server.program.poll() is None",
    ],
)
def test_nothing_is_left_open_when_a_process_ends(program: str) -> None:
    begin = "import gc, sys; sys.path.insert(0, 'tests/prove'); from test_solve import *\n"
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", begin + program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def _runs(pid: int) -> bool:
    try:
        return b"process.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_too_many_numbers_of_lanes_are_said_at_once_and_of_what() -> None:
    """Each of fourteen indices may have lanes of its own: that is 2^14 questions, of which 2^13 were asked, in ten minutes."""

    def verdict(lanes: str) -> Verdict:
        more = "".join(f", a{k}: index{lanes}" for k in range(1, 14))
        plain = "".join(f", a{k}" for k in range(14))
        text = f"group g\nr: Index(b: ptr(i32), Add(a0: index{lanes}, 0){more}) ~> Index(b{plain})\n"
        return judge(next(check_text(text).rules()), DEFAULT_BUDGET, False)

    found = verdict("")
    assert found.verdict == "unknown"
    assert "14 variables (a0, a1, a2, a3, ..) of any numbers of lanes" in found.message
    assert verdict(" x n").verdict == "proved"
