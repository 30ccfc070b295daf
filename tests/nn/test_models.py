"""ResNet-18, a GPT, a UNet and an LSTM as in examples/models.py, small and with random weights, against NumPy in f64."""

from __future__ import annotations

import itertools
import math
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, Variable

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "models.py"
MODELS = runpy.run_path(str(EXAMPLE))
Array = np.ndarray[Any, Any]
State = dict[str, Array]


def conv(x: Array, s: State, name: str, stride: int = 1, padding: int = 0) -> Array:
    w = s[f"{name}.weight"]
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    views = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwij,ocij->nohw", views, w) + s.get(f"{name}.bias", np.zeros(len(w)))[:, None, None]


def grown(x: Array, s: State, name: str) -> Array:
    """A transposed convolution of 2 x 2 with stride 2: each pixel becomes four."""
    w = s[f"{name}.weight"]
    out = np.zeros((len(x), w.shape[1], 2 * x.shape[2], 2 * x.shape[3]))
    for i, j in itertools.product(range(2), range(2)):
        out[:, :, i::2, j::2] = np.einsum("nchw,co->nohw", x, w[:, :, i, j])
    return out + s[f"{name}.bias"][:, None, None]


def batch_norm(x: Array, s: State, name: str) -> Array:
    def channel(what: str) -> Array:
        return s[f"{name}.{what}"][:, None, None]

    return (x - channel("running_mean")) / np.sqrt(channel("running_var") + 1e-5) * channel("weight") + channel("bias")


def layer_norm(x: Array, s: State, name: str) -> Array:
    spread = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x - x.mean(-1, keepdims=True)) / spread * s[f"{name}.weight"] + s[f"{name}.bias"]


def linear(x: Array, s: State, name: str) -> Array:
    return x @ s[f"{name}.weight"].T + s.get(f"{name}.bias", 0.0)


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def greatest(x: Array, size: int, stride: int, padding: int) -> Array:
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=-np.inf)
    views = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))
    return views[:, :, ::stride, ::stride].max((4, 5))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def resnet18(s: State, x: Array) -> Array:
    x = greatest(relu(batch_norm(conv(x, s, "conv1", 2, 3), s, "bn1")), 3, 2, 1)
    for k in range(8):
        block, stride = f"blocks.{k}", 2 if k in (2, 4, 6) else 1
        y = relu(batch_norm(conv(x, s, f"{block}.conv1", stride, 1), s, f"{block}.bn1"))
        y = batch_norm(conv(y, s, f"{block}.conv2", 1, 1), s, f"{block}.bn2")
        if stride == 2:
            x = batch_norm(conv(x, s, f"{block}.shortcut.0", 2), s, f"{block}.shortcut.1")
        x = relu(x + y)
    return linear(x.mean((2, 3)), s, "fc")


def gpt(s: State, x: Array, layers: int, heads: int) -> Array:
    n, t = x.shape
    y = s["token.weight"][x] + s["position.weight"][:t]
    for k in range(layers):
        block = f"blocks.{k}"
        q, key, v = (
            linear(layer_norm(y, s, f"{block}.norm1"), s, f"{block}.qkv")
            .reshape(n, t, 3, heads, -1)
            .transpose(2, 0, 3, 1, 4)
        )
        scores = q @ key.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])
        scores = np.where(np.tri(t, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        attended = weights / weights.sum(-1, keepdims=True) @ v
        y = y + linear(attended.transpose(0, 2, 1, 3).reshape(n, t, -1), s, f"{block}.out")
        h = linear(layer_norm(y, s, f"{block}.norm2"), s, f"{block}.up")
        y = y + linear(h * (1 + np.vectorize(math.erf)(h / math.sqrt(2))) / 2, s, f"{block}.down")
    return linear(layer_norm(y, s, "norm"), s, "head")


def unet(s: State, x: Array) -> Array:
    def double(x: Array, name: str) -> Array:
        return relu(conv(relu(conv(x, s, f"{name}.conv1", padding=1)), s, f"{name}.conv2", padding=1))

    first = double(x, "down.0")
    second = double(greatest(first, 2, 2, 0), "down.1")
    x = double(greatest(second, 2, 2, 0), "down.2")
    for k, before in enumerate((second, first)):
        x = double(np.concatenate([before, grown(x, s, f"grow.{k}")], 1), f"up.{k}")
    return conv(x, s, "last")


def lstm(s: State, x: Array) -> Array:
    state = cell = np.zeros((len(x), s["of_state.weight"].shape[1]))
    states = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(linear(x[:, t], s, "of_input") + linear(state, s, "of_state"), 4, -1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        state = sigmoid(o) * np.tanh(cell)
        states.append(state)
    return np.stack(states, 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["resnet", "gpt", "unet", "lstm"])
def test_outputs_are_numpys(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Tensor.manual_seed(seed)
    image = rng.standard_normal((2 - seed, 3, 32, 36 + 4 * seed)).astype(np.float32)
    tokens = rng.integers(0, 40, (2, 9 + seed))
    cases: dict[str, tuple[Any, Array, Callable[[State, Array], Array]]] = {
        "resnet": (MODELS["ResNet18"](4, 10), image, resnet18),
        "gpt": (MODELS["GPT"](2, 24, 3, 40, 16), tokens, lambda s, x: gpt(s, x, 2, 3)),
        "unet": (MODELS["UNet"](4), image[:, :1], unet),
        "lstm": (MODELS["LSTM"](6, 10), rng.standard_normal((2, 3, 6)).astype(np.float32), lstm),
    }
    model, x, reference = cases[name]
    state = model.state_dict()
    for key in state:
        if key.endswith(("running_mean", "running_var", "bias")):
            state[key] = rng.uniform(0.5, 1.5, state[key].shape).astype(np.float32)
    model.load_state_dict(state)
    wanted = reference(
        {k: a.astype(np.float64) for k, a in state.items()}, x if name == "gpt" else x.astype(np.float64)
    )
    found = model(Tensor(np.ascontiguousarray(x))).numpy()
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 1e-5 * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("way", ["as it is", "jitted, caches given", "jitted, caches reached"])
def test_a_gpt_with_a_cache_a_position_at_a_time(way: str) -> None:
    """Scores, and after them those of another sequence, are NumPy's of the whole sequences; one plan does for all positions."""
    Tensor.manual_seed(3)
    layers, heads, positions = 2, 3, 7
    model = MODELS["GPT"](layers, 24, heads, 40, positions)
    state = {k: a.astype(np.float64) for k, a in model.state_dict().items()}
    tokens = np.random.default_rng(4).integers(0, 40, (2, positions))
    wanted = gpt(state, tokens, layers, heads)
    at, cache = Variable("position", 0, positions - 1), model.cache(2)
    given, reached = morok.jit(model.step), morok.jit(lambda x, position: model.step(x, position, cache))
    for _ in range(2):
        for k in range(positions):
            x = Tensor(tokens[:, k : k + 1].copy())
            if way == "jitted, caches reached":
                scores = reached(x, at.bind(k))
            else:
                scores = (model.step if way == "as it is" else given)(x, at.bind(k), cache)
            found = scores.numpy()[:, 0]
            assert np.abs(found - wanted[:, k]).max() <= 1e-5 * max(1.0, np.abs(wanted).max())
    assert given.plans + reached.plans == (way != "as it is")


@pytest.mark.long
def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert MODELS["main"]() == 0
    assert capsys.readouterr().out.count("kernels") == 4
