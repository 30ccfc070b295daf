"""Sums of products over windows, and pools: which loops become lanes, and values with strides, dilations, groups, odd sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from morok import Tensor
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from tests.passes import kernels as K
from tests.passes.test_packing import opts_of, packed
from tests.passes.test_values import check


def convolution(outputs: int, inputs: int, width: int, window: int, stride: int, gated: bool = False) -> UOp:
    """out[o, x] = sum over c and k of input[c, x * stride + k] * weight[o, c, k]; `gated`: a 0 before each row."""
    o, x, c, k = K.loop(outputs, 0), K.loop(width, 1), K.fold(inputs, 2), K.fold(window, 3)
    length = (width - 1) * stride + window
    at = x * stride + k
    place = c * length + at
    image = K.buffer(1, inputs * length)
    value = image.index((at >= 1).where(place - 1, UOp.invalid_at())) if gated else image.index(place)
    weight = K.buffer(2, outputs * inputs * window).index((o * inputs + c) * window + k)
    total = (value * weight).reduce(K.Op.Add, c, k)
    return K.kernel(K.buffer(0, outputs * width).index(o * width + x).store(total).end(o, x))


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("width", "stride"), [(28, 2), (28, 3), (20, 1), (30, 1), (48, 2)])
def test_lanes_run_over_output_channels_of_copied_weights(width: int, stride: int) -> None:
    """Windows with a stride do not lie side by side, and rows of 20 or 30 are no whole vectors: 32 channels are."""
    opts = opts_of(convolution(32, 64, width, 3, stride))
    assert opts[-2:] == ["UPCAST(0, 32)", "PACK(2, 0)"]


def test_lanes_run_over_windows_where_these_are_whole_vectors() -> None:
    short = opts_of(convolution(32, 8, 32, 3, 1))  # 24 products each: storing across memory would take as long
    assert not any(o.startswith("PACK") for o in short)
    assert "UPCAST(1, 32)" in short
    # three outputs read what is copied
    assert not any(o.startswith("PACK") for o in opts_of(convolution(32, 64, 3, 3, 1)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("side", "tile"), [(3, ["UPCAST(1, 3)", "UPCAST(1, 3)", "UPCAST(0, 16)"]), (4, ["UPCAST(1, 4)"] * 2)]
)
def test_few_pixels_are_one_tile(side: int, tile: list[str]) -> None:
    image, weight = Tensor(np.zeros((1, 64, side, side), np.float32)), Tensor(np.zeros((64, 64, 3, 3), np.float32))
    (item,) = image.conv2d(weight, padding=1).schedule()
    opts = opts_of(item.ast)
    assert opts[1 : 1 + len(tile)] == tile
    assert opts[-1].startswith("PACK")


def test_pools_with_a_stride_run_side_by_side() -> None:
    """Maxima wait for each other; sums do not, and are not gathered."""
    image = Tensor(np.zeros((1, 8, 48, 48), np.float32))
    wider = Tensor(np.zeros((1, 8, 50, 50), np.float32))
    inside, alone = (str(t.kernels()[0].opts[-1]) for t in (image.max_pool2d(3, 2, padding=1), wider.max_pool2d(3, 2)))
    assert alone.startswith("UPCAST")
    assert inside.startswith("UPCAST")  # behind the filling of a buffer, too
    assert inside.split(",")[1:] == alone.split(",")[1:]
    assert [str(o) for o in image.avg_pool2d(2).kernels()[0].opts] == []


@pytest.mark.sampled(100)
@pytest.mark.parametrize("target", [K.CPU, K.AVX2, K.SCALAR], ids=["avx512", "avx2", "scalar"])
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("outputs", "width", "stride"), [(5, 4, 2), (16, 4, 3), (9, 7, 1), (18, 6, 2)])
def test_every_stage_keeps_the_value(outputs: int, width: int, stride: int, gated: bool, target: K.Target) -> None:
    check(convolution(outputs, 3, width, 3, stride, gated), target)


@pytest.mark.long
def test_given_tiles_keep_the_value() -> None:
    check(
        packed(convolution(8, 3, 6, 3, 2), Opt(OptOp.UPCAST, 1, 3), Opt(OptOp.UPCAST, 0, 8), Opt(OptOp.PACK, 2, 0)),
        K.CPU,
    )


def correlate(x: np.ndarray, w: np.ndarray, stride: int, padding: int, dilation: int, groups: int) -> np.ndarray:
    """[N, C, H, W] by [O, C / groups, h, w] in f64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    n, _, height, width = x.shape
    o, per, h, v = w.shape
    tall, wide = (height - dilation * (h - 1) - 1) // stride + 1, (width - dilation * (v - 1) - 1) // stride + 1
    out = np.zeros((n, o, tall, wide))
    for i, j in itertools.product(range(h), range(v)):
        y = x[:, :, i * dilation :, j * dilation :][
            :, :, : (tall - 1) * stride + 1 : stride, : (wide - 1) * stride + 1 : stride
        ]
        for g in range(groups):
            of, to = slice(g * per, (g + 1) * per), slice(g * o // groups, (g + 1) * o // groups)
            out[:, to] += np.einsum("nchw,oc->nohw", y[:, of], w[to, :, i, j])
    return out


@pytest.mark.sampled(40)
@pytest.mark.parametrize("seed", range(40))
def test_machine_code(seed: int) -> None:
    """Whole numbers, so that every order of the sums has the same value."""
    rng = np.random.default_rng(seed)
    groups = int(rng.choice([1, 1, 1, 2, 4]))
    inputs, outputs = (groups * int(rng.choice([1, 2, 3, 8, 16])) for _ in range(2))
    h, w = (int(k) for k in rng.integers(1, 6, 2))
    stride, dilation, padding = int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(0, 4))
    height, width = int(rng.integers(dilation * h, 40)), int(rng.integers(dilation * w, 40))
    x = rng.integers(-4, 5, (int(rng.integers(1, 3)), inputs, height, width)).astype(np.float32)
    k = rng.integers(-4, 5, (outputs, inputs // groups, h, w)).astype(np.float32)
    found = Tensor(x).conv2d(Tensor(k), stride=stride, padding=padding, dilation=dilation, groups=groups).numpy()
    np.testing.assert_array_equal(found, correlate(x, k, stride, padding, dilation, groups))
    if h >= 2 * padding <= w and dilation == 1:
        pooled = Tensor(x).max_pool2d((h, w), stride, padding).numpy()
        edge = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=-np.inf)
        views = np.lib.stride_tricks.sliding_window_view(edge, (h, w), (2, 3))[:, :, ::stride, ::stride]
        np.testing.assert_array_equal(pooled, views.max((4, 5)))
