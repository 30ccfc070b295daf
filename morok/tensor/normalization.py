"""Normalization layers, which keep the operand's shape, and attention.

Halves are computed as f32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Unpack

from morok.arguments import flag
from morok.caller import caller
from morok.errors import DTypeError, ShapeError
from morok.ir.dtype import dtypes
from morok.tensor.argument_checks import known, only_tensors, whole
from morok.tensor.axis_reductions import positions_along
from morok.tensor.base import AnyTensor, show
from morok.tensor.elementwise_operands import rounded_to, wide_float
from morok.tensor.keywords import Along, Axis, Over, other_names
from morok.tensor.view_methods import axis_of


@other_names
def layernorm(
    self: AnyTensor,
    axis: Axis = -1,
    eps: float = 1e-5,
    weight: AnyTensor | None = None,
    bias: AnyTensor | None = None,
    **also: Unpack[Over],
) -> AnyTensor:
    """(x - mean) / sqrt(variance + eps) over `axis`, * weight + bias, in self's shape and float dtype (integers: f32).

    `weight` and `bias` broadcast. AxisError for an axis outside the shape.

    >>> Tensor([1.0, 3.0]).layernorm(eps=0.0).tolist()
    [-1.0, 1.0]
    """
    x = wide_float(self)
    centred = x - x.mean(axis, keepdim=True)
    scale = ((centred * centred).mean(axis, keepdim=True) + eps).rsqrt()
    return rounded_to(_affine(centred * scale, weight, bias), self)


@other_names
def rms_norm(
    self: AnyTensor, axis: Axis = -1, eps: float = 1e-6, weight: AnyTensor | None = None, **also: Unpack[Over]
) -> AnyTensor:
    """x / sqrt(mean square + eps) over `axis`, * weight, in self's shape and float dtype (integers: f32).

    `weight` broadcasts. AxisError for an axis outside the shape.

    >>> Tensor([2.0, -2.0]).rms_norm(eps=0.0).tolist()
    [1.0, -1.0]
    """
    x = wide_float(self)
    return rounded_to(_affine(x * ((x * x).mean(axis, keepdim=True) + eps).rsqrt(), weight, None), self)


@other_names
def batchnorm(
    self: AnyTensor,
    weight: AnyTensor | None = None,
    bias: AnyTensor | None = None,
    mean: AnyTensor | None = None,
    var: AnyTensor | None = None,
    eps: float = 1e-5,
    axis: int = 1,
    **also: Unpack[Along],
) -> AnyTensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, each parameter [C] along `axis`, in self's shape and float dtype.

    A missing `mean` or `var` is computed from x over all other axes (the biased variance, around the mean of x). ShapeError
    for a parameter of another shape, AxisError for an axis outside the shape.

    >>> Tensor([[1.0], [3.0]]).batchnorm(eps=0.0).tolist()
    [[-1.0], [1.0]]
    """
    a = axis_of(self, axis)
    size = self.shape[a]
    given = [t for t in (weight, bias, mean, var) if t is not None]
    only_tensors(given, "batchnorm")
    for t in given:
        if t.shape != (size,):
            raise ShapeError(
                f"batchnorm of shape {show(self.shape)} with a parameter of {show(t.shape)}",
                place=caller(),
                expected=f"({size},), the size of axis {axis}",
            )
    x = wide_float(self)
    along = tuple(size if k == a else 1 for k in range(self.ndim))
    others = tuple(k for k in range(self.ndim) if k != a)
    own = x - x.mean(others, keepdim=True)
    centred = own if mean is None else x - wide_float(mean).reshape(along)
    spread = (own * own).mean(others, keepdim=True) if var is None else wide_float(var).reshape(along)
    out = centred * (spread + eps).rsqrt()
    shaped = [None if t is None else t.reshape(along) for t in (weight, bias)]
    return rounded_to(_affine(out, *shaped), self)


def group_norm(
    self: AnyTensor, groups: int, eps: float = 1e-5, weight: AnyTensor | None = None, bias: AnyTensor | None = None
) -> AnyTensor:
    """layernorm() over each of `groups` groups of the channels of [N, C, ..], in self's shape; weight and bias are [C].

    ShapeError for fewer than two axes and if `groups` does not divide C, DTypeError for a weight that is no tensor.

    >>> Tensor([[1.0, 3.0, 2.0, 6.0]]).group_norm(2, eps=0.0).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    if self.ndim < 2:
        raise ShapeError(f"group_norm of shape {show(self.shape)}", place=caller(), expected="[N, C, ..]")
    only_tensors([t for t in (weight, bias) if t is not None], "group_norm")
    channels, count = known(self, 1, "group_norm"), whole(groups, "groups", 1)
    if channels % count:
        raise ShapeError(
            f"group_norm of shape {show(self.shape)} in {count} groups",
            place=caller(),
            expected=f"a divisor of {channels} channels",
        )
    parts = wide_float(self).reshape((self.shape[0], count, channels // count, *self.shape[2:]))
    out = parts.layernorm(tuple(range(2, parts.ndim)), eps).reshape(self.shape)
    along = (1, channels, *(1,) * (self.ndim - 2))
    shaped = [None if t is None else t.reshape(along) for t in (weight, bias)]
    return rounded_to(_affine(out, *shaped), self)


def _affine(x: AnyTensor, weight: AnyTensor | None, bias: AnyTensor | None) -> AnyTensor:
    out = x if weight is None else x * weight
    return out if bias is None else out + bias


def scaled_dot_product_attention(
    self: AnyTensor,
    key: AnyTensor,
    value: AnyTensor,
    attn_mask: AnyTensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> AnyTensor:
    """softmax(self @ key.T * scale + mask) @ value, for query self [.., L, E], key [.., S, E], value [.., S, V]: [.., L, V].

    attn_mask  [.., L, S]: bools (False masks a key out), or numbers to add to the scores
    is_causal  True masks key s out for query l if s > l
    scale      1 / sqrt(E) by default

    A query with all keys masked out gives NaN. ShapeError if the shapes do not fit, DTypeError for anything but tensors.

    >>> q, v = Tensor([[0.0]]), Tensor([[1.0], [3.0]])
    >>> q.scaled_dot_product_attention(Tensor([[0.0], [0.0]]), v).tolist()
    [[2.0]]
    """
    only_tensors([key, value] if attn_mask is None else [key, value, attn_mask], "attention")
    if min(self.ndim, key.ndim, value.ndim) < 2 or key.shape[-1] != self.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ShapeError(
            f"attention of query {show(self.shape)}, key {show(key.shape)}, value {show(value.shape)}",
            place=caller(),
            expected="[.., L, E], [.., S, E] and [.., S, V]",
        )
    is_causal = flag(is_causal, "is_causal")
    if is_causal and attn_mask is not None:
        raise DTypeError("attention was given both attn_mask and is_causal", place=caller(), expected="one of the two")
    factor = 1.0 / math.sqrt(max(known(self, -1, "attention"), 1)) if scale is None else scale
    scores = wide_float(self) @ wide_float(key).mT * factor
    if is_causal:
        attn_mask = positions_along(scores, scores.ndim - 1, dtypes.i64) <= positions_along(
            scores, scores.ndim - 2, dtypes.i64
        )
    if attn_mask is not None:
        scores = attn_mask.where(scores, -math.inf) if attn_mask.dtype.is_bool else scores + attn_mask
    return rounded_to(scores.softmax(-1) @ wide_float(value), self)
