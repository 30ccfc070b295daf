"""Solver functions of other dialects, in terms and in expressions of the solver's library: the same meaning either way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import z3

from morok.prove import smt
from morok.prove.meanings import meaning_of
from morok.prove.semantics.plain import IntegerWorld
from morok.prove.semantics.term import Term, Unsupported, choose, strict
from morok.prove.symbol import Symbol

LOW, HIGH = -100, 100


def clipped(w: Any, d: Any, a: Term, b: Term) -> Term:
    v = a.value + b.value
    return strict(smt.If(v > HIGH, HIGH, smt.If(v < LOW, LOW, v)), a, b)


def clipped_in_z3(w: Any, d: Any, a: Any, b: Any) -> Any:
    v = a.value + b.value
    return strict(z3.If(v > HIGH, HIGH, z3.If(v < LOW, LOW, v)), a, b)


def divided(w: Any, d: Any, a: Term, b: Term) -> Term:
    return strict(smt.If(b.value > 0, a.value / b.value, (-a.value) / (-b.value)), a, b, when=b.value != 0)


def divided_in_z3(w: Any, d: Any, a: Any, b: Any) -> Any:
    return strict(z3.If(b.value > 0, a.value / b.value, (-a.value) / (-b.value)), a, b, when=b.value != 0)


def either_way(w: Any, d: Any, a: Any, b: Any) -> Any:
    return Term(choose(a.value > b.value, a.value, b.value), a.defined)


def either_in_z3(w: Any, d: Any, a: Any, b: Any) -> Any:
    return Term(z3.If(a.value > b.value, a.value, b.value), z3.And(a.defined))


def operands() -> tuple[IntegerWorld, list[Term]]:
    world = IntegerWorld("test", limits={"sat": (LOW, HIGH)})
    made = [world.variable(Symbol("variable", n), "sat") for n in "ab"]
    return world, [Term(t.value, smt.Bool(Symbol("defined", n))) for t, n in zip(made, "ab", strict=True)]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(clipped, clipped_in_z3), (divided, divided_in_z3), (either_way, either_in_z3)],
    ids=lambda f: f.__name__,
)
def test_both_spellings_are_one_meaning(ours: Callable[..., Any], theirs: Callable[..., Any]) -> None:
    world, given = operands()
    one, other = (meaning_of(f)(world, "sat", *given) for f in (ours, theirs))
    for part in ("value", "defined", "invalid"):
        assert smt.simplify(getattr(one, part)) is smt.simplify(getattr(other, part))
    values = [
        (given[0].value, smt.IntVal(7)),
        (given[1].value, smt.IntVal(-2)),
        *((t.defined, smt.TRUE) for t in given),
    ]
    there = smt.Substitution(values)
    assert there(one.value) is there(other.value)
    assert there(one.value).head == "value"


def test_numerals_are_put_in_after_an_expression_was_made() -> None:
    world, _ = operands()
    got = meaning_of(clipped_in_z3)(world, "sat", world.constant("sat", 90), world.constant("sat", 20))
    assert smt.simplify(got.value) is smt.IntVal(HIGH)
    assert smt.simplify(got.defined) is smt.TRUE


def test_mistakes_are_said_as_they_are() -> None:
    def unsupported(*_: Any) -> Any:
        raise Unsupported("no such op")

    def wrong(*_: Any) -> Any:
        raise KeyError("mine")

    world, given = operands()
    with pytest.raises(Unsupported, match="no such op"):
        meaning_of(unsupported)(world, "sat", *given)
    with pytest.raises(KeyError, match="mine"):
        meaning_of(wrong)(world, "sat", *given)
    assert meaning_of(lambda *_: 3)(world, "sat", *given) == 3


def test_what_terms_cannot_say_is_named() -> None:
    def with_array(w: Any, d: Any, a: Any, b: Any) -> Any:
        return strict(z3.Select(z3.Array("m", z3.IntSort(), z3.IntSort()), a.value), a, b)

    world, given = operands()
    with pytest.raises(smt.SortError, match=r"Array|select"):
        meaning_of(with_array)(world, "sat", *given)
