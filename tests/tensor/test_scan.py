"""Scans against NumPy, of axes that are scanned at once and of axes that are cut into blocks."""

from __future__ import annotations

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


@pytest.mark.parametrize("n", [0, 1, 2, 17, 64, 65, 101, 1024, 1337])
def test_every_length(n: int) -> None:
    x = whole((3, n))
    agree(Tensor(x).cumsum(1), x.cumsum(1))
    agree(Tensor(x).cummax(1), np.maximum.accumulate(x, 1))
    agree(Tensor(x).cummin(1), np.minimum.accumulate(x, 1))
    signs = np.random.default_rng(n).choice([-1, 1, 2], (3, n), p=[0.45, 0.53, 0.02])
    agree(Tensor(signs).cumprod(1), signs.cumprod(1))


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


def test_the_work_grows_with_the_axis_and_not_with_its_square() -> None:
    def work(n: int) -> int:
        total = 0
        for item in Tensor(np.ones(n, np.float32)).cumsum().schedule():
            inside = 1
            for r in (u for u in item.ast.toposort() if u.op is Op.Range):
                inside *= int(r.src[0].vmax)
            total += inside
        return total

    assert work(8192) < 2.2 * work(4096)
    assert len(Tensor(np.ones(64, np.float32)).cumsum().schedule()) == 1


def test_the_standards_names() -> None:
    x = whole((2, 5))
    agree(Tensor(x).cumulative_sum(axis=1, include_initial=True), np.concatenate([np.zeros((2, 1), "f"), x.cumsum(1)], 1))
    agree(Tensor(x[0]).cumulative_prod(include_initial=True), np.concatenate([np.ones(1, "f"), x[0].cumprod()]))
    assert Tensor([True, True]).cumulative_sum().dtype is dtypes.i64
    with pytest.raises(ShapeError, match="one axis"):
        Tensor(x).cumulative_sum()
    with pytest.raises(ShapeError, match="axis 2"):
        Tensor(x).cumsum(2)


def test_merged_loops_stay_around_those_they_were_around() -> None:
    """Rows and blocks become one loop, whose iterations are neighbours in memory only if it is the outer one."""
    item = Tensor(np.zeros((64, 256), np.float32)).cumsum(1).schedule()[-1]
    ends: list[int] = []
    for u in lower(item.ast, device("CPU").target):
        if u.op is Op.Range:
            ends.append(int(u.src[0].vmax))
    assert ends[0] == 64 * 16
