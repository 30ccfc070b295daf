"""A classifier for 28 x 28 images, with made-up weights: 784 -> 128 -> 10."""

from __future__ import annotations

import numpy as np
from book_linear import Linear

from morok import Tensor


class MnistNet:
    """Two linear layers with relu in between."""

    def __init__(self) -> None:
        self.fc1 = Linear(784, 128)
        self.fc2 = Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, 784] -> [batch, 10]: logits, any real numbers."""
        return self.fc2.forward(self.fc1.forward(x).relu())

    def predict(self, x: Tensor) -> Tensor:
        """[batch, 784] -> [batch, 10]: probabilities."""
        return self.forward(x).softmax(-1)


def main() -> None:
    model = MnistNet()
    image = Tensor.from_slice([i / 784.0 for i in range(784)]).try_reshape([1, 784])

    logits = model.forward(image)
    probabilities = logits.softmax(-1)
    print("Probabilities:", np.array2string(probabilities.realize().to_ndarray(), separator=", ", precision=4))

    prediction = logits.argmax(-1)
    print("Predicted digit:", prediction.realize().to_ndarray("i32").tolist())


if __name__ == "__main__":
    main()
