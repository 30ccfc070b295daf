"""Caches written at a bound position, and read up to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from morok import Tensor, Variable
from morok.errors import BindError

Array = np.ndarray[Any, Any]

STEPS, WIDTH = 6, 4
N = Variable("n", 0, STEPS - 1)


def row_at(cache: Tensor, at: int, row: Tensor) -> Tensor:
    """The cache with a row replaced."""
    here = Tensor.arange(STEPS).reshape(STEPS, 1) == Tensor(N.bind(at))
    return here.where(row.expand(STEPS, WIDTH), cache)


def upto(cache: Tensor, at: int) -> Tensor:
    return cache.shrink([(0, N.bind(at) + 1), None])


class Layers:
    """Layers with a cache each, twice: tensors and arrays."""

    def __init__(self, count: int) -> None:
        self.weights = np.random.default_rng(count).standard_normal((count, WIDTH, WIDTH)).astype(np.float32)
        self.caches = [Tensor(np.zeros((STEPS, WIDTH), np.float32)) for _ in range(count)]
        self.arrays = np.zeros((count, STEPS, WIDTH), np.float32)

    def tensors(self, x: Tensor, at: int) -> Tensor:
        for cache, weight in zip(self.caches, self.weights, strict=True):
            cache.assign(row_at(cache, at, x @ Tensor(weight)))
            seen = upto(cache, at)
            x = (x @ seen.T).tanh() @ seen + x
        return x

    def numbers(self, x: Array, at: int) -> Array:
        for array, weight in zip(self.arrays, self.weights, strict=True):
            array[at] = x @ weight
            seen = array[: at + 1]
            x = np.tanh(x @ seen.T) @ seen + x
        return x

    def agree(self) -> None:
        for cache, array in zip(self.caches, self.arrays, strict=True):
            np.testing.assert_allclose(cache.numpy(), array, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_caches_realized_through_a_reader_alone(count: int) -> None:
    layers = Layers(count)
    for at in range(STEPS):
        x = np.random.default_rng(at).standard_normal((1, WIDTH)).astype(np.float32)
        np.testing.assert_allclose(layers.tensors(Tensor(x), at).numpy(), layers.numbers(x, at), rtol=1e-4, atol=1e-4)
        assert all(cache.schedule() == [] for cache in layers.caches), "what was written is not written again"
    layers.agree()


@pytest.mark.parametrize("count", [1, 2])
def test_steps_that_feed_each_other_realized_at_the_end(count: int) -> None:
    layers = Layers(count)
    values = np.random.default_rng(5).standard_normal((1, WIDTH)).astype(np.float32) / 8
    x = Tensor(values.copy())
    for at in range(3):
        x, values = layers.tensors(x, at) / 4, layers.numbers(values, at) / 4
    np.testing.assert_allclose(x.numpy(), values, rtol=1e-4, atol=1e-4)
    layers.agree()


def test_a_write_that_a_reader_ran_is_not_run_again() -> None:
    a = np.ones((STEPS, WIDTH), np.int32)
    cache = Tensor(a.copy())
    cache.assign(cache * 2 + Tensor(N.bind(3)).cast("i32"))
    reader, again = upto(cache, 3).sum(0), upto(cache, 3).sum(0) + 1
    np.testing.assert_array_equal(reader.numpy(), [20] * WIDTH)
    np.testing.assert_array_equal(again.numpy(), [21] * WIDTH)
    np.testing.assert_array_equal(cache.numpy(), a * 5)


def test_a_write_that_no_reader_needs_waits_with_its_own_binding() -> None:
    """Of two caches written in each step only one is read."""
    first, second = (Tensor(np.zeros((STEPS, WIDTH), np.int64)) for _ in range(2))
    wanted = np.zeros((STEPS, WIDTH), np.int64)
    for at in range(4):
        row = np.full((1, WIDTH), at + 1)
        first.assign(row_at(first, at, Tensor(row.copy())))
        second.assign(row_at(second, at, Tensor(row.copy()) * 10))
        wanted[at] = at + 1
        np.testing.assert_array_equal(upto(first, at).sum(0).numpy(), wanted[: at + 1].sum(0))
    np.testing.assert_array_equal(second.numpy(), wanted * 10)


def test_readers_of_earlier_steps_keep_what_they_read() -> None:
    cache, wanted = Tensor(np.zeros((STEPS, WIDTH), np.int64)), np.zeros((STEPS, WIDTH), np.int64)
    readers: list[tuple[Tensor, Array]] = []
    for at in (0, 1, 1, 2):  # row 1 is overwritten
        cache.assign(row_at(cache, at, Tensor(np.full((1, WIDTH), len(readers) + 1))))
        wanted[at] = len(readers) + 1
        readers.append((upto(cache, at).sum(), wanted[: at + 1].sum()))
    for t, v in reversed(readers):
        assert t.item() == v
    np.testing.assert_array_equal(cache.numpy(), wanted)


def test_what_is_stored_on_the_way_is_kept_for_others() -> None:
    """Also where its size is a variable's."""
    x = np.random.default_rng(0).standard_normal((STEPS, WIDTH)).astype(np.float32)
    part = upto(Tensor(x), 2).exp().contiguous()
    total, more = part.sum(0), part + 1
    np.testing.assert_allclose(total.numpy(), np.exp(x[:3]).sum(0), rtol=1e-5)
    assert len(more.schedule()) == 1
    np.testing.assert_allclose(more.numpy(), np.exp(x[:3]) + 1, rtol=1e-5)


