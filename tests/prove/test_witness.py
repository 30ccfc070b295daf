"""Witnesses: values at which premises hold, tried before the solver is asked whether they can."""

from __future__ import annotations

from typing import Any

from morok.prove import smt
from morok.prove.encoding.obligation import Obligation
from morok.prove.precondition_models import Witnesses
from morok.prove.symbol import Symbol


def name(of: str) -> Symbol:
    return Symbol("variable", of)


def item(number: int) -> Symbol:
    return Symbol("item", "xs", number)


X, Y = (smt.Int(item(i)) for i in (0, 1))
F = smt.Function(Symbol("function", "f"), smt.IntSort(), smt.IntSort())


class Model:
    """What a solver says of some constants."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def value(self, e: Any) -> Any:
        return self.values[e.data]


def holds(premises: list[Any], known: Witnesses | None = None) -> bool:
    return (known or Witnesses()).exists(Obligation(), premises)


def test_plain_values_are_found() -> None:
    assert holds([X > 0, Y > 1, X == Y])
    assert holds([smt.Not(smt.Bool(name("b"))), X * X == 4])
    assert holds([smt.fpIsZero(smt.Const(name("x"), smt.FPSort(8, 24)))])


def test_contradictions_have_no_witness() -> None:
    assert not holds([X > 3, X < 3])
    assert not holds([smt.BitVec(name("x"), 8) == 1, smt.BitVec(name("x"), 8) == 2])
    assert not holds([F(X) == 1, F(X) == 2])
    element = smt.Const(name("e"), smt.DeclareSort("Sort"))
    assert not holds([element != element])


def test_a_function_may_be_the_same_everywhere() -> None:
    assert holds([F(X) >= 0, F(F(Y)) <= 1])
    assert not holds([F(0) == 0, F(1) == 1])  # another would do: the solver's to say


def test_what_the_solver_found_serves_other_dtypes_and_more_operands() -> None:
    narrow, wide = smt.BitVec(item(0), 8), smt.BitVec(item(0), 16)
    known = Witnesses()
    assert not holds([narrow == -77], known)
    known.learn([narrow == -77], Model({item(0): smt.BitVecVal(-77, 8)}))
    assert holds([wide == -77], known)
    assert holds([X == -77, Y == -77], known)
    assert not holds([X == -77, Y == -78], known)


def test_conditions_are_learned_too() -> None:
    a, b = (smt.Bool(name(n)) for n in "ab")
    known = Witnesses()
    assert not holds([a, smt.Not(b)], known)
    known.learn([a, smt.Not(b)], Model({name("a"): smt.TRUE, name("b"): smt.FALSE}))
    assert holds([a, smt.Not(b)], known)
