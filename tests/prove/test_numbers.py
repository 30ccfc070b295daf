"""Compile-time arithmetic of guards: exact over integers and over bit vectors, with premises where it has no value."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morok.prove import smt
from morok.prove.semantics import MorokWorld
from morok.prove.semantics.numbers import Arithmetic, Num

small = st.integers(-300, 300)


def closed(e: object) -> object:
    return smt.simplify(e)


def value(a: Arithmetic, n: Num) -> int:
    known = a.n.known(n.value)
    assert known is not None
    return known


@pytest.mark.sampled(2)
@pytest.mark.parametrize("integers", [True, False])
@given(x=small, y=small)
def test_operators_are_pythons(integers: bool, x: int, y: int) -> None:
    a = MorokWorld("test", integers=integers, builtin=True).numbers
    m, n = a.const(x), a.const(y)
    for op, want in (
        ("+", x + y),
        ("-", x - y),
        ("*", x * y),
        ("min", min(x, y)),
        ("max", max(x, y)),
        ("gcd", math.gcd(x, y)),
    ):
        assert value(a, a.binary(op, m, n)) == want
    for op in ("//", "%", "tdiv", "tmod"):
        got = a.binary(op, m, n)
        assert (closed(got.exists) is smt.TRUE) == (y != 0)
        if y:
            q = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            assert value(a, got) == {"//": x // y, "%": x % y, "tdiv": q, "tmod": x - q * y}[op]
    for op, truth in (("<", x < y), ("<=", x <= y), ("==", x == y), ("!=", x != y), (">", x > y), (">=", x >= y)):
        assert (closed(a.compare(op, m, n)[1]) is smt.TRUE) == truth


@pytest.mark.parametrize("integers", [True, False])
def test_shifts_and_powers_have_limits(integers: bool) -> None:
    a = MorokWorld("test", integers=integers).numbers
    assert value(a, a.binary("<<", a.const(3), a.const(4))) == 48
    assert value(a, a.binary(">>", a.const(-5), a.const(1))) == -3
    assert closed(a.binary("<<", a.const(3), a.const(-1)).exists) is smt.FALSE
    assert closed(a.binary("<<", a.const(3), a.const(5000)).exists) is smt.FALSE
    assert closed(a.is_power(a.const(64))) is smt.TRUE
    assert closed(a.is_power(a.const(0))) is smt.FALSE
    assert value(a, a.unary("log2", a.const(64))) == 6


def test_unknown_bounds_compare_but_do_not_compute() -> None:
    a = MorokWorld("test", integers=True).numbers
    least, most, five = a.infinity(-1), a.infinity(1), a.const(5)
    assert closed(a.compare("<", least, five)[1]) is smt.TRUE
    assert closed(a.compare("<", five, most)[1]) is smt.TRUE
    assert closed(a.compare("<", least, most)[1]) is smt.TRUE
    assert closed(a.compare("<", least, least)[1]) is smt.FALSE
    assert closed(a.compare("<=", least, least)[1]) is smt.TRUE
    assert closed(a.binary("+", least, five).exists) is smt.FALSE
    assert closed(a.unary("neg", least).exists) is smt.FALSE
