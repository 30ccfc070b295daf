"""Matrix multiply, and the four shapes that dot() takes."""

from __future__ import annotations

import numpy as np

from morok import Tensor


def main() -> None:
    # 4 samples of 3 features each
    samples = Tensor.from_slice([float(i) for i in range(1, 13)]).try_reshape([4, 3])
    # 3 inputs, 2 outputs
    weights = Tensor.from_slice([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).try_reshape([3, 2])

    output = samples.dot(weights)
    result = output.realize()
    print("Output shape:", list(result.shape))
    print(np.array2string(result.to_ndarray(), separator=", ", precision=4))

    for left, right in [((4, 3), (3, 2)), ((3,), (3, 2)), ((4, 3), (3,)), ((5, 4, 3), (5, 3, 2))]:
        shape = Tensor.ones(*left).dot(Tensor.ones(*right)).shape
        print(f"{list(left)} . {list(right)} -> {list(shape)}")


if __name__ == "__main__":
    main()
