"""Promises to the compiler that a sum, a difference or a product does not wrap, told from the bounds of the operands."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable

import pytest

from morok.codegen.overflow_flags import cannot_wrap, exact_range
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp

EXACT: dict[Op, Callable[[int, int], int]] = {Op.Add: operator.add, Op.Sub: operator.sub, Op.Mul: operator.mul}
EDGES = [-128, -127, -12, -11, -1, 0, 1, 2, 11, 12, 126, 127]


def intervals() -> list[tuple[int, int]]:
    return random.Random(0).sample([(a, b) for a, b in itertools.product(EDGES, EDGES) if a <= b], 24)


@pytest.mark.parametrize("op", EXACT, ids=lambda op: op.name)
def test_a_result_that_cannot_wrap_is_in_its_dtype_for_all_operands(op: Op) -> None:
    told = set()
    for (a, b), (c, d) in itertools.product(intervals(), repeat=2):
        x, y = UOp.var("x", dtypes.i8, a, b), UOp.var("y", dtypes.i8, c, d)
        values = [EXACT[op](v, w) for v in (a, b, min(max(0, a), b)) for w in (c, d, min(max(0, c), d))]
        assert exact_range(op, x, y) == (min(values), max(values))
        fits = min(values) >= -128 and max(values) <= 127
        assert cannot_wrap(UOp.new(op, (x, y))) == fits
        told.add(fits)
    assert told == {False, True}
