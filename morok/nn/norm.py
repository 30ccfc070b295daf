"""Normalization layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from morok.arguments import flag, real
from morok.caller import caller
from morok.errors import ShapeError
from morok.nn.module import Module
from morok.tensor.argument_checks import each, tensor, whole
from morok.tensor.base import element_count, show
from morok.tensor.describing import current
from morok.tensor.tensor import Tensor


def _shape(sizes: int | Sequence[int]) -> tuple[int, ...]:
    return each(sizes, len(sizes) if isinstance(sizes, (tuple, list)) else 1, "the normalized shape", 1)


def _fits(x: Tensor, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The last axes of `x` as negative numbers; ShapeError unless they have these sizes."""
    if tensor(x, Tensor, "a norm").shape[x.ndim - len(sizes) :] != sizes or x.ndim < len(sizes):
        raise ShapeError(
            f"a norm over {show(sizes)} of shape {show(x.shape)}", place=caller(), expected="these last axes"
        )
    return tuple(range(-len(sizes), 0))


class LayerNorm(Module):
    """Normalization to mean 0 and variance 1 over the last axes, * weight + bias, both of `normalized_shape` (initially 1 and 0).

    ShapeError for a size below 1.

    >>> nn.LayerNorm(4)(Tensor.ones(2, 4)).shape
    (2, 4)
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True
    ) -> None:
        self.normalized_shape, self.eps = _shape(normalized_shape), real(eps, "eps")
        elementwise_affine = flag(elementwise_affine, "elementwise_affine")
        self.weight = Tensor.ones(self.normalized_shape) if elementwise_affine else None
        self.bias = Tensor.zeros(self.normalized_shape) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        """The normalized elements, in the shape of `x`. ShapeError unless its last axes are `normalized_shape`.

        >>> nn.LayerNorm(2, eps=0.0).forward(Tensor([1.0, 3.0])).tolist()
        [-1.0, 1.0]
        """
        axes = _fits(x, self.normalized_shape)
        return x.layernorm(axes, self.eps, self.weight, self.bias)

    def _summary(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """Normalization to mean square 1 over the last axes, * weight, of `normalized_shape` (initially 1).

    ShapeError for a size below 1.

    >>> nn.RMSNorm(4)(Tensor.ones(2, 4)).shape
    (2, 4)
    """

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-6) -> None:
        self.normalized_shape, self.eps = _shape(normalized_shape), real(eps, "eps")
        self.weight = Tensor.ones(self.normalized_shape)

    def forward(self, x: Tensor) -> Tensor:
        """The normalized elements, in the shape of `x`. ShapeError unless its last axes are `normalized_shape`.

        >>> nn.RMSNorm(2, eps=0.0).forward(Tensor([2.0, -2.0])).tolist()
        [1.0, -1.0]
        """
        axes = _fits(x, self.normalized_shape)
        return x.rms_norm(axes, self.eps, self.weight)

    def _summary(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class GroupNorm(Module):
    """Normalization to mean 0 and variance 1 of each group of channels in [N, C, ..], * weight + bias, both [C] (initially 1, 0).

    ShapeError if `num_groups` does not divide `num_channels`.

    >>> nn.GroupNorm(2, 4)(Tensor.ones(1, 4, 3)).shape
    (1, 4, 3)
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        self.num_groups, self.eps = whole(num_groups, "num_groups", 1), real(eps, "eps")
        self.num_channels = whole(num_channels, "num_channels", 1)
        if self.num_channels % self.num_groups:
            raise ShapeError(
                f"{num_channels} channels in {num_groups} groups",
                place=caller(),
                expected=f"a divisor of {num_channels}",
            )
        self.weight = Tensor.ones(self.num_channels) if flag(affine, "affine") else None
        self.bias = Tensor.zeros(self.num_channels) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        """The normalized elements, in the shape of `x`. ShapeError for fewer than two axes.

        >>> nn.GroupNorm(1, 2, eps=0.0).forward(Tensor([[1.0, 3.0]])).tolist()
        [[-1.0, 1.0]]
        """
        return tensor(x, Tensor, "GroupNorm").group_norm(self.num_groups, self.eps, self.weight, self.bias)

    def _summary(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class BatchNorm(Module):
    """Normalization to mean 0 and variance 1 of each channel in [N, C, ..], * weight + bias, both [C] (initially 1 and 0).

    In training it uses the batch's mean and variance, and moves the running ones towards them by `momentum` (a forward
    pass in training is computed at once); else it uses the running ones. ShapeError for a size below 1.

    >>> nn.BatchNorm(3)(Tensor.ones(2, 3)).shape
    (2, 3)
    """

    measured: ClassVar[frozenset[str]] = frozenset({"running_mean", "running_var", "num_batches_tracked"})

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True) -> None:
        self.num_features, self.eps = whole(num_features, "num_features", 1), real(eps, "eps")
        self.momentum = real(momentum, "momentum")
        self.weight = Tensor.ones(self.num_features) if flag(affine, "affine") else None
        self.bias = Tensor.zeros(self.num_features) if affine else None
        self.running_mean, self.running_var = Tensor.zeros(self.num_features), Tensor.ones(self.num_features)
        self.num_batches_tracked = Tensor(0)

    def forward(self, x: Tensor) -> Tensor:
        """The normalized elements, in the shape of `x`.

        ShapeError for other channels, and in training for a single value of each channel.

        >>> nn.BatchNorm(1, eps=0.0).train().forward(Tensor([[1.0], [3.0]])).tolist()
        [[-1.0], [1.0]]
        """
        if tensor(x, Tensor, "BatchNorm").ndim < 2 or x.shape[1] != self.num_features:
            raise ShapeError(
                f"BatchNorm of shape {show(x.shape)}", place=caller(), expected=f"[N, {self.num_features}, ..]"
            )
        if not self.training:
            return x.batchnorm(self.weight, self.bias, self.running_mean, self.running_var, self.eps)
        others = (0, *range(2, x.ndim))
        count = element_count(tuple(x.shape[a] for a in others))
        if isinstance(count, int) and count < 2:
            raise ShapeError(
                f"BatchNorm in training, of shape {show(x.shape)}",
                place=caller(),
                expected="two values of each channel or more: one has no variance",
                hint="eval() uses the running ones",
            )
        x = x.contiguous()
        mean, var = x.mean(others), x.var(others)
        spread = x.var(others, correction=1)
        m = self.momentum
        self.running_mean.assign((self.running_mean * (1 - m) + mean * m).cast(self.running_mean.dtype))
        self.running_var.assign((self.running_var * (1 - m) + spread * m).cast(self.running_var.dtype))
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        if current() is None:  # a description (morok.jit) computes nothing
            Tensor.realize_batch([x, mean, var, self.running_mean, self.running_var, self.num_batches_tracked])
        return x.batchnorm(self.weight, self.bias, mean, var, self.eps)

    def _summary(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"
