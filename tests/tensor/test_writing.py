"""x[key] = value, against NumPy; who sees what is written, and who does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morok import Tensor, dtypes
from morok.errors import DeviceError, DTypeError, MorokError, ShapeError, UsageError
from morok.tensor import schedule, stored

X = np.random.default_rng(0).standard_normal((5, 6, 7)).astype(np.float32)
AT, TO = np.array([[0, -1], [3, 2]]), np.array([1, 2])
KEYS: list[Any] = [
    -1,
    (1, 2),
    (1, 2, 3),
    (2, slice(None), -1),
    slice(1, 3),
    slice(None, None, -2),
    (slice(4, 0, -3), ..., slice(1, 6, 2)),
    (None, slice(None), 2),
    ...,
    slice(3, 3),
    (AT,),
    (slice(None), np.array([0, 0, 1])),
    (TO, slice(None), np.array([0, 3])),
    (slice(1, 3), np.array([1, 1]), 2),
    (slice(None, None, -2), np.array([0, 3]), -1),
    (None, slice(None), TO),
    (np.zeros(0, int),),
    (X > 0,),
    (X[:, 0, 0] > 0,),
    (slice(None), X[0, :, 0] > 0),
    (X > 9,),
]


def agrees(x: np.ndarray[Any, Any], key: Any, value: Any, lazy: bool = False, positions: bool = False) -> None:
    """The tensor after x[key] = value is NumPy's, and where its memory is, it stays."""
    wanted = x.copy()
    wanted[key] = value
    t = Tensor(x.copy()) + 0 if lazy else Tensor(x.copy())
    memory = t.buffer
    parts = key if isinstance(key, tuple) else (key,)
    chosen = tuple(Tensor(p) if positions and isinstance(p, np.ndarray) else p for p in parts)
    t[chosen] = Tensor(value) if isinstance(value, np.ndarray) else value
    np.testing.assert_array_equal(t.numpy(), wanted)
    assert lazy or t.buffer is memory


@pytest.mark.sampled(8)
@pytest.mark.parametrize("key", KEYS, ids=[str(n) for n in range(len(KEYS))])
def test_every_way_to_write(key: Any) -> None:
    values = np.random.default_rng(1).standard_normal(X[key].shape).astype(np.float32)
    agrees(X, key, values)
    agrees(X, key, 2.5, lazy=True)
    if any(isinstance(p, np.ndarray) for p in (key if isinstance(key, tuple) else ())):
        agrees(X, key, values, lazy=True, positions=True)


@pytest.mark.long
@settings(max_examples=30)
@given(st.data())
def test_random_writes(data: st.DataObject) -> None:
    """Integers, slices of any step, None and an ellipsis; values with axes of size 1, or fewer axes."""
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple))
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    parts: list[Any] = []
    for n in shape[: data.draw(st.integers(0, len(shape)))]:
        edge = st.one_of(st.none(), st.integers(-n - 1, n + 1))
        steps = st.sampled_from([None, 1, 2, 3, -1, -2, -3])
        parts.append(data.draw(st.one_of(st.integers(-n, n - 1), st.builds(slice, edge, edge, steps))))
    if data.draw(st.booleans()):
        parts.insert(data.draw(st.integers(0, len(parts))), None)
    if data.draw(st.booleans()):
        parts.append(...)
    key = tuple(parts)
    full = x[key].shape
    narrow = tuple(1 if data.draw(st.booleans()) else n for n in full)[data.draw(st.integers(0, len(full))) :]
    agrees(x, key, -1 - np.arange(np.prod(narrow), dtype=np.int32).reshape(narrow), lazy=data.draw(st.booleans()))


