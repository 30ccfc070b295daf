"""Cuts found by time: what is tried, kept and remembered. Times are made up, but in the last test."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from morok import OptimizerConfig, Tensor, Variable, config, jit
from morok.errors import ConfigError
from morok.runtime import tuned
from morok.runtime.plan import ExecutionPlan
from morok.tensor import cut_search, schedule

Times = Callable[[ExecutionPlan], float]


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def numpys_layernorm(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


X, W, V = data(64, 256), data(256, 128, seed=1), data(256, 128, seed=2)


def products() -> Tensor:
    """What is relu'd is stored by cost for both products, and may be computed in each."""
    x = Tensor(X).relu()
    return (x @ Tensor(W)).tanh() * (x @ Tensor(V))


NUMPYS = np.tanh(np.maximum(X, 0) @ W) * (np.maximum(X, 0) @ V)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def timed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Times], list[list[int]]]:
    """Lets plans take the times that a function gives; what is returned has the kernels of those compared."""

    def use(times: Times) -> list[list[int]]:
        asked: list[list[int]] = []

        def seconds(plans: Sequence[ExecutionPlan]) -> list[float]:
            for plan in plans:
                plan.execute()
            asked.append([len(p.kernels) for p in plans])
            return [times(p) for p in plans]

        monkeypatch.setattr(cut_search, "seconds", seconds)
        schedule._schedules.clear()
        return asked

    return use


def few(plan: ExecutionPlan) -> float:
    return float(len(plan.kernels))


def many(plan: ExecutionPlan) -> float:
    return 1.0 / len(plan.kernels)


PROGRAMS: dict[str, tuple[Callable[[], Tensor], Callable[[], np.ndarray]]] = {
    "two products": (products, lambda: NUMPYS),
    "layernorm, linear": (lambda: Tensor(X).layernorm() @ Tensor(W), lambda: numpys_layernorm(X) @ W),
    "gelu, sums": (
        lambda: (lambda h: h.sum(0) + h.sum(1)[:256].mean())((Tensor(X) * 2).tanh()),
        lambda: (lambda h: h.sum(0) + h.sum(1).mean())(np.tanh(X * 2)),
    ),
    "pad, product": (lambda: Tensor(X).pad(((1, 2), (0, 0))) @ Tensor(W), lambda: np.pad(X, ((1, 2), (0, 0))) @ W),
    "joined, gathered": (
        lambda: (
            Tensor(X).exp().cat(Tensor(X).tanh(), axis=1)[Tensor(np.arange(0, 64, 3))] @ Tensor(np.concatenate((W, V)))
        ),
        lambda: np.concatenate((np.exp(X), np.tanh(X)), 1)[::3] @ np.concatenate((W, V)),
    ),
    "nothing": (lambda: Tensor(np.zeros((0, 256), np.float32)).relu() @ Tensor(W), lambda: np.zeros((0, 128))),
    "one number": (lambda: Tensor(X[:1, :1]).tanh() @ Tensor(W[:1, :1]), lambda: np.tanh(X[:1, :1]) @ W[:1, :1]),
}


def test_it_is_off_by_default(timed: Callable[[Times], list[list[int]]]) -> None:
    asked = timed(few)
    assert config.SEARCH_CUTS.value == 0
    products().realize()
    assert not asked


@pytest.mark.sampled(20)
@pytest.mark.parametrize("times", [few, many])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_equal_however_it_is_cut(name: str, times: Times, timed: Callable[[Times], list[list[int]]]) -> None:
    timed(times)
    program, numpys = PROGRAMS[name]
    with config.settings(search_cuts=4):
        np.testing.assert_allclose(program().numpy(), numpys(), rtol=1e-4, atol=1e-3)


def test_the_fastest_cuts_are_taken(timed: Callable[[Times], list[list[int]]]) -> None:
    plain = len(products().schedule())
    counts = {}
    for times in (few, many):
        asked = timed(times)
        with config.settings(search_cuts=4, ignore_beam_cache=True):
            counts[times] = len(products().prepare().kernels)
        assert any(plain in pair for pair in asked)
    assert counts[few] < plain <= counts[many]
    timed(lambda plan: 1.0)
    with config.settings(search_cuts=4, ignore_beam_cache=True):
        assert len(products().prepare().kernels) == plain  # what is no faster is not taken


def test_a_lucky_measurement_does_not_win(timed: Callable[[Times], list[list[int]]]) -> None:
    plain = len(products().schedule())
    turns = itertools.count()
    asked = timed(lambda plan: 0.1 if next(turns) == 0 else 1.0)  # the rival comes first
    with config.settings(search_cuts=1):
        assert len(products().prepare().kernels) == plain
    assert len(asked) == 2


def test_no_more_than_so_many_decisions_are_tried(timed: Callable[[Times], list[list[int]]]) -> None:
    for most in (1, 2):
        asked = timed(lambda plan: 1.0)
        with config.settings(search_cuts=most):
            products().prepare()
        assert 0 < len(asked) <= most


