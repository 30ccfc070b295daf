"""Arrays of other libraries: what they hand out comes in, what they refuse is refused with their reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from morok import Tensor, dtypes
from morok.errors import DTypeError, PositionError


class Stranger:
    """An array of a library that raises `problem` when it is asked for its elements, as torch does."""

    def __init__(self, problem: Exception, requires_grad: bool = False) -> None:
        self.problem = problem
        self.requires_grad = requires_grad

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise self.problem

    def __dlpack__(self, **options: Any) -> Any:
        raise self.problem

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def with_gradients() -> Stranger:
    return Stranger(RuntimeError("Can't call numpy() on Tensor that requires grad."), requires_grad=True)


USES: list[Callable[[Stranger], Any]] = [
    Tensor,
    Tensor.from_dlpack,
    lambda s: Tensor([s]),
    lambda s: Tensor([1.0]) + s,
    lambda s: s * Tensor([1.0]),
    lambda s: Tensor([1.0]).assign(s),
    lambda s: Tensor([1.0]) @ s,
    lambda s: Tensor([True]).where(s, 0.0),
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    "problem",
    [
        RuntimeError("Can't call numpy() on Tensor that requires grad."),
        TypeError("Got unsupported ScalarType BFloat16"),
        BufferError("Unsupported dtype in DLTensor."),
        TypeError("can't convert cuda:0 device type tensor to numpy."),
    ],
)
def test_what_a_library_does_not_hand_out(use: Callable[[Stranger], Any], problem: Exception) -> None:
    with pytest.raises(DTypeError) as caught:
        use(Stranger(problem))
    assert str(problem) in str(caught.value)
    assert "float32" in caught.value.hint
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_a_tensor_with_gradients_is_to_be_detached() -> None:
    for use in (Tensor, Tensor.from_dlpack, lambda s: Tensor([1.0]) + s):
        with pytest.raises(DTypeError) as caught:
            use(with_gradients())
        assert "detach()" in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        (ml_dtypes.bfloat16, dtypes.bf16),
        (ml_dtypes.float8_e4m3fn, dtypes.f8e4m3),
        (ml_dtypes.float8_e5m2, dtypes.f8e5m2),
    ],
)
def test_arrays_of_ml_dtypes(kind: Any, ours: Any) -> None:
    x = np.array([[1.5, -2.0, 0.0], [0.25, -0.0, 448.0]], kind)
    t = Tensor(x)
    assert t.dtype is ours
    np.testing.assert_array_equal(t.numpy(), x.astype(np.float32))
    np.testing.assert_array_equal(Tensor(x.T).numpy(), x.T.astype(np.float32))
    np.testing.assert_array_equal(Tensor(x, dtype="f64").numpy(), x.astype(np.float64))
    assert Tensor(x).to("CPU").clone().dtype is ours
    assert Tensor(kind(1.5)).dtype is ours


class Speaker:
    """An array that offers its elements through DLPack alone."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_an_array_that_speaks_dlpack_alone() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for t in (Tensor(Speaker(x)), Tensor.from_dlpack(Speaker(x))):
        assert t.dtype is dtypes.f64
        np.testing.assert_array_equal(t.numpy(), x)


class OfAnotherLibrary:
    """An array with the attributes that torch's tensors have too."""

    def __init__(self, values: Any) -> None:
        self.array = np.asarray(values)
        self.ndim, self.shape, self.dtype = self.array.ndim, self.array.shape, self.array.dtype

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.array, dtype)

    def __index__(self) -> int:
        return int(self.array.item())


@pytest.mark.parametrize(
    "at",
    [
        [0, 2],
        [1],
        [-1, 0, 1],
        [[0, 1], [2, 0]],
        [True, False, True],
        1,
        np.zeros((3, 4)) > 1,
        np.zeros(0, np.int64),
    ],
    ids=str,
)
def test_an_array_of_another_library_as_an_index(at: Any) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    t, key = Tensor(x), OfAnotherLibrary(at)
    np.testing.assert_array_equal(t[key].numpy(), x[np.asarray(at)])
    if key.array.dtype != bool:
        np.testing.assert_array_equal(t[..., key].numpy(), x[..., np.asarray(at)])
    written, expected = Tensor(x.copy()), x.copy()
    written[key] = 7
    expected[np.asarray(at)] = 7
    np.testing.assert_array_equal(written.numpy(), expected)


def test_an_index_of_several_arrays_of_other_libraries() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    rows, columns = [0, 2], [1, 3]
    for key in ((OfAnotherLibrary(rows), Speaker(np.array(columns))), (Speaker(np.array(rows)), columns)):
        np.testing.assert_array_equal(Tensor(x)[key].numpy(), x[rows, columns])
    with pytest.raises(PositionError, match="float64 is not an index"):
        Tensor(x)[OfAnotherLibrary([0.5])]


class Odd(np.ndarray[Any, Any]):
    """A class of arrays whose methods do something else than NumPy's."""

    def reshape(self, *_: Any, **__: Any) -> Any:
        raise ValueError("no other shape")

    view = astype = ravel = copy = reshape


@pytest.mark.parametrize("make", [Tensor, Tensor.from_slice, Tensor.from_numpy, Tensor.from_ndarray])
def test_a_class_of_arrays_is_its_elements(make: Callable[[Any], Tensor]) -> None:
    plain = np.arange(3.0)
    for array in (np.ma.array(plain, mask=[0, 1, 0]), plain.view(Odd), np.rec.array(plain)):
        assert make(array).flatten().tolist() == [0.0, 1.0, 2.0]
        assert (make(array).cast("f32") + 1).flatten().tolist() == [1.0, 2.0, 3.0]
