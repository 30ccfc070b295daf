"""Convolution layers for images."""

from __future__ import annotations

from morok.arguments import flag
from morok.caller import caller
from morok.errors import ShapeError
from morok.nn.linear import begin
from morok.nn.module import Module
from morok.tensor.argument_checks import each, tensor, whole
from morok.tensor.convolution import Sizes
from morok.tensor.tensor import Tensor


class Conv2d(Module):
    """Tensor.conv2d() with a weight [out, in / groups, h, w]: [N, in_channels, H, W] -> [N, out_channels, H', W'].

    ShapeError for a size below 1, and if `groups` does not divide both channels.

    >>> nn.Conv2d(3, 8, 3, padding=1)(Tensor.ones(1, 3, 5, 5)).shape
    (1, 8, 5, 5)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        inputs, outputs, sizes = _channels(in_channels, out_channels, groups, kernel_size)
        self.groups = whole(groups, "groups", 1)
        per = inputs // self.groups
        self.weight, self.bias = begin(
            (outputs, per, *sizes), outputs if flag(bias, "bias") else 0, per * sizes[0] * sizes[1]
        )
        self.stride, self.padding = each(stride, 2, "stride", 1), each(padding, 2, "padding", 0)
        self.dilation = each(dilation, 2, "dilation", 1)

    def forward(self, x: Tensor) -> Tensor:
        """The convolved images: [N, in_channels, H, W] -> [N, out_channels, H', W']. ShapeError for other channels.

        >>> nn.Conv2d(3, 8, 3).forward(Tensor.ones(1, 3, 5, 5)).shape
        (1, 8, 3, 3)
        """
        return tensor(x, Tensor, "Conv2d").conv2d(
            self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def _summary(self) -> str:
        outputs, per, *sizes = self.weight.shape
        return (
            f"{per * self.groups}, {outputs}, {tuple(sizes)}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, groups={self.groups}{'' if self.bias is not None else ', bias=False'}"
        )


class ConvTranspose2d(Module):
    """Tensor.conv_transpose2d() with a weight [in, out / groups, h, w]: [N, in_channels, H, W] -> [N, out_channels, H', W'].

    ShapeError for a size below 1, and if `groups` does not divide both channels.

    >>> nn.ConvTranspose2d(3, 8, 3)(Tensor.ones(1, 3, 5, 5)).shape
    (1, 8, 7, 7)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
    ) -> None:
        inputs, outputs, sizes = _channels(in_channels, out_channels, groups, kernel_size)
        self.groups = whole(groups, "groups", 1)
        per = outputs // self.groups
        self.weight, self.bias = begin(
            (inputs, per, *sizes), outputs if flag(bias, "bias") else 0, per * sizes[0] * sizes[1]
        )
        self.stride, self.padding = each(stride, 2, "stride", 1), each(padding, 2, "padding", 0)
        self.output_padding = each(output_padding, 2, "output_padding", 0)
        self.dilation = each(dilation, 2, "dilation", 1)

    def forward(self, x: Tensor) -> Tensor:
        """The transposed convolution of images: [N, in_channels, H, W] -> [N, out_channels, H', W'].

        ShapeError for other channels.

        >>> nn.ConvTranspose2d(3, 8, 3).forward(Tensor.ones(1, 3, 5, 5)).shape
        (1, 8, 7, 7)
        """
        return tensor(x, Tensor, "ConvTranspose2d").conv_transpose2d(
            self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation
        )

    def _summary(self) -> str:
        inputs, per, *sizes = self.weight.shape
        return (
            f"{inputs}, {per * self.groups}, {tuple(sizes)}, stride={self.stride}, padding={self.padding}, "
            f"output_padding={self.output_padding}, groups={self.groups}, "
            f"{'' if self.bias is not None else 'bias=False, '}dilation={self.dilation}"
        )


def _channels(inputs: int, outputs: int, groups: int, size: Sizes) -> tuple[int, int, tuple[int, ...]]:
    """(in channels, out channels, window sizes), checked; ShapeError if `groups` does not divide both channels."""
    count = whole(groups, "groups", 1)
    first, second = whole(inputs, "in_channels", 1), whole(outputs, "out_channels", 1)
    if first % count or second % count:
        raise ShapeError(
            f"{first} and {second} channels in {count} groups", place=caller(), expected="a divisor of both"
        )
    return first, second, each(size, 2, "kernel_size", 1)
