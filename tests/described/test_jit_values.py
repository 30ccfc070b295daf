"""Jitted functions against the functions as they are: values, writes, random numbers, aliases."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import morok
from morok import Tensor, Variable, config, nn
from morok.errors import UsageError
from morok.tensor.realize import watching

Array = np.ndarray[Any, Any]


def tensor(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(array(*shape, seed=seed))


def array(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def alike(function: Callable[..., Any], calls: Callable[[], list[tuple[Any, ...]]], plans: int | None = None) -> None:
    """The same calls, of the function and jitted, from fresh arguments: equal results and equal arguments afterwards."""
    jitted = morok.jit(function)
    before, after = calls(), calls()
    for plain, own in zip(before, after, strict=True):
        Tensor.manual_seed(7)
        wanted = flat(function(*plain))
        Tensor.manual_seed(7)
        same(flat(jitted(*own)), wanted)
        same(flat(own), flat(plain))
    if plans is not None:
        assert jitted.plans == plans


def flat(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value.numpy().copy()]
    if isinstance(value, dict):
        return [x for k, v in value.items() for x in (k, *flat(v))]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *[x for v in value for x in flat(v)]]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [x for f in dataclasses.fields(value) for x in flat(getattr(value, f.name))]
    return [value]


def same(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted, strict=True):
        if isinstance(w, np.ndarray):
            np.testing.assert_allclose(f, w, rtol=1e-5, atol=1e-6)
            assert f.dtype == w.dtype
            assert f.shape == w.shape
        else:
            assert f is w or (type(f) is type(w) and f == w)


SIZES = [(3, 4), (1, 1), (0, 4), (5, 4), (3, 4)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2 + 1).relu(),
        lambda x: x.sum(),
        lambda x: x,
        lambda x: (x, x, x + 1),
        lambda x: [x.reshape(-1), x.T, x[:1]],
        lambda x: {"a": x, "b": {"c": x.exp()}, 3: None},
        lambda x: Tensor.zeros(2, 3),
        lambda x: (Tensor.ones(2), 3, 1.5, "text", None),
        lambda x: x + Tensor.arange(4).cast("f32"),
        lambda x: x * np.arange(4, dtype=np.float32),
        lambda x: x.softmax(-1) @ x.T,
        lambda x: x.cast("i32") // 2,
        lambda x: (x > 0).cast("u8"),
        lambda x: x[:, [-1, 0]],
        lambda x: x.detach(),
        lambda x: x.clone() + x,
        lambda x: Tensor.concat([x, x * 2], 1),
        lambda x: (y := x + 1, y, y.reshape(-1)),
    ],
)
def test_values_of_one_argument(function: Callable[[Tensor], Any]) -> None:
    alike(function, lambda: [(tensor(*s, seed=k),) for k, s in enumerate(SIZES)])


def write(x: Tensor) -> Tensor:
    x.assign(x + 1)
    return x.sum(0)


def write_part(x: Tensor) -> Tensor:
    x[0] = 5.0
    x[1:, 1] = x[:-1, 2]
    return x * 2


def write_and_return(x: Tensor) -> Tensor:
    x.assign(x * 3)
    x += 1
    x.assign(x.flip(0))
    return x


def swap(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    old = x.clone()
    x.assign(y)
    y.assign(old)
    return x + 1, y, old


def write_then_read(x: Tensor, y: Tensor) -> Tensor:
    x.assign(x + 1)
    return y.sum() + x.sum()


@pytest.mark.parametrize("function", [write, write_part, write_and_return])
def test_arguments_that_are_written(function: Callable[[Tensor], Any]) -> None:
    alike(function, lambda: [(tensor(3, 4, seed=k),) for k in range(4)], 1)


@pytest.mark.parametrize("function", [swap, write_then_read, lambda x, y: x @ y.T, lambda x, y: (y, x)])
def test_two_arguments_and_one_twice(function: Callable[[Tensor, Tensor], Any]) -> None:
    def calls() -> list[tuple[Any, ...]]:
        a, b, c = (tensor(3, 4, seed=k) for k in range(3))
        return [
            (a, b),
            (b, a),
            (c, b),
            (a, a),
            (c, c),
            (a, a.detach()),
            (b.detach(), b),
            (a, b.reshape(4, 3).reshape(3, 4)),
        ]

    alike(function, calls)


def test_arguments_of_all_kinds() -> None:
    """Lazy ones, views, constants, arrays, elements of nothing."""

    def calls() -> list[tuple[Any, ...]]:
        base = tensor(4, 3, seed=3)
        return [
            (tensor(3, 4) + 1,),
            (base.T,),
            (tensor(5, 4, seed=2)[1:4],),
            (Tensor.full((3, 4), 2.5),),
            (Tensor.full((3, 4), -0.5),),
            (Tensor.arange(12).reshape(3, 4).cast("f32"),),
            (tensor(3, 1).expand(3, 4),),
            (Tensor.zeros(0, 4),),
        ]

    for f in (lambda x: x * 2 + x.sum(0), lambda x: x.exp(), lambda x: (x, x.flip(0))):
        alike(f, calls)


def test_arrays_are_inputs() -> None:
    @morok.jit
    def f(x: Tensor, a: Any) -> Tensor:
        return x + a

    x = tensor(3, 4)
    for k in range(4):
        a = array(3, 4, seed=k)
        np.testing.assert_array_equal(f(x, a).numpy(), x.numpy() + a)
        a += 1
        np.testing.assert_array_equal(f(x, a).numpy(), x.numpy() + a)
        np.testing.assert_array_equal(f(x, np.asfortranarray(a)).numpy(), x.numpy() + a)
    assert f.plans == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("shape", ["as it lies", "transposed", "reversed"])
def test_arrays_that_a_function_reaches_are_inputs(dtype: Any, shape: str) -> None:
    table = np.arange(16, dtype=dtype).reshape(4, 4)
    view = {"as it lies": table, "transposed": table.T, "reversed": table[::-1]}[shape]

    def f(x: Tensor) -> Tensor:
        return x * Tensor(view, dtype="f32") + view[1:3].sum(0)[:1].size

    @morok.jit
    def g(x: Tensor) -> Tensor:
        return x * Tensor(view, dtype="f32") + view[1:3].sum(0)[:1].size

    x = tensor(4, 4)
    for _ in range(3):
        np.testing.assert_array_equal(g(x).numpy(), f(x).numpy())
        table += 3
        table[0, 2] = -7
    assert g.plans == 1


LAYOUTS: dict[str, Callable[[], Array]] = {
    "in order": lambda: np.arange(4, dtype=np.float32).reshape(2, 2),
    "columns first": lambda: np.asfortranarray(np.arange(4, dtype=np.float32).reshape(2, 2)),
    "a part": lambda: np.arange(8, dtype=np.float32).reshape(2, 4)[:, ::2],
    "backwards": lambda: np.arange(4, dtype=np.float32).reshape(2, 2)[::-1],
    "other byte order": lambda: np.arange(4, dtype=np.float32).reshape(2, 2).astype(">f4"),
    "one row": lambda: np.ones((1, 2), np.float32),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_an_array_that_is_written(layout: Callable[[], Array]) -> None:
    @morok.jit
    def function(x: Any, y: Tensor) -> Any:
        x[0] = y.sum()
        x[-1] += 1
        return x, y * 2

    for k in range(3):
        x, expected = layout(), layout()
        same, twice = function(x, Tensor([1.0 + k, 2.0]))
        expected[0] = 3 + k
        expected[-1] += 1
        assert same is x
        np.testing.assert_array_equal(x, expected)
        assert twice.tolist() == [2.0 + 2 * k, 4.0]


def test_an_array_that_cannot_be_written() -> None:
    fixed = np.broadcast_to(np.float32(1), (2, 2))

    @morok.jit
    def function(x: Any) -> Any:
        x.assign(x + 1)
        return x * 2

    with pytest.raises(UsageError, match="read-only"):
        function(fixed)


def test_arrays_are_tensors_in_functions_without_a_plan_too() -> None:
    array = np.array([-1, 2], np.float32)

    @morok.jit
    def inner(x: Any, more: list[Any]) -> Any:
        return x.relu() + more[0][0].exp2()

    @morok.jit
    def outer(y: Tensor) -> Any:
        return inner(array, [(array,)]) * y

    assert outer(Tensor([1.0, 2.0])).tolist() == [0.5, 12.0]
    with watching(lambda _: lambda _: None):
        assert inner(array, [(array,)]).tolist() == [0.5, 6.0]


def test_results_own_their_memory() -> None:
    weight = tensor(4, 4, seed=9)

    @morok.jit
    def f(x: Tensor) -> tuple[Tensor, ...]:
        return x @ weight, x.reshape(-1), weight.reshape(16), x.T, Tensor.ones(3)

    inputs = [tensor(2, 4, seed=k) for k in range(8)]
    results = [f(x) for x in inputs]
    arrays = [[t.numpy() for t in r] for r in results]
    for x, r in zip(inputs, arrays, strict=True):
        for found, wanted in zip(
            r,
            (x.numpy() @ weight.numpy(), x.numpy().reshape(-1), weight.numpy().reshape(16), x.numpy().T, np.ones(3)),
            strict=True,
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
    results[0][1].assign(results[0][1] * 0).realize()
    assert inputs[0].numpy().any()
    kept = arrays[3][0]
    del results, arrays
    copy = kept.copy()
    for k in range(6):
        f(tensor(2, 4, seed=20 + k))
    np.testing.assert_array_equal(kept, copy)


def test_results_that_views_and_lazy_tensors_read_are_left_alone() -> None:
    f = morok.jit(lambda x: x * 2)
    x = tensor(3, 3)
    view, lazy, twice = f(x)[1:].T, f(x) + 1, f(f(x))
    numbers = x.numpy()
    for k in range(5):
        f(tensor(3, 3, seed=k))
    np.testing.assert_array_equal(view.numpy(), (numbers * 2)[1:].T)
    np.testing.assert_array_equal(lazy.numpy(), numbers * 2 + 1)
    np.testing.assert_array_equal(twice.numpy(), numbers * 4)


def test_readers_of_what_a_call_overwrites_keep_what_they_read() -> None:
    state = Tensor(np.zeros(4, np.float32))

    @morok.jit
    def step(x: Tensor) -> Tensor:
        state.assign(state * 2 + x)
        return state + 0

    wanted = np.zeros(4, np.float32)
    readers = []
    for k in range(5):
        x = array(4, seed=k)
        readers.append((state + 1, wanted + 1))
        readers.append((state.detach(), wanted))
        readers.append((state[1:3], wanted[1:3]))
        wanted = wanted * 2 + x
        np.testing.assert_allclose(step(Tensor(x)).numpy(), wanted, rtol=1e-6)
    for t, w in readers:
        np.testing.assert_allclose(t.numpy(), w, rtol=1e-6)
    np.testing.assert_allclose(state.numpy(), wanted, rtol=1e-6)
    assert step.plans == 1


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "flip": lambda x: x.flip(0),
    "permute": lambda x: x.permute(1, 0),
    "step": lambda x: x[::2],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_that_are_the_whole_memory_in_its_order_keep_what_they_read(view: Callable[[Tensor], Tensor]) -> None:
    """Of one row these views are the row itself, which is seen only when they are computed."""

    @morok.jit
    def double(x: Tensor, y: Tensor) -> Tensor:
        x.assign(x + x)
        return y + 1

    for seed in range(3):
        a = array(1, 4, seed=seed)
        x = Tensor(a.copy())
        y = view(x)
        wanted = view(Tensor(a)).numpy()
        np.testing.assert_array_equal(double(x, y).numpy(), wanted + 1)
        np.testing.assert_array_equal(y.numpy(), wanted)
        np.testing.assert_array_equal(x.numpy(), a + a)


def test_a_view_is_written_where_what_it_is_a_view_of_has_been_written_before() -> None:
    def both(x: Tensor, y: Tensor) -> None:
        x.assign(x + 1)
        y[0] = 9.0

    jitted = morok.jit(both)
    for seed in range(3):
        found = []
        for f in (both, jitted):
            x = tensor(2, 4, seed=seed)
            y = x.flip(0)
            f(x, y)
            found.append([x.tolist(), y.tolist()])
        assert found[0] == found[1]
    x = tensor(2, 4)
    y, z = x.flip(0), tensor(2, 4, seed=1)
    with pytest.raises(UsageError, match="view of another"):
        jitted(z, y)


def test_an_argument_that_others_share_is_written_alone() -> None:
    @morok.jit
    def bump(x: Tensor) -> None:
        x.assign(x + 1)

    base = array(3)
    owner = Tensor(base)
    other, lazy = owner.detach(), owner * 10
    wanted = base.copy()
    bump(other)
    np.testing.assert_array_equal(owner.numpy(), wanted)
    np.testing.assert_array_equal(other.numpy(), wanted + 1)
    np.testing.assert_array_equal(base, wanted)
    bump(owner)
    np.testing.assert_array_equal(owner.numpy(), wanted + 1)
    np.testing.assert_array_equal(other.numpy(), wanted + 1)
    np.testing.assert_array_equal(lazy.numpy(), wanted * 10)
    np.testing.assert_array_equal(base, wanted + 1)


def test_an_argument_that_the_function_reaches_too() -> None:
    weight = tensor(3, 3)

    def f(x: Tensor) -> Tensor:
        weight.assign(weight + 1)
        return x.sum(0) + weight

    g = morok.jit(f)
    numbers = weight.numpy().copy()
    for given in (weight, tensor(3, 3, seed=1), weight, weight.detach(), weight.T):
        seen = given.numpy().copy()
        result = g(given)
        numbers = numbers + 1
        total = (numbers if given is weight else seen).sum(0)
        np.testing.assert_allclose(result.numpy(), total + numbers, rtol=1e-5)
        np.testing.assert_allclose(weight.numpy(), numbers, rtol=1e-6)


@pytest.mark.parametrize("view", [lambda t: t.T, lambda t: t.flip(1), lambda t: t[:1], lambda t: t.reshape(4)])
def test_a_view_of_what_the_function_reaches_and_writes(view: Callable[[Tensor], Tensor]) -> None:
    def seen(wrap: Callable[[Any], Any]) -> list[Any]:
        state = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
        given = view(state)

        @wrap
        def function(x: Tensor) -> Tensor:
            out = state.sum() + x
            state.assign(state * 2 - 4)
            return out

        return [t.tolist() for _ in range(3) for t in (function(given), given, state)]

    assert seen(morok.jit) == seen(lambda f: f)


@pytest.mark.parametrize("seeded", [True, False])
def test_random_numbers_are_those_without_jit(seeded: bool) -> None:
    def f(x: Tensor) -> tuple[Tensor, ...]:
        if seeded:
            Tensor.manual_seed(11)
        unused = Tensor.rand(2)
        del unused
        return (
            x.dropout(0.5),
            Tensor.rand(3, 4),
            Tensor.randint(5, high=9),
            Tensor.randn(2, 2, dtype="f64"),
            Tensor.randperm(6),
        )

    g = morok.jit(f)
    x = Tensor(np.ones((3, 4), np.float32))
    Tensor.manual_seed(5)
    wanted = [flat(f(x)) for _ in range(4)] + [flat(Tensor.rand(3))]
    Tensor.manual_seed(5)
    found = [flat(g(x)) for _ in range(4)] + [flat(Tensor.rand(3))]
    for a, b in zip(found, wanted, strict=True):
        same(a, b)
    assert g.plans == 1


def test_sizes_bound_otherwise_run_the_same_plan() -> None:
    n = Variable("n", 1, 8)
    base = tensor(8, 3)

    @morok.jit
    def f(x: Tensor, rows: Any) -> tuple[Tensor, Tensor]:
        part = x.shrink([(0, rows), None])
        return part.sum(0), part * Tensor(rows).cast("f32")

    for k in (3, 8, 1, 3, 5):
        total, scaled = f(base, n.bind(k))
        np.testing.assert_allclose(total.numpy(), base.numpy()[:k].sum(0), rtol=1e-5)
        np.testing.assert_allclose(scaled.numpy(), base.numpy()[:k] * k, rtol=1e-5)
    assert f.plans == 1


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_a_variable_bound_as_in_the_call_before(backend: str) -> None:
    """Kernels that are launched one by one are given the values each time: nothing keeps those of the last call."""
    n = Variable("n", 1, 5)
    base = np.arange(6, dtype=np.float32)
    with config.settings(cpu_backend=backend):
        f = morok.jit(lambda x, k: x.shrink([(0, k)]).sum())
        assert [f(Tensor(base), n.bind(k)).item() for k in (3, 3, 2, 2, 4, 4)] == [3, 3, 1, 1, 6, 6]
        assert f.plans == 1


def test_tensors_of_symbolic_shapes() -> None:
    n = Variable("n", 1, 8)
    base = tensor(8, 3)
    f = morok.jit(lambda x: (x.exp(), x.sum(0), x))
    for k in (2, 7, 8, 1):
        lazy = base.shrink([(0, n.bind(k)), None])
        stored = (base.shrink([(0, n.bind(k)), None]) * 1).realize()
        for x in (lazy, stored, f(lazy)[2]):
            exp, total, _ = f(x)
            np.testing.assert_allclose(exp.numpy(), np.exp(base.numpy()[:k]), rtol=1e-5)
            np.testing.assert_allclose(total.numpy(), base.numpy()[:k].sum(0), rtol=1e-5)
    assert f.plans <= 2


def test_several_variables_and_one_twice() -> None:
    n, m = Variable("n", 1, 8), Variable("m", 1, 8)
    base = tensor(8, 8)
    f = morok.jit(lambda x, a, b: x.shrink([(0, a), (0, b)]).sum())
    for a, b in ((2, 3), (3, 2), (8, 8), (5, 5)):
        np.testing.assert_allclose(f(base, n.bind(a), m.bind(b)).numpy(), base.numpy()[:a, :b].sum(), rtol=1e-4)
        np.testing.assert_allclose(f(base, n.bind(a), n.bind(a)).numpy(), base.numpy()[:a, :a].sum(), rtol=1e-4)
    assert f.plans == 2


class Pair(NamedTuple):
    left: Tensor
    right: Any


@dataclasses.dataclass
class Batch:
    x: Tensor
    scale: float
    name: str = "b"

    def scaled(self) -> Tensor:
        return self.x * self.scale


def test_trees_of_arguments_and_results() -> None:
    def f(tree: Any, *, batch: Batch) -> Any:
        x, (y, pair) = tree["x"], tree["rest"]
        return Pair(x + y, [pair.left, pair.right]), Batch(batch.scaled(), batch.scale), tree, tree["rest"]

    g = morok.jit(f)
    for k in range(3):
        a, b, c = (tensor(3, seed=3 * k + i) for i in range(3))
        tree = {"x": a, "rest": [b, Pair(c, "text")]}
        found, wanted = g(tree, batch=Batch(b, 2.0)), f(tree, batch=Batch(b, 2.0))
        same(flat(found), flat(wanted))
        assert found[2] is tree
        assert found[3] is tree["rest"]
    assert g.plans == 1


def test_nested_functions_inline() -> None:
    inner = morok.jit(lambda x: x * 2)
    outer = morok.jit(lambda x: inner(x) + inner(x + 1))
    x = tensor(3)
    np.testing.assert_allclose(outer(x).numpy(), x.numpy() * 4 + 2, rtol=1e-6)
    assert (inner.plans, outer.plans) == (0, 1)


class Counter(nn.Module):
    def __init__(self) -> None:
        self.linear, self.seen = nn.Linear(4, 4), Tensor.zeros(4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        self.seen.assign(self.seen + y.sum(0))
        return y - self.seen

    @morok.jit
    def step(self, x: Tensor) -> Tensor:
        return self.forward(x)


def test_modules_methods_and_what_they_write() -> None:
    Tensor.manual_seed(0)
    plain = Counter()
    jitted, method, argument = Counter(), Counter(), Counter()
    for other in (jitted, method, argument):
        other.load_state_dict(plain.state_dict())
    f = morok.jit(jitted)
    g = morok.jit(lambda model, x: model(x))
    for k in range(4):
        x = tensor(2, 4, seed=k)
        wanted = plain(x).numpy()
        for found in (f(x), method.step(x), g(argument, x)):
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)
    for other in (jitted, method, argument):
        for name, values in plain.state_dict().items():
            np.testing.assert_allclose(other.state_dict()[name], values, rtol=1e-5, atol=1e-6)


def test_running_statistics() -> None:
    plain, jitted = nn.BatchNorm(3).train(), nn.BatchNorm(3).train()
    f = morok.jit(jitted)
    for k in range(4):
        x = tensor(5, 3, seed=k)
        np.testing.assert_allclose(f(x).numpy(), plain(x).numpy(), rtol=1e-5, atol=1e-6)
    for name, values in plain.state_dict().items():
        np.testing.assert_allclose(jitted.state_dict()[name], values, rtol=1e-5)
    plain.eval(), jitted.eval()
    x = tensor(5, 3, seed=9)
    np.testing.assert_allclose(f(x).numpy(), plain(x).numpy(), rtol=1e-5, atol=1e-6)
    assert f.plans == 2


def test_partial_functions_and_defaults() -> None:
    w = tensor(3)

    def f(x: Tensor, a: float = 2.0, *, b: Tensor = w) -> Tensor:
        return x * a + b

    g = morok.jit(functools.partial(f, a=3.0))
    x = tensor(3, seed=4)
    np.testing.assert_allclose(g(x).numpy(), x.numpy() * 3 + w.numpy(), rtol=1e-6)
    np.testing.assert_allclose(morok.jit(f)(x).numpy(), x.numpy() * 2 + w.numpy(), rtol=1e-6)


def test_tensors_made_and_written_in_a_call() -> None:
    def f(x: Tensor) -> tuple[Tensor, ...]:
        a = Tensor.zeros(4)
        a.assign(x)
        b = Tensor([1.0, 2.0, 3.0, 4.0])
        b += x
        b[1] = 7
        c = Tensor.empty(4)
        c.assign(b * 2)
        c[0] = 1
        return a, b, c

    alike(f, lambda: [(tensor(4, seed=k),) for k in range(3)], 1)


def test_loading_a_state_in_a_call() -> None:
    model = nn.Linear(2, 2)

    @morok.jit
    def f(w: Tensor, b: Tensor) -> None:
        model.load_state_dict({"weight": w, "bias": b})

    for k in range(3):
        w, b = tensor(2, 2, seed=k), tensor(2, seed=k + 5)
        f(w, b)
        np.testing.assert_array_equal(model.weight.numpy(), w.numpy())
        np.testing.assert_array_equal(model.state_dict()["bias"], b.numpy())


def moved_before_a_write(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    other = x.to("CPU:1")
    x.assign(x + 1)
    y.assign(other * 2)
    return x + 0, other


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x.to("CPU:1") + y,
        lambda x, y: (x.T.to("CPU:1", "f64"), y.to("CPU") * x, x.to("CPU:2").to("CPU"), x.to("CPU")),
        lambda x, y: (noise := Tensor.rand(2, 2), noise.to("CPU:1") + y, Tensor.ones(2).to("CPU:1")),
        moved_before_a_write,
    ],
)
def test_tensors_on_several_devices(function: Callable[[Tensor, Tensor], Any]) -> None:
    def calls() -> list[tuple[Any, ...]]:
        return [(tensor(2, 2, seed=k), Tensor(array(2, 2, seed=k + 9), device="CPU:1")) for k in range(3)]

    alike(function, calls, 1)
    assert [t.device for t in flat_tensors(morok.jit(function)(*calls()[0]))] == [
        t.device for t in flat_tensors(function(*calls()[0]))
    ]


def flat_tensors(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else list(value)


def test_two_devices_that_overwrite_what_the_other_reads() -> None:
    @morok.jit
    def exchange(x: Tensor, y: Tensor) -> None:
        here, there = y.to("CPU"), x.to("CPU:1")
        x.assign(here)
        y.assign(there)

    with pytest.raises(UsageError, match="tensors of two devices"):
        exchange(tensor(2), Tensor(array(2), device="CPU:1"))


def flipped_copy(x: Tensor, y: Tensor) -> Tensor:
    made = x.contiguous()
    y[0] = 5.0
    made[:, 1] = made[1]
    return made


def written_twice(x: Tensor, y: Tensor) -> Tensor:
    made = x + y
    made.assign(y.T)
    made[1] = 1.0
    return made


def write_second(x: Tensor, y: Tensor) -> None:
    y[0] = x[1]


def write_first_then_second(x: Tensor, y: Tensor) -> None:
    x.assign(x * 2)
    y[0] = x[1]


RELATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "itself": lambda x: x,
    "another": lambda x: x * 3,
    "alike": lambda x: x.detach(),
    "transposed": lambda x: x.T,
    "reshaped twice": lambda x: x.reshape(4).reshape(2, 2),
    "flipped, stored": lambda x: x.flip(0).contiguous(),
    "flipped": lambda x: x.contiguous().flip(1),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("lazy", ["stored", "lazy", "written"])
@pytest.mark.parametrize("function", [flipped_copy, written_twice, write_second, write_first_then_second])
def test_the_same_writes_to_views_are_refused(
    function: Callable[[Tensor, Tensor], Any], relation: str, lazy: str
) -> None:
    """However the elements came about: arguments of a jitted function are computed, others need not be."""

    def seen(wrap: Callable[[Any], Any], swap: bool) -> list[Any]:
        jitted, found = wrap(function), []
        for seed in range(2):
            x = tensor(2, 2, seed=seed)
            if lazy != "stored":
                x = x + 1
            if lazy == "written":
                x.assign(x * 2)
            y = RELATIONS[relation](x)
            try:
                result = jitted(*((y, x) if swap else (x, y)))
            except UsageError as problem:
                found.append(problem.message)
            else:
                found += [t.tolist() for t in (*([] if result is None else [result]), x, y)]
        return found

    for swap in (False, True):
        assert seen(morok.jit, swap) == seen(lambda f: f, swap)


def test_a_view_of_an_argument_that_the_function_also_reaches_and_writes() -> None:
    def seen(wrap: Callable[[Any], Any]) -> list[Any]:
        state = tensor(2, 2)

        def function(x: Tensor) -> Tensor:
            view = state.flip(0)
            state[0] = 3.0
            view[0] = x[1]
            return view

        return [t.tolist() for t in (wrap(function)(state), state)]

    assert seen(morok.jit) == seen(lambda f: f)


def test_what_a_function_makes_keeps_each_write_with_its_own_binding() -> None:
    n, m = Variable("n", 0, 3), Variable("m", 0, 3)

    def function(x: Tensor, at: Any) -> tuple[Tensor, Tensor, Tensor]:
        first, second, third = Tensor.zeros(4, 4), x + 1, x * 2
        before = third + 1
        for k in range(4):
            first[m.bind(k)] = x[k] * (k + 1) + Tensor(at)
            second.assign(second * 2 + Tensor(m.bind(k)))
            third[k] = third[: m.bind(k) + 1].sum(0)
        return first, second, third + before

    jitted = morok.jit(function)
    for k in (0, 2, 3):
        x = np.arange(16, dtype=np.float32).reshape(4, 4) + k
        results = jitted(Tensor(x), n.bind(k))
        for mine, plain in zip(results, function(Tensor(x), n.bind(k)), strict=True):
            np.testing.assert_array_equal(mine.numpy(), plain.numpy())
    assert jitted.plans == 1
