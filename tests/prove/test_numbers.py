"""Compile-time arithmetic of guards: exact over integers and over bit vectors, with premises where it has no value."""

from __future__ import annotations

import math

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from morok.prove.semantics import MorokWorld
from morok.prove.semantics.numbers import Arithmetic, Num

small = st.integers(-300, 300)


def closed(e: object) -> object:
    return z3.simplify(e)


def value(a: Arithmetic, n: Num) -> int:
    known = a.n.known(n.value)
    assert known is not None
    return known


@pytest.mark.parametrize("integers", [True, False])
@given(x=small, y=small)
def test_operators_are_pythons(integers: bool, x: int, y: int) -> None:
    a = MorokWorld("test", integers=integers, builtin=True).numbers
    m, n = a.const(x), a.const(y)
    for op, want in (("+", x + y), ("-", x - y), ("*", x * y), ("min", min(x, y)), ("max", max(x, y)), ("gcd", math.gcd(x, y))):
        assert value(a, a.binary(op, m, n)) == want
    for op in ("//", "%", "tdiv", "tmod"):
        got = a.binary(op, m, n)
        assert z3.is_true(closed(got.exists)) == (y != 0)
        if y:
            q = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            assert value(a, got) == {"//": x // y, "%": x % y, "tdiv": q, "tmod": x - q * y}[op]
    for op, truth in (("<", x < y), ("<=", x <= y), ("==", x == y), ("!=", x != y), (">", x > y), (">=", x >= y)):
        assert z3.is_true(closed(a.compare(op, m, n)[1])) == truth


@pytest.mark.parametrize("integers", [True, False])
def test_shifts_and_powers_have_limits(integers: bool) -> None:
    a = MorokWorld("test", integers=integers).numbers
    assert value(a, a.binary("<<", a.const(3), a.const(4))) == 48
    assert value(a, a.binary(">>", a.const(-5), a.const(1))) == -3
    assert z3.is_false(closed(a.binary("<<", a.const(3), a.const(-1)).exists))
    assert z3.is_false(closed(a.binary("<<", a.const(3), a.const(5000)).exists))
    assert z3.is_true(closed(a.is_power(a.const(64))))
    assert z3.is_false(closed(a.is_power(a.const(0))))
    assert value(a, a.unary("log2", a.const(64))) == 6


def test_unknown_bounds_compare_but_do_not_compute() -> None:
    a = MorokWorld("test", integers=True).numbers
    least, most, five = a.infinity(-1), a.infinity(1), a.const(5)
    assert z3.is_true(closed(a.compare("<", least, five)[1]))
    assert z3.is_true(closed(a.compare("<", five, most)[1]))
    assert z3.is_true(closed(a.compare("<", least, most)[1]))
    assert z3.is_false(closed(a.compare("<", least, least)[1]))
    assert z3.is_true(closed(a.compare("<=", least, least)[1]))
    assert z3.is_false(closed(a.binary("+", least, five).exists))
    assert z3.is_false(closed(a.unary("neg", least).exists))
