"""Loops whose iterations have nothing to do with one another, as it is seen from what a store writes and reads."""

from __future__ import annotations

import pytest

from morok.ir.dtype import dtypes
from morok.ir.independence import independent
from morok.ir.op import Op
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
