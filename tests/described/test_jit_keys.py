"""What a plan depends on, what it does not, and what a function that is described once may not do."""

from __future__ import annotations

import copy
import dataclasses
import decimal
import io
import math
import struct
import threading
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, nn
from morok.errors import (
    ArgumentTypeError,
    JitArgumentError,
    JitDifferenceError,
    JitEffectError,
    JitValueError,
    MorokError,
    UsageError,
)

Array = np.ndarray[Any, Any]
SCALE = 2.0
TABLE = [1.0, 2.0]


def tensor(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def here(problem: MorokError, word: str) -> None:
    """The error names a line of this file that holds this word."""
    assert problem.place is not None
    assert problem.place.file == __file__
    with open(__file__, encoding="utf-8") as file:
        assert word in file.read().splitlines()[problem.place.line - 1]


VALUES: list[Any] = [
    1, 1.0, True, 0, 0.0, -0.0, False, math.nan, struct.unpack("<d", b"\1\0\0\0\0\0\xf8\x7f")[0], "1", b"1", None, ..., 1 + 0j,
    complex(1, -0.0), np.float32(1), np.float64(1), np.int32(1), (1, 2), [1, 2], (1.0, 2), {"a": 1}, {"a": True}, {"b": 1},
    {1: 1}, {True: 1}, {1.0: 1}, range(3), range(0, 3, 2), range(0, 4, 2), slice(0, 3), slice(0, 3, 1), frozenset({1}),
    frozenset({1.0}), (), [], {}, 10**30, np.bool_(True), int, float,
]  # fmt: skip


def test_values_by_type_and_bits() -> None:
    x = tensor(2)
    seen: list[Any] = []

    @morok.jit
    def f(x: Tensor, value: Any) -> tuple[Tensor, str]:
        return x * 1, f"{type(value).__name__} {value!r}"

    for k, value in enumerate(VALUES):
        assert f(x, value)[1] == f"{type(value).__name__} {value!r}"
        assert f.plans == k + 1, seen
        seen.append(value)
    for value in VALUES:
        f(x, copy.deepcopy(value))
    assert f.plans == len(VALUES)


@pytest.mark.parametrize("value", [{1}, bytearray(b"a"), [{1}], {"a": {1}}, (bytearray(),), types.SimpleNamespace(a=1)])
def test_what_has_no_hash_is_an_error(value: Any) -> None:
    f = morok.jit(lambda x, v: x)
    with pytest.raises(JitArgumentError, match="no hash") as found:
        f(tensor(2), value)
    here(found.value, "f(tensor(2), value)")
    assert isinstance(found.value, TypeError)


def test_a_list_in_itself_is_an_error() -> None:
    inner: list[Any] = []
    inner.append(inner)
    with pytest.raises(JitArgumentError):
        morok.jit(lambda x, v: x)(tensor(2), inner)


def test_shapes_dtypes_names_and_sharing() -> None:
    f = morok.jit(lambda *a, **k: sum((v.sum() for v in (*a, *k.values())), Tensor(0.0)))
    a, b = tensor(2, 3), tensor(2, 3, seed=1)
    plans = 0
    for args, names in [
        ((a,), {}), ((a.reshape(3, 2),), {}), ((a.cast("f64"),), {}), ((a, b), {}), ((a, a), {}), ((a, a.detach()), {}),
        ((a,), {"k": b}), ((a,), {"m": b}), ((tensor(2, 4),), {}),
    ]:  # fmt: skip
        total = sum(float(v.numpy().sum()) for v in (*args, *names.values()))
        np.testing.assert_allclose(f(*args, **names).numpy(), total, rtol=1e-4, atol=1e-5)
        plans += 1
        assert f.plans == plans
    for pair in [(b, a), (tensor(2, 3, seed=7), b)]:
        np.testing.assert_allclose(f(*pair).numpy(), sum(t.numpy().sum() for t in pair), rtol=1e-4, atol=1e-5)
    assert f.plans == plans


@pytest.mark.long
def test_settings_are_part_of_the_key() -> None:
    f = morok.jit(lambda x: (x * 3 + 1).sum())
    x = tensor(4)
    for n, chosen in enumerate(
        [
            {},
            {"threads": 1},
            {"fast_math": "fast"},
            {"noopt": 1},
            {"opts": ""},
            {"check": 1},
            {"cpu_backend": "interpreter"},
        ],
        1,
    ):
        with morok.settings(**chosen):
            np.testing.assert_allclose(f(x).numpy(), (x.numpy() * 3 + 1).sum(), rtol=1e-5)
            np.testing.assert_allclose(f(x).numpy(), (x.numpy() * 3 + 1).sum(), rtol=1e-5)
        assert f.plans == n


def test_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    f = morok.jit(lambda x: x + 1)
    f(tensor(2))
    monkeypatch.setenv("MOROK_NOOPT", "1")
    f(tensor(2))
    assert f.plans == 2


class Net(nn.Module):
    """A module with everything that may be replaced."""

    def __init__(self) -> None:
        self.layers = [nn.Linear(3, 3), nn.Linear(3, 3)]
        self.named = {"a": tensor(3, seed=4)}
        self.scale, self.flag = 2.0, False
        self.table = np.arange(3, dtype=np.float32)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        x = x * self.scale + self.named["a"] + self.table
        return -x if self.flag or self.training else x


def replace_weight(m: Net) -> None:
    m.layers[0].weight = tensor(3, 3, seed=8)


def assign_weight(m: Net) -> None:
    m.layers[1].weight.assign(tensor(3, 3, seed=9))


def load_weight(m: Net) -> None:
    m.load_state_dict({"layers.0.bias": np.ones(3, np.float32)}, strict=False)


def lazy_weight(m: Net) -> None:
    m.named["a"] = tensor(3, seed=11) * 2 + 1


def constant_weight(m: Net) -> None:
    m.named["a"] = Tensor.ones(3)


CHANGES: list[Callable[[Net], Any]] = [
    replace_weight,
    assign_weight,
    load_weight,
    lazy_weight,
    constant_weight,
    lambda m: setattr(m, "scale", 3.5),
    lambda m: setattr(m, "scale", 3),
    lambda m: setattr(m, "flag", True),
    lambda m: m.train(),
    lambda m: m.eval(),
    lambda m: m.layers.append(nn.Linear(3, 3, bias=False)),
    lambda m: m.layers.pop(),
    lambda m: m.layers.reverse(),
    lambda m: setattr(m, "table", np.ones(3, np.float64)),
    lambda m: m.table.__setitem__(1, 5),
    lambda m: setattr(m.layers[0], "bias", None),
    lambda m: setattr(m, "layers", [nn.RMSNorm(3)]),
    lambda m: m.__dict__.update(scale=np.float32(7)),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", ["module", "closure", "argument", "method"])
def test_what_is_replaced_is_described_again(way: str) -> None:
    Tensor.manual_seed(1)
    m = Net()
    called = morok.jit(lambda n, x: n(x))
    f = {
        "module": morok.jit(m),
        "closure": morok.jit(lambda x: m(x)),
        "argument": lambda x: called(m, x),
        "method": morok.jit(m.forward),
    }[way]
    x = tensor(2, 3)
    for change in [lambda m: None, *CHANGES]:
        change(m)
        for _ in range(2):
            np.testing.assert_allclose(f(x).numpy(), m(x).numpy(), rtol=1e-5, atol=1e-6)


def test_modes_keep_their_plans() -> None:
    m = Net()
    f = morok.jit(m)
    x = tensor(2, 3)
    for k in range(6):
        m.train(k % 2 == 1)
        np.testing.assert_allclose(f(x).numpy(), m(x).numpy(), rtol=1e-5, atol=1e-6)
    assert f.plans == 2


class Gain:
    gain = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.gain


class SlottedGain:
    __slots__ = ("gain",)

    def __init__(self) -> None:
        self.gain = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.gain


def _shadowed() -> tuple[Callable[[Tensor], Tensor], Any]:
    """An attribute of the object that is jitted, and one of its class."""
    gain = Gain()
    gain.gain = 2.0
    return gain, gain


def _slotted() -> tuple[Callable[[Tensor], Tensor], Any]:
    """A slot of the object that is jitted, and its descriptor in the class."""
    gain = SlottedGain()
    return gain, gain


def _of_one_class(k: int) -> tuple[Callable[[Tensor], Tensor], Any]:
    """Two objects of one class, of which one changes."""
    gains = Gain(), Gain()
    gains[0].gain, gains[1].gain = 3.0, 5.0
    return lambda x: gains[0](x) - gains[1](x), gains[k]


def _of_one_name(k: int) -> tuple[Callable[[Tensor], Tensor], Any]:
    """Two classes of one name."""
    first, second = type("Gain", (), {"gain": 3.0}), type("Gain", (), {"gain": 5.0})
    gains = first(), second()  # a class's name is all that a path says of it
    return lambda x: x * gains[0].gain - x * gains[1].gain, (first, second)[k]


@pytest.mark.parametrize(
    "program",
    [
        _shadowed,
        _slotted,
        lambda: _of_one_class(0),
        lambda: _of_one_class(1),
        lambda: _of_one_name(0),
        lambda: _of_one_name(1),
    ],
    ids=["object and class", "slot and class", "first object", "second object", "first class", "second class"],
)
def test_places_that_are_called_alike_are_told_apart(program: Callable[[], tuple[Any, Any]]) -> None:
    function, changed = program()
    jitted, x = morok.jit(function), tensor(3)
    for gain in (changed.gain, 7.0, 11.0):
        changed.gain = gain
        np.testing.assert_array_equal(jitted(x).numpy(), function(x).numpy())


def test_two_arguments_of_one_class_are_told_apart() -> None:
    def function(x: Tensor, first: Gain, second: Gain) -> Tensor:
        return first(x) - second(x)

    jitted, x, first, second = morok.jit(function), tensor(3), Gain(), Gain()
    for changed in (first, second, first):
        changed.gain += 3.0
        np.testing.assert_array_equal(jitted(x, first, second).numpy(), function(x, first, second).numpy())


def test_equal_values_in_the_place_of_others_are_no_change() -> None:
    m = Net()
    f = morok.jit(m)
    for k in range(3):
        m.scale = float(f"{2}.0")
        m.named = m.named
        f(tensor(2, 3, seed=k))
    assert f.plans == 1


def test_globals_and_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    offset = 1.0

    @morok.jit
    def f(x: Tensor) -> Tensor:
        return x * SCALE + TABLE[1] + offset

    x = tensor(3)
    for change in (
        lambda: None,
        lambda: monkeypatch.setattr(f"{__name__}.SCALE", 4.0),
        lambda: monkeypatch.setattr(f"{__name__}.SCALE", 4),
        lambda: monkeypatch.setattr(f"{__name__}.TABLE", [0, 7.0]),
        lambda: TABLE.__setitem__(1, 9.0),
    ):
        change()
        np.testing.assert_allclose(f(x).numpy(), x.numpy() * SCALE + TABLE[1] + offset, rtol=1e-6)
    offset = 5.0
    np.testing.assert_allclose(f(x).numpy(), x.numpy() * SCALE + TABLE[1] + offset, rtol=1e-6)


def test_values_of_captured_tensors_that_python_reads() -> None:
    flag = Tensor(np.zeros((), np.float32))
    f = morok.jit(lambda x: x + 1 if flag.item() > 0 else x - 1)
    x = tensor(3)
    for value in (0.0, 1.0, 1.0, 0.0, 2.0):
        flag.assign(Tensor(np.float32(value)))
        np.testing.assert_array_equal(f(x).numpy(), x.numpy() + (1 if value else -1))


ASKS: dict[str, Callable[[Tensor], Any]] = {
    "item": lambda x: x.sum().item(),
    "numpy": lambda x: x.numpy(),
    "bool": lambda x: bool(x.sum() > 0),
    "if": lambda x: x if x.sum() > 0 else -x,
    "realize": lambda x: (x + 1).realize(),
    "prepare": lambda x: (x + 1).prepare(),
    "tolist": lambda x: (x * 2).tolist(),
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "np.asarray": lambda x: np.asarray(x),
    "to NULL": lambda x: x.to("NULL"),
    "to after a write": lambda x: x.assign(x + 1).to("CPU:1"),
    "realize_batch": lambda x: Tensor.realize_batch([x * 2]),
    "format": lambda x: f"{x.sum():.2f}",
    "random": lambda x: Tensor.rand(3).numpy(),
    "view": lambda x: x[1:].numpy(),
    "after a write": lambda x: (x.assign(x + 1), x.numpy()),
}


@pytest.mark.parametrize("name", ASKS)
def test_elements_that_are_not_known_yet(name: str) -> None:
    x = tensor(3)
    before = x.numpy().copy()
    f = morok.jit(ASKS[name])
    for _ in range(2):
        with pytest.raises(JitValueError, match=r"an argument|random numbers") as found:
            f(x)
        here(found.value, f'"{name}": lambda x')
        assert ("to() outside the" in found.value.hint) is name.startswith("to ")
    np.testing.assert_array_equal(x.numpy(), before)
    assert f.plans == 0


def test_elements_of_what_is_written() -> None:
    count = Tensor(np.zeros(2, np.float32))

    def f(x: Tensor) -> Tensor:
        count.assign(count + 1)
        return x + count.numpy()

    with pytest.raises(JitValueError, match="writes"):
        morok.jit(f)(tensor(2))
    np.testing.assert_array_equal(count.numpy(), [0, 0])


class Box:
    """An object with attributes and slots."""

    __slots__ = ("kept", "number")

    def __init__(self) -> None:
        self.kept: Any = None
        self.number = 0


class Scaled(nn.Module):
    """A module without weights."""

    def __init__(self) -> None:
        self.scale = 2.0

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


BOX, NET, DICT, LIST = Box(), Scaled(), {"a": 1}, [1, 2]


def counts(x: Tensor) -> Tensor:
    BOX.number += 1
    return x


def keeps(x: Tensor) -> Tensor:
    BOX.kept = x * 2
    return x


def appends(x: Tensor) -> Tensor:
    LIST.append(len(LIST))
    return x


def fills(x: Tensor) -> Tensor:
    DICT["b"] = DICT.get("b", 0) + 1
    return x


def sets(x: Tensor) -> Tensor:
    NET.scale = NET.scale + 1
    return x


def stores(x: Tensor) -> Tensor:
    global SCALE
    SCALE = SCALE + 1
    return x


def of_function(x: Tensor) -> Tensor:
    of_function.__dict__["count"] = of_function.__dict__.get("count", 0) + 1
    return x


def pops(x: Tensor, given: list[int]) -> Tensor:
    given.pop()
    return x


def puts(x: Tensor, given: dict[str, Any]) -> Tensor:
    given["y"] = x * 2
    return x


@pytest.mark.parametrize(
    ("function", "more"),
    [(f, ()) for f in (counts, keeps, appends, fills, sets, stores, of_function)] + [(pops, ([1],)), (puts, ({},))],
)
def test_effects_are_errors(
    function: Callable[..., Any], more: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.SCALE", 1.0)
    with pytest.raises(JitEffectError, match=r"changes|leaves"):
        morok.jit(function)(tensor(2), *more)


def test_leaks_that_python_cannot_see() -> None:
    kept: list[Any] = []
    hidden = (kept.append for _ in range(9))  # nothing says what a generator reaches

    def f(x: Tensor) -> Tensor:
        next(hidden)(x * 2)
        return x + 1

    with pytest.raises(JitEffectError, match="leaves a tensor"):
        morok.jit(f)(tensor(2))


def test_descriptions_that_differ() -> None:
    values = iter(range(100))
    arrays = iter([np.full(2, k, np.float32) for k in range(100)])
    generator = np.random.default_rng(0)
    n = morok.Variable("n", 1, 9)
    cases: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (lambda x: x + next(values), ()),
        (lambda x: x if next(values) % 2 else x + 1, ()),
        (lambda x: x + next(arrays), ()),
        (lambda x: x + generator.random(2), ()),
        (lambda x: (x, next(values)), ()),
        (lambda x: {next(values): x}, ()),
        (lambda x, b: x * b.src[1].arg, (n.bind(3),)),
        (lambda x: Tensor.rand(2) if next(values) % 2 else x, ()),
    ]
    for f, more in cases:
        with pytest.raises(JitDifferenceError, match="described twice") as found:
            morok.jit(f)(tensor(2), *more)
        here(found.value, "morok.jit(f)(tensor(2), *more)")


def test_an_exception_writes_nothing() -> None:
    x, state = tensor(3), tensor(3, seed=2)
    before = [x.numpy().copy(), state.numpy().copy()]

    @morok.jit
    def f(x: Tensor, fails: bool) -> Tensor:
        x.assign(x * 2)
        state[0] = 9
        if fails:
            raise LookupError("mine")
        return x + state

    for _ in range(2):
        with pytest.raises(LookupError, match="mine"):
            f(x, True)
        np.testing.assert_array_equal(x.numpy(), before[0])
        np.testing.assert_array_equal(state.numpy(), before[1])
    f(x, False)
    np.testing.assert_array_equal(x.numpy(), before[0] * 2)
    assert state.numpy()[0] == 9


@pytest.mark.long
def test_at_most_64_plans_the_longest_unused_go_first() -> None:
    log = io.StringIO()

    @morok.jit
    def f(x: Tensor, k: int) -> Tensor:
        print(k, file=log)
        return x + k

    x = tensor(2)
    for k in range(70):
        np.testing.assert_array_equal(f(x, k).numpy(), x.numpy() + np.float32(k))
        f(x, 0)
    assert f.plans == 64
    log.truncate(0)
    f(x, 0)
    f(x, 69)
    assert log.getvalue() == ""
    f(x, 1)
    assert log.getvalue().split("\0")[-1] == "1\n1\n"


def test_threads() -> None:
    state = Tensor(np.zeros(64, np.float32))
    weight = tensor(64, 64)

    @morok.jit
    def pure(x: Tensor) -> Tensor:
        return (x @ weight).tanh()

    @morok.jit
    def add(x: Tensor) -> None:
        state.assign(state + x)

    wrong: list[Any] = []

    def work(seed: int) -> None:
        try:
            for k in range(30):
                x = tensor(2, 64, seed=100 * seed + k)
                np.testing.assert_allclose(pure(x).numpy(), np.tanh(x.numpy() @ weight.numpy()), rtol=1e-3, atol=1e-4)
                add(Tensor(np.ones(64, np.float32)))
        except BaseException as problem:
            wrong.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[0]
    np.testing.assert_array_equal(state.numpy(), np.full(64, 180.0))
    assert (pure.plans, add.plans) == (1, 1)


def test_other_threads_see_nothing_of_a_description() -> None:
    """What a function writes while it is described is written for that description alone."""
    state, more = Tensor([1.0, 2.0]).realize(), Tensor([5.0, 5.0]) + 1
    described, looked = threading.Event(), threading.Event()
    seen: list[Any] = []

    @morok.jit
    def add(x: Tensor) -> Tensor:
        state.assign(state + x * more)
        described.set()
        assert looked.wait(60)
        return state.sum()

    def look() -> None:
        assert described.wait(60)
        try:
            seen.extend([state.tolist(), (state * 2).tolist(), more.tolist(), state.uop.op.name])
            other = Tensor([0.0, 0.0])
            other.assign(state + 1)  # waits for what reads `other` alone
            seen.append(other.tolist())
        except BaseException as problem:
            seen.append(problem)
        finally:
            looked.set()

    thread = threading.Thread(target=look)
    thread.start()
    assert add(Tensor([1.0, 1.0])).item() == 15.0
    thread.join()
    assert seen == [[1.0, 2.0], [2.0, 4.0], [6.0, 6.0], "Buffer", [2.0, 3.0]]
    assert state.tolist() == [7.0, 8.0]
    assert add(Tensor([1.0, 1.0])).item() == 27.0


def test_functions_that_write_one_tensor_in_several_threads() -> None:
    state = Tensor([0.0, 0.0]).realize()

    def writer(k: int) -> Callable[[Tensor], Tensor]:
        @morok.jit
        def add(x: Tensor) -> Tensor:
            before = state * k
            state.assign(state + x)
            return before + x[:1]

        return add

    wrong: list[BaseException] = []

    def work(k: int) -> None:
        try:
            add = writer(k)
            for _ in range(10):
                add(Tensor([1.0, 2.0]))
        except BaseException as problem:
            wrong.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[0]
    assert state.tolist() == [50.0, 100.0]


def test_arrays_over_one_memory() -> None:
    """As without jit: nothing orders what is read and what is written."""
    memory = np.zeros(8, np.float32)

    @morok.jit
    def f(x: Tensor, y: Tensor) -> Tensor:
        x.assign(y + 1)
        return x + y

    np.testing.assert_array_equal(f(Tensor(memory[:4]), Tensor(memory[4:])).numpy(), np.ones(4))
    with pytest.raises(UsageError, match="same array"):
        f(Tensor(memory[:4]), Tensor(memory[2:6]))


def test_a_view_of_a_tensor_in_use_is_not_written() -> None:
    """As without jit."""

    @morok.jit
    def f(x: Tensor) -> None:
        x[0] = 9.0

    base = tensor(3, 2)
    before = base.numpy().copy()
    with pytest.raises(UsageError, match="a view of another tensor"):
        f(base[1:])
    np.testing.assert_array_equal(base.numpy(), before)
    alone = tensor(3, 2)[1:]
    f(alone)
    np.testing.assert_array_equal(alone.numpy(), [[9, 9], before[2]])


def test_a_variable_that_the_function_binds_itself() -> None:
    n = morok.Variable("n", 1, 8)
    x = tensor(8)
    fixed = morok.jit(lambda x: x.shrink([(0, n.bind(3))]).sum())
    np.testing.assert_allclose(fixed(x).numpy(), x.numpy()[:3].sum(), rtol=1e-5)
    both = morok.jit(lambda x, k: x.shrink([(0, n.bind(3))]).sum() + x.shrink([(0, k)]).sum())
    with pytest.raises(JitDifferenceError, match="bound to other values"):
        both(x, n.bind(3))


def test_what_cannot_be_jitted() -> None:
    def generates(x: Tensor) -> Any:
        yield x

    async def waits(x: Tensor) -> Any:
        return x

    for f in (generates, waits):
        with pytest.raises(UsageError):
            morok.jit(f)
    with pytest.raises(ArgumentTypeError):
        morok.jit(3)  # type: ignore[arg-type]


def test_a_jitted_function_says_what_it_is() -> None:
    @morok.jit
    def step(x: Tensor) -> Tensor:
        """One step."""
        return x

    assert (step.__name__, step.__doc__) == ("step", "One step.")
    step(tensor(2))
    assert repr(step) == "<jitted step, 1 plan>"


@dataclasses.dataclass(frozen=True)
class Options:
    rate: Any
    name: str = "n"


def test_dataclasses_are_keys_by_their_fields() -> None:
    f = morok.jit(lambda x, o: x * o.rate)
    x = tensor(2)
    for rate in (1, 1.0, True, 2, 1):
        np.testing.assert_array_equal(f(x, Options(rate)).numpy(), x.numpy() * rate)
    assert f.plans == 4


class Unhashable:
    """An object whose hash raises."""

    def __hash__(self) -> int:
        raise ValueError("no hash")


class Closed:
    """An object that has nothing, and says so in its own way."""

    def __getattribute__(self, name: str) -> Any:
        raise KeyError(name)


class ClosedClass(type):
    """A class that has nothing but what a class has."""

    def __getattr__(cls, name: str) -> Any:
        raise KeyError(name)


class OfClosedClass(metaclass=ClosedClass):
    """An object of such a class."""


class WithFields(tuple[int, ...]):
    """A tuple that is no named tuple."""

    _fields = ("a",)


@dataclasses.dataclass
class Reading:
    """A dataclass that reads what it has not from a dict."""

    x: Any

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


@dataclasses.dataclass
class Uncopied:
    """A dataclass that is not copied."""

    x: Any

    def __copy__(self) -> Any:
        raise ValueError("no copy")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ValueError("no copy")


@dataclasses.dataclass
class Hidden:
    """A dataclass with an attribute that raises."""

    x: Any

    def __getattribute__(self, name: str) -> Any:
        if name == "x":
            raise ValueError("hidden")
        return object.__getattribute__(self, name)


STRANGE: dict[str, Callable[[], Any]] = {
    "object": Closed,
    "class": lambda: ClosedClass("Made", (), {}),
    "object of a class": OfClosedClass,
    "tuple with fields": lambda: WithFields((1, 2)),
    "signaling NaN": lambda: decimal.Decimal("sNaN"),
    "NaN": lambda: decimal.Decimal("NaN"),
}


@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"a": (v,)}])
@pytest.mark.parametrize("name", STRANGE)
def test_arguments_whose_own_code_raises(name: str, wrap: Callable[[Any], Any]) -> None:
    f = morok.jit(lambda x, v: (x * 2, v))
    given = wrap(STRANGE[name]())
    for _ in range(2):
        assert f(tensor(2), given)[1] is given
    assert f.plans == 1


