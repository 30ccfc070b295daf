"""Layers of layers: names, parameters, states, how they print; and the example."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, nn
from morok.errors import MorokError, StateError

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
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), Tensor.relu, nn.Sequential(nn.LayerNorm(5)), nn.Linear(2, 3, bias=False)
    )
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
        "import sys, morok.nn; print([m for m in sys.modules if m in ('numpy', 'llvmlite') or m.startswith('morok.t')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    for package, used in ((nn, "Linear"), (morok, "Tensor")):
        assert getattr(package, used)
        assert dir(package).count(used) == 1
    with pytest.raises(AttributeError, match="Lineal"):
        nn.__getattr__("Lineal")


@pytest.mark.long
def test_a_convolutional_network_classifies_real_digits() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert runpy.run_path(str(EXAMPLES / "convnet.py"))["main"]() == 0
    accuracy, in_numpy = map(float, re.findall(r"accuracy: ([\d.]+); in NumPy: ([\d.]+)", printed.getvalue())[0])
    assert accuracy == in_numpy
    assert accuracy > 0.9


WRONG: dict[str, Callable[[], Any]] = {
    "a layer that cannot be called": lambda: nn.Sequential((1,)),  # type: ignore[arg-type]
    "a list as an input": lambda: nn.Linear(3, 2)([1.0, 2.0, 3.0]),  # type: ignore[arg-type]
    "an array as an image": lambda: nn.Conv2d(1, 1, 1)(np.ones((1, 1, 2, 2))),  # type: ignore[arg-type]
    "a word as a batch": lambda: nn.BatchNorm(2)("a"),  # type: ignore[arg-type]
    "a number as a row": lambda: nn.LayerNorm(3)(3),  # type: ignore[arg-type]
    "a number as classes": lambda: nn.Embedding(3, 2)(3),  # type: ignore[arg-type]
    "a flag of letters": lambda: nn.Linear(3, 2, bias="no"),  # type: ignore[arg-type]
    "an eps of letters": lambda: nn.LayerNorm(3, eps="small"),  # type: ignore[arg-type]
    "a layer larger than memory can be": lambda: nn.Linear(2**40, 2**40),
    "a mode that is none": lambda: nn.Linear(3, 2).train(None),  # type: ignore[arg-type]
    "a number as a state": lambda: nn.Linear(3, 2).load_state_dict(4),  # type: ignore[arg-type]
    "a state of numbered arrays": lambda: nn.Linear(3, 2).load_state_dict({0: 1}),  # type: ignore[dict-item]
    "a state of ragged lists": lambda: nn.Linear(3, 2).load_state_dict({"weight": [[1], [1, 2]], "bias": [0, 0]}),
    "a layer without a value": lambda: nn.Module()(Tensor(1.0)),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_have_an_error_of_ours_at_their_line(what: str) -> None:
    with pytest.raises(MorokError) as caught:
        WRONG[what]()
    assert caught.value.place is not None
    assert caught.value.place.file == __file__
    assert caught.value.expected
