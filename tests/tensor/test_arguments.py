"""Wrong arguments of tensors' functions: an error of ours, at the line that passes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, UOp, dtypes
from morok.errors import DeviceError, MorokError
from morok.ir.op import Op


def three() -> Tensor:
    return Tensor([1.0, 2.0, 3.0])


def ids() -> Tensor:
    return Tensor([1, 2, 3])


def deep() -> list[Any]:
    inner: list[Any] = []
    for _ in range(3000):
        inner = [inner]
    return inner


WRONG: dict[str, Callable[[], Any]] = {
    "a dtype as a shape": lambda: Tensor.full(dtypes.f32, three()),
    "a number as axes": lambda: three().permute_dims(3),
    "a number as a shape": lambda: three().broadcast_to(2.5),
    "a class as an axis": lambda: three().softmax(int),
    "an array that is no list of tensors": lambda: Tensor.all_reduce(np.array(1.5)),
    "a list that never ends as a dtype of NumPy's": lambda: three().__array__(deep()),
    "an option that DLPack has not": lambda: three().__dlpack__(stream_of="x"),
    "a list that never ends as an axis": lambda: three().cummax(tuple(deep())),
    "more classes than places": lambda: ids().one_hot(2**64),
    "more elements than places": lambda: Tensor.zeros(2**40, 2**40).sum(),
    "a product of more elements than places": lambda: Tensor.ones(2**40, 1) + Tensor.ones(1, 2**40),
    "a sequence of more elements than places": lambda: Tensor.arange(0, 1.0, 5e-324),
    "a sequence to infinity": lambda: Tensor.arange(float("inf")),
    "a sequence from a word": lambda: Tensor.arange("a", 5),
    "a line to a set": lambda: Tensor.linspace(0.5, {1}, 10),
    "a pair of halves": lambda: three().pad([(0.5, 1)]),
    "less than nothing repeated": lambda: three().repeat_interleave(-1, 0),
    "a bound of NumPy's beyond the end": lambda: three().shrink([(np.int64(0), np.int64(9))]),
    "a flag of letters": lambda: three().sum(0, "no"),
    "a flag that is an array": lambda: three().max(0, np.array([True, False])),
    "a number of letters": lambda: three().std(correction="a"),
    "a probability of letters": lambda: three().dropout("mean"),
    "a bound of letters": lambda: Tensor.uniform(3, low="a"),
    "a deviation that is an array": lambda: Tensor.normal(3, std=np.ones((1, 2))),
    "an array as a reduction": lambda: three().mse_loss(three(), np.arange(3)),
    "an array as an approximation": lambda: three().gelu(np.arange(3)),
    "an array as a dtype": lambda: Tensor.rand(3, dtype=np.zeros(3)),
    "lanes as a dtype": lambda: three().cast(dtypes.f32.vec(4)),
    "a pointer as a dtype": lambda: Tensor([1.0], dtype=dtypes.f32.ptr(4)),
    "nothing as a dtype": lambda: Tensor.zeros(3, dtype=dtypes.void),
    "a device of 7": lambda: three().to(7),  # type: ignore[arg-type]
    "a device that is none": lambda: Tensor.zeros(3, device="GPU"),
    "a kernel for an array": lambda: three().kernels(np.ones(2)),  # type: ignore[arg-type]
    "an op as a configuration": lambda: three().prepare(dtypes.f32),  # type: ignore[arg-type]
    "a number over DLPack": lambda: Tensor.from_dlpack(3),
    "big ends first over DLPack": lambda: Tensor.from_dlpack(np.arange(3, dtype=">i4")),
    "an array of a dtype of ours": lambda: three().__array__(dtypes.f32),
    "a flat sequence in a shape of halves": lambda: Tensor.from_slice([1, 2], 0.5),  # type: ignore[arg-type]
    "ragged positions": lambda: three().take([[1], [1, 2]]),
    "a class as an index": lambda: three()[np.int8],
    "a class as an index that is written": lambda: three().__setitem__(np.int8, 0.0),
    "positions of a scalar": lambda: Tensor(1.0).nonzero(),
    "a tuple as a weight": lambda: three().linear(()),  # type: ignore[arg-type]
    "a word as a bias": lambda: Tensor.ones(1, 2, 3).group_norm(1, bias="a"),  # type: ignore[arg-type]
    "a number as a formula": lambda: Tensor.einsum(3, three()),  # type: ignore[arg-type]
    "a list of numbers as lists of axes": lambda: three().tensordot(three(), [0, 1, 2]),
    "no lists of axes": lambda: three().tensordot(three(), []),
    "an array as a choice": lambda: Tensor.meshgrid(three(), indexing=np.arange(2)),
    "an axis by place and by name": lambda: three().sum(0, axis=0),  # type: ignore[misc]
    "a node of lanes": lambda: divmod(UOp.var("v", dtypes.i32.vec(2)), ids()),
    "a node of lanes as elements": lambda: Tensor(UOp.var("v", dtypes.i32.vec(2))),
    "a node of a float, which is no size": lambda: ids() + UOp.const(1.5, dtypes.f32),
    "a sequence of more elements than there is memory for": lambda: three() + range(2**40),
    "a node of nothing": lambda: UOp(),
    "a tensor as an operand of a node": lambda: UOp.new(Op.Add, (ids(), ids().uop)),  # type: ignore[arg-type]
    "a number that hears": lambda: morok.prove([], total=1),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_have_an_error_of_ours_at_their_line(what: str) -> None:
    with pytest.raises(MorokError) as caught:
        WRONG[what]()
    assert caught.value.place is not None
    assert caught.value.place.file == __file__
    assert caught.value.expected or caught.value.hint
    assert len(str(caught.value)) < 600


SAID: dict[str, tuple[Callable[[], Any], str, str]] = {
    "no such axis": (lambda: three().sum(1), "axis 1 does not exist in shape (3,)", "an axis in -1..=0"),
    "an axis of a scalar": (
        lambda: Tensor(1.0).sum(0),
        "axis 0 does not exist in shape ()",
        "no axis: a scalar has none",
    ),
    "no such element": (lambda: three()[3], "index 3 is outside axis 0 of shape (3,)", "-3..=2"),
    "no such element among several": (lambda: three()[[0, 3]], "index 3 is outside axis 0 of shape (3,)", "-3..=2"),
    "an element of none": (lambda: three()[:0][0], "index 0 is outside axis 0 of shape (0,)", "an axis with elements"),
    "no order": (lambda: three().permute(0, 0), "(0, 0) is not an order of the axes of shape (3,)", "each of 0 once"),
    "less than no elements": (
        lambda: three().reshape(3, -2),
        "(3,) cannot become (3, -2)",
        "sizes of at least 0, of which one may be -1: what remains",
    ),
    "a trace of no matrix": (lambda: three().trace(), "trace() of shape (3,)", "two axes or more"),
    "a triangle of no matrix": (lambda: three().tril(), "tril() of shape (3,)", "two axes or more"),
    "no matrix transposed": (lambda: three().mT, "mT of shape (3,)", "two axes or more"),
    "numbers as a mask": (lambda: three().masked_fill(ids(), 0), "masked_fill() by a mask of dtype i64", "bools"),
    "nothing to join": (lambda: Tensor.concat([]), "concat of nothing", "a list of at least one tensor"),
    "a word": (lambda: Tensor([1, "a"]), "a tensor cannot hold texts", "bools, integers or floats"),
}


@pytest.mark.parametrize("what", SAID)
def test_an_error_says_what_the_user_wrote_and_what_would_do(what: str) -> None:
    call, message, expected = SAID[what]
    with pytest.raises(MorokError) as found:
        call()
    assert (found.value.message, found.value.expected) == (message, expected)


def test_tensors_of_two_devices_do_not_mix() -> None:
    there = Tensor([0, 1, 2], device="NULL")
    for use in (
        lambda: three().mse_loss(there),
        lambda: three()[there],
        lambda: three().take_along_axis(there),
        lambda: three().masked_fill(there > 1, 0.0),
        lambda: (there > 1).where(three(), 0.0),
        lambda: three().__setitem__(there > 1, 0.0),
        lambda: Tensor.ones(3, 2).nll_loss(there),
    ):
        with pytest.raises(DeviceError):
            use()


def test_numbers_of_numpy_and_flags_of_zero_and_one_are_taken() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = Tensor(x)
    assert t.sum(np.int64(1), np.True_).shape == (2, 1)
    assert t.sum(1, 1).shape == (2, 1)
    assert t.reshape(np.int32(3), np.uint8(2)).shape == (3, 2)
    assert t.pad([(np.int64(1), 0), None]).shape == (3, 3)
    assert t.std(correction=np.float32(1)).item() == pytest.approx(x.std(ddof=1))
    assert t.tensordot(t, [1, 1]).shape == (2, 2)
    assert Tensor.arange(np.float64(0), 2, 0.5).shape == (4,)
    assert t.broadcast_to([4, 2, 3]).shape == (4, 2, 3)
    assert t.permute_dims([1, 0]).shape == (3, 2)


def test_a_triangle_beyond_the_matrix_is_all_or_nothing() -> None:
    x = np.arange(1, 7, dtype=np.int64).reshape(2, 3)
    t = Tensor(x)
    for diagonal in (-(2**40), -3, -2, -1, 0, 1, 2, 3, 2**40):
        near = max(-9, min(diagonal, 9))
        assert np.array_equal(t.tril(diagonal).numpy(), np.tril(x, near))
        assert np.array_equal(t.triu(diagonal).numpy(), np.triu(x, near))


def test_the_sign_bit_of_stored_floats() -> None:
    x = Tensor([1.0, -2.0, -0.0, 0.5], dtype="f8e4m3")
    assert x.signbit().numpy().tolist() == [False, True, True, False]
