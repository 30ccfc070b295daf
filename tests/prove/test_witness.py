"""Witnesses: values at which premises hold, tried before the solver is asked whether they can."""

from __future__ import annotations

from typing import Any

import z3

from morok.prove.encoding.obligation import Obligation
from morok.prove.witness import Witnesses

X, Y = z3.Ints("x#0 x#1")
F = z3.Function("f", z3.IntSort(), z3.IntSort())


class Model:
    """What a solver says of some constants."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def value(self, e: Any) -> Any:
        return self.values[e.decl().name()]


def holds(premises: list[Any], known: Witnesses | None = None) -> bool:
    return (known or Witnesses()).exists(Obligation(), premises)


def test_plain_values_are_found() -> None:
    assert holds([X > 0, Y > 1, X == Y])
    assert holds([z3.Not(z3.Bool("b")), X * X == 4])
    assert holds([z3.fpIsZero(z3.FP("x", z3.Float32()))])


def test_contradictions_have_no_witness() -> None:
    assert not holds([X > 3, X < 3])
    assert not holds([z3.BitVec("x", 8) == 1, z3.BitVec("x", 8) == 2])
    assert not holds([F(X) == 1, F(X) == 2])
    element = z3.Const("e", z3.DeclareSort("Sort"))
    assert not holds([element != element])


def test_a_function_may_be_the_same_everywhere() -> None:
    assert holds([F(X) >= 0, F(F(Y)) <= 1])
    assert not holds([F(0) == 0, F(1) == 1])  # another would do: the solver's to say


def test_what_the_solver_found_serves_other_dtypes_and_more_operands() -> None:
    narrow, wide = z3.BitVec("x#0", 8), z3.BitVec("x#0", 16)
    known = Witnesses()
    assert not holds([narrow == -77], known)
    known.learn([narrow == -77], Model({"x#0": z3.BitVecVal(-77, 8)}))
    assert holds([wide == -77], known)
    assert holds([X == -77, Y == -77], known)
    assert not holds([X == -77, Y == -78], known)


def test_conditions_are_learned_too() -> None:
    a, b = z3.Bools("a b")
    known = Witnesses()
    assert not holds([a, z3.Not(b)], known)
    known.learn([a, z3.Not(b)], Model({"a": z3.BoolVal(True), "b": z3.BoolVal(False)}))
    assert holds([a, z3.Not(b)], known)
