"""Pooling: one reduction over each window of an image.

The last two axes are the image's rows and columns. Sizes are one number for both, or a pair.
"""

from __future__ import annotations

from morok.arguments import flag
from morok.caller import caller
from morok.errors import ShapeError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.tensor.arguments import each, known
from morok.tensor.base import AnyTensor, show
from morok.tensor.conv import Sizes
from morok.tensor.movement import pad_zero
from morok.tensor.operands import rounded_to, wide_float
from morok.tensor.reduce import positions_along
from morok.tensor.windows import windows


def max_pool2d(
    self: AnyTensor, kernel_size: Sizes = 2, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1
) -> AnyTensor:
    """The greatest element of each window of [.., H, W], in self's dtype, as [.., H', W']; NaN if there is one.

    The stride is the window's size by default; padded places never win. ShapeError for fewer than two axes, and for a
    padding above half of the window.

    >>> Tensor.arange(16).reshape(1, 4, 4).max_pool2d(2).tolist()
    [[[5, 7], [13, 15]]]
    """
    sizes, strides, pads, dilations = _pooling(self, "max_pool2d", kernel_size, stride, padding, dilation)
    least = identity(Op.Max, self.dtype)
    return _windows_of(self, self.pad(_around(self, pads), least), sizes, strides, dilations).max((-2, -1))


def avg_pool2d(
    self: AnyTensor, kernel_size: Sizes = 2, stride: Sizes | None = None, padding: Sizes = 0, count_include_pad: bool = True
) -> AnyTensor:
    """The mean of each window of [.., H, W], in self's float dtype (integers: f32), as [.., H', W'].

    The stride is the window's size by default. The zeros of the padding count, unless `count_include_pad` is False.
    ShapeError for fewer than two axes, and for a padding above half of the window.

    >>> Tensor.arange(16).reshape(1, 4, 4).avg_pool2d(2).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    sizes, strides, pads, dilations = _pooling(self, "avg_pool2d", kernel_size, stride, padding, 1)
    x = wide_float(self)
    total = _windows_of(self, pad_zero(x, _around(x, pads)), sizes, strides, dilations).sum((-2, -1))
    if flag(count_include_pad, "count_include_pad") or pads == (0, 0):
        return rounded_to(total / float(sizes[0] * sizes[1]), self)
    for axis in (-2, -1):
        first = positions_along(total, total.ndim + axis, dtypes.i64) * strides[axis] - pads[axis]
        inside = (first + sizes[axis]).minimum(known(self, axis, "avg_pool2d")) - first.maximum(0)
        total = total / inside.cast(total.dtype)
    return rounded_to(total, self)


def _pooling(
    x: AnyTensor, what: str, size: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    if x.ndim < 2:
        raise ShapeError(f"{what} of shape {show(x.shape)}", place=caller(), expected="rows and columns: two axes or more")
    sizes = each(size, 2, "kernel_size", 1)
    strides = sizes if stride is None else each(stride, 2, "stride", 1)
    pads, dilations = each(padding, 2, "padding", 0), each(dilation, 2, "dilation", 1)
    for p, k, d in zip(pads, sizes, dilations, strict=True):
        if 2 * p > d * (k - 1) + 1:
            raise ShapeError(f"padding is {p}", place=caller(), expected=f"at most half of the window of {d * (k - 1) + 1}")
    return sizes, strides, pads, dilations


def _windows_of(
    t: AnyTensor, padded: AnyTensor, sizes: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> AnyTensor:
    """[.., H, W] -> [.., H', W', h, w]."""
    rows = padded.ndim - 2
    x = windows(padded, rows, sizes[0], strides[0], dilations[0]).moveaxis(rows + 1, -1)
    return windows(x, rows + 1, sizes[1], strides[1], dilations[1]).moveaxis(rows + 2, -1)


def _around(x: AnyTensor, pads: tuple[int, ...]) -> list[tuple[int, int] | None]:
    return [*[None] * (x.ndim - 2), *[(p, p) for p in pads]]