def test_several_writes_one_after_the_other() -> None:
    x, wanted = Tensor(X.copy()), X.copy()
    for t in (x, wanted):
        t[0] = 1.0
        t[:, 1] = t[:, 2] * 2
        t[1:4, ::2] += 1
        t[t > 1] = -1.0
        t[[0, 0, 2], 0, [3, 3, 4]] = np.array([7.0, 8.0, 9.0], np.float32)
        t[::-1] = t[...] * 1  # every element is read before any is written
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_old_elements_are_read_before_new_ones_are_written() -> None:
    a = X.copy()
    x = Tensor(a)
    double, part, later = x * 2, x[1:3], (x[::-1] + 1).contiguous()
    x[1] = 0.0
    after = x + 1
    wanted = X.copy()
    wanted[1] = 0.0
    np.testing.assert_array_equal(after.numpy(), wanted + 1)
    np.testing.assert_array_equal(double.numpy(), X * 2)
    np.testing.assert_array_equal(part.numpy(), X[1:3])  # a tensor is a value: views made before keep theirs
    np.testing.assert_array_equal(later.numpy(), X[::-1] + 1)
    np.testing.assert_array_equal(x.numpy(), wanted)
    np.testing.assert_array_equal(a, wanted)  # the array's memory is the tensor's


def test_tensors_over_the_same_memory_keep_their_elements() -> None:
    """A tensor is a value: what is written to one is written to no other."""
    x = Tensor(X.copy())
    memory = x.buffer
    flat, other = x.reshape(-1), Tensor(x)
    assert flat.buffer is other.buffer is memory
    x[0, 0, 0] = 50.0
    assert x.numpy()[0, 0, 0] == 50.0
    np.testing.assert_array_equal(flat.numpy(), X.reshape(-1))
    np.testing.assert_array_equal(other.numpy(), X)
    other[0, 0, 1] = 60.0
    assert other.numpy()[0, 0, 1] == 60.0
    assert x.numpy()[0, 0, 1] == X[0, 0, 1]
    assert x.buffer is memory  # who was first keeps the memory


def test_a_lazy_tensor_is_described_anew() -> None:
    zeros = Tensor.zeros(3, 4)
    zeros[1, 2] = 5.0
    zeros[2] = 6.0
    assert stored.stored_buffer(zeros.uop) is None
    assert len(zeros.kernels()) == 1
    assert zeros.tolist() == [[0, 0, 0, 0], [0, 0, 5, 0], [6, 6, 6, 6]]
    assert Tensor.zeros(3, 4).tolist() == [[0] * 4] * 3


def test_a_loop_over_positions_compiles_one_kernel() -> None:
    cache = Tensor(np.zeros((4, 9), np.float32))
    cache[:, 0] = 0.5
    cache.realize()
    lowered = schedule.COUNTERS.kernels_lowered
    for k in range(1, 9):
        cache[:, k] = float(k)
        cache.realize()
    assert schedule.COUNTERS.kernels_lowered == lowered
    np.testing.assert_array_equal(cache.numpy()[2], [0.5, 1, 2, 3, 4, 5, 6, 7, 8])


def test_values_are_cast() -> None:
    for d in (np.float64, np.float16, np.int8, np.uint32, np.bool_):
        x = np.zeros(4, d)
        agrees(x, slice(1, 3), np.array([1.5, 3.0], np.float32))
        agrees(x, 2, 1)
        agrees(x, np.array([1, -1]), True)
    half = Tensor([1.0, 2.0], dtype=dtypes.bf16)
    half[0] = 3.0
    half[[1]] = Tensor([0.5])
    assert half.dtype is dtypes.bf16
    assert half.tolist() == [3.0, 0.5]


def test_places_that_are_computed() -> None:
    """Positions outside of the axis write nothing; of several values for one element the last counts."""
    x = Tensor(np.zeros(4, np.float32))
    x[Tensor([1, 9, -1, 1, -5])] = Tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    assert x.tolist() == [0, 4, 0, 3]
    x[Tensor(2)] = 8.0
    assert x.tolist() == [0, 4, 8, 3]


