"""A value in the place of a loop's variable: only where that loop is open, and never captured by a loop inside."""

from __future__ import annotations

import pytest

from morok.ir.dtype import AddrSpace
from morok.ir.interpret import evaluate
from morok.ir.op import AxisType, Op, Undefined
from morok.ir.ranges import free_of, replace_range
from morok.ir.uop import UOp, dtypes
from morok.rewrite.library import groups

R = UOp.range(4, 0, AxisType.Reduce)
K = UOp.range(3, 1, AxisType.Reduce)
X = UOp.var("x", dtypes.index, 0, 9)


def test_open_occurrences_are_replaced() -> None:
    assert replace_range(R * 3 + K, R, X) is X * 3 + K
    assert replace_range((R * 3 + K).reduce(Op.Add, K), R, X) is (X * 3 + K).reduce(Op.Add, K)


def test_what_comes_after_the_range_comes_after_the_ranges_of_the_value() -> None:
    after = X.after(R)
    assert replace_range(after, R, K) is X.after(K)
    assert replace_range(after, R, K + 2) is X.after(K)
    assert replace_range(X.after(K, R), R, K * 4 + 1) is X.after(K)
    outer = UOp.range(2, 5, AxisType.Reduce)
    assert replace_range(after, R, outer * 2 + K) is X.after(K, outer)
    assert replace_range(X.after(R + 1), R, K * 2) is X.after(K * 2 + 1)
    assert replace_range(after, R, UOp.const(3)) is X.after(UOp.const(3))


def test_a_loop_that_closes_the_range_keeps_it() -> None:
    closed = (R + 1).reduce(Op.Add, R)
    assert replace_range(closed, R, X) is closed
    assert replace_range(closed + R, R, X) is closed + X


def test_the_end_of_an_inner_loop_may_depend_on_the_range() -> None:
    inner = UOp.range(R + 1, 2, AxisType.Reduce)
    out = replace_range((inner * R).reduce(Op.Add, inner), R, UOp.const(2))
    assert evaluate(out) == 2 * (0 + 1 + 2)


def test_what_a_loop_inside_would_capture_is_refused() -> None:
    with pytest.raises(Undefined, match="closes a range"):
        replace_range((R * 3 + K).reduce(Op.Add, K), R, K)
    free = (K + 1).reduce(Op.Add, K)
    assert replace_range(R + free, R, K) is K + free, "nothing is put inside that loop"


def test_a_rule_does_not_apply_where_its_value_would_be_captured() -> None:
    """The gathered body sums over K, and the index that names the iteration depends on an outer loop with the same Range."""
    body = (R * 10 + K).reduce(Op.Add, K)

    def gather(q: UOp) -> UOp:
        return R.eq(q).where(body, UOp.const(0)).reduce(Op.Add, R)

    rules = groups("load_collapse")
    hit = rules.rewrite_node(gather(X))
    assert hit is not None
    for i in range(10):
        assert evaluate(hit[0], {X: i}) == evaluate(gather(X), {X: i})
    assert rules.rewrite_node(gather(K)) is None


@pytest.mark.long
def test_deep_graphs() -> None:
    deep = R * 1
    for i in range(30_000):
        deep = deep + (R if i % 2 else X)
    out = replace_range(deep, R, X)
    assert R not in out.ranges


def test_a_node_is_free_of_all_loops_that_an_expression_is_open_in() -> None:
    """An op that closes loops may name an expression of their ranges, or lanes of unrolled ones."""
    places = R * 3 + K
    assert free_of(X, places)
    assert free_of(UOp.range(5, 2) + 1, places)
    assert not free_of(R + 1, places)
    assert not free_of(K, places)
    assert not free_of(places, R)
    lanes = UOp.new(Op.Unroll, (UOp.const((0, 1, 2)),), ((7, 3),))
    assert free_of(R, lanes)
    assert not free_of(lanes + X, lanes)
    inside = UOp.range(R, 3, AxisType.Reduce)
    assert not free_of(R + 1, inside * 2)


def test_what_speaks_of_storage_is_not_free_of_it() -> None:
    register = UOp.new(Op.DefineReg, (), 0, dtypes.i32.ptr(1, AddrSpace.REG))
    assert free_of(X, register)
    assert not free_of(register.index(UOp.const(0)).load(), register)
