"""Choosing elements by integers and by masks, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morok import Tensor
from morok.errors import DTypeError, ShapeError
from morok.ir.op import Op
from morok.passes.pipeline import lower
from morok.runtime.device import device

X = np.random.default_rng(0).standard_normal((5, 6, 7)).astype(np.float32)
AT, TO = np.array([[0, -1], [3, 2]]), np.array([1, 2])
KEYS: list[Any] = [
    (AT,),
    (slice(None), AT),
    (AT, TO),
    (AT, slice(None), TO),
    (..., TO),
    (0, ..., TO),
    (0, slice(None), TO),
    (AT, None, TO),
    (None, AT, TO),
    (slice(1, 3), AT, TO),
    (slice(1, 3), AT, 2),
    (slice(None, None, -2), [0, 3], -1),
    (AT, TO, ..., None),
    ([],),
    (X > 0,),
    (slice(None), X[0, :, 0] > 0),
    (X[:, :, 0] > 0, TO[0]),
    (X > 9,),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("key", KEYS, ids=[str(n) for n in range(len(KEYS))])
def test_every_way_to_choose(key: tuple[Any, ...]) -> None:
    theirs = X[key]
    np.testing.assert_array_equal(Tensor(X)[key].numpy(), theirs)
    lazy = tuple(Tensor(p) if isinstance(p, np.ndarray) else p for p in key)
    np.testing.assert_array_equal(Tensor(X)[lazy].numpy(), theirs)


@pytest.mark.long
@settings(max_examples=25)
@given(st.data())
def test_random_choices(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(*[st.integers(1, 5)] * data.draw(st.integers(1, 4))))
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    parts: list[Any] = []
    for n in shape:
        kind = data.draw(st.sampled_from(["array", "slice", "number"]))
        if kind == "array":
            parts.append(np.array(data.draw(st.lists(st.integers(-n, n - 1), min_size=3, max_size=3))))
        elif kind == "slice":
            parts.append(slice(data.draw(st.integers(0, n - 1)), None))
        else:
            parts.append(data.draw(st.integers(-n, n - 1)))
    key = tuple(parts)
    lazy = tuple(Tensor(p) if isinstance(p, np.ndarray) else p for p in parts)
    np.testing.assert_array_equal(Tensor(x)[lazy].numpy(), x[key])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("d", ["bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "float64"])
def test_every_bit_arrives(d: str) -> None:
    x = np.array([0, 1, 0, 1], d)
    if x.dtype.kind == "f":
        x = np.array([-0.0, np.nan, np.inf, 1e-7], d)
    elif d != "bool":
        x = np.array([np.iinfo(d).min, np.iinfo(d).max, 0, 3], d)
    ours = Tensor(x)[Tensor([3, 0, 1, 2, 0])].numpy()
    assert ours.tobytes() == x[[3, 0, 1, 2, 0]].tobytes()


def test_take() -> None:
    t = Tensor(X)
    np.testing.assert_array_equal(t.take(Tensor(AT), 1).numpy(), X.take(AT, 1))
    np.testing.assert_array_equal(t.take(AT).numpy(), X.take(AT))
    np.testing.assert_array_equal(t.take(3, -1).numpy(), X.take(3, -1))
    at = np.random.default_rng(1).integers(-6, 6, (5, 3, 1))
    np.testing.assert_array_equal(t.take_along_axis(Tensor(at), 1).numpy(), np.take_along_axis(X, at, 1))
    np.testing.assert_array_equal(Tensor([2, 0]).one_hot(3).numpy(), [[0, 0, 1], [1, 0, 0]])
    for ours, theirs in zip(Tensor(X > 1).nonzero(), np.nonzero(X > 1), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)


def test_a_choice_is_a_read_however_long_the_axis_is() -> None:
    for n in (1000, 100_000):
        (item,) = Tensor(np.zeros((n, 8), np.float32))[Tensor(np.arange(32))].schedule()
        ends = [int(u.src[0].vmax) for u in lower(item.ast, device("CPU").target) if u.op is Op.Range]
        assert all(end <= 32 for end in ends)


def test_outside_the_axis_stands_nothing() -> None:
    x = Tensor([5.0, 6.0, 7.0])
    assert x[Tensor([2, 3, -3, -4, 1 << 60, -(1 << 62)])].tolist() == [7.0, 0.0, 5.0, 0.0, 0.0, 0.0]
    assert Tensor([[1, 2], [3, 4]])[Tensor([1, 2]), Tensor([1, 0])].tolist() == [4, 0]
    assert Tensor([1, 2, 3]).take_along_axis(Tensor([0, 9])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda x: x[[0, 5]], "index 5 is outside axis 0"),
        (lambda x: x[:, np.array([-7])], "index -7 is outside axis 1"),
        (lambda x: x[Tensor([0]), 6], "index 6 is outside axis 1"),
        (lambda x: x[[0.5]], "float64 is not an index"),
        (lambda x: x[Tensor([0.5])], "float32 is not an index"),
        (lambda x: x[Tensor([0]), "a"], "'a' is not an index"),
        (lambda x: x[Tensor([0]), Tensor([0]), Tensor([0]), Tensor([0])], "at most 3"),
        (lambda x: x[Tensor([0, 1]), Tensor([0, 1, 2])], "do not broadcast"),
        (lambda x: x[Tensor(True)], "one bool"),
        (lambda x: x[X[0] > 0], "mask"),
        (lambda x: x.take([9], 2), "outside axis 2"),
        (lambda x: x.take([0], 3), "axis 3"),
        (lambda x: x.take_along_axis(Tensor([0])), "as many axes"),
        (lambda x: Tensor([1]).one_hot(-1), "at least 0"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: Any, expected: str) -> None:
    with pytest.raises(ShapeError, match=expected):
        wrong(Tensor(X))


def test_classes_are_integers() -> None:
    with pytest.raises(DTypeError, match="integers"):
        Tensor([0.5]).one_hot(3)
