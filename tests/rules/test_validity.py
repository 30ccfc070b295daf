"""Gates are simplified by the bounds that they imply: addresses under a condition, and the clauses of a condition."""

from __future__ import annotations

import pytest
from expressions import environments, value
from hypothesis import given, settings
from hypothesis import strategies as st
from rulesets import rw
from test_helpers import keeps_contract

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes import validity
from morok.rewrite.tiers import SYM

X, Y = UOp.var("x", dtypes.index, 0, 31), UOp.var("y", dtypes.index, 0, 31)
Z = UOp.var("z", dtypes.index, -4, 4)
R = UOp.range(31, 0)
BUFFER = UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(4096))


def gated(c: UOp, x: UOp) -> UOp:
    return c.where(x, UOp.invalid_at())


# (condition, address), and what becomes of them
GATES = [
    ((X < 8, X // 8 * 100 + X % 8), (X < 8, X)),
    (((X < 16) & (Y < 4), (X * 4 + Y) % 64 // 4), ((X < 16) & (Y < 4), X)),
    ((X * 4 + Y < 8, (X * 4 + Y) // 8 + Y), (X * 4 + Y < 8, Y)),
    (((X >= 3) & (X < 5), X.max(3).min(6)), ((X >= 3) & (X < 5), X)),
    ((X + Y < 1, X * 32 + Y), (X + Y < 1, UOp.const(0, dtypes.index))),
    (((X < 8) & (X < 10), X), (X < 8, X)),
    (((X < 5) & (Y < 3) & (X + Y < 40), X), ((X < 5) & (Y < 3), X)),
    ((X.eq(3) & (Y < X + 29), (X + Y) % 3), (X.eq(3), Y % 3)),
    ((R < 7, R % 7 + R // 7), (R < 7, R)),
    (((X < 8) & (X > 20), X), None),
    ((X < 8, Y // 8), (X < 8, Y // 8)),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("before", "after"), GATES, ids=map(str, range(len(GATES))))
def test_gates(before: tuple[UOp, UOp], after: tuple[UOp, UOp] | None) -> None:
    out = rw(gated(*before), *SYM)
    assert out is (UOp.invalid_at() if after is None else rw(gated(*after), *SYM))
    assert rw(out, *SYM) is out
    if after is not None:
        c, x = out.src[:2]
        for env in environments((gated(*before),), 1500):
            assert bool(value(c, env)) == bool(value(before[0], env))
            if value(c, env):
                assert value(x, env) == value(before[1], env)


COMPARISON = st.builds(
    lambda a, b, k, turn: k < a if turn else a + b < k,
    st.sampled_from([X, Z, X + Z, X * 3 + Z, Z * -2 + X]),
    st.sampled_from([Z, Y % 4, X]),
    st.integers(-6, 30),
    st.booleans(),
)
ADDRESS = st.builds(
    lambda a, d, k, b: (a + k) // d * 5 + (a + k) % d + b.max(2),
    st.sampled_from([X, X + Z, X * 3 + Z, X + 4]),
    st.integers(2, 9),
    st.integers(-3, 9),
    st.sampled_from([X, Z, X + Z]),
)


@pytest.mark.long
@settings(max_examples=60)
@given(st.lists(COMPARISON, min_size=1, max_size=3), ADDRESS)
def test_contracts(conditions: list[UOp], x: UOp) -> None:
    c = conditions[0]
    for other in conditions[1:]:
        c = c & other
    keeps_contract("given", c, x)
    keeps_contract("reduced", c)


def test_what_may_be_undefined_is_left_alone() -> None:
    assert validity.given((Z > 0) & (Z < 3), (X + 40) // Z.max(1)) is None, "Z may be 0 where the gate is shut"
    assert validity.reduced((X // Z < 3) & (X < 10) & (X < 20)) is None
    narrow, by = UOp.var("i", dtypes.index, 0, 999).cast(dtypes.u8), UOp.var("n", dtypes.u8)
    for partial in (narrow, UOp.const(9, dtypes.u8) >> by, UOp.var("f", dtypes.f32).cast(dtypes.u8)):
        assert validity.reduced((X + partial.cast(dtypes.index) < 3) & (X < 5)) is None, (
            "X < 5 decides where it has no value"
        )
    assert validity.reduced((X + by.cast(dtypes.index) < 3) & (X < 5)) is not None
    read = BUFFER.index(X // 8).load().cast(dtypes.index)
    assert validity.given(X < 8, read) is None, "an address read from memory keeps its own index"


def test_a_gate_on_a_load() -> None:
    c = (R < 8) & (R < 12)
    assert rw(c.where(BUFFER.index(R // 16 + R), UOp.const(0.0, dtypes.f32)), *SYM) is BUFFER.index(gated(R < 8, R))


def test_a_gate_leaves_loops_as_long_as_they_are() -> None:
    """A loop over min(m, 3) would be one over m where the gate is open, but it is one loop inside and outside of the gate."""
    m = UOp.var("m", dtypes.index, 1, 5)
    loop = UOp.range(UOp.new(Op.Min, (m, UOp.const(3))), 1)
    assert validity.given(m < 4, m // 4 * 6 + loop) is loop
    assert validity.given(m < 4, m + loop) is None
