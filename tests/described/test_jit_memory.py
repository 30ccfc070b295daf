"""Jitted functions and memory that they see in more ways than one: views, arrays, buffers, constants; and failed descriptions."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor
from morok.errors import JitEffectError, JitError, JitValueError, UsageError
from morok.runtime.buffer import Block
from morok.tensor.realize import watching

Function = Callable[..., Any]


def square() -> Tensor:
    return Tensor(np.arange(4, dtype=np.float32).reshape(2, 2))


def vector(*numbers: float) -> Tensor:
    return Tensor(np.array(numbers, np.float32))


def alike(program: Callable[[Callable[[Function], Function]], list[Any]]) -> None:
    """A program has the same results with its functions jitted as without."""
    assert program(morok.jit) == program(lambda f: f)


CHANGES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "base assigned": lambda g, v: g.assign(g + 10),
    "base written": lambda g, v: [g.__setitem__(0, 9), g.realize()],
}
VIEWS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "transposed": (lambda g: g.T, lambda v: v.T),
    "permuted": (lambda g: g.reshape(1, 2, 2).permute(2, 0, 1), lambda v: v.permute(1, 2, 0).reshape(2, 2)),
    "reshaped": (lambda g: g.reshape(4), lambda v: v.reshape(2, 2)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("writes", [False, True])
def test_views_that_fold_away_in_the_function(view: str, change: str, writes: bool) -> None:
    there, back = VIEWS[view]

    def program(jit: Callable[[Function], Function]) -> list[Any]:
        g = square()
        v = there(g)

        @jit
        def f(x: Tensor) -> Tensor:
            if writes:
                g.assign(g + x)
            return back(v) + x

        found = [f(square()).tolist(), f(square()).tolist()]
        CHANGES[change](g, v)
        return [*found, f(square()).tolist(), f(square()).tolist(), g.tolist(), v.tolist()]

    alike(program)


@pytest.mark.parametrize("make", [lambda: square().T, lambda: Tensor.arange(4).reshape(2, 2).T], ids=["memory", "none"])
def test_a_view_alone_that_folds_away(make: Callable[[], Tensor]) -> None:
    def program(jit: Callable[[Function], Function]) -> list[Any]:
        v = make()
        f = jit(lambda x: v.T + x)
        found = f(square()).tolist()
        v.assign(v * 2)
        return [found, f(square()).tolist()]

    alike(program)


def integers(*numbers: int) -> Any:
    return np.array(numbers)


ARRAYS: dict[str, tuple[Any, Any, Callable[[Tensor, Any], Any]]] = {  # the array, its other elements, a use of it
    "number": (integers(1, 2), integers(3, 4), lambda x, a: x * Tensor(a).sum().item()),
    "branch": (integers(1), integers(-1), lambda x, a: x * 2 if Tensor(a)[0] > 0 else x * 3),
    "computed first": (integers(1, 2), integers(3, 4), lambda x, a: x * (Tensor(a) * 2).realize().sum().item()),
    "places": (integers(0, 1), integers(2, 1), lambda x, a: x[a]),
    "part": (integers(0, 1, 2), integers(1, 0, 0), lambda x, a: x[a[1:]]),
    "in a list": (integers(0, 1), integers(2, 1), lambda x, a: x[[a, a]]),
    "mask": (np.array([True, False, True]), np.array([False, True, False]), lambda x, a: x[a]),
    "take": (integers(0, 1), integers(2, 1), lambda x, a: x.take(a, 0)),
    "along": (integers(0, 1), integers(2, 1), lambda x, a: x.take_along_axis(a, 0)),
    "stacked": (integers(1, 2, 3), integers(3, 4, 5), lambda x, a: x + Tensor([a, a])),
}


@pytest.mark.parametrize("use", ARRAYS)
def test_reached_arrays_whose_elements_become_numbers_of_the_graph(use: str) -> None:
    first, second, function = ARRAYS[use]

    def program(jit: Callable[[Function], Function]) -> list[Any]:
        a = first.copy()
        f = jit(lambda x: function(x, a))
        found = [f(vector(5, 6, 7)).tolist(), f(vector(5, 6, 8)).tolist()]
        a[...] = second
        return [*found, f(vector(5, 6, 7)).tolist()]

    alike(program)


def test_arrays_written_to_places_and_loaded() -> None:
    def program(jit: Callable[[Function], Function]) -> list[Any]:
        places, linear = integers(0, 1), morok.nn.Linear(2, 1)
        state = {"weight": np.ones((1, 2), np.float32), "bias": np.zeros(1, np.float32)}

        @jit
        def f(x: Tensor) -> Tensor:
            x[places] = 7.0
            linear.load_state_dict(state)
            return linear(x[:2])

        x, found = vector(1, 2, 3), []
        for k in range(3):
            places[0], state["weight"][0, 0] = k, k
            found += [f(x).tolist(), x.tolist()]
        return found

    alike(program)


def test_elements_computed_first_of_a_reached_tensor() -> None:
    def program(jit: Callable[[Function], Function]) -> list[Any]:
        g = vector(1, 2).realize()
        f = jit(lambda x: x + (g * 2).realize())
        found = f(vector(1, 1)).tolist()
        g.assign(g + 5)
        return [found, f(vector(1, 1)).tolist()]

    alike(program)


def test_reached_arrays_are_not_written() -> None:
    a = np.zeros((2, 2))

    def f(x: Tensor) -> Tensor:
        a.T[1, 0] += 1
        return x * 2

    with pytest.raises(JitEffectError, match="array"):
        morok.jit(f)(vector(1))


def swallowed(x: Tensor) -> Tensor:
    try:
        scale = float(x.sum())
    except Exception:
        scale = 100.0
    return x * scale


def replaced(x: Tensor) -> Tensor:
    try:
        return x * x.sum().item()
    except Exception as problem:
        raise KeyError("sum") from problem


@pytest.mark.parametrize("function", [swallowed, replaced, lambda x: Tensor.full((1,), x[0]), Tensor.from_dlpack])
def test_elements_that_are_needed_are_an_error_that_nobody_hides(function: Function) -> None:
    with pytest.raises(JitValueError, match="depend on an argument"):
        morok.jit(function)(vector(3))


def test_buffers_of_reached_tensors() -> None:
    def program(jit: Callable[[Function], Function]) -> list[Any]:
        g, zeros = vector(2).realize(), Tensor.zeros(2)
        f = jit(lambda x: x * float(g.buffer.numpy()[0]) + ((x + 1).buffer is zeros.buffer))
        found = f(vector(3)).tolist()
        g[0] = 5.0
        g.realize()
        return [found, f(vector(3)).tolist()]

    alike(program)


@pytest.mark.parametrize("of", [lambda x, lazy: x, lambda x, lazy: x.reshape(1, 1), lambda x, lazy: lazy])
def test_buffers_that_no_plan_knows(of: Function) -> None:
    lazy = vector(1) + 1
    with pytest.raises(JitValueError):
        morok.jit(lambda x: x * (2.0 if of(x, lazy).buffer is None else 3.0))(vector(1))


def part(x: Tensor) -> Any:
    v = x[1:]
    v[0] = 1.0
    return [v, x]


def moved(x: Tensor) -> Any:
    v = x.T.reshape(4)
    v.assign(5.0)
    return [v, x]


def written_before(x: Tensor) -> Any:
    x[0] = 2.0
    return part(x)


@pytest.mark.parametrize("function", [part, moved, written_before])
def test_views_of_constant_arguments_are_written(function: Function) -> None:
    def program(jit: Callable[[Function], Function]) -> list[Any]:
        f, found = jit(function), []
        for make in (
            Tensor.zeros,
            Tensor.ones,
            lambda *n: Tensor.zeros(*n).contiguous(),
            lambda *n: Tensor.zeros(*n) + 1,
        ):
            x = make(2, 2)
            try:
                found += [t.tolist() for t in f(x)]
            except UsageError:
                found.append("refused")
        return found

    alike(program)


def doubled(t: Tensor) -> Tensor:
    t.assign(t * 2)
    return t.sum()


def doubled_alone(t: Tensor) -> int:
    t.assign(t * 2)
    return 2


@pytest.mark.parametrize("inner", [doubled, doubled_alone])
@pytest.mark.parametrize("step", [1, 2])
def test_arrays_written_by_a_jitted_function_in_another(inner: Function, step: int) -> None:
    array, double = np.ones(4, np.float32), morok.jit(inner)

    def outer(x: Tensor) -> Tensor:
        return x + double(array[::step])

    if inner is doubled and step == 1:
        assert [morok.jit(outer)(vector(1)).item() for _ in range(2)] == [9.0, 17.0]
        assert array.tolist() == [4.0] * 4
    else:
        with pytest.raises(JitEffectError, match="array"):
            morok.jit(outer)(vector(1))
        assert array.tolist() == [1.0] * 4
    with watching(lambda _: lambda _: None):
        double(array[::step])
    assert array[::step].tolist() == [(8.0 if inner is doubled and step == 1 else 2.0)] * (4 // step)


WORK: dict[str, Function] = {
    "result": lambda x, g: x * 2,
    "write": lambda x, g: g.assign(g + x),
    "written as it is": lambda x, g: g.assign(x),
    "elements": lambda x, g: x.item(),
}


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("waits", [False, True])
def test_threads_that_a_function_starts(work: str, waits: bool) -> None:
    g = vector(1)

    def f(x: Tensor) -> Any:
        with ThreadPoolExecutor(1) as threads:
            found = threads.submit(WORK[work], x, g)
        return found.result() if waits else x + 1

    with pytest.raises(JitError, match="depend"):
        morok.jit(f)(vector(2))
    assert g.tolist() == [1.0]


def test_threads_with_the_context_of_a_function() -> None:
    @morok.jit
    def f(x: Tensor) -> Any:
        return asyncio.run(asyncio.to_thread(lambda: x * 2))

    assert [f(vector(k)).item() for k in (1, 2)] == [2.0, 4.0]


class Kept:
    """A place for tensors."""

    t: Any = None


def left(kept: Kept, reached: Tensor, raises: bool, what: Callable[[Tensor, Tensor], Tensor]) -> Function:
    def f(x: Tensor) -> Tensor:
        kept.t = what(x, reached)
        if raises:
            raise KeyError("after")
        return x

    return f


def after_write(x: Tensor, g: Tensor) -> Tensor:
    g.assign(g + x)
    x.assign(x * 3)
    return g * 10 + x


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize(
    "what",
    [lambda x, g: x * 2, lambda x, g: x, lambda x, g: x[1:] + g[0], after_write, lambda x, g: x + Tensor.rand(2)],
)
def test_tensors_that_a_failed_description_leaves(raises: bool, what: Callable[[Tensor, Tensor], Tensor]) -> None:
    kept, g, x = Kept(), vector(5, 6), vector(1, 2)
    Tensor.manual_seed(3)
    with pytest.raises(KeyError if raises else JitEffectError):
        morok.jit(left(kept, g, raises, what))(x)
    found, next_numbers = kept.t, Tensor.rand(2).tolist()
    Tensor.manual_seed(3)
    assert next_numbers == Tensor.rand(2).tolist()  # a failed call draws no numbers
    assert (g.tolist(), x.tolist()) == ([5, 6], [1, 2])
    Tensor.manual_seed(3)
    assert found.tolist() == what(vector(1, 2), vector(5, 6)).tolist()
    assert (g.tolist(), x.tolist()) == ([5, 6], [1, 2])
    later = found + 1
    x.assign(x * 100)
    x.realize()
    Tensor.manual_seed(3)
    assert later.tolist() == (what(vector(1, 2), vector(5, 6)) + 1).tolist()


def test_a_tensor_left_behind_keeps_its_elements() -> None:
    kept, g, x = Kept(), vector(5, 6), vector(1, 2)
    with pytest.raises(KeyError):
        morok.jit(left(kept, g, True, lambda x, g: x * 2 + g))(x)
    x.assign(x * 100)
    g[0] = 7.0
    assert (x.tolist(), g.tolist(), kept.t.tolist()) == ([100, 200], [7, 6], [7, 10])


def writes_it(x: Tensor) -> None:
    x.assign(x * 3)


def writes_into_it(x: Tensor) -> None:
    x[0] = 9.0


@pytest.mark.parametrize("write", [writes_it, writes_into_it, lambda x: None])
@pytest.mark.parametrize(
    "make",
    [lambda: vector(1, 2), lambda: Tensor.full((2,), 4.0), lambda: vector(1, 2) + 1, lambda: vector(1, 2).flip(0)],
)
def test_an_argument_left_behind_has_its_elements(make: Callable[[], Tensor], write: Function) -> None:
    kept, x = Kept(), make()
    before = x.tolist()

    @morok.jit
    def f(x: Tensor) -> None:
        write(x)
        kept.t = x
        raise KeyError

    with pytest.raises((KeyError, UsageError)):  # a view of a tensor in use is not written
        f(x)
    assert x.tolist() == before
    if kept.t is not None:
        assert kept.t.tolist() == before
        x.assign(x * 100)
        assert (kept.t.tolist(), x.tolist()) == (before, [100 * v for v in before])
        kept.t[0] = 5.0
        assert (kept.t.tolist(), x.tolist()) == ([5.0, before[1]], [100 * v for v in before])


@pytest.mark.parametrize(
    "make", [lambda: morok.nn.Linear(2, 2), lambda: morok.nn.Embedding(2, 2)], ids=["linear", "embedding"]
)
def test_layers_that_a_function_makes(make: Callable[[], morok.nn.Module]) -> None:
    def program(jit: Callable[[Function], Function]) -> list[Any]:
        Tensor.manual_seed(5)
        f = jit(lambda x: make()(x.cast("i64")) if make().weight.shape == (2, 2) else x)
        return [np.round(f(vector(1, 0)).numpy(), 5).tolist() for _ in range(2)]

    alike(program)


@pytest.mark.usefixtures("little_to_collect")
def test_plans_that_are_not_used_give_their_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, x, size = {"gain": 0.0}, Tensor(np.ones((512, 512), np.float32)).realize(), 4 * 512 * 512

    @morok.jit
    def by_object(x: Tensor) -> Tensor:
        return (x * settings["gain"]).exp()

    by_argument = morok.jit(lambda x, gain: (x * gain).exp())

    made: weakref.WeakSet[Block] = weakref.WeakSet()
    init = Block.__init__

    def noted(block: Block, nbytes: int) -> None:
        init(block, nbytes)
        made.add(block)

    monkeypatch.setattr(Block, "__init__", noted)

    def blocks() -> int:
        gc.collect()
        return sum(b.nbytes >= size for b in made)

    for way in (by_object, lambda x: by_argument(x, settings["gain"])):
        before = blocks()
        for gain in [*range(20), *range(20)]:
            settings["gain"] = -float(gain)
            np.testing.assert_allclose(way(x).numpy()[3, 3:5], np.exp(np.float32(-gain)), rtol=1e-5)
            if gain % 5 == 4:
                assert blocks() <= before + 8 + 1  # of the plans used last, and of the result
    assert by_object.plans == by_argument.plans == 20
