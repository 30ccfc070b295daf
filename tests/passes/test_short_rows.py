"""Folds of rows shorter than a vector: a vector of rows at a time, where there are many."""

from __future__ import annotations

import numpy as np
import pytest

from morok import Tensor
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from tests.passes import kernels as K
from tests.passes.lowering import nodes, programs
from tests.passes.test_packing import opts_of, packed
from tests.passes.test_values import check

MANY = 1 << 13


def test_many_short_rows_are_folded_side_by_side() -> None:
    assert opts_of(K.rows(MANY, 5)) == ["UNROLL(0, 0)", "UPCAST(0, 16)"]
    assert opts_of(K.rows(MANY + 3, 2, Op.Max)) == ["UNROLL(0, 0)", "UPCAST(0, 16)", "UPCAST(1, 3)"]
    assert opts_of(K.rows(MANY, 8)) == ["UNROLL(0, 0)", "UPCAST(0, 16)"]


def test_other_rows_are_not() -> None:
    assert opts_of(K.rows(MANY // 2, 5)) == []  # few
    assert "UPCAST(0, 16)" not in opts_of(K.rows(MANY, 9))  # more than half a vector
    assert "UNROLL(0, 0)" not in opts_of(K.columns(5, MANY))  # columns


@pytest.mark.parametrize("target", [K.CPU, K.AVX2], ids=["avx512", "avx2"])
@pytest.mark.parametrize("op", [Op.Add, Op.Max])
def test_values(op: Op, target: K.Target) -> None:
    side_by_side = (Opt(OptOp.UNROLL, 0), Opt(OptOp.UPCAST, 0, 16), Opt(OptOp.UPCAST, 1, 3))
    check(packed(K.rows(35, 5, op), *side_by_side), target)


@pytest.mark.parametrize("length", [2, 3, 7, 8])
def test_machine_code(length: int) -> None:
    x = np.random.default_rng(length).integers(-9, 10, (MANY + 5, length)).astype(np.float32)
    x[3, 1] = np.nan
    np.testing.assert_array_equal(Tensor(x).max(1).numpy(), x.max(1))
    np.testing.assert_array_equal(Tensor(x).sum(1).numpy(), x.sum(1))


def test_rows_of_more_than_a_vector_and_less_than_two_are_folded_side_by_side() -> None:
    """One vector as long as a row would be taken apart, and each of its elements computed by itself."""
    for length in (17, 24, 31):
        assert opts_of(K.rows(96, length, Op.Max)) == ["UPCAST(0, 16)"]
    assert opts_of(K.rows(100, 16, Op.Max)) == ["UNROLL(0, 16)"]
    assert opts_of(K.rows(100, 33, Op.Max)) == ["UNROLL(0, 16)"]
    assert "UPCAST(0, 16)" not in opts_of(K.rows(100, 19))  # nothing but reads, which would be gathered
    x = np.random.default_rng(0).integers(-9, 10, (101, 31)).astype(np.float32)
    for length in (9, 13, 17, 31):
        np.testing.assert_array_equal((Tensor(x[:, :length]) * 2 + 1).sum(1).numpy(), (x[:, :length] * 2 + 1).sum(1))


@pytest.mark.parametrize("shape", [(64, 64), (37, 256), (512, 1024)])
def test_rows_are_folded_along_memory_though_numbers_of_each_row_lie_side_by_side(shape: tuple[int, int]) -> None:
    """What is read once a row is no reason to read a vector of rows, a number from each."""
    (first, *_) = opts_of(K.scaled_rows(*shape))
    assert first.startswith("UNROLL(0, ")


def test_windows_are_folded_side_by_side_where_something_is_computed() -> None:
    assert "UPCAST(1, 16)" in opts_of(K.pooled(32, 32, chain=True))
    assert "UPCAST(1, 16)" not in opts_of(K.pooled(32, 32, chain=False))  # nothing but reads, which would be gathered


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "ast", [K.scaled_rows(5, 70), K.scaled_rows(1, 16), K.pooled(3, 17, True), K.pooled(1, 33, True)]
)
def test_values_as_optimized(ast: UOp) -> None:
    check(ast, K.CPU)


@pytest.mark.parametrize("op", [Op.Add, Op.Max])
@pytest.mark.parametrize("length", [16, 24, 32, 48, 64])
def test_a_row_that_is_read_whole_is_folded_by_halves(length: int, op: Op) -> None:
    """A vector with another, one half with the other: a number with another in the end alone, or for each lane left over."""
    folds = [n for n in nodes(programs(K.rows(100, length, op))[-1]) if n.op is op and n.dtype.is_float]
    assert len(folds) <= 2 + length // 16 + length.bit_length()
    assert sum(n.dtype.count == 1 for n in folds) <= 2


def test_numbers_that_lie_apart_are_folded_one_by_one() -> None:
    """No vector is made of them for its sake."""
    folds = [
        n
        for n in nodes(programs(packed(K.columns(8, 3), Opt(OptOp.UNROLL, 0)))[-1])
        if n.op is Op.Add and n.dtype.is_float
    ]
    assert {n.dtype.count for n in folds} == {1}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("length", [3, 15, 16, 17, 24, 32, 40, 48, 63, 64])
def test_values_of_rows_that_are_read_whole(length: int) -> None:
    x = np.random.default_rng(length).integers(-9, 10, (70, length)).astype(np.float32)
    x[3, 1], x[4, length - 1] = np.nan, np.inf
    np.testing.assert_array_equal(Tensor(x).max(1).numpy(), x.max(1))
    np.testing.assert_array_equal(Tensor(x).sum(1).numpy(), x.sum(1))
    np.testing.assert_array_equal(Tensor(x > 8).any(1).numpy(), (x > 8).any(1))
    check(K.rows(33, length, Op.Max), K.AVX2)
