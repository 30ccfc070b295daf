"""Hello tensor: describe a computation, then compute it."""

from __future__ import annotations

import numpy as np

from morok import Tensor, dtypes


def main() -> None:
    a = Tensor.from_slice([1.0, 2.0, 3.0, 4.0], dtype=dtypes.f32)
    b = Tensor.from_slice([10.0, 20.0, 30.0, 40.0], dtype=dtypes.f32)

    # nothing is computed yet
    total = a + b
    scaled = total * Tensor.from_slice([0.1])

    data = scaled.realize().to_ndarray()
    print("Result:", np.array2string(data, separator=", "))

    c = (Tensor.from_slice([1.0, 2.0, 3.0], [3]) + Tensor.from_slice([4.0, 5.0, 6.0], [3])).sum()
    print("Sum:", c.realize().item())


if __name__ == "__main__":
    main()
