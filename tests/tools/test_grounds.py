"""The grounds of a proof at every size that `morok explain` tells: enough for the proof, and no more than it needs."""

from __future__ import annotations

import functools
import json

import pytest

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.prove import smt
from morok.prove.answers import DEFAULT_BUDGET, Answer
from morok.prove.obligations import by_numbers
from morok.prove.parametric import laws
from morok.prove.parametric.polynomials import TIMES
from morok.prove.progress import Progress
from morok.prove.solve import ask
from morok.prove.symbol import Symbol
from morok.rewrite.library import groups
from morok.tools.cli import main
from morok.tools.grounds import grounds
from morok.tools.infix import conjuncts, infix

X, Y, Z = (smt.Int(Symbol("fixed", n)) for n in "xyz")
F = smt.Function(Symbol("fixed", "f"), smt.IntSort(), smt.IntSort())
P = smt.Bool(Symbol("fixed", "p"))


def asked(rule: CheckedRule) -> Progress:
    return Progress(DEFAULT_BUDGET, keep=False)


@functools.cache
def built_in(name: str) -> CheckedRule:
    return next(r for r in groups(name.partition(".")[0]).rules if r.name == name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["movement.permute", "movement.expand", "movement.flip", "push_lanes.cast"])
def test_what_is_told_is_enough_and_nothing_can_be_left_out(name: str) -> None:
    rule = built_in(name)
    found = grounds(rule, asked(rule).ask, None)
    assert found
    for g in found:
        claim = smt.Not(g.claim)
        assert ask([*g.known, claim], DEFAULT_BUDGET).answer is Answer.UNSAT
        assert ask(list(g.known), DEFAULT_BUDGET).answer is not Answer.UNSAT
        for k in range(len(g.known)):
            less = [*g.known[:k], *g.known[k + 1 :], claim]
            assert ask(less, DEFAULT_BUDGET, model=False).answer is not Answer.UNSAT


def test_a_false_rule_has_no_grounds() -> None:
    twice = "Permute { src: Permute { src: x, axes: a }, axes: b } ~> Permute { src: x, axes: a }"
    (rule,) = check_text("group g\n\nr: " + twice + "\n").rules()
    assert grounds(rule, asked(rule).ask, None) == []


def test_a_rule_about_numbers_is_among_the_grounds() -> None:
    (rule,) = check_text(
        "group g\n\nr: Permute { src: Neg(Sub(0, x: i32)), axes: a } ~> Permute { src: x, axes: a }\n"
    ).rules()
    progress = asked(rule)
    assert grounds(rule, progress.ask, None) == []
    (found,) = grounds(rule, progress.ask, by_numbers(rule, progress))
    assert any("Neg(Sub(0, x0: i32))" in law for law in found.laws)


@pytest.mark.long
def test_the_laws_and_the_question_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "movement.flip"]) == 0
    said = capsys.readouterr().out
    for line in (
        "any number of axes",
        "at every size by the laws",
        "A condition on all places holds at each.",
        "it follows that",
    ):
        assert line in said
    assert main(["explain", "movement.flip", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rules"]
    assert row["proofs"][0]["laws"]
    assert not row["lane_by_lane"]
    assert main(["explain", "identity_and_zero.add_zero"]) == 0
    assert "as it holds lane by lane" in capsys.readouterr().out


def test_what_the_solver_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "movement.flip", "--smt2"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("; movement.flip: proved\n")
    assert said.count("(check-sat)") == said.count("(reset)") > 0


@pytest.mark.parametrize(
    ("term", "said"),
    [
        (smt.And(X <= Y, Y < Z), "x <= y < z"),
        (smt.And(X <= Y, Z < Y), "x <= y and z < y"),
        (smt.Or(smt.And(X < Y, P), smt.Not(P)), "x < y and p or not p"),
        (smt.And(smt.Or(X < Y, P), P), "(x < y or p) and p"),
        (smt.Not(smt.And(P, X == Y)), "not (p and x == y)"),
        (smt.Not(X <= Y), "x > y"),
        (smt.Not(X == Y), "x != y"),
        (smt.Implies(P, smt.Implies(X < Y, P)), "p implies (x < y implies p)"),
        (F(X + Y) == Z * (X + 2), "f(x + y) == z * (x + 2)"),
        (smt.If(P, X, Y) + 1 == Z, "(x if p else y) + 1 == z"),
        (TIMES(X, laws.QUOTIENT(Y + 1, Z)) < laws.REMAINDER(X, Y), "x * ((y + 1) // z) < x % y"),
        (
            smt.Int(Symbol("lanes", "$l3")) == smt.Int(Symbol("item", Symbol("variable", "is"), "length")),
            "lanes($l3) == len(is)",
        ),
    ],
)
def test_terms_are_written_with_the_brackets_that_they_need(term: smt.Expr, said: str) -> None:
    assert infix(term) == said


def test_the_parts_of_a_claim() -> None:
    assert conjuncts(smt.And(X < Y, smt.Or(P, X == Z))) == ["x < y", "p or x == z"]
    assert conjuncts(P) == ["p"]
