"""Dependence of statements on the loops around them, as it is seen from their operands."""

from __future__ import annotations

import pytest

from morok.ir.dtype import dtypes
from morok.ir.independence import done_within, independent
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp

R, Q = UOp.range(8, 0), UOp.range(4, 1)
X = UOp.var("x", dtypes.index, 0, 99)
OUT, IN, AT = (UOp.new(Op.DefineGlobal, (), k, dtypes.index.ptr(512)) for k in range(3))


@pytest.mark.parametrize(
    ("store", "of_r"),
    [
        (OUT.index(R).store(IN.index(R)), True),
        (OUT.index(R * 4 + Q).store(R), True),
        (OUT.index(R * 5 + Q + 7).store(R), True),
        (OUT.index(Q * 8 + R).store(R), True),
        (OUT.index(R + X * 8).store(R), True),
        (OUT.index((R < 3).where(R * 4 + Q, UOp.invalid_at())).store(R), True),
        (OUT.index(R, gate=R < 3).store(R), True),
        (OUT.index(R).store(OUT.index(R) + 1), True),  # what it finds at its own place
        (OUT.index(R).store(IN.index(R * 4 + Q).reduce(Op.Add, Q)), True),
        (OUT.index(0).store(R), False),  # the last iteration stays
        (OUT.index(Q).store(R), False),
        (OUT.index(R * 3 + Q).store(R), False),  # 3 * 1 + 0 = 3 * 0 + 3
        (OUT.index(Q * 7 + R).store(R), False),
        (OUT.index(R * 4 + Q + X).store(R), False),
        (OUT.index(R * R).store(R), False),
        (OUT.index(AT.index(R)).store(R), False),
        (OUT.index(R).store(OUT.index(UOp.const(7) - R)), False),  # what another iteration stores
        (OUT.index(R).store(OUT.index(0)), False),
        (OUT.after(R).index(R).store(IN.index(R)), False),
        (OUT.index(R).store(IN.after(OUT.index(0).store(R)).index(R)), False),
        (OUT.index(R).store(R).end(Q), False),
    ],
)
def test_a_store_is_independent_where_each_iteration_has_places_of_its_own(store: UOp, of_r: bool) -> None:
    assert independent(store, R) is of_r


def test_it_is_asked_of_ranges() -> None:
    assert not independent(OUT.index(X).store(X), X)


A = UOp.range(4, 2, AxisType.Upcast)
IN_PLACE = OUT.index(R).store(OUT.index(R).load() + 1)
BEHIND = AT.index(0).store(IN.after(IN_PLACE).index(Q).load())


@pytest.mark.parametrize(
    ("body", "within"),
    [
        (OUT.index(R * 4 + Q).store(R), True),
        (OUT.index(Q).store(Q), True),
        (OUT.index(0).store(X), True),
        (UOp.sink(OUT.index(R + Q).store(R), AT.index(Q).store(Q)), True),
        (IN_PLACE, False),
        (UOp.sink(IN_PLACE, AT.index(R + Q).store(Q)), False),
        (BEHIND, False),  # what only storage waits for
        (OUT.index(R).store(IN.index(Q).load().reduce(Op.Add, Q)), False),  # a Q of its own
        (UOp.sink(IN_PLACE.end(R), AT.index(Q).store(Q)), False),  # an R of its own, which is not looked at
        (OUT.index(R).store(IN.index(A)), False),
        (OUT.index(R).store(R).end(Q), False),
    ],
)
def test_what_is_done_in_one_loop_is_done_within_another(body: UOp, within: bool) -> None:
    assert done_within(body, R, Q) is within


def test_an_axis_is_a_loop_of_statements_that_take_lanes() -> None:
    assert not done_within(OUT.index(A).store(IN.index(R)), A, Q)
    assert done_within(OUT.index(A).store(IN.index(R)), A, R)
    assert not done_within(OUT.index(R).store(IN.index(0)), R, A)
    assert not done_within(OUT.index(X).store(X), X, R)