@pytest.mark.long
def test_what_was_found_is_remembered(timed: Callable[[Times], list[list[int]]]) -> None:
    asked = timed(few)
    with config.settings(search_cuts=4):
        first = len(products().prepare().kernels)
        assert asked
        asked.clear()
        products().realize()
        assert not asked  # in this process
        slower = timed(many)
        again = products().prepare()
        assert len(again.kernels) == first
        assert not slower  # on disk
        with config.settings(fast_math=""):
            products().prepare()
        assert slower  # another setting, another search
        slower.clear()
        (Tensor(X[:32]).relu() @ Tensor(W)).prepare()
        assert slower  # another program
    assert len(products().prepare().kernels) == len(products().schedule())  # off again: as decided by cost


@pytest.mark.long
def test_what_cannot_be_read_is_searched_again(timed: Callable[[Times], list[list[int]]], cache: Path) -> None:
    for text in ("", "{", "[true]", "[99]", "[-1]", '"a"', json.dumps(None)):
        with config.settings(search_cuts=2):
            timed(few)
            products().prepare()
            with sqlite3.connect(cache / "beam.sqlite") as connection:
                for (key,) in connection.execute("select key from found").fetchall():
                    connection.execute("update found set opts = ? where key = ?", (tuned.sealed(key, text), key))
            asked = timed(few)
            np.testing.assert_allclose(products().numpy(), NUMPYS, rtol=1e-4, atol=1e-3)
            assert asked


def test_nothing_is_written_but_once(timed: Callable[[Times], list[list[int]]]) -> None:
    asked = timed(few)
    base = X.copy()
    with config.settings(search_cuts=4):
        x = Tensor(base)
        h = x.relu()
        product = (h @ Tensor(W)) * (h @ Tensor(V))
        x.assign(h * 2 + 1)
        Tensor.realize(product, x)
    assert asked
    np.testing.assert_allclose(product.numpy(), (np.maximum(X, 0) @ W) * (np.maximum(X, 0) @ V), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(x.numpy(), np.maximum(X, 0) * 2 + 1)
    np.testing.assert_array_equal(base, x.numpy())


def test_several_outputs(timed: Callable[[Times], list[list[int]]]) -> None:
    for times in (few, many):
        asked = timed(times)
        with config.settings(search_cuts=4, ignore_beam_cache=True):
            h = Tensor(X).relu()
            a, b = h @ Tensor(W), h @ Tensor(V)
            Tensor.realize(a, b)
        assert asked
        np.testing.assert_allclose(a.numpy(), np.maximum(X, 0) @ W, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(b.numpy(), np.maximum(X, 0) @ V, rtol=1e-4, atol=1e-3)


@pytest.mark.long
def test_sizes_that_vary_are_timed_at_their_largest(timed: Callable[[Times], list[list[int]]]) -> None:
    n = Variable("n", 1, 64)
    bound: list[set[int]] = []

    def times(plan: ExecutionPlan) -> float:
        bound.append({value for k in plan.kernels for value in k.fixedvars.values()})
        return few(plan)

    timed(times)
    with config.settings(search_cuts=4):
        for size in (1, 7, 64):
            x = Tensor(X)[: n.bind(size)].relu()
            t = (x @ Tensor(W)).tanh() * (x @ Tensor(V))
            np.testing.assert_allclose(t.numpy()[:size], NUMPYS[:size], rtol=1e-4, atol=1e-3)
    assert bound
    assert all(64 in values for values in bound)
    assert not any({1, 7} & values for values in bound)


def test_jitted_functions(timed: Callable[[Times], list[list[int]]]) -> None:
    asked = timed(few)

    @jit
    def step(x: Tensor) -> Tensor:
        h = x.relu()
        return (h @ Tensor(W)).tanh() * (h @ Tensor(V))

    with config.settings(search_cuts=4):
        for _ in range(3):
            np.testing.assert_allclose(step(Tensor(X)).numpy(), NUMPYS, rtol=1e-4, atol=1e-3)
    assert len({tuple(pair) for pair in asked}) >= 1


def test_programs_that_cannot_be_timed(timed: Callable[[Times], list[list[int]]]) -> None:
    asked = timed(few)
    with config.settings(search_cuts=4):
        products().kernels("NULL")
        products().kernels("CUDA")
        with config.settings(cpu_backend="interpreter"):
            (Tensor(X[:4, :8]).relu() @ Tensor(W[:8, :4])).realize()
    assert not asked


def test_it_can_be_asked_for_in_a_program(timed: Callable[[Times], list[list[int]]]) -> None:
    asked = timed(few)
    products().realize(config=OptimizerConfig(search_cuts=2))
    assert asked
    assert OptimizerConfig.builder().search_cuts(3).build().settings()["search_cuts"] == 3
    with pytest.raises(ConfigError):
        OptimizerConfig(search_cuts=-1)


@pytest.mark.long
def test_a_real_search(cache: Path) -> None:
    before = cut_search.COUNTERS.searches
    with config.settings(search_cuts=2, threads=1):
        np.testing.assert_allclose(products().numpy(), NUMPYS, rtol=1e-4, atol=1e-3)
    assert cut_search.COUNTERS.searches == before + 1
    assert (cache / "beam.sqlite").exists()