@pytest.mark.parametrize("kind", [Reading, Uncopied])
def test_dataclasses_whose_own_code_raises(kind: Any) -> None:
    f = morok.jit(lambda d: kind(d.x * 2))
    for k in range(3):
        assert f(kind(tensor(2, seed=k))).x.tolist() == (tensor(2, seed=k) * 2).tolist()
        assert f(kind(tensor(2, seed=k).numpy())).x.tolist() == (tensor(2, seed=k) * 2).tolist()
    assert f.plans == 2


UNSEEN: dict[str, Callable[[], Any]] = {
    "object": Unhashable,
    "in a list": lambda: [Unhashable()],
    "in a slice": lambda: slice(Unhashable()),
    "under a key": lambda: {Closed(): Unhashable()},
    "hidden": lambda: Hidden(1),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_arguments_that_no_key_can_have(name: str) -> None:
    with pytest.raises(JitArgumentError, match=r"no hash|raises ValueError") as found:
        morok.jit(lambda x, v: x)(tensor(2), UNSEEN[name]())
    here(found.value, "morok.jit(lambda x, v: x)(tensor(2), UNSEEN[name]())")


def test_a_result_that_cannot_be_looked_into() -> None:
    with pytest.raises(JitArgumentError, match="raises ValueError"):
        morok.jit(lambda x: Hidden(x))(tensor(2))


def test_classes_that_are_equal_to_others() -> None:
    class Same(type):
        def __eq__(cls, other: object) -> bool:
            return True

        def __hash__(cls) -> int:
            return 1

    kinds = [Same("Kind", (), {"gain": float(k)}) for k in (2, 3)]
    f = morok.jit(lambda x, v: x * v.gain)
    for kind in (*kinds, *[k() for k in kinds]):
        np.testing.assert_array_equal(f(tensor(2), kind).numpy(), tensor(2).numpy() * np.float32(kind.gain))


def test_pythons_own_dicts_are_trees_of_arguments() -> None:
    """Their order, their factory of defaults and their attributes count; what comes back is of the same class."""

    @morok.jit
    def scaled(d: Any) -> Any:
        return OrderedDict((name, t * 2.0) for name, t in d.items())

    for k in range(3):
        result = scaled(OrderedDict(b=Tensor([float(k)]), a=Tensor([1.0])))
        assert type(result) is OrderedDict
        assert [(name, t.item()) for name, t in result.items()] == [("b", 2.0 * k), ("a", 2.0)]
    assert scaled.plans == 1
    assert list(scaled({"a": Tensor([1.0]), "b": Tensor([3.0])})) == ["a", "b"]
    assert scaled.plans == 2

    @morok.jit
    def read(d: Any) -> Tensor:
        return d["x"] + d["y"]

    for k in range(3):
        assert read(defaultdict(float, x=Tensor([float(k)]), y=1.0)).item() == k + 1.0
    assert read.plans == 1
    with pytest.raises(JitEffectError):  # the function adds a key to its argument
        read(defaultdict(float, x=Tensor([1.0])))

    noted = OrderedDict(x=Tensor([1.0]), y=Tensor([2.0]))
    noted.sign = -1.0  # type: ignore[attr-defined]

    @morok.jit
    def signed(d: Any) -> Tensor:
        return (d["x"] + d["y"]) * d.sign

    assert signed(noted).item() == -3.0
    noted.sign = 1.0  # type: ignore[attr-defined]
    assert signed(noted).item() == 3.0
