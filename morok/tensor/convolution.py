"""Convolutions and pooling: a view of sliding windows, and one reduction.

Images are [N, C, H, W]: batch, channels, rows, columns. Sizes are one number for both H and W, or a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from morok.arguments import flag
from morok.caller import caller
from morok.errors import DTypeError, ShapeError
from morok.ir.dtype import dtypes, promote
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.tensor.argument_checks import each, known, only_tensors, whole
from morok.tensor.axis_reductions import HALVES, positions_along, reduce_axes
from morok.tensor.base import AnyTensor, arithmetic, show
from morok.tensor.elementwise_operands import rounded_to, wide_float
from morok.tensor.view_methods import pad_zero
from morok.tensor.windows import spread, windows

Sizes = int | Sequence[int]


def conv2d(
    self: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> AnyTensor:
    """The cross-correlation of [N, C, H, W] with a weight [O, C / groups, h, w] (and a bias [O]): [N, O, H', W'], one kernel.

    H' = (H + 2 * padding - dilation * (h - 1) - 1) // stride + 1. Dtypes promote; integers are added in their own dtype,
    halves as f32 and rounded once. ShapeError if the shapes do not fit, DTypeError for two bools.

    >>> Tensor.ones(1, 1, 4, 4).conv2d(Tensor.ones(1, 1, 3, 3)).tolist()
    [[[[9.0, 9.0], [9.0, 9.0]]]]
    """
    return _convolved(self, 2, "conv2d", weight, bias, stride, padding, dilation, groups)


def conv1d(
    self: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> AnyTensor:
    """The cross-correlation of [N, C, L] with a weight [O, C / groups, l] (and a bias [O]): [N, O, L'], as conv2d().

    ShapeError if the shapes do not fit, DTypeError for two bools.

    >>> Tensor([[[1.0, 2.0, 3.0]]]).conv1d(Tensor([[[1.0, 10.0]]])).tolist()
    [[[21.0, 32.0]]]
    """
    return _convolved(self, 1, "conv1d", weight, bias, stride, padding, dilation, groups)


def _convolved(
    t: AnyTensor,
    nd: int,
    what: str,
    weight: AnyTensor,
    bias: AnyTensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
) -> AnyTensor:
    groups = _channels(t, nd, what, weight, bias, groups, transposed=False)
    strides, dilations = each(stride, nd, "stride", 1), each(dilation, nd, "dilation", 1)
    pads = each(padding, nd, "padding", 0)
    x = pad_zero(t, [None, None, *[(p, p) for p in pads]])
    return _correlated(x, weight, bias, strides, dilations, groups)


def conv_transpose2d(
    self: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> AnyTensor:
    """The transposed convolution of [N, C, H, W] with a weight [C, O / groups, h, w]: [N, O, H', W'].

    H' = (H - 1) * stride - 2 * padding + dilation * (h - 1) + output_padding + 1. Dtypes as for conv2d(). ShapeError
    if the shapes do not fit, DTypeError for two bools.

    >>> Tensor.ones(1, 1, 1, 1).conv_transpose2d(Tensor.ones(1, 1, 2, 2)).shape
    (1, 1, 2, 2)
    """
    groups = _channels(self, 2, "conv_transpose2d", weight, bias, groups, transposed=True)
    strides, dilations = each(stride, 2, "stride", 1), each(dilation, 2, "dilation", 1)
    pads, more = each(padding, 2, "padding", 0), each(output_padding, 2, "output_padding", 0)
    for s, d, m in zip(strides, dilations, more, strict=True):
        if m >= max(s, d):
            raise ShapeError(
                f"output_padding {m} is too large",
                place=caller(),
                expected=f"less than stride {s} or dilation {d}",
                hint="pad()",
            )
    sizes = [known(weight, a, "conv_transpose2d") for a in (2, 3)]
    inputs, outputs = known(weight, 0, "conv_transpose2d"), known(weight, 1, "conv_transpose2d")
    # a transposed convolution is a correlation of the spread-out, fully padded input with the flipped kernel
    turned = weight.reshape((groups, inputs // groups, outputs, *sizes)).transpose(1, 2)
    turned = turned.reshape((groups * outputs, inputs // groups, *sizes)).flip(2, 3)
    reach = [d * (k - 1) for d, k in zip(dilations, sizes, strict=True)]
    x = self
    for a, s in zip((2, 3), strides, strict=True):
        x = spread(x, a, s)
    x = pad_zero(x, [None, None, *[(r, r + m) for r, m in zip(reach, more, strict=True)]])
    out = _correlated(x, turned, bias, (1, 1), dilations, groups)
    ends = [known(out, a, "conv_transpose2d") - p for a, p in zip((2, 3), pads, strict=True)]
    if any(e <= p for e, p in zip(ends, pads, strict=True)):
        raise ShapeError(
            f"padding {tuple(pads)} leaves nothing of {show(out.shape)}",
            place=caller(),
            expected="less than half of it",
        )
    return out.shrink([None, None, *zip(pads, ends, strict=True)])


def _channels(
    x: AnyTensor, nd: int, what: str, weight: AnyTensor, bias: AnyTensor | None, groups: Any, transposed: bool
) -> int:
    """The number of groups; ShapeError or DTypeError if shapes or dtypes of the operands do not fit."""
    only_tensors([weight] if bias is None else [weight, bias], what)
    count = whole(groups, "groups", 1)
    layout = "[N, C, L]" if nd == 1 else "[N, C, H, W]"
    if x.ndim != nd + 2 or weight.ndim != nd + 2:
        raise ShapeError(
            f"{what} of shapes {show(x.shape)} and {show(weight.shape)}",
            place=caller(),
            expected=f"{layout} and a weight of {nd + 2} axes",
            hint="unsqueeze(0) makes a batch of one",
        )
    if x.dtype.is_bool and weight.dtype.is_bool:
        raise DTypeError(f"{what} of bool and bool", place=caller(), expected="numbers", hint="cast one of them")
    channels = known(x, 1, what)
    first, second = known(weight, 0, what), known(weight, 1, what)
    outputs = second * count if transposed else first
    if channels != (first if transposed else second * count) or first % count:
        raise ShapeError(
            f"{what} of shapes {show(x.shape)} and {show(weight.shape)} in {count} groups",
            place=caller(),
            expected=f"a weight of [{'C, O / groups' if transposed else 'O, C / groups'}, ..], groups dividing both C and O",
        )
    if bias is not None and bias.shape != (outputs,):
        raise ShapeError(f"{what} with a bias of shape {show(bias.shape)}", place=caller(), expected=f"({outputs},)")
    for a in range(2, nd + 2):
        whole(known(weight, a, what), "the window of the weight", 1)
    return count


def _correlated(
    t: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
) -> AnyTensor:
    nd = t.ndim - 2
    d = arithmetic(promote(t.dtype, weight.dtype))
    work = dtypes.f32 if d in HALVES else d
    batch, channels = t.shape[0], known(t, 1, "a convolution")
    outputs, per = known(weight, 0, "a convolution"), channels // groups
    x, sizes = t, weight.shape[2:]
    for a in range(nd):
        # [N, C, places.., rest.., window..]: each window's axis moves to the end
        x = windows(x, 2 + a, known(weight, 2 + a, "a convolution"), strides[a], dilations[a]).moveaxis(3 + a, -1)
    out = x.shape[2 : 2 + nd]
    x = x.reshape((batch, groups, 1, per, *out, *sizes)).cast(work)
    w = weight.reshape((1, groups, outputs // groups, per, *(1,) * nd, *sizes)).cast(work)
    summed = reduce_axes(x * w, Op.Add, (3, *range(4 + nd, 4 + 2 * nd)), keepdim=False)
    summed = summed.reshape((batch, outputs, *out))
    if bias is not None:
        summed = summed + bias.reshape((1, outputs, *(1,) * nd))
    return summed.cast(d if bias is None else promote(d, bias.dtype))


def max_pool2d(
    self: AnyTensor, kernel_size: Sizes = 2, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1
) -> AnyTensor:
    """The greatest element of each window of [.., H, W], in self's dtype, as [.., H', W']; NaN for a window with one.

    The stride is the window's size by default; padding never is the greatest. ShapeError for fewer than two axes, and for a
    padding above half of the window.

    >>> Tensor.arange(16).reshape(1, 4, 4).max_pool2d(2).tolist()
    [[[5, 7], [13, 15]]]
    """
    sizes, strides, pads, dilations = _pooling(self, "max_pool2d", kernel_size, stride, padding, dilation)
    least = identity(Op.Max, self.dtype)
    return _windows_of(self.pad(_around(self, pads), least), sizes, strides, dilations).max((-2, -1))


def avg_pool2d(
    self: AnyTensor,
    kernel_size: Sizes = 2,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    count_include_pad: bool = True,
) -> AnyTensor:
    """The mean of each window of [.., H, W], in self's float dtype (integers: f32), as [.., H', W'].

    The stride is the window's size by default. The mean includes the zeros of the padding unless `count_include_pad` is False.
    ShapeError for fewer than two axes, and for a padding above half of the window.

    >>> Tensor.arange(16).reshape(1, 4, 4).avg_pool2d(2).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    sizes, strides, pads, dilations = _pooling(self, "avg_pool2d", kernel_size, stride, padding, 1)
    x = wide_float(self)
    total = _windows_of(pad_zero(x, _around(x, pads)), sizes, strides, dilations).sum((-2, -1))
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
        raise ShapeError(
            f"{what} of shape {show(x.shape)}", place=caller(), expected="rows and columns: two axes or more"
        )
    sizes = each(size, 2, "kernel_size", 1)
    strides = sizes if stride is None else each(stride, 2, "stride", 1)
    pads, dilations = each(padding, 2, "padding", 0), each(dilation, 2, "dilation", 1)
    for p, k, d in zip(pads, sizes, dilations, strict=True):
        if 2 * p > d * (k - 1) + 1:
            raise ShapeError(
                f"padding {p} is too large", place=caller(), expected=f"at most half of the window of {d * (k - 1) + 1}"
            )
    return sizes, strides, pads, dilations


def _windows_of(
    padded: AnyTensor, sizes: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> AnyTensor:
    """The windows of `padded`, [.., H, W] -> [.., H', W', h, w]."""
    rows = padded.ndim - 2
    x = windows(padded, rows, sizes[0], strides[0], dilations[0]).moveaxis(rows + 1, -1)
    return windows(x, rows + 1, sizes[1], strides[1], dilations[1]).moveaxis(rows + 2, -1)


def _around(x: AnyTensor, pads: tuple[int, ...]) -> list[tuple[int, int] | None]:
    return [*[None] * (x.ndim - 2), *[(p, p) for p in pads]]
