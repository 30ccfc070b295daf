"""Tensors as text, and scalars where Python wants numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from morok import Tensor, Variable, dtypes
from morok.errors import DeviceError, DTypeError, MorokError
from morok.tensor import realize


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("something was computed")

    monkeypatch.setattr(realize, "realize", refuse)


def test_values_of_a_realized_tensor(nothing_runs: None) -> None:
    assert repr(Tensor(np.float32([1, 2.5]))) == "<Tensor (2,) f32 CPU realized [1. , 2.5]>"
    assert repr(Tensor(np.eye(2, dtype=np.int8))) == "<Tensor (2, 2) i8 CPU realized\n[[1, 0],\n [0, 1]]>"
    assert repr(Tensor(np.array([True]))) == "<Tensor (1,) bool CPU realized [ True]>"
    assert repr(Tensor(np.zeros((0, 3), np.float32))) == "<Tensor (0, 3) f32 CPU realized []>"


def test_lazy_tensors_stay_lazy(nothing_runs: None) -> None:
    for t in (Tensor([1.0]) + 1, Tensor([[1.0, 2.0]]).T, Tensor.empty(3), Tensor([1.0], device="NULL")):
        before = t.uop
        text = repr(t)
        assert text.endswith(("lazy>", "realized>"))
        assert t.uop is before
    assert repr(Tensor([1.0]) + 1) == "<Tensor (1,) f32 CPU lazy>"


def test_a_constant_needs_no_memory_to_be_shown(nothing_runs: None) -> None:
    before = (t := Tensor.zeros(2, 1) + 1).uop
    assert repr(t) == "<Tensor (2, 1) f32 CPU constant\n[[1.],\n [1.]]>"
    assert t.uop is before
    assert repr(Tensor(2.5)) == "<Tensor () f32 CPU constant 2.5>"
    assert repr(Tensor.full((2,), -1.5, dtype="bf16")) == "<Tensor (2,) bf16 CPU constant [-1.5, -1.5]>"
    assert repr(Tensor.full((1,), 2**64 - 1, dtype="u64")) == f"<Tensor (1,) u64 CPU constant [{2**64 - 1}]>"
    assert len(repr(Tensor.full((1 << 20, 1 << 20), -0.0))) < 500


def test_a_constant_is_shown_when_it_is_realized() -> None:
    assert repr(Tensor.zeros(2).realize()) == "<Tensor (2,) f32 CPU constant [0., 0.]>"


def test_an_assigned_tensor_is_lazy_until_it_is_computed() -> None:
    t = Tensor(np.float32([1, 2]))
    t.assign(Tensor(np.float32([3, 4])) + 1)
    assert repr(t) == "<Tensor (2,) f32 CPU lazy>"
    t.realize()
    assert repr(t) == "<Tensor (2,) f32 CPU realized [4., 5.]>"


@pytest.mark.parametrize(("d", "values"), [("bf16", [1.5, -2.0]), ("f8e4m3", [1.5, -448.0]), ("f8e5m2", [1.5, -0.25])])
def test_formats_that_numpy_has_not(d: str, values: list[float]) -> None:
    t = Tensor(values, dtype=d).realize()
    expected = np.array2string(np.float32(values), separator=", ")
    assert repr(t) == f"<Tensor (2,) {d} CPU realized {expected}>"


def test_many_values_are_elided(nothing_runs: None) -> None:
    assert "..." not in repr(Tensor(np.arange(1000)))
    text = repr(Tensor(np.arange(1001)))
    assert "..." in text
    assert text.endswith("998,  999, 1000]>")
    assert len(repr(Tensor(np.zeros((1 << 10, 1 << 10), np.float32)))) < 500


def test_a_symbolic_shape() -> None:
    n = Variable("n", 1, 8)
    x = Tensor(np.arange(8.0, dtype=np.float32))
    t = x.shrink([(0, n.bind(3))]) + 1
    t.realize()
    assert repr(t).endswith("realized [1., 2., 3.]>")
    assert repr(Tensor.empty(n.node)).startswith("<Tensor (n,) f32")


# Scalars.


@pytest.mark.parametrize("spec", ["", ".2f", "8.3e", "g", "+.1%", ">10"])
@pytest.mark.parametrize("value", [1.23456, -2.5, math.inf, math.nan])
def test_scalars_are_formatted_as_numbers(spec: str, value: float) -> None:
    assert f"{Tensor(value, dtype='f64'):{spec}}" == f"{value:{spec}}"
    assert f"{Tensor(np.array([value])).sum():{spec}}" == f"{value:{spec}}"


@pytest.mark.parametrize("spec", ["d", "x", ",", "05"])
def test_integers_are_formatted_as_numbers(spec: str) -> None:
    assert f"{Tensor(12345):{spec}}" == f"{12345:{spec}}"


def test_a_format_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="format"):
        f"{Tensor(1.5):d}"
    with pytest.raises(DeviceError, match="NULL"):
        f"{Tensor([1.5], device='NULL').sum():.2f}"
    for x in (np.ones(1), np.ones((2, 2))):
        with pytest.raises(TypeError):
            f"{x:.2f}"
        with pytest.raises(TypeError) as caught:
            f"{Tensor(x):.2f}"
        assert isinstance(caught.value, MorokError)
        assert f"{Tensor(x)}" == repr(Tensor(x))


def test_scalars_are_rounded_as_numbers() -> None:
    for value in (2.5, 3.5, -2.5, 1.25, 1234.567):
        t = Tensor(np.array(value))
        assert (round(t), type(round(t))) == (round(value), int)
        assert (round(t, 1), type(round(t, 1))) == (round(value, 1), float)
        assert round(t, -2) == round(value, -2)
    assert round(Tensor(1234), -2) == 1200
    assert (math.floor(Tensor(2.5)), math.ceil(Tensor(2.5)), math.trunc(float(Tensor(-2.5)))) == (2, 3, -2)
    for shape in [(1,), (2, 2), (0,)]:
        with pytest.raises(TypeError):
            round(np.ones(shape))
        with pytest.raises(TypeError) as caught:
            round(Tensor(np.ones(shape)))
        assert isinstance(caught.value, MorokError)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("d", ["int32", "uint8", "float32", "float64"])
def test_divmod(d: str) -> None:
    x, y = np.array([7, 9, 0, 8], d), np.array([2, 3, 5, 7], d)
    for ours, theirs in [
        (divmod(Tensor(x), Tensor(y)), divmod(x, y)),
        (divmod(Tensor(x), 3), divmod(x, 3)),
        (divmod(100, Tensor(y)), divmod(100, y)),
        (divmod(Tensor(x[0].reshape(())), 2), divmod(x[0], 2)),
    ]:
        for mine, expected in zip(ours, theirs, strict=True):
            assert mine.numpy().dtype == expected.dtype
            np.testing.assert_array_equal(mine.numpy(), expected)


# To another dtype.


def test_to_a_dtype() -> None:
    t = Tensor([1.5, -2.5])
    for wanted in (dtypes.f64, np.float64, np.dtype("float64")):
        assert t.to(wanted).dtype is dtypes.f64
        assert t.to(wanted).tolist() == [1.5, -2.5]
    assert t.to(int).tolist() == [1, -2]
    assert (t.to("CPU", dtypes.f16).dtype, t.to(dtype="i8").dtype) == (dtypes.f16, dtypes.i8)
    assert t.to("NULL", dtypes.f16).device == "NULL"
    assert t.to("NULL", "bf16").dtype is dtypes.bf16
    assert t.to("CPU").dtype is dtypes.f32
    for wrong in (dtypes.index, 3, [dtypes.f64]):
        with pytest.raises(DTypeError):
            t.to(wrong)
    with pytest.raises(DTypeError):
        t.to(dtypes.f64, dtypes.f16)


@pytest.mark.parametrize("d", ["bf16", "f8e4m3", "f8e5m2", "f16", "u8"])
def test_copies_keep_their_dtype(d: str) -> None:
    t = Tensor([1.5, 2.0], dtype=d)
    assert t.clone().dtype is t.dtype
    assert t.to("NULL").dtype is t.dtype
    assert t.clone().tolist() == t.tolist()
