"""Convolutions and pooling in NumPy, as plain as can be: what the tensors' results are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def image_windows(x: Array, size: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int]) -> Array:
    """[.., H, W] -> [.., H', W', h, w]."""
    reach = [d * (k - 1) + 1 for k, d in zip(size, dilation, strict=True)]
    wide = np.lib.stride_tricks.sliding_window_view(x, reach, (-2, -1))
    return wide[..., :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def padded(x: Array, padding: tuple[int, int], value: float = 0) -> Array:
    edges = [*[(0, 0)] * (x.ndim - 2), (padding[0], padding[0]), (padding[1], padding[1])]
    return np.pad(x, edges, constant_values=value)


def conv2d(
    x: Array, w: Array, stride: tuple[int, int], padding: tuple[int, int], dilation: tuple[int, int], groups: int
) -> Array:
    seen = image_windows(padded(x, padding), w.shape[2:], stride, dilation)
    per_in, per_out = x.shape[1] // groups, w.shape[0] // groups
    parts = [
        np.einsum("ncpqhw,ochw->nopq", seen[:, g * per_in : (g + 1) * per_in], w[g * per_out : (g + 1) * per_out])
        for g in range(groups)
    ]
    return np.concatenate(parts, 1)


def conv_transpose2d(
    x: Array,
    w: Array,
    stride: tuple[int, int],
    padding: tuple[int, int],
    more: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
) -> Array:
    """Every input adds its multiple of the weight to the output, one weight position after the other."""
    n, channels, rows, columns = x.shape
    _, per_out, h, w_ = w.shape
    per_in = channels // groups
    reach = [d * (k - 1) + 1 for k, d in zip((h, w_), dilation, strict=True)]
    full = [(k - 1) * s + r + m for k, s, r, m in zip((rows, columns), stride, reach, more, strict=True)]
    out = np.zeros((n, per_out * groups, *full), x.dtype)
    for g in range(groups):
        part = x[:, g * per_in : (g + 1) * per_in]
        for i in range(h):
            for j in range(w_):
                y0, x0 = i * dilation[0], j * dilation[1]
                place = out[:, g * per_out : (g + 1) * per_out, y0 : y0 + (rows - 1) * stride[0] + 1 : stride[0]]
                place = place[..., x0 : x0 + (columns - 1) * stride[1] + 1 : stride[1]]
                place += np.einsum("nchw,co->nohw", part, w[g * per_in : (g + 1) * per_in, :, i, j])
    return out[:, :, padding[0] : full[0] - padding[0], padding[1] : full[1] - padding[1]]
