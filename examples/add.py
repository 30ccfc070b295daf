"""Two matrices added: the program whose way through the stages docs/pipeline.md shows."""

from __future__ import annotations

import numpy as np

from morok import Tensor


def program() -> Tensor:
    a = Tensor(np.arange(10000, dtype=np.float32).reshape(100, 100))
    b = Tensor(np.ones((100, 100), np.float32))
    return a + b


if __name__ == "__main__":
    print(program().numpy().sum())
