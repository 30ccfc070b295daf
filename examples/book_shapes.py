"""Shape gymnastics: reshape, transpose, broadcast. None of it moves data."""

from __future__ import annotations

import numpy as np

from morok import Tensor
from morok.errors import ShapeError


def main() -> None:
    data = Tensor.from_slice([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    print("Original shape:", list(data.shape))

    matrix = data.try_reshape([2, 3])
    print("Matrix shape:", list(matrix.shape))

    transposed = matrix.try_transpose(0, 1)
    print("Transposed shape:", list(transposed.shape))

    # a row vector added to every row: [3, 2] + [1, 2] -> [3, 2]
    bias = Tensor.from_slice([100.0, 200.0]).try_reshape([1, 2])
    biased = transposed + bias
    print(np.array2string(biased.realize().to_ndarray(), separator=", ", formatter={"float_kind": "{:g}".format}))

    try:
        transposed + Tensor.from_slice([1.0, 2.0, 3.0])
    except ShapeError as error:
        print("error:", error.message)


if __name__ == "__main__":
    main()
