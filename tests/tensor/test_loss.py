"""Losses against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from morok import Tensor
from morok.errors import DTypeError, ShapeError

RNG = np.random.default_rng(0)
LOGITS = RNG.standard_normal((6, 5)).astype(np.float32)
OTHER = RNG.random((6, 5)).astype(np.float32)
CLASSES = np.array([0, 4, 2, 2, 1, 3])
WEIGHT = RNG.random(5).astype(np.float32)
LOGS = (LOGITS - np.log(np.exp(LOGITS.astype(np.float64)).sum(1, keepdims=True))).astype(np.float64)


def check(ours: Tensor, theirs: Any) -> None:
    assert ours.shape == np.shape(theirs)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_distances() -> None:
    x = Tensor(LOGITS)
    squared = (LOGITS.astype(np.float64) - OTHER) ** 2
    check(x.mse_loss(OTHER), squared.mean())
    check(x.mse_loss(Tensor(OTHER), "sum"), squared.sum())
    check(x.mse_loss(OTHER, "none"), squared)
    check(x.l1_loss(OTHER), np.abs(LOGITS - OTHER).mean())


@pytest.mark.long
def test_binary_cross_entropy() -> None:
    p = 1 / (1 + np.exp(-LOGITS.astype(np.float64)))
    theirs = -(OTHER * np.log(p) + (1 - OTHER) * np.log(1 - p))
    check(Tensor(LOGITS).binary_cross_entropy_with_logits(OTHER, "none"), theirs)
    check(Tensor(LOGITS).sigmoid().binary_cross_entropy(OTHER), theirs.mean())
    sure = Tensor([0.0, 1.0]).binary_cross_entropy(Tensor([0.0, 0.0]), "none")
    assert sure.tolist() == [0.0, 100.0]
    assert Tensor([1000.0, -1000.0]).binary_cross_entropy_with_logits(Tensor([1.0, 1.0]), "none").tolist() == [
        0.0,
        1000.0,
    ]


@pytest.mark.long
def test_cross_entropy_of_classes() -> None:
    each = -LOGS[np.arange(6), CLASSES]
    x, t = Tensor(LOGITS), Tensor(CLASSES)
    check(x.cross_entropy(t), each.mean())
    check(x.cross_entropy(CLASSES, reduction="none"), each)
    check(x.log_softmax(1).nll_loss(t, reduction="sum"), each.sum())
    w = WEIGHT[CLASSES]
    check(x.cross_entropy(t, Tensor(WEIGHT)), (each * w).sum() / w.sum())
    kept = CLASSES != 2
    check(x.cross_entropy(t, ignore_index=2), each[kept].mean())
    smooth = 0.9 * each - 0.1 * LOGS.mean(1)
    check(x.cross_entropy(t, label_smoothing=0.1, reduction="none"), smooth)
    check(x.cross_entropy(t, ignore_index=2, label_smoothing=0.1), smooth[kept].mean())
    check(Tensor(LOGITS[0]).cross_entropy(Tensor(3)), -LOGS[0, 3])


def test_cross_entropy_of_pictures_and_of_probabilities() -> None:
    x, t = RNG.standard_normal((2, 5, 3, 4)).astype(np.float32), RNG.integers(0, 5, (2, 3, 4))
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    check(Tensor(x).cross_entropy(t), -np.take_along_axis(logs, t[:, None], 1).mean())
    check(Tensor(LOGITS).cross_entropy(OTHER), -(LOGS * OTHER).sum(1).mean())
    check(Tensor(LOGITS).cross_entropy(OTHER, Tensor(WEIGHT)), -(LOGS * OTHER * WEIGHT).sum(1).mean())
    check(Tensor(LOGITS).cross_entropy(OTHER, label_smoothing=0.2), -(LOGS * (0.8 * OTHER + 0.04)).sum(1).mean())


def test_impossible_classes_do_not_spoil_the_possible() -> None:
    logs = Tensor([[0.0, -np.inf], [-np.inf, 0.0]])
    assert logs.nll_loss(Tensor([0, 1])).item() == 0.0


def test_what_does_not_fit_is_refused() -> None:
    x = Tensor(LOGITS)
    with pytest.raises(ShapeError, match="one shape"):
        x.mse_loss(OTHER[:3])
    with pytest.raises(ShapeError, match=r"\[N, C"):
        x.cross_entropy(CLASSES[:3])
    with pytest.raises(ShapeError, match=r"\(5,\)"):
        x.cross_entropy(CLASSES, Tensor(WEIGHT[:2]))
    with pytest.raises(DTypeError, match="integers"):
        x.nll_loss(CLASSES.astype(np.float32))
    with pytest.raises(DTypeError, match="'mean', 'sum' or 'none'"):
        x.mse_loss(OTHER, "average")
