"""Sliding windows along an axis, as views: the input of convolutions and pooling."""

from __future__ import annotations

from morok.caller import caller
from morok.errors import ShapeError
from morok.tensor.argument_checks import known
from morok.tensor.base import AnyTensor, show
from morok.tensor.view_methods import along, pad_zero


def places(size: int, window: int, stride: int, dilation: int) -> int:
    """The number of windows that fit; 0 or less if none does."""
    return (size - dilation * (window - 1) - 1) // stride + 1


def windows(x: AnyTensor, axis: int, window: int, stride: int = 1, dilation: int = 1) -> AnyTensor:
    """The windows along an axis, [.., n, ..] -> [.., places, window, ..]: out[p, k] = x[p * stride + k * dilation].

    ShapeError if no window fits. A view: no element is copied, and loads need no gates.
    """
    n = known(x, axis, "windows")
    count = places(n, window, stride, dilation)
    if count < 1:
        raise ShapeError(
            f"no window of {dilation * (window - 1) + 1} fits axis {axis} of shape {show(x.shape)}",
            place=caller(),
            expected=f"at least {dilation * (window - 1) + 1} elements, padding included",
        )
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if dilation == 1 and stride >= window and count * stride <= n:
        # disjoint windows: a reshape suffices
        rows = _front(x, axis, count * stride).reshape((*before, count, stride, *after))
        return _front(rows, axis + 1, window)
    # Repeat the axis, and cut it into rows whose length is `dilation` more than a multiple of n: row k begins at k * dilation.
    row = n * -(-max(count * stride - dilation, 0) // n) + dilation
    repeats = -(-window * row // n)
    x = x.reshape((*before, 1, n, *after)).expand((*before, repeats, n, *after)).reshape((*before, repeats * n, *after))
    x = _front(x, axis, window * row).reshape((*before, window, row, *after))
    x = _front(x, axis + 1, count * stride)
    if stride > 1:
        x = _front(x.reshape((*before, window, count, stride, *after)), axis + 2, 1)
        x = x.reshape((*before, window, count, *after))
    return x.transpose(axis, axis + 1)


def spread(x: AnyTensor, axis: int, stride: int) -> AnyTensor:
    """`x` with `stride` - 1 zeros inserted between adjacent elements of an axis."""
    n = known(x, axis, "spread")
    if stride == 1 or n < 2:
        return x
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    x = x.reshape((*before, n, 1, *after))
    x = pad_zero(x, along(x, axis + 1, 0, stride - 1))
    return _front(x.reshape((*before, n * stride, *after)), axis, (n - 1) * stride + 1)


def _front(x: AnyTensor, axis: int, count: int) -> AnyTensor:
    return x.shrink(along(x, axis, 0, count))
