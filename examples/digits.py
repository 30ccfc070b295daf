"""Real handwritten digits, classified by a network that Morok compiles.

scikit-learn trains a small multilayer perceptron on half of its bundled scans (1,797 digits of 8 x 8 pixels). Its weights
go into Morok, which classifies the other half; both must agree on every digit, and on the probabilities within 1e-5.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from morok import Tensor


def train() -> tuple[Any, np.ndarray, np.ndarray]:
    """A fitted classifier, and the scans and labels of the half that it has not seen."""
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    scans, labels = load_digits(return_X_y=True)
    scans = (scans / 16.0).astype(np.float32)
    x_train, x_test, y_train, y_test = train_test_split(scans, labels, test_size=0.5, random_state=0, stratify=labels)
    model = MLPClassifier(hidden_layer_sizes=(64,), max_iter=60, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x_train, y_train)
    return model, x_test, y_test


class Network:
    """The fitted network as a Morok program."""

    def __init__(self, model: Any) -> None:
        self.weights = [Tensor(w.astype(np.float32)) for w in model.coefs_]
        self.biases = [Tensor(b.astype(np.float32)) for b in model.intercepts_]

    def probabilities(self, scans: Tensor) -> Tensor:
        """(n, 64) scans -> (n, 10) probabilities, both f32."""
        x = scans
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = (x @ w + b).relu()
        return (x @ self.weights[-1] + self.biases[-1]).softmax(-1)


def median_time(run: Callable[[], object], rounds: int = 30) -> float:
    run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> int:
    model, scans, labels = train()
    network = Network(model)

    start = time.perf_counter()
    output = network.probabilities(Tensor(scans))
    probabilities = output.numpy()
    first = time.perf_counter() - start
    digits = probabilities.argmax(axis=1)

    expected = model.predict_proba(scans)
    agree = int((digits == expected.argmax(axis=1)).sum())
    furthest = float(np.abs(probabilities - expected).max())

    plan = network.probabilities(Tensor(scans)).prepare()
    ours, theirs = median_time(plan.execute), median_time(lambda: model.predict_proba(scans))

    print(f"digits classified: {len(labels)}")
    print(f"accuracy: {(digits == labels).mean():.4f}")
    print(f"same digit as scikit-learn: {agree} of {len(labels)}; probabilities differ by at most {furthest:.1e}")
    print(f"kernels: {len(output.kernels())}, first run (compiling included): {first * 1e3:.0f} ms")
    print(f"time per batch: {ours * 1e3:.3f} ms; scikit-learn: {theirs * 1e3:.3f} ms; ratio {ours / theirs:.2f}")
    return 0 if agree == len(labels) and furthest < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
