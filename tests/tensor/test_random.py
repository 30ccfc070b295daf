"""Random numbers: the generator's published words, the same numbers everywhere, and what they look like."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from morok import Tensor, dtypes
from morok.errors import DTypeError, ShapeError
from morok.ir.op import Op
from morok.ir.ops.transcendental import threefry
from morok.ir.uop import UOp
from morok.tensor import schedule

# Random123's known answers for threefry2x32 with 20 rounds: counter, key, result; the first word is the low half.
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def word(halves: tuple[int, int]) -> int:
    return halves[0] | halves[1] << 32


def test_the_block_function_gives_the_published_words() -> None:
    counters, keys = (Tensor(np.array([word(k[i]) for k in KNOWN], np.uint64)) for i in (0, 1))
    ours = Tensor._make(UOp.new(Op.Threefry, (counters.uop, keys.uop)), "CPU")
    assert ours.tolist() == [word(k[2]) for k in KNOWN]


def test_numbers_are_the_generators_words() -> None:
    Tensor.manual_seed(42)
    for call in (1, 2):
        key = threefry(dtypes.u64, call, 42)
        words = [threefry(dtypes.u64, i, key) for i in range(6)]
        assert Tensor.rand(2, 3).numpy().reshape(-1).tolist() == [float((w >> 40) * 2.0**-24) for w in words]


@pytest.mark.long
def test_the_same_seed_gives_the_same_numbers_in_every_process() -> None:
    program = "from morok import Tensor; Tensor.manual_seed(7); Tensor.rand(3); print(Tensor.randint(4, low=-9, high=9).tolist())"
    printed = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    Tensor.manual_seed(7)
    Tensor.rand(3)
    assert printed == [f"{Tensor.randint(4, low=-9, high=9).tolist()}\n"] * 2


def test_calls_differ_and_compile_once() -> None:
    Tensor.manual_seed(0)
    a = Tensor.rand(64).numpy()
    before = schedule.COUNTERS.kernels_lowered
    b = Tensor.rand(64).numpy()
    assert schedule.COUNTERS.kernels_lowered == before
    assert not np.any(a == b)
    Tensor.manual_seed(0)
    np.testing.assert_array_equal(Tensor.rand(64).numpy(), a)


N = 40_000


@pytest.mark.parametrize("d", ["f16", "f32", "f64"])
def test_uniform_numbers(d: str) -> None:
    Tensor.manual_seed(1)
    x = Tensor.rand(N, dtype=d).numpy().astype(np.float64)
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - 0.5) < 5 * math.sqrt(1 / 12 / N) + 2.0**-11
    assert np.abs(np.histogram(x, 16, (0, 1))[0] / N - 1 / 16).max() < 5 * math.sqrt(1 / 16 / N) + 2.0**-11
    y = Tensor.uniform(N, low=-3.0, high=5.0, dtype=d).numpy()
    assert -3 <= y.min() < -2.9 < 4.9 < y.max() <= 5


@pytest.mark.sampled(4)
@pytest.mark.parametrize("d", ["f16", "bf16", "f32", "f64"])
def test_normal_numbers(d: str) -> None:
    Tensor.manual_seed(2)
    x = Tensor.randn(N, dtype=d).numpy().astype(np.float64)
    assert abs(x.mean()) < 5 / math.sqrt(N)
    assert abs(x.var() - 1) < 0.05
    inside = [(np.abs(x) < k).mean() for k in (1, 2, 3)]
    np.testing.assert_allclose(inside, [0.6827, 0.9545, 0.9973], atol=0.012)
    y = Tensor.normal(N, mean=10.0, std=0.5, dtype="f64").numpy()
    assert abs(y.mean() - 10) < 0.02
    assert abs(y.std() - 0.5) < 0.02


def test_integers() -> None:
    Tensor.manual_seed(3)
    x = Tensor.randint(N, low=-3, high=5).numpy()
    counts = np.unique(x, return_counts=True)
    assert counts[0].tolist() == list(range(-3, 5))
    assert np.abs(counts[1] / N - 1 / 8).max() < 0.01
    for d, low, high in [("i8", -128, 128), ("u8", 250, 256), ("u64", 0, 1 << 64), ("i64", -(1 << 63), 1 << 63)]:
        y = Tensor.randint(500, low=low, high=high, dtype=d).numpy()
        assert low <= int(y.min()) <= int(y.max()) < high
        assert len(np.unique(y)) > min(high - low, 500) // 2


@pytest.mark.long
def test_permutations() -> None:
    Tensor.manual_seed(4)
    for n in (0, 1, 2, 100, 1500):
        assert sorted(Tensor.randperm(n).tolist()) == list(range(n))
    assert Tensor.randperm(100).tolist() != Tensor.randperm(100).tolist()


def test_dropout() -> None:
    Tensor.manual_seed(5)
    x = Tensor.ones(N).contiguous()
    y = x.dropout(0.25).numpy()
    assert set(np.unique(y).tolist()) == {0.0, np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    assert x.dropout(0.25, training=False) is not None
    np.testing.assert_array_equal(x.dropout(0.9, training=False).numpy(), 1)
    np.testing.assert_array_equal(x.dropout(1.0).numpy(), 0)
    np.testing.assert_array_equal(x.dropout(0.0).numpy(), 1)


def test_shapes() -> None:
    assert Tensor.rand().shape == ()
    assert Tensor.rand(0, 3).numpy().shape == (0, 3)
    assert Tensor.randn((2, 1, 5)).numpy().shape == (2, 1, 5)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: Tensor.rand(2, dtype="i32"), DTypeError),
        (lambda: Tensor.randint(2, dtype="f32"), DTypeError),
        (lambda: Tensor.randint(2, low=5, high=5), ShapeError),
        (lambda: Tensor.randint(2, low=0, high=257, dtype="u8"), ShapeError),
        (lambda: Tensor.randint(2, low=-1, high=7, dtype="u8"), ShapeError),
        (lambda: Tensor.uniform(2, low=1.0, high=0.0), ShapeError),
        (lambda: Tensor.uniform(2, high=math.inf), ShapeError),
        (lambda: Tensor.normal(2, std=-1.0), ShapeError),
        (lambda: Tensor.manual_seed(0.5), ShapeError),  # type: ignore[arg-type]
        (lambda: Tensor.ones(2).dropout(1.5), ShapeError),
        (lambda: Tensor.randperm(-1), ShapeError),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        wrong()
    assert "expected" in str(caught.value)
