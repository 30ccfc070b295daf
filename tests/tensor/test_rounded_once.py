"""Functions of several elements of integers and halves: their values in f64, rounded once."""

import ml_dtypes
import numpy as np
import pytest

from morok import Tensor

BFLOAT16 = ml_dtypes.bfloat16
ARRAYS = {
    "neighbours beyond 2^24": np.array([16777216, 16777217, 16777218], np.int32),
    "neighbours below 2^53": np.array([2**53 - 1, 2**53 - 2, 2**53 - 3], np.int64),
    "the greatest": np.array([2**64 - 1, 2**63], np.uint64),
    "bytes": np.arange(100_003, dtype=np.uint32).astype(np.uint8),
    "bools": np.array([True, False, True]),
    "halves whose squares overflow": np.array([0, 600, 900], np.float16),
    "halves that are close": (1000 + np.arange(97) % 7).astype(np.float16),
    "one": np.array([7], np.int16),
}


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


FUNCTIONS = {
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "softmax": _softmax,
    "log_softmax": lambda x: x - x.max() - np.log(np.exp(x - x.max()).sum()),
    "logsumexp": lambda x: x.max() + np.log(np.exp(x - x.max()).sum()),
    "layernorm": lambda x: (x - x.mean()) / np.sqrt(x.var() + 1e-5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("words", ARRAYS)
def test_values_are_rounded_once(words: str, name: str) -> None:
    array = ARRAYS[words]
    found = getattr(Tensor(array), name)()
    dtype = np.float16 if array.dtype == np.float16 else np.float32
    with np.errstate(over="ignore"):
        expected = np.asarray(FUNCTIONS[name](array.astype(np.float64))).astype(dtype)
    assert found.numpy().dtype == dtype
    np.testing.assert_array_max_ulp(found.numpy(), expected, 1)


@pytest.mark.parametrize("name", ["std", "log_softmax"])
def test_bf16_is_rounded_once(name: str) -> None:
    array = (100 + np.arange(65) % 5).astype(BFLOAT16)
    expected = np.asarray(FUNCTIONS[name](array.astype(np.float64))).astype(BFLOAT16).astype(np.float32)
    found = getattr(Tensor(array.astype(np.float32)).cast("bf16"), name)().numpy()
    np.testing.assert_allclose(found, expected, rtol=2**-8)


@pytest.mark.parametrize("dtype", ["u8", "i8", "u64", "bool"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_differences_of_integers_do_not_wrap(dtype: str, reduction: str) -> None:
    a, b = np.array([1, 0, 120]), np.array([2, 100, 1])
    if dtype == "bool":
        a, b = a != 0, b != 0
    reduced = {"none": lambda x: x, "mean": np.mean, "sum": np.sum}[reduction]
    distance = np.abs(a.astype(np.float64) - b)
    x, y = Tensor(a).cast(dtype), Tensor(b).cast(dtype)
    np.testing.assert_allclose(x.l1_loss(y, reduction).numpy(), reduced(distance), rtol=1e-7)
    np.testing.assert_allclose(x.mse_loss(y, reduction).numpy(), reduced(distance * distance), rtol=1e-7)


def test_targets_of_integers_leave_the_dtype_of_the_loss() -> None:
    losses = Tensor([0.5, 0.25]).binary_cross_entropy([1, 0], "none")
    assert "double" not in losses.kernels()[0].code
    np.testing.assert_allclose(losses.numpy(), -np.log([0.5, 0.75]), rtol=1e-6)
