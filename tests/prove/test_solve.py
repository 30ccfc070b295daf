"""Asking the solver: what is decided without it, what is not asked twice, and walks over its terms."""

from __future__ import annotations

import pytest
import z3

from morok.prove import solve
from morok.prove.answers import Answer, Names, Result, unnamed
from morok.prove.semantics.graph import Substitution, constants, without_arithmetic
from morok.prove.semantics.term import both, either, is_false, is_true, negation
from morok.prove.solve import LOGIC, Answers, ask, falls, question

X, Y, Z = z3.Ints("x y z")
A, B = z3.Bools("a b")
V = z3.BitVec("v", 8)
F = z3.Function("f", z3.IntSort(), z3.IntSort())


@pytest.mark.parametrize(
    "conditions",
    [[A, z3.Not(A)], [A, z3.Implies(A, B), z3.Not(B)], [X == 3, X > 5], [V == 3, V + 1 != 4], [z3.BoolVal(False)]],
)
def test_what_falls_by_simplifying_alone_is_unsat_at_no_cost(conditions: list[z3.BoolRef]) -> None:
    assert falls(conditions)
    found = ask(conditions, 1)
    assert found.answer is Answer.UNSAT
    assert found.resources == 0


@pytest.mark.parametrize("conditions", [[], [A], [A, z3.Implies(A, B)], [X == 3, X < 5], [V == 3], [X > Y, Y > Z, Z > X]])
def test_nothing_else_falls(conditions: list[z3.BoolRef]) -> None:
    assert not falls(conditions)


def test_the_same_question_is_asked_once_within_one_budget() -> None:
    hard = [X > Y, Y > Z, Z > X]
    earlier: Answers = {}
    first = ask(hard, 100_000, earlier)
    again = ask(hard, 100_000, earlier)
    assert (first.answer, again.answer) == (Answer.UNSAT, Answer.UNSAT)
    assert first.resources > 0
    assert again.resources == 0
    assert set(earlier) == {(unnamed(question(hard))[0], 100_000)}
    assert ask(hard, 200_000, earlier).resources == first.resources


def test_giving_up_is_remembered_for_its_budget_only_and_a_model_never() -> None:
    hard = [X > Y, Y > Z, Z > X]
    earlier: Answers = {}
    assert ask(hard, 1, earlier).answer is Answer.UNKNOWN
    assert ask(hard, 1, earlier).answer is Answer.UNKNOWN
    assert ask(hard, 100_000, earlier).answer is Answer.UNSAT
    possible = [X > Y, Y > Z]
    for _ in range(2):
        found = ask(possible, 100_000, earlier)
        assert found.answer is Answer.SAT
        assert found.model.value(X).as_long() > found.model.value(Z).as_long()


def test_constants_are_found_once_each_and_below_functions() -> None:
    found = constants([F(X) + Y > 3, z3.If(A, X, Z) == Y])
    assert sorted(str(c) for c in found) == ["a", "x", "y", "z"]
    assert constants([z3.BoolVal(True)]) == []


def test_a_substitution_simplifies_and_refuses_values_of_other_sorts() -> None:
    there = Substitution([(X, z3.IntVal(2)), (A, z3.BoolVal(True))])
    assert is_true(there(z3.And(X + X == 4, A)))
    assert is_false(there(X > 2))
    assert there(Y > X).eq(z3.simplify(Y > 2))
    with pytest.raises(z3.Z3Exception):
        Substitution([(X, V)])(X > 1)


def test_arithmetic_is_forgotten_and_congruence_kept() -> None:
    sum_is_sum = [z3.Not(F(X + Y) == F(X + Y)), A]
    forgotten = without_arithmetic([X + Y == Z, z3.Not(Z == X + Y)], LOGIC)
    assert forgotten is not None
    assert ask(forgotten, 100_000).answer is Answer.UNSAT
    assert without_arithmetic([A, z3.Or(A, X == Y)], LOGIC) is None
    weaker = without_arithmetic([X + 1 == X + 2], LOGIC)
    assert weaker is not None
    assert ask(weaker, 100_000).answer is Answer.SAT
    assert ask(sum_is_sum, 100_000).answer is Answer.UNSAT


def test_connectives_are_the_nodes_that_the_library_makes() -> None:
    assert both(A, z3.BoolVal(True), B).eq(z3.And(A, B))
    assert either(A, z3.BoolVal(False), B).eq(z3.Or(A, B))
    assert negation(A).eq(z3.Not(A))
    with pytest.raises(z3.Z3Exception):
        both(A, X)


def test_questions_that_differ_in_names_alone_are_one_and_cost_the_same() -> None:
    """`accumulator1.defined` and `|x#0|` are names too; functions, sorts and numerals are none."""
    p, q, r = z3.Int("x#0"), z3.Int("y.1"), z3.Int("and then")
    here, there = question([X > Y, F(Y) > Z]), question([p > q, F(q) > r])
    assert here != there
    assert unnamed(here)[0] == unnamed(there)[0]
    assert "f" in unnamed(here)[0]
    assert len(unnamed(there)[1]) == 3
    assert unnamed(here)[0] != unnamed(question([X > Y, F(Y) > X]))[0]
    assert unnamed(question([X > 3]))[0] != unnamed(question([X > 4]))[0]
    assert ask([p > q, q > r, r > p], 100_000).resources == ask([X > Y, Y > Z, Z > X], 100_000).resources


def test_a_model_speaks_of_the_names_that_were_asked_about() -> None:
    p = z3.Int("x#0")
    found = ask([p > Y, F(Y) == p, Y == 7, A], 100_000)
    assert found.answer is Answer.SAT
    assert found.model.value(Y).as_long() == 7
    assert found.model.value(p).as_long() > 7
    assert z3.is_true(found.model.value(F(Y) == p))
    assert z3.is_true(found.model.value(A))


def test_that_conditions_can_hold_is_remembered_where_nobody_asks_how() -> None:
    earlier: Answers = {}
    first = ask([X > Y, Y > Z], 100_000, earlier, model=False)
    again = ask([Y > Z, Z > X], 100_000, earlier, model=False)
    assert (first.answer, again.answer) == (Answer.SAT, Answer.SAT)
    assert first.resources > 0
    assert again.resources == 0
    found = ask([Y > Z, Z > X], 100_000, earlier)
    assert found.model.value(Y).as_long() > found.model.value(X).as_long()


def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that contexts are made for, as they come."""
    heard: list[str] = []
    put = solve._put

    def listening(text: str, budget: int, names: Names) -> Result:
        heard.append(text)
        return put(text, budget, names)

    monkeypatch.setattr(solve, "_put", listening)
    return heard


def test_arithmetic_is_forgotten_only_where_the_solver_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = asked(monkeypatch)
    x, y, z = (z3.FP(name, z3.Float64()) for name in "xyz")
    less = z3.fpLT(z3.fpMul(z3.RNE(), x, y), z)
    neither = [z3.Or(A, less), z3.Or(A, z3.Not(less)), z3.Or(z3.Not(A), B), z3.Or(z3.Not(A), z3.Not(B))]
    u, v = (z3.FP(name, z3.Float16()) for name in "uv")
    assert ask([z3.fpLT(z3.fpAdd(z3.RNE(), u, u), v), z3.Or(A, B)], 3_000_000).answer is Answer.SAT
    assert len(heard) == 1
    heard.clear()
    assert ask(neither, 1000).answer is Answer.UNSAT
    assert len(heard) == 2
    assert "fp.mul" in heard[0]
    assert "fp.mul" not in heard[1]
