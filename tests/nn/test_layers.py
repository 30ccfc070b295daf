"""Each layer against NumPy, with the values that it began with or was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from morok import Tensor, nn
from morok.errors import DTypeError, ShapeError


def data(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def close(ours: Tensor, theirs: np.ndarray[Any, Any]) -> None:
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-5)


def test_linear() -> None:
    Tensor.manual_seed(0)
    layer, x = nn.Linear(20, 5), data(3, 4, 20)
    state = layer.state_dict()
    assert {k: v.shape for k, v in state.items()} == {"weight": (5, 20), "bias": (5,)}
    assert all(np.abs(v).max() <= 20**-0.5 for v in state.values())
    assert np.abs(state["weight"]).max() > 0.8 * 20**-0.5
    close(layer(Tensor(x)), x @ state["weight"].T + state["bias"])
    bare = nn.Linear(20, 5, bias=False)
    assert list(bare.state_dict()) == ["weight"]
    close(bare(Tensor(x)), x @ bare.state_dict()["weight"].T)


def test_embedding() -> None:
    layer = nn.Embedding(7, 3)
    rows = layer.state_dict()["weight"]
    at = np.array([[0, 6], [3, 3]])
    np.testing.assert_array_equal(layer(Tensor(at)).numpy(), rows[at])
    assert layer(Tensor([7])).tolist() == [[0.0, 0.0, 0.0]]
    with pytest.raises(DTypeError, match="integers"):
        layer(Tensor([0.5]))


def test_convolutions() -> None:
    x = Tensor(data(2, 4, 9, 8))
    layer = nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, dilation=(1, 2), groups=2)
    assert layer.state_dict()["weight"].shape == (6, 2, 3, 2)
    close(layer(x), x.conv2d(layer.weight, layer.bias, 2, 1, (1, 2), 2).numpy())
    back = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, bias=False)
    assert back.state_dict()["weight"].shape == (4, 3, 3, 3)
    assert back(x).shape == (2, 6, 18, 16)
    close(back(x), x.conv_transpose2d(back.weight, None, 2, 1, 1, 2).numpy())


def test_norms() -> None:
    x, w, b = data(3, 6, 5), data(5, seed=1), data(5, seed=2)
    centred = x - x.mean(-1, keepdims=True)
    normed = centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    close(nn.LayerNorm(5)(Tensor(x)), normed)
    close(nn.LayerNorm(5).load_state_dict({"weight": w, "bias": b})(Tensor(x)), normed * w + b)
    assert nn.LayerNorm((6, 5), elementwise_affine=False).parameters() == []
    close(nn.LayerNorm((6, 5))(Tensor(x)), Tensor(x).layernorm((-2, -1)).numpy())
    close(nn.RMSNorm(5)(Tensor(x)), x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6))
    close(nn.GroupNorm(3, 6)(Tensor(x)), Tensor(x).group_norm(3).numpy())


def test_batch_norm() -> None:
    layer = nn.BatchNorm(4)
    batches = [data(8, 4, 3, seed=s) * 2 + 1 for s in range(3)]
    close(layer(Tensor(batches[0])), batches[0] / np.sqrt(1 + 1e-5))
    mean, var = np.zeros(4), np.ones(4)
    layer.train()
    for x in batches:
        m, v = x.mean((0, 2)), x.var((0, 2))
        close(layer(Tensor(x)), (x - m[:, None]) / np.sqrt(v[:, None] + 1e-5))
        mean, var = 0.9 * mean + 0.1 * m, 0.9 * var + 0.1 * x.var((0, 2), ddof=1)
    state = layer.state_dict()
    np.testing.assert_allclose(state["running_mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(state["running_var"], var, rtol=1e-5)
    assert state["num_batches_tracked"] == 3
    assert len(layer.parameters()) == 2
    x = batches[0]
    close(layer.eval()(Tensor(x)), (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-5))


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda: nn.Linear(0, 3), "at least 1"),
        (lambda: nn.Linear(3, 2.5), "whole number"),  # type: ignore[arg-type]
        (lambda: nn.Conv2d(4, 6, 3, groups=4), "divisor of both"),
        (lambda: nn.Conv2d(4, 6, 3, stride=-1), "at least 1"),
        (lambda: nn.Conv2d(4, 6, (3, 3, 3)), "or 2"),
        (lambda: nn.ConvTranspose2d(4, 6, 3, padding=-1), "at least 0"),
        (lambda: nn.GroupNorm(4, 6), "divisor of 6"),
        (lambda: nn.LayerNorm(5)(Tensor(data(2, 4))), "last axes"),
        (lambda: nn.BatchNorm(5)(Tensor(data(2, 4))), r"\[N, 5"),
        (lambda: nn.BatchNorm(4).train()(Tensor(data(1, 4))), "two values of each channel"),
        (lambda: nn.Embedding(3, 0), "at least 1"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: Any, expected: str) -> None:
    with pytest.raises(ShapeError, match=expected):
        wrong()
