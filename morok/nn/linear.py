"""Layers that multiply by a matrix, or select its rows."""

from __future__ import annotations

import math

from morok.arguments import flag
from morok.caller import caller
from morok.errors import DTypeError
from morok.nn.module import Module
from morok.tensor.argument_checks import fitting, tensor, whole
from morok.tensor.describing import current
from morok.tensor.tensor import Tensor


class Linear(Module):
    """x @ weight.T + bias: [.., in_features] -> [.., out_features], the weight [out_features, in_features].

    Both are initialized uniformly in -b..=b for b = 1 / sqrt(in_features). ShapeError for a size below 1.

    >>> nn.Linear(3, 2)(Tensor.ones(5, 3)).shape
    (5, 2)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        inputs, outputs = whole(in_features, "in_features", 1), whole(out_features, "out_features", 1)
        self.weight, self.bias = begin((outputs, inputs), outputs if flag(bias, "bias") else 0, inputs)

    def forward(self, x: Tensor) -> Tensor:
        """x @ weight.T + bias: [.., in_features] -> [.., out_features]. ShapeError for another last size.

        >>> nn.Linear(3, 2).forward(Tensor.ones(5, 3)).shape
        (5, 2)
        """
        return tensor(x, Tensor, "Linear").linear(self.weight, self.bias)

    def _summary(self) -> str:
        outputs, inputs = self.weight.shape
        return f"{inputs}, {outputs}{'' if self.bias is not None else ', bias=False'}"


class Embedding(Module):
    """Rows of a weight [num_embeddings, embedding_dim]: [..] of integers -> [.., embedding_dim].

    The weight is initialized with normally distributed numbers. Negative positions count from the end, as in Tensor.take();
    positions outside give zeros. ShapeError for a size below 1.

    >>> nn.Embedding(10, 4)(Tensor([1, 2, 3])).shape
    (3, 4)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        sizes = whole(num_embeddings, "num_embeddings", 1), whole(embedding_dim, "embedding_dim", 1)
        self.weight = _computed(Tensor.normal(*sizes))

    def forward(self, x: Tensor) -> Tensor:
        """The rows of the weight at `x`: [..] of integers -> [.., embedding_dim]. DTypeError for floats.

        >>> nn.Embedding(10, 4).forward(Tensor([1, 2, 3])).shape
        (3, 4)
        """
        if not tensor(x, Tensor, "Embedding").dtype.is_int:
            raise DTypeError(f"an embedding of {x.dtype}", place=caller(), expected="integers")
        return self.weight.take(x, 0)

    def _summary(self) -> str:
        return ", ".join(map(str, self.weight.shape))


def begin(shape: tuple[int, ...], outputs: int, fan_in: int) -> tuple[Tensor, Tensor | None]:
    """(weight, bias), realized, uniform in -b..=b for b = 1 / sqrt(fan_in); the bias is None for 0 outputs."""
    fitting(shape)
    bound = 1.0 / math.sqrt(fan_in)
    weight = Tensor.uniform(*shape, low=-bound, high=bound)
    bias = Tensor.uniform(outputs, low=-bound, high=bound) if outputs else None
    _computed(*([weight] if bias is None else [weight, bias]))
    return weight, bias


def _computed(*parameters: Tensor) -> Tensor:
    """The first of these tensors. All are computed now; in a description (morok.jit), which computes nothing, by its plan."""
    if current() is None:
        Tensor.realize_batch(list(parameters))
    return parameters[0]
