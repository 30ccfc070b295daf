"""A linear layer from scratch: y = x @ W.T + b."""

from __future__ import annotations

import math

import numpy as np

from morok import Tensor


class Linear:
    """`weight` is [out, in], as is customary: row i holds the weights that feed output i. `bias` is [out]."""

    def __init__(self, in_features: int, out_features: int) -> None:
        values = [math.sin(i * 0.1) * 0.1 for i in range(in_features * out_features)]
        self.weight = Tensor.from_slice(values).try_reshape([out_features, in_features])
        self.bias = Tensor.from_slice([0.0] * out_features)

    def forward(self, x: Tensor) -> Tensor:
        """[in] or [batch, in] -> [out] or [batch, out]."""
        return x.dot(self.weight.try_transpose(0, 1)) + self.bias


def main() -> None:
    layer = Linear(4, 2)
    output = layer.forward(Tensor.from_slice([1.0, 2.0, 3.0, 4.0]))
    print("Output:", np.array2string(output.realize().to_ndarray(), separator=", ", precision=4))


if __name__ == "__main__":
    main()
