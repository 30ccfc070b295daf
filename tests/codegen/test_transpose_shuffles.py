"""Columns of tiles in registers: the steps give every column, in shuffles that columns share, and nothing is moved by itself."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_lists import Listing

from morok import Tensor
from morok.codegen.llvm import render
from morok.codegen.llvm.transpose_shuffles import column, join
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp


@pytest.mark.parametrize(
    ("rows", "lanes", "itemsize"),
    [
        (16, 16, 4),
        (8, 8, 4),
        (4, 4, 4),
        (8, 16, 4),
        (4, 16, 4),
        (8, 8, 8),
        (4, 8, 8),
        (4, 4, 8),
        (16, 16, 1),
        (16, 32, 2),
    ],
)
def test_steps_give_every_column_and_share_shuffles(rows: int, lanes: int, itemsize: int) -> None:
    tile = {f"r{i}": [(i, k) for k in range(lanes)] for i in range(rows)}

    def shuffle(a: str, b: str, mask: list[int]) -> str:
        assert len(mask) == lanes
        name = f"({a} {b} {mask})"
        tile[name] = [(tile[a] + tile[b])[i] for i in mask]
        return name

    for lane in range(lanes):
        name, places = join([f"r{i}" for i in range(rows)], lane, lanes, itemsize, shuffle)
        assert [tile[name][p] for p in places] == [(i, lane) for i in range(rows)]
    assert len(tile) - rows == rows * (rows.bit_length() - 1)


def turned(d: DType, n: int) -> list[UOp]:
    """out[k, i] = x[i, k] of n x n elements, a vector a row."""
    b = Listing()
    out, x = b.buffer(0, d, n * n), b.buffer(1, d, n * n)
    rows = [b.load(x, i * n, d.vec(n)) for i in range(n)]
    for k in range(n):
        b.store(out, k * n, b.add(UOp.vectorize(*[b.add(r.gep(k)) for r in rows])))
    return b.list


def test_no_element_is_moved_by_itself() -> None:
    text = render(turned(dtypes.f32, 8), "turn").text
    assert "extractelement" not in text
    assert text.count("shufflevector") == 8 * 3


@pytest.mark.parametrize(("dtype", "fences"), [(dtypes.f32, 24), (dtypes.f64, 24), (dtypes.i32, 0)])
def test_llvm_is_kept_from_merging_the_steps_on_floats(dtype: DType, fences: int) -> None:
    text = render(turned(dtype, 8), "turn").text
    assert text.count(" = call ") == text.count("@llvm.arithmetic.fence.v8f") - bool(fences) == fences


def test_what_is_no_column() -> None:
    b = Listing()
    x = b.buffer(0, dtypes.f32, 64)
    r = [b.load(x, 4 * i, dtypes.f32.vec(4)) for i in range(8)]
    lanes = [v.gep(1) for v in r]
    assert column(UOp.vectorize(*lanes[:4])) == (r[:4], 1)
    for other in (lanes, lanes[:3], lanes[:2], [*lanes[:3], lanes[0]], [*lanes[:3], r[3].gep(2)]):
        assert column(UOp.vectorize(*other)) is None
    scalar = b.load(x, 0, dtypes.f32)
    assert column(UOp.vectorize(scalar, *lanes[:3])) is None
    assert column(UOp.vectorize(*lanes[:3], scalar)) is None


def test_a_lane_used_elsewhere_is_still_there() -> None:
    b = Listing()
    out, x = b.buffer(0, dtypes.f32, 8), b.buffer(1, dtypes.f32, 16)
    lanes = [b.add(b.load(x, 4 * i, dtypes.f32.vec(4)).gep(2)) for i in range(4)]
    b.store(out, 0, b.add(UOp.vectorize(*lanes)))
    b.store(out, 4, lanes[3])
    assert render(b.list, "k").text.count("extractelement") == 1
    assert sum(u.op is Op.Gep for u in b.list) == 4


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int64, np.bool_])
def test_transposes_of_every_width(dtype: type) -> None:
    rng = np.random.default_rng(0)
    for shape in ((16, 16), (64, 32), (48, 40), (33, 70), (4, 128)):
        a = rng.integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)
        np.testing.assert_array_equal(Tensor(a).T.contiguous().numpy(), a.T)