def test_two_values_of_a_variable_without_a_write_are_an_error() -> None:
    x = Tensor(np.ones((STEPS, WIDTH), np.float32))
    with pytest.raises(BindError, match="the variable n is bound to 1 and to 2 in one graph"):
        (upto(x, 1).sum(0) + upto(x, 2).sum(0)).schedule()


def test_names_that_a_user_has_taken() -> None:
    """Variables of other steps get names that no other variable has."""
    other = Variable("n_1", 0, 9)
    cache = Tensor(np.zeros((STEPS, WIDTH), np.int64))
    for at in range(3):
        cache.assign(cache * 10 + Tensor(N.bind(at)) + Tensor(other.bind(7)) * 100)
    assert cache.numpy().tolist() == np.full((STEPS, WIDTH), 70000 + 7000 + 700 + 12).tolist()


def test_one_position_that_is_a_variable() -> None:
    x, m = np.arange(24, dtype=np.float32).reshape(STEPS, WIDTH), Variable("m", 0, 2)
    for i in range(STEPS):
        t, k = Tensor(x), i % 3
        for key, same in (
            ((N.bind(i),), (i,)),
            ((N.bind(i), 1), (i, 1)),
            ((slice(1, 3), m.bind(k)), (slice(1, 3), k)),
            ((N.bind(i), m.bind(k)), (i, k)),
            ((N.bind(i), [0, 2]), (i, [0, 2])),
            (([0, 2, 5], m.bind(k)), ([0, 2, 5], k)),
            ((None, N.bind(i), None, ...), (None, i, None, ...)),
        ):
            np.testing.assert_array_equal(t[key].numpy(), x[same])
        np.testing.assert_array_equal(t[: N.bind(i) + 1][N.bind(i)].numpy(), x[i])


def test_caches_written_at_one_position_that_is_a_variable() -> None:
    rng = np.random.default_rng(2)
    tensors = [Tensor(np.zeros((STEPS, WIDTH), np.float32)) for _ in range(2)]
    arrays = np.zeros((2, STEPS, WIDTH), np.float32)
    for at in range(STEPS):
        x = rng.standard_normal(WIDTH).astype(np.float32)
        h = Tensor(x)
        for tensor, array in zip(tensors, arrays, strict=True):
            tensor[N.bind(at)] = h
            array[at] = x
            tensor[N.bind(at), 1:3] = Tensor([8.0, 9.0])
            array[at, 1:3] = 8, 9
            tensor[[0, 1], 3] = 5.0
            array[[0, 1], 3] = 5
            h, x = tensor[: N.bind(at) + 1].sum(0) / 4 + h, array[: at + 1].sum(0) / 4 + x
        np.testing.assert_allclose(h.numpy(), x, rtol=1e-4)
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-4)


@pytest.mark.parametrize("key", [(slice(None), N.bind(1)), (N.bind(3) - 1,), (N.bind(0) + 1,), (slice(None), N)])
def test_a_variable_position_that_may_lie_outside(key: tuple[Any, ...]) -> None:
    x = Tensor(np.zeros((STEPS, WIDTH), np.float32))
    with pytest.raises(IndexError, match=r"MRK506.* may lie outside axis"):
        x[key]
    with pytest.raises(IndexError, match=r"MRK506.* may lie outside axis"):
        x[key] = 1.0


