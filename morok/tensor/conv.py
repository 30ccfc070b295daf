"""Convolutions: windows, their products with a weight, and one reduction.

Images are [N, C, H, W]: a batch, channels, rows, columns. Sizes are one number for both of H and W, or a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from morok.caller import caller
from morok.errors import DTypeError, ShapeError
from morok.ir.dtype import dtypes, promote
from morok.ir.op import Op
from morok.tensor.arguments import each, known, only_tensors, whole
from morok.tensor.base import AnyTensor, arithmetic, show
from morok.tensor.movement import pad_zero
from morok.tensor.reduce import HALVES, reduce_axes
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
    halves as f32 and rounded once. ShapeError where the shapes do not fit, DTypeError for two bools.

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

    ShapeError where the shapes do not fit, DTypeError for two bools.

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
    """The transpose of conv2d() as a linear map: [N, C, H, W] with a weight [C, O / groups, h, w] is [N, O, H', W'].

    H' = (H - 1) * stride - 2 * padding + dilation * (h - 1) + output_padding + 1. Dtypes as for conv2d(). ShapeError
    where the shapes do not fit, DTypeError for two bools.

    >>> Tensor.ones(1, 1, 1, 1).conv_transpose2d(Tensor.ones(1, 1, 2, 2)).shape
    (1, 1, 2, 2)
    """
    groups = _channels(self, 2, "conv_transpose2d", weight, bias, groups, transposed=True)
    strides, dilations = each(stride, 2, "stride", 1), each(dilation, 2, "dilation", 1)
    pads, more = each(padding, 2, "padding", 0), each(output_padding, 2, "output_padding", 0)
    for s, d, m in zip(strides, dilations, more, strict=True):
        if m >= max(s, d):
            raise ShapeError(
                f"output_padding is {m}", place=caller(), expected=f"less than stride {s} or dilation {d}", hint="pad()"
            )
    sizes = [known(weight, a, "conv_transpose2d") for a in (2, 3)]
    inputs, outputs = known(weight, 0, "conv_transpose2d"), known(weight, 1, "conv_transpose2d")
    # every input meets every window position that touches it: a full correlation with the kernel turned round
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
            f"padding {tuple(pads)} leaves nothing of {show(out.shape)}", place=caller(), expected="less than half of it"
        )
    return out.shrink([None, None, *zip(pads, ends, strict=True)])


def _channels(x: AnyTensor, nd: int, what: str, weight: AnyTensor, bias: AnyTensor | None, groups: Any, transposed: bool) -> int:
    """The number of groups, once shapes and dtypes are known to fit."""
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
    t: AnyTensor, weight: AnyTensor, bias: AnyTensor | None, strides: Sequence[int], dilations: Sequence[int], groups: int
) -> AnyTensor:
    nd = t.ndim - 2
    d = arithmetic(promote(t.dtype, weight.dtype))
    work = dtypes.f32 if d in HALVES else d
    batch, channels = t.shape[0], known(t, 1, "a convolution")
    outputs, per = known(weight, 0, "a convolution"), channels // groups
    x, sizes = t, weight.shape[2:]
    for a in range(nd):
        # [N, C, places.., window.., rest..]: the windows stand behind all axes
        x = windows(x, 2 + a, known(weight, 2 + a, "a convolution"), strides[a], dilations[a]).moveaxis(3 + a, -1)
    out = x.shape[2 : 2 + nd]
    x = x.reshape((batch, groups, 1, per, *out, *sizes)).cast(work)
    w = weight.reshape((1, groups, outputs // groups, per, *(1,) * nd, *sizes)).cast(work)
    summed = reduce_axes(x * w, Op.Add, (3, *range(4 + nd, 4 + 2 * nd)), keepdim=False)
    summed = summed.reshape((batch, outputs, *out))
    if bias is not None:
        summed = summed + bias.reshape((1, outputs, *(1,) * nd))
    return summed.cast(d if bias is None else promote(d, bias.dtype))