WRONG: list[tuple[Any, Any, type[MorokError], str]] = [
    (5, 0.0, ShapeError, "outside axis 0"),
    ((0, 0, 0, 0), 0.0, ShapeError, "4 parts"),
    ((..., ...), 0.0, ShapeError, "two ellipses"),
    ("a", 0.0, ShapeError, "not an index"),
    (1.5, 0.0, ShapeError, "not an index"),
    (slice(None, None, 0), 0.0, ShapeError, "not a slice"),
    ([0, 7], 0.0, ShapeError, "outside axis 0"),
    (np.ones((5, 2), bool), 0.0, ShapeError, "a mask of shape"),
    (
        slice(0, 2),
        np.zeros((3, 6, 7), np.float32),
        ShapeError,
        r"values of shape \(3, 6, 7\) for elements of shape \(2, 6, 7\)",
    ),
    (slice(3, 3), np.zeros((2, 6, 7), np.float32), ShapeError, "values of shape"),
    ([0, 1], np.zeros((3, 6, 7), np.float32), ShapeError, "values of shape"),
    ([], np.zeros((3, 6, 7), np.float32), ShapeError, "values of shape"),
    (X > 0, np.zeros(3, np.float32), ShapeError, "values of shape"),
    (0, "text", DTypeError, "made of str"),
    (0, None, DTypeError, "made of NoneType"),
    (0, Tensor([1.0] * 7, device="NULL"), DeviceError, "one device"),
]


@pytest.mark.parametrize(("key", "value", "kind", "words"), WRONG, ids=[str(n) for n in range(len(WRONG))])
def test_what_cannot_be_written(key: Any, value: Any, kind: type[MorokError], words: str) -> None:
    x = Tensor(X.copy())
    with pytest.raises(kind, match=words) as problem:
        x[key] = value
    assert "test_writing.py" in str(problem.value)
    np.testing.assert_array_equal(x.numpy(), X)


def test_a_view_of_a_tensor_in_use_is_not_written_to() -> None:
    """x[1:3][0] = 1 would change a view that nobody holds."""
    x, lazy = Tensor(X.copy()), Tensor(X) * 2
    wide = x.expand(2, 5, 6, 7)
    for view in (x[1:3], x.T, x[0], x.reshape(-1), x.reshape(-1)[3:], wide, lazy[1:3], lazy.reshape(-1), x[1:3].T):
        with pytest.raises(UsageError, match="view of another tensor"):
            view[0] = 1.0
        with pytest.raises(UsageError, match="view of another tensor"):
            view.assign(view * 2)
    own = x[1:3].contiguous()
    own[0] = 1.0
    np.testing.assert_array_equal(own.numpy()[0], np.ones((6, 7), np.float32))
    np.testing.assert_array_equal(x.numpy(), X)
    alone = (Tensor(X) + 1)[1:3]
    alone[0] = 1.0
    assert alone.numpy()[0, 0, 0] == 1.0


@pytest.mark.parametrize("stored", [True, False])
def test_views_are_those_of_tensors_not_of_equal_graphs(stored: bool) -> None:
    def base() -> Tensor:
        return Tensor(X.copy()) if stored else Tensor(X.copy()) + 1

    x = base()
    view, again, alike = x.flip(0), x.reshape(-1).reshape(x.shape), x.contiguous()
    for wrong in (
        x.contiguous().flip(0),
        x.contiguous().reshape(-1),
        x.detach()[1:],
        Tensor(x).reshape(-1),
        again.flip(1),
    ):
        with pytest.raises(UsageError, match="view of another tensor"):
            wrong[0] = 1.0
    for own in (again, alike, x.flip(0).contiguous(), x.flip(0).realize()):
        own[0] = 1.0
    x[0] = 2.0  # the view is one of elements that no tensor has any more
    view[0] = 3.0
    assert view.numpy()[0].min() == 3 == view.numpy()[0].max()
    assert x.numpy()[0].min() == 2 == x.numpy()[0].max()
    assert alike.numpy()[0].min() == 1 == alike.numpy()[0].max()
    memory = Tensor(X.copy())
    first, second = memory + 1, (memory + 1).reshape(-1)
    second[0] = 1.0
    assert (first.numpy() == X + 1).all()


def test_numbers_that_do_not_fit() -> None:
    with pytest.raises(DTypeError, match="does not fit i8"):
        Tensor(np.zeros(3, np.int8))[0] = 300
