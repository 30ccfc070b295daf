"""Scans against NumPy, of axes that are scanned at once and of axes that are cut into blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from morok import Tensor, dtypes
from morok.errors import ShapeError
from morok.ir.op import Op
from morok.passes.pipeline import lower
from morok.runtime.device import device


def whole(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.random.default_rng(shape[-1]).integers(-9, 10, shape).astype(dtype)


def agree(ours: Tensor, theirs: np.ndarray[Any, Any]) -> None:
    assert ours.numpy().dtype == theirs.dtype
    np.testing.assert_array_equal(ours.numpy(), theirs)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 16, 17, 64, 65, 101, 1024, 1337])
def test_every_length(n: int) -> None:
    x = whole((3, n))
    agree(Tensor(x).cumsum(1), x.cumsum(1))
    agree(Tensor(x).cummax(1), np.maximum.accumulate(x, 1))
    agree(Tensor(x).cummin(1), np.minimum.accumulate(x, 1))
    signs = np.random.default_rng(n).choice([-1, 1, 2], (3, n), p=[0.45, 0.53, 0.02])
    agree(Tensor(signs).cumprod(1), signs.cumprod(1))


@pytest.mark.sampled(9)
@pytest.mark.parametrize("d", ["bool", "int8", "uint8", "int32", "uint64", "float16", "float64"])
def test_dtypes(d: str) -> None:
    x = abs(whole((70,), d)) if d != "bool" else whole((70,)) > 5
    wide = x.astype(np.float32) if d == "float16" else x
    agree(Tensor(x).cumsum(), wide.cumsum().astype(d) if d == "float16" else wide.cumsum())
    agree(Tensor(x).cummax(), np.maximum.accumulate(x))
    agree(Tensor(x).cumsum(dtype="f32"), x.cumsum(dtype=np.float32))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_every_axis(axis: int) -> None:
    x = whole((5, 67, 3))
    agree(Tensor(x).cumsum(axis), x.cumsum(axis))


def test_values_that_are_no_numbers() -> None:
    x = np.zeros(150, np.float32)
    x[100], x[120] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        agree(Tensor(x).cumsum(), x.cumsum())
    x[30] = np.nan
    agree(Tensor(x).cummax(), np.maximum.accumulate(x))
    agree(Tensor([-0.0, -0.0]).cumsum(), np.array([-0.0, -0.0], np.float32))
    assert np.signbit(Tensor([-0.0, -0.0]).cumsum().numpy()).all()


def loops(t: Tensor) -> list[list[int]]:
    """For each kernel on a CPU the lengths of its loops, as instructions have them."""
    programs = [lower(item.ast, replace(device("CPU").target, threads=1)) for item in t.schedule()]
    return [[int(u.src[0].vmax) for u in program if u.op is Op.Range] for program in programs]


def test_the_work_grows_with_the_axis_and_not_with_its_square() -> None:
    def work(n: int) -> list[list[int]]:
        return loops(Tensor(np.ones(n, np.float32)).cumsum())

    ((least,),) = work(4096)
    assert least <= 4096
    assert work(8192) == [[2 * least]]
    assert work(4097) == [[4097]]
    assert len(work(64)) == 1
    in_blocks = [item.ast for item in Tensor.arange(4096.0, device="CUDA").sin().cumsum().schedule()]
    assert all(
        math.prod(int(r.src[0].vmax) for r in ast.toposort() if r.op is Op.Range) <= 4096 * 16 for ast in in_blocks
    )


def test_a_scan_is_one_pass_whatever_is_scanned_and_made_of_it() -> None:
    x = whole((6, 128))
    for ours, theirs in (
        ((Tensor(x) * 2 + 1).cumsum(1), (x * 2 + 1).cumsum(1)),
        (Tensor(x).cumsum(0), x.cumsum(0)),
        (Tensor(x).T.cumsum(1), x.T.cumsum(1)),
        (Tensor(x).flip(1).cumsum(1), x[:, ::-1].cumsum(1)),
        (Tensor(x[0]).cumsum(), x[0].cumsum()),
    ):
        assert len(ours.schedule()) == 1
        agree(ours, theirs)
    for ours, theirs in (
        (Tensor(x).reshape((2, 3, 128)).sum(1).cumsum(1), x.reshape(2, 3, 128).sum(1).cumsum(1)),
        (Tensor(x).cumsum(1).cumsum(0), x.cumsum(1).cumsum(0)),
        (Tensor(x).cumsum(1).flip(1) + 1, x.cumsum(1)[:, ::-1] + 1),
        (Tensor(x).cumsum(1).sum(1), x.cumsum(1).sum(1)),
        (Tensor(x).cumsum(1)[:, 5:70:3], x.cumsum(1)[:, 5:70:3]),
    ):
        assert len(ours.schedule()) == 2
        agree(ours, theirs)


def test_masks_written_by_hand_are_scans() -> None:
    """A sum over the positions up to each output's own continues, whoever says it."""
    n = 96
    x = whole((n,))
    at = Tensor(np.arange(n, dtype=np.int32))
    for mask, theirs in (
        (Tensor.arange(n).reshape((1, n)) <= Tensor.arange(n).reshape((n, 1)), x.cumsum()),
        (Tensor.arange(n).reshape((n, 1)) > Tensor.arange(n).reshape((1, n)), x.cumsum() - x),
    ):
        ours = mask.where(Tensor(x).reshape((1, n)).expand((n, n)), -0.0).sum(1)
        assert loops(ours) == [[n // (device("CPU").target.vector_bytes // 4)]]
        agree(ours, theirs)
    read = at.reshape((1, n)) <= at.reshape((n, 1))  # positions that only a buffer knows
    agree(read.where(Tensor(x).reshape((1, n)).expand((n, n)), -0.0).sum(1), x.cumsum())
    below = Tensor.arange(n).reshape((1, n)) <= Tensor.arange(n).reshape((n, 1))
    weights = whole((n, n))  # what is summed differs from output to output
    agree(below.where(Tensor(weights), -0.0).sum(1), np.tril(weights).sum(1))


def test_the_standards_names() -> None:
    x = whole((2, 5))
    agree(
        Tensor(x).cumulative_sum(axis=1, include_initial=True), np.concatenate([np.zeros((2, 1), "f"), x.cumsum(1)], 1)
    )
    agree(Tensor(x[0]).cumulative_prod(include_initial=True), np.concatenate([np.ones(1, "f"), x[0].cumprod()]))
    assert Tensor([True, True]).cumulative_sum().dtype is dtypes.i64
    with pytest.raises(ShapeError, match="one axis"):
        Tensor(x).cumulative_sum()
    with pytest.raises(ShapeError, match="axis 2"):
        Tensor(x).cumsum(2)


def test_merged_loops_stay_around_those_they_were_around() -> None:
    """Rows and blocks become one loop, whose iterations are neighbours in memory only if it is the outer one."""
    blocks, before = Tensor(np.zeros((64, 16, 16), np.float32)), Tensor(np.zeros((64, 16, 1), np.float32))
    (ends,) = loops(blocks.cumsum(2) + before)
    assert ends[0] == 64 * 16


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("rows", "columns", "kept"), [(2, 26, 24), (3, 19, 16), (2, 26, 3), (5, 37, 32)])
def test_of_columns_that_hold_one_number_in_part(rows: int, columns: int, kept: int) -> None:
    """Where they do, what is folded is the same in every row: each begins anew all the same."""
    x, y = whole((4, rows, columns), "int32"), np.array([5], np.int32)
    inside = np.arange(columns) < kept
    for ours, theirs in (
        ((Tensor.arange(columns) < kept).where(Tensor(x), Tensor(y)), np.where(inside, x, y)),
        ((Tensor.arange(columns) < kept).where(Tensor(x) * 2, 3), np.where(inside, x * 2, 3)),
    ):
        agree(ours.cumsum(0), theirs.cumsum(0))
        agree(ours.cummax(0), np.maximum.accumulate(theirs, 0))
        agree((ours - 1).cumprod(0), np.cumprod(theirs - 1, 0))
