"""Real handwritten digits, classified by a convolutional network that Morok compiles.

NumPy trains the network on half of scikit-learn's bundled scans (1,797 digits of 8 x 8 pixels) in a few seconds. Its weights go
into layers of `morok.nn`, which classify the other half; both must agree on every digit, and on the probabilities within 1e-5.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from morok import Tensor, nn

Array = np.ndarray[Any, Any]
STEPS, BATCH, RATE = 400, 32, 4e-3


def scans() -> tuple[Array, Array, Array, Array]:
    """Scans [n, 1, 8, 8] in 0..1 and labels [n], of the half to train on and of the other one."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pixels, labels = load_digits(return_X_y=True)
    pixels = (pixels / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    x, x_test, y, y_test = train_test_split(pixels, labels, test_size=0.5, random_state=0, stratify=labels)
    return x, y, x_test, y_test


# The network in NumPy.


def windows(x: Array) -> Array:
    """[N, C, H, W] -> [N, C, H, W, 3, 3]: what lies around each pixel, zeros beyond the edge."""
    return np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))


def convolve(x: Array, w: Array, b: Array) -> Array:
    """[N, C, H, W] with [O, C, 3, 3] and [O]: [N, O, H, W]."""
    return np.tensordot(windows(x), w, ([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2) + b[:, None, None]


def halve(x: Array) -> Array:
    """The greatest of each 2 x 2 pixels."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


def forward(state: dict[str, Array], x: Array) -> tuple[list[Array], Array]:
    """What the layers compute on the way, and the probabilities [N, 10]."""
    a = convolve(x, state["first.weight"], state["first.bias"])
    b = halve(np.maximum(a, 0))
    c = convolve(b, state["second.weight"], state["second.bias"])
    d = halve(np.maximum(c, 0))
    logits = d.reshape(len(x), -1) @ state["last.weight"].T + state["last.bias"]
    e = np.exp(logits - logits.max(1, keepdims=True))
    return [x, a, b, c, d], e / e.sum(1, keepdims=True)


def gradients(state: dict[str, Array], x: Array, y: Array) -> dict[str, Array]:
    """Of the mean cross entropy, by hand."""
    (x, a, b, c, d), p = forward(state, x)
    out = p.copy()
    out[np.arange(len(y)), y] -= 1
    out /= len(y)
    found = {"last.weight": out.T @ d.reshape(len(y), -1), "last.bias": out.sum(0)}
    back = (out @ state["last.weight"]).reshape(d.shape)
    for name, inputs, before, after in (("second", b, c, d), ("first", x, a, b)):
        # each maximum came from the pixel that equals it, if that one is positive
        wide = back.repeat(2, 2).repeat(2, 3)
        wide = wide * ((before == after.repeat(2, 2).repeat(2, 3)) & (before > 0))
        found[f"{name}.weight"] = np.tensordot(wide, windows(inputs), ([0, 2, 3], [0, 2, 3]))
        found[f"{name}.bias"] = wide.sum((0, 2, 3))
        turned = state[f"{name}.weight"][:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
        back = convolve(wide, turned, np.zeros(len(turned), np.float32))
    return found


def train(state: dict[str, Array], x: Array, y: Array) -> dict[str, Array]:
    """The state after some hundred steps of Adam (Kingma and Ba 2015)."""
    rng = np.random.default_rng(0)
    state = {k: v.copy() for k, v in state.items()}
    mean, square = ({k: np.zeros_like(v) for k, v in state.items()} for _ in range(2))
    for step in range(1, STEPS + 1):
        chosen = rng.integers(0, len(x), BATCH)
        for name, g in gradients(state, x[chosen], y[chosen]).items():
            mean[name] += 0.1 * (g - mean[name])
            square[name] += 0.001 * (g * g - square[name])
            corrected = np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8
            state[name] -= (RATE * (mean[name] / (1 - 0.9**step)) / corrected).astype(np.float32)
    return state


# The network in Morok.


class Network(nn.Module):
    """[N, 1, 8, 8] -> [N, 10]: probabilities."""

    def __init__(self) -> None:
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.last = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x).relu().max_pool2d(2)
        x = self.second(x).relu().max_pool2d(2)
        return self.last(x.flatten(1)).softmax(-1)


def main() -> int:
    x, y, x_test, labels = scans()
    Tensor.manual_seed(0)
    network = Network()
    print(network)

    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    with threadpool_limits(1):  # the products are small: threads would wait for each other
        state = train(network.state_dict(), x, y)
    print(f"trained in NumPy in {time.perf_counter() - start:.1f} s")
    network.load_state_dict(state)

    start = time.perf_counter()
    output = network(Tensor(x_test))
    probabilities = output.numpy()
    first = time.perf_counter() - start
    _, expected = forward(state, x_test)
    digits = probabilities.argmax(1)
    agree = int((digits == expected.argmax(1)).sum())
    furthest = float(np.abs(probabilities - expected).max())

    print(f"digits classified: {len(labels)}")
    print(f"accuracy: {(digits == labels).mean():.4f}; in NumPy: {(expected.argmax(1) == labels).mean():.4f}")
    print(f"same digit as NumPy: {agree} of {len(labels)}; probabilities differ by at most {furthest:.1e}")
    print(f"kernels: {len(output.kernels())}, first run (compiling included): {first * 1e3:.0f} ms")
    return 0 if agree == len(labels) and furthest < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
