"""Layers of layers: names, parameters, states, how they print; and the example."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import morok
from morok import Tensor, nn
from morok.errors import StateError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        self.norm = nn.RMSNorm(width)
        self.inner = [nn.Linear(width, 2 * width, bias=False), nn.Linear(2 * width, width, bias=False)]
        self.gains = {"out": Tensor.ones(1)}

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner[1](self.inner[0](self.norm(x)).silu()) * self.gains["out"]


def test_names_are_paths() -> None:
    model = nn.Sequential(nn.Linear(3, 4), Tensor.relu, Block(4))
    assert list(model.state_dict()) == [
        "layers.0.weight",
        "layers.0.bias",
        "layers.2.gains.out",
        "layers.2.norm.weight",
        "layers.2.inner.0.weight",
        "layers.2.inner.1.weight",
    ]
    assert len(model.parameters()) == 6
    assert model(Tensor.ones(2, 3)).shape == (2, 4)


def test_what_is_shared_counts_once() -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    model = nn.Sequential(first, second, first)
    assert len(model.parameters()) == 3
    state = model.state_dict()
    state["layers.1.weight"] = state["layers.0.weight"] = np.eye(3)
    model.load_state_dict(state)
    assert first.weight is second.weight
    np.testing.assert_array_equal(first.weight.numpy(), np.eye(3, dtype=np.float32))


def test_states_go_out_and_in() -> None:
    Tensor.manual_seed(1)
    one, two = nn.Sequential(Block(4), nn.BatchNorm(4)), nn.Sequential(Block(4), nn.BatchNorm(4))
    x = Tensor(np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32))
    state = one.state_dict()
    assert not np.array_equal(one(x).numpy(), two(x).numpy())
    lazy = two(x)
    two.load_state_dict(state)
    np.testing.assert_array_equal(one(x).numpy(), two(x).numpy())
    assert not np.array_equal(lazy.numpy(), two(x).numpy())
    # what is handed out and in is copied
    state["layers.0.gains.out"][:] = 99
    np.testing.assert_array_equal(one(x).numpy(), two(x).numpy())
    two.load_state_dict({"layers.0.gains.out": Tensor([3], dtype="i8")}, strict=False)
    assert two.state_dict()["layers.0.gains.out"].dtype == np.float32


def test_states_that_do_not_fit_change_nothing() -> None:
    layer = nn.Linear(3, 2)
    before = layer.state_dict()
    good = {k: v + 1 for k, v in before.items()}
    for state, said in [
        ({"weight": good["weight"]}, "missing: bias"),
        ({**good, "scale": good["bias"]}, "unknown: scale"),
        ({**good, "bias": good["weight"]}, r"bias has shape \(2, 3\)"),
    ]:
        with pytest.raises(StateError, match=said) as caught:
            layer.load_state_dict(state)
        assert caught.value.expected
    for name, value in layer.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
    layer.load_state_dict({"weight": good["weight"], "scale": 1}, strict=False)
    np.testing.assert_array_equal(layer.weight.numpy(), good["weight"])


def test_training_reaches_every_layer() -> None:
    model = nn.Sequential(Block(4), nn.Sequential(nn.BatchNorm(4)))
    assert model.train() is model
    assert all(m.training for _, m in model._modules())
    model.eval()
    assert not any(m.training for _, m in model._modules())


def test_printing() -> None:
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), Tensor.relu, nn.Sequential(nn.LayerNorm(5)), nn.Linear(2, 3, bias=False))
    assert repr(model).splitlines() == [
        "Sequential(",
        "  layers.0: Conv2d(1, 8, (3, 3), stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1)",
        "  layers.2: Sequential(",
        "    layers.0: LayerNorm((5,), eps=1e-05)",
        "  )",
        "  layers.3: Linear(2, 3, bias=False)",
        ")",
    ]
    assert repr(nn.Embedding(9, 2)) == "Embedding(9, 2)"


def test_the_package_is_light() -> None:
    program = (
        "import sys, morok.nn; print([m for m in sys.modules if m in ('numpy', 'llvmlite') or m.startswith('morok.tensor')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    for package, used in ((nn, "Linear"), (morok, "Tensor")):
        assert getattr(package, used)
        assert dir(package).count(used) == 1
    with pytest.raises(AttributeError, match="Lineal"):
        nn.__getattr__("Lineal")


def test_a_convolutional_network_classifies_real_digits() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert runpy.run_path(str(EXAMPLES / "convnet.py"))["main"]() == 0
    accuracy, in_numpy = map(float, re.findall(r"accuracy: ([\d.]+); in NumPy: ([\d.]+)", printed.getvalue())[0])
    assert accuracy == in_numpy
    assert accuracy > 0.9