def test_a_lazy_cache_written_at_a_variable_gets_memory() -> None:
    cache, array = Tensor.zeros(STEPS, WIDTH), np.zeros((STEPS, WIDTH), np.float32)
    for at in range(STEPS):
        cache[N.bind(at)] = Tensor.full((WIDTH,), at + 1.0)
        array[at] = at + 1
        total = cache[: N.bind(at) + 1].sum()
        assert total.item() == array.sum()
    np.testing.assert_array_equal(cache.numpy(), array)


def _row(cache: Tensor, at: int) -> None:
    cache[at] = cache[: N.bind(at) + 1].sum(0) + 1


def _rows(cache: Tensor, at: int) -> None:
    cache[Tensor.arange(STEPS) <= Tensor(N.bind(at))] = float(at)


def _chosen(cache: Tensor, at: int) -> None:
    cache[[0, at]] = Tensor(N.bind(at)).cast("f32") * 3


@pytest.mark.parametrize("write", [_row, _rows, _chosen])
@pytest.mark.parametrize("zero", [True, False])
def test_a_lazy_cache_written_with_what_depends_on_a_variable(write: Callable[[Tensor, int], None], zero: bool) -> None:
    """Each write keeps the value of its own step, whether its readers are computed in that step or at the end."""
    x = np.zeros((STEPS, WIDTH), np.float32) if zero else np.ones((STEPS, WIDTH), np.float32)
    for late in (True, False):
        cache, same = Tensor.zeros(STEPS, WIDTH) if zero else Tensor(x - 1) + 1, Tensor(x.copy())
        readers: list[tuple[Tensor, list[float]]] = []
        for at in range(STEPS):
            write(cache, at)
            write(same, at)
            same.realize()
            reader = upto(cache, at).sum(0)
            readers.append((reader if late else reader.realize(), same.numpy()[: at + 1].sum(0).tolist()))
        assert [t.tolist() for t, _ in readers] == [v for _, v in readers]
        np.testing.assert_array_equal(cache.numpy(), same.numpy())


def test_writes_to_a_tensor_whose_size_is_a_variables() -> None:
    m, x = Variable("m", 0, 3), np.arange(24, dtype=np.float32).reshape(STEPS, WIDTH)
    for computed in (True, False):
        t, same = Tensor(x)[: N.bind(3)] * 2, x[:3] * 2
        t = t.realize() if computed else t
        before = t + 0
        for k in range(3):
            t[:, 1] = t[:, 1] + Tensor(m.bind(k)).cast("f32")
            t.assign(t * 2 + Tensor(m.bind(k)).cast("f32"))
            same[:, 1] += k
            same = same * 2 + k
        np.testing.assert_array_equal(t.numpy(), same)
        np.testing.assert_array_equal(before.numpy(), x[:3] * 2)


def test_a_window_at_a_variable_has_a_known_size() -> None:
    x = np.arange(24, dtype=np.float32).reshape(STEPS, WIDTH)
    n = Variable("first", 0, STEPS - 3)
    for at in range(STEPS - 2):
        window = Tensor(x)[n.bind(at) : n.bind(at) + 3]
        assert window.shape == (3, WIDTH)
        np.testing.assert_array_equal(window.numpy(), x[at : at + 3])
    row = Tensor(x).shrink([(N.bind(2), N.bind(2) + 1), None])
    assert row.shape == (1, WIDTH)
    np.testing.assert_array_equal((row * 2).numpy(), x[2:3] * 2)


VALUES = np.arange(8, dtype=np.float32)
NEAR = Variable("n", 1, 3)


@pytest.mark.parametrize(
    "read",
    [
        lambda x, n: x[n],
        lambda x, n: x[n] * 2 + 1,
        lambda x, n: x[n - 1 : n + 1],
        lambda x, n: x[:n].sum(),
        lambda x, n: x[n:].sum(),
    ],
    ids=["at", "computed", "around", "before", "after"],
)
def test_a_write_at_one_value_of_a_variable_is_read_at_each(read: Callable[[Any, Any], Any]) -> None:
    for written in (1, 2, 3):
        for place in (1, 2, 3):
            tensor, array = Tensor(VALUES.copy()), VALUES.copy()
            tensor[NEAR.bind(written)] = array[written] = 50.0
            assert read(tensor, NEAR.bind(place)).tolist() == read(array, place).tolist()


def test_a_place_without_a_value_beside_several() -> None:
    x = Tensor(VALUES.copy())
    x[NEAR.bind(1)] = 50.0
    with pytest.raises(BindError, match="several values"):
        (x[NEAR.bind(2)] + x[NEAR]).realize()
