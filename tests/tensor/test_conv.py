"""Convolutions against NumPy: strides, padding, dilation, groups, dtypes; and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import references
from hypothesis import given, settings
from hypothesis import strategies as st

from morok import Tensor, Variable, dtypes
from morok.errors import DTypeError, ShapeError


def whole(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray[Any, Any]:
    """Small whole numbers: their sums of products are exact in every order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


pair = st.tuples(st.integers(1, 3), st.integers(1, 3))


def conv2d_is_numpys(
    batch: int, groups: int, per: Any, image: Any, size: Any, stride: Any, padding: Any, dilation: Any
) -> None:
    x = whole((batch, groups * per[0], *image))
    w, b = whole((groups * per[1], per[0], *size), seed=1), whole((groups * per[1],), seed=2)
    if any(n + 2 * p < d * (k - 1) + 1 for n, p, d, k in zip(image, padding, dilation, size, strict=True)):
        with pytest.raises(ShapeError, match="no window"):
            Tensor(x).conv2d(Tensor(w), None, stride, padding, dilation, groups)
        return
    ours = Tensor(x).conv2d(Tensor(w), Tensor(b), stride, padding, dilation, groups)
    assert len(ours.schedule()) <= 1
    np.testing.assert_array_equal(
        ours.numpy(), references.conv2d(x, w, stride, padding, dilation, groups) + b[:, None, None]
    )


@pytest.mark.parametrize("examples", [5, pytest.param(25, marks=pytest.mark.long)])
def test_conv2d_is_numpys(examples: int) -> None:
    settings(max_examples=examples)(
        given(
            batch=st.integers(0, 2),
            groups=st.integers(1, 3),
            per=st.tuples(st.integers(1, 3), st.integers(1, 3)),
            image=st.tuples(st.integers(1, 11), st.integers(1, 11)),
            size=pair,
            stride=pair,
            padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
            dilation=pair,
        )(conv2d_is_numpys)
    )()


@pytest.mark.long
@settings(max_examples=20)
@given(
    groups=st.integers(1, 2),
    per=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    image=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    size=pair,
    stride=pair,
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    more=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    dilation=pair,
)
def test_conv_transpose2d_is_numpys(
    groups: int, per: Any, image: Any, size: Any, stride: Any, padding: Any, more: Any, dilation: Any
) -> None:
    more = tuple(min(m, max(s, d) - 1) for m, s, d in zip(more, stride, dilation, strict=True))
    x, w = whole((2, groups * per[0], *image)), whole((groups * per[0], per[1], *size), seed=1)
    theirs = references.conv_transpose2d(x, w, stride, padding, more, dilation, groups)
    if 0 in theirs.shape:
        with pytest.raises(ShapeError, match="leaves nothing"):
            Tensor(x).conv_transpose2d(Tensor(w), None, stride, padding, more, groups, dilation)
        return
    ours = Tensor(x).conv_transpose2d(Tensor(w), None, stride, padding, more, groups, dilation)
    assert len(ours.schedule()) == 1
    np.testing.assert_array_equal(ours.numpy(), theirs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("d", ["int8", "int32", "uint8", "int64", "float16", "float64"])
def test_dtypes(d: str) -> None:
    x, w = abs(whole((1, 2, 5, 5), d)), abs(whole((3, 2, 3, 3), d, 1))
    ours = Tensor(x).conv2d(Tensor(w), padding=1).numpy()
    assert ours.dtype == x.dtype
    np.testing.assert_array_equal(ours, references.conv2d(x, w, (1, 1), (1, 1), (1, 1), 1))
    mixed = Tensor(x).conv2d(Tensor(w).cast("f64"), Tensor(np.zeros(3)))
    assert mixed.dtype is dtypes.f64


def test_values_that_are_no_numbers_stay_where_they_are() -> None:
    x = np.zeros((1, 1, 5, 5), np.float32)
    x[0, 0, 0, 0], x[0, 0, 4, 4] = np.nan, np.inf
    w = np.ones((1, 1, 2, 2), np.float32)
    with np.errstate(invalid="ignore"):
        theirs = references.conv2d(x, w, (1, 1), (1, 1), (1, 1), 1)
    np.testing.assert_array_equal(Tensor(x).conv2d(Tensor(w), padding=1).numpy(), theirs)


def test_one_axis() -> None:
    x, w = whole((2, 3, 17)), whole((4, 3, 5), seed=1)
    theirs = references.conv2d(x[:, :, None], w[:, :, None], (1, 2), (0, 2), (1, 3), 1)[:, :, 0]
    np.testing.assert_array_equal(Tensor(x).conv1d(Tensor(w), None, 2, 2, 3).numpy(), theirs)


def test_a_batch_of_any_size_within_bounds_is_one_program() -> None:
    n = Variable("images", 1, 4)
    x, w = whole((4, 2, 5, 5)), Tensor(whole((3, 2, 3, 3), seed=1))
    for size in (1, 3):
        images = Tensor(x).shrink([(0, n.bind(size)), None, None, None])
        theirs = references.conv2d(x[:size], w.numpy(), (1, 1), (1, 1), (1, 1), 1)
        np.testing.assert_array_equal(images.conv2d(w, padding=1).numpy(), theirs)


def test_every_backend_has_code_for_them() -> None:
    x, w = Tensor(whole((2, 4, 9, 8))), Tensor(whole((4, 3, 3, 3)))
    for device, said in (("CPU", "define void"), ("CUDA", "__global__")):
        # the loops of the strides become divisions of the hardware's indices
        (kernel,) = x.conv_transpose2d(w, None, 2, 1, 1, 2).kernels(device=device)
        assert said in kernel.code


X, W = Tensor(whole((1, 4, 5, 5))), Tensor(whole((6, 4, 3, 3)))


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda: X.conv2d(W, stride=-1), "at least 1"),
        (lambda: X.conv2d(W, stride=0), "at least 1"),
        (lambda: X.conv2d(W, stride=1.5), "whole number"),
        (lambda: X.conv2d(W, stride=(1, 2, 3)), "or 2"),
        (lambda: X.conv2d(W, padding=-1), "at least 0"),
        (lambda: X.conv2d(W, dilation=0), "at least 1"),
        (lambda: X.conv2d(W, groups=3), "groups dividing"),
        (lambda: X.conv2d(W, groups=0), "at least 1"),
        (lambda: X.conv2d(W[:, :3]), "groups dividing"),
        (lambda: X.conv2d(W[0]), "4 axes"),
        (lambda: X[0].conv2d(W), "makes a batch"),
        (lambda: X.conv2d(W, Tensor([1.0])), r"\(6,\)"),
        (lambda: X.conv2d(W, dilation=3), "at least 7 elements"),
        (lambda: X.conv2d(W.shrink([None, None, (0, 0), None])), "window"),
        (lambda: X.conv_transpose2d(W), r"C, O / groups"),
        (lambda: X.conv_transpose2d(W[:4], output_padding=1), "less than stride"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: Any, expected: str) -> None:
    with pytest.raises(ShapeError, match=expected):
        wrong()


def test_other_things_than_numbers_are_refused() -> None:
    with pytest.raises(DTypeError, match="tensors"):
        X.conv2d(np.zeros((6, 4, 3, 3)))  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="numbers"):
        X.bool().conv2d(W.bool())
