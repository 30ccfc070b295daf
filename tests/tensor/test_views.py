"""Views, reductions and products against NumPy: random chains, random axes, random shapes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreted import compute

from morok import Tensor, dtypes
from morok.errors import ShapeError

Array = np.ndarray[Any, Any]


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """Small integers, of which no sum or product rounds."""
    return np.random.default_rng(math.prod(shape)).integers(-4, 5, shape).astype(dtype)


def agree(ours: Array, theirs: Any) -> None:
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def step(draw: st.DrawFn, t: Tensor, a: Array) -> tuple[Tensor, Array]:
    """One random view, or an operation in between."""
    shape = a.shape
    kind = draw(
        st.sampled_from(["reshape", "permute", "expand", "pad", "shrink", "flip", "slice", "add", "double", "select"])
    )
    if kind == "reshape":
        factors = [d for d in shape for d in _factors(d)]
        order = draw(st.lists(st.booleans(), min_size=len(factors), max_size=len(factors)))
        new: list[int] = [1] if draw(st.booleans()) else []
        for f, joins in zip(factors, order, strict=True):
            if joins and new:
                new[-1] *= f
            else:
                new.append(f)
        return t.reshape(tuple(new)), a.reshape(new)
    if kind == "permute":
        axes = draw(st.permutations(range(len(shape))))
        return t.permute(*axes), a.transpose(axes)
    if kind == "expand":
        n = draw(st.integers(1, 3))
        return t.unsqueeze(0).expand(n, *shape), np.broadcast_to(a, (n, *shape))
    if kind == "pad":
        edges = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape]
        value = draw(st.sampled_from([0, 0, 3]))
        return t.pad(edges, value), np.pad(a, edges, constant_values=value)
    if kind == "shrink":
        bounds = [tuple(sorted((draw(st.integers(0, d - 1)), draw(st.integers(1, d))))) for d in shape]
        bounds = [(b, e) if b < e else (0, d) for (b, e), d in zip(bounds, shape, strict=True)]
        return t.shrink(bounds), a[tuple(slice(b, e) for b, e in bounds)]
    if kind == "flip":
        axes = draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
        return (t.flip(tuple(axes)), np.flip(a, axes)) if axes else (t, a)
    if kind == "slice":
        key: list[Any] = []
        for d in shape:
            key.append(slice(draw(st.integers(-d, d - 1)), None, draw(st.sampled_from([1, 2, 3, -1, -2]))))
        b = a[tuple(key)]
        return (t[tuple(key)], b) if b.size else (t, a)
    if kind == "add":
        return t + t.flip(0) if shape else t + 1, a + np.flip(a, 0) if shape else a + a.dtype.type(1)
    if kind == "double":
        return t * 2, a * a.dtype.type(2)
    return (t > 0).where(t, 1.0), np.where(a > 0, a, a.dtype.type(1))


def _factors(n: int) -> list[int]:
    out = []
    for p in (2, 3, 5, 7):
        while n % p == 0:
            out.append(p)
            n //= p
    return [*out, n] if n > 1 or not out else out


@st.composite
def chains(draw: st.DrawFn) -> tuple[Tensor, Array]:
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=3)))
    a = numbers(shape)
    t = Tensor(a)
    for _ in range(draw(st.integers(1, 6))):
        if a.size > 300:
            break
        t, a = step(draw, t, a)
    return t, np.ascontiguousarray(a)


@pytest.mark.long
@given(chains())
@settings(max_examples=150)
def test_chains_of_views(chain: tuple[Tensor, Array]) -> None:
    agree(compute(chain[0] + 0.0), chain[1] + np.float32(0))


@pytest.mark.long
@given(chains())
@settings(max_examples=40)
def test_compiled_chains_of_views(chain: tuple[Tensor, Array]) -> None:
    t, a = chain
    agree((t + 0.0).numpy(), a + np.float32(0))
    agree((t * 2 + t.sum()).numpy(), a * 2 + a.sum())


@pytest.mark.long
@given(chains(), st.data())
@settings(max_examples=100)
def test_reductions_of_views(chain: tuple[Tensor, Array], data: st.DataObject) -> None:
    t, a = chain
    axes = tuple(data.draw(st.lists(st.sampled_from(range(a.ndim)), unique=True, min_size=1))) if a.ndim else None
    keep = data.draw(st.booleans())
    name = data.draw(st.sampled_from(["sum", "max", "min", "mean"]))
    ours = getattr(t, name)(axes, keepdim=keep)
    theirs = getattr(np, name)(a, axis=axes, keepdims=keep)
    out = compute(ours)
    assert out.shape == np.shape(theirs)
    np.testing.assert_allclose(out, theirs, rtol=1e-6)
    # and once more on top of the reduction, which repeats it
    back = t - getattr(t, name)(axes, keepdim=True)
    np.testing.assert_allclose(compute(back), a - getattr(np, name)(a, axis=axes, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("shape", [(4, 8), (2, 3, 4), (5,)])
def test_every_set_of_axes(shape: tuple[int, ...]) -> None:
    a = numbers(shape, np.int32)
    t = Tensor(a)
    for n in range(len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), n):
            agree(compute(t.sum(axes)), a.sum(axes))
            agree(compute(t.max(axes, keepdim=True)), a.max(axes, keepdims=True))
            agree(compute(t.prod(axes)), a.prod(axes))


def test_reductions_of_reductions() -> None:
    a = numbers((3, 4, 5))
    t = Tensor(a)
    agree(compute(t.sum(1).sum(0)), a.sum((0, 1)))
    agree(compute(t.max(0).max(1)), a.max((0, 2)))
    agree(compute(t.max(2).sum(0)), a.max(2).sum(0))
    agree(compute((t * t.sum(2, keepdim=True)).sum(1)), (a * a.sum(2, keepdims=True)).sum(1))


def test_dtypes_of_sums() -> None:
    for source, target in [
        ("i8", "i64"),
        ("u8", "u64"),
        ("bool", "i64"),
        ("f16", "f16"),
        ("f32", "f32"),
        ("f64", "f64"),
    ]:
        assert Tensor.ones(3, dtype=source).sum().dtype.name == target
    assert compute(Tensor(np.full(40, 127, np.int8)).sum()) == 40 * 127
    assert compute(Tensor(np.full(3000, 1.0, np.float16)).sum()) == 3000


def test_any_all_and_positions() -> None:
    a = np.array([[0, 2, 2], [0, 0, 0], [5, -1, 5]], np.float32)
    t = Tensor(a)
    agree(compute(t.any(1)), a.any(1))
    agree(compute(t.all(1)), a.all(1))
    agree(compute(t.argmax(1)), a.argmax(1))
    agree(compute(t.argmin(0)), a.argmin(0))
    agree(compute(t.argmax()), a.argmax())
    b = np.array([1.0, np.nan, 7.0, np.nan], np.float32)
    assert int(compute(Tensor(b).argmax())) == 1
    assert int(compute(Tensor([True, False, True]).argmin())) == 1


def test_statistics() -> None:
    a = np.random.default_rng(1).standard_normal((6, 5)).astype(np.float32)
    t = Tensor(a)
    for axis in (0, 1, None):
        np.testing.assert_allclose(compute(t.var(axis)), a.var(axis), rtol=1e-5)
        np.testing.assert_allclose(compute(t.std(axis, correction=1)), a.std(axis, ddof=1), rtol=1e-5)
    e = np.exp(a - a.max(-1, keepdims=True))
    s = e / e.sum(-1, keepdims=True)
    np.testing.assert_allclose(compute(t.softmax()), s, rtol=1e-5)
    np.testing.assert_allclose(compute(t.log_softmax()), np.log(s), rtol=1e-5)
    np.testing.assert_allclose(compute(t.logsumexp(1)), np.log(np.exp(a).sum(1)), rtol=1e-5)
    np.testing.assert_allclose(compute(t.cumsum(1)), a.cumsum(1), rtol=1e-4)


MATRICES = [
    ((3, 4), (4, 2)),
    ((4,), (4, 3)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((1, 3, 4), (5, 4, 2)),
    ((1, 1), (1, 1)),
    ((3, 1), (1, 4)),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("a", "b"), MATRICES)
def test_products(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    for kind in (np.float32, np.int32):
        x, y = numbers(a, kind), numbers(b, kind)
        agree(compute(Tensor(x) @ Tensor(y)), x @ y)


def test_products_that_do_not_fit_show_both_shapes() -> None:
    with pytest.raises(ShapeError, match=r"\(2, 3\).*\(4, 5\)"):
        Tensor(np.zeros((2, 3))) @ Tensor(np.zeros((4, 5)))


def test_triangles() -> None:
    a = numbers((4, 5))
    for k in (-1, 0, 2):
        agree(compute(Tensor(a).tril(k) + 0.0), np.tril(a, k) + 0)
        agree(compute(Tensor(a).triu(k) + 0.0), np.triu(a, k) + 0)
        agree(compute(Tensor(a > 0).tril(k)), np.tril(a > 0, k))
        agree(compute(Tensor(a > 0).triu(k)), np.triu(a > 0, k))


def test_joining() -> None:
    a, b, c = numbers((2, 3)), numbers((4, 3)), numbers((1, 3))
    agree(compute(Tensor.concat([Tensor(a), Tensor(b), Tensor(c)])), np.concatenate([a, b, c]))
    agree(compute(Tensor(a).cat(Tensor(a), axis=1)), np.concatenate([a, a], 1))
    agree(compute(Tensor.stack([Tensor(a), Tensor(a)], axis=1)), np.stack([a, a], 1))
    negative = Tensor(np.array([-0.0], np.float32))
    assert np.signbit(compute(negative.cat(negative))).all()
    with pytest.raises(ShapeError, match=r"\(2, 3\).*\(2, 2\)"):
        Tensor(a).cat(Tensor(a[:, :2]))


INDICES: list[Any] = [
    0,
    -1,
    (1, 2),
    slice(None),
    slice(1, None, 2),
    slice(None, None, -1),
    (slice(3, 0, -2), Ellipsis),
    (Ellipsis, 0),
    (None, 1, None, slice(0, 2)),
    (Ellipsis, None),
    (slice(10, 2), 0),
    (slice(-3, -1), slice(None, None, 3)),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing(index: Any) -> None:
    a = numbers((4, 5, 6))
    agree(compute(Tensor(a)[index] + 0.0), a[index] + 0)


def test_indexing_by_integers() -> None:
    a = numbers((5, 6))
    agree(compute(Tensor(a)[[3, 0, -1]]), a[[3, 0, -1]])
    agree(compute(Tensor(a)[:, Tensor([1, 1, 5])]), a[:, [1, 1, 5]])
    agree(compute(Tensor(a)[1:4, [[0], [2]]]), a[1:4, [[0], [2]]])


def test_mistakes_are_shape_errors() -> None:
    t = Tensor(numbers((2, 3)))
    for wrong in [
        lambda: t.reshape(4, 2),
        lambda: t.reshape(-1, -1),
        lambda: t.reshape(-1, 4),
        lambda: t.permute(0, 0),
        lambda: t.expand(3, 3),
        lambda: t.expand(-1, -1, -1),  # nothing there to be left as it is
        lambda: t[:1].expand(-5, 3),
        lambda: t[:, :0].argmax(1),
        lambda: t[:0].argmin(),
        lambda: t.shrink(((0, 3), (0, 1))),
        lambda: t.pad(((-1, 0), (0, 0))),
        lambda: t.squeeze(0),
        lambda: t.sum(2),
        lambda: t[2],
        lambda: t[0, 0, 0],
        lambda: t[1.5],
    ]:
        with pytest.raises(ShapeError):
            wrong()


def test_shapes_with_zero_and_one() -> None:
    none = Tensor(np.zeros((0, 3), np.float32))
    assert none.numpy().shape == (0, 3)
    assert (none + 1).realize().numpy().shape == (0, 3)
    assert compute(none.sum(0)).tolist() == [0, 0, 0]
    assert compute(none.max(1)).shape == (0,)
    assert compute(none.prod()) == 1
    assert none.argmax(1).numpy().shape == (0,)
    assert compute(none.min((1,), keepdim=True)).shape == (0, 1)
    assert compute((none.T @ none) + 0.0).tolist() == np.zeros((3, 3)).tolist()
    assert compute(Tensor(np.ones((1, 1, 1), np.float32)).sum() + 1) == 2
    assert compute(Tensor(3.0) * Tensor([2.0]).sum()) == 6
    assert Tensor.concat([none, Tensor(numbers((2, 3)))]).shape == (2, 3)


def test_creation() -> None:
    agree(compute(Tensor.arange(5)), np.arange(5))
    agree(compute(Tensor.arange(2, 11, 3)), np.arange(2, 11, 3))
    agree(compute(Tensor.arange(10, 0, -4)), np.arange(10, 0, -4))
    np.testing.assert_allclose(compute(Tensor.arange(0, 1, 0.25)), np.arange(0, 1, 0.25))
    np.testing.assert_allclose(compute(Tensor.linspace(0, 1, 7)), np.linspace(0, 1, 7), rtol=1e-6)
    agree(compute(Tensor.eye(3, 4)), np.eye(3, 4, dtype=np.float32))
    agree(Tensor.full((2, 3), 7).numpy(), np.full((2, 3), 7))
    agree(Tensor.zeros(2, 3).numpy(), np.zeros((2, 3), np.float32))
    agree(Tensor.ones((2,), dtype="bool").numpy(), np.ones(2, np.bool_))
    assert Tensor.arange(0).shape == (0,)
    assert Tensor.arange(4).dtype is dtypes.i64


def test_what_surrounds_nothing_is_zero() -> None:
    x = Tensor(np.zeros((0,), np.int32)).reshape(0, 0, 1).reshape(2, 0, 0).pad([(0, 0), (0, 1), (2, 1)])
    np.testing.assert_array_equal(x.numpy(), np.zeros((2, 1, 3), np.int32))
