"""Places that a jitted function reaches: the next call sees a change there, and a change by the function is an error."""

from __future__ import annotations

import argparse
import collections
import contextlib
import contextvars
import dataclasses
import functools
import gc
import importlib
import itertools
import sys
import sysconfig
import threading
import types
import unittest.mock
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import morok
from morok import Tensor, nn
from morok.described import reach
from morok.errors import JitArgumentError, JitEffectError

Steps = Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]
GAIN = 2.0


@pytest.fixture(autouse=True)
def _nothing_is_tolerated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that raise are taken as they are, which would hide faults of the search itself: here these are seen."""
    if "cannot_be_looked_into" not in request.node.name:
        monkeypatch.setattr(reach, "_TOLERANT", contextlib.nullcontext())


def one(value: float = 1.0) -> Tensor:
    return Tensor(np.array([value], np.float32))


def module(name: str, **values: Any) -> Any:
    made = types.ModuleType(name)
    vars(made).update(values)
    return made


class Thing:
    """An object with attributes."""

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def gained(self, x: Tensor) -> Tensor:
        return x * self.gain

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Slotted:
    """An object without a dict."""

    __slots__ = ("gain",)

    def __init__(self, gain: float) -> None:
        self.gain = gain


class Named(dict[str, float]):
    """A dict with attributes."""

    gain = 2.0


class Row(list[float]):
    """A list with attributes."""

    gain = 2.0


class Words(str):
    """A text with attributes."""

    gain = 2.0


class Marked(Tensor):
    """A tensor with attributes."""

    gain: float


class Array(np.ndarray[Any, Any]):
    """An array with attributes."""

    gain: float


def _of(function: Callable[[Tensor, Any], Tensor], held: Any) -> Callable[[Tensor], Tensor]:
    """A function of a tensor that has an object as its default argument."""

    def f(x: Tensor, given: Any = held) -> Tensor:
        return function(x, given)

    return f


def places() -> Iterator[tuple[str, Callable[[Tensor], Tensor], Callable[[float], Any]]]:
    """(name, a function that multiplies by a number, how that number is set) for each place of a number."""
    inner = module("user_inner")
    outer = module("user_outer", inner=inner)
    set_inner = functools.partial(setattr, inner, "gain")
    holder, held = Thing(config=inner), [inner]
    yield "module in a module", lambda x: x * outer.inner.gain, set_inner
    yield "module in an attribute", lambda x: x * holder.config.gain, set_inner
    yield "module in a list", lambda x: x * held[0].gain, set_inner
    yield "module by default", _of(lambda x, m: x * m.gain, inner), set_inner
    yield "getattr", lambda x: x * getattr(inner, "ga" + "in"), set_inner
    yield "vars", lambda x: x * vars(inner)["gain"], set_inner
    yield "globals", lambda x: x * globals()["GAIN"], lambda v: globals().__setitem__("GAIN", v)

    def lent(x: Tensor) -> Tensor:
        return x * lent.gain  # type: ignore[attr-defined]

    yield "attribute of a function", lent, functools.partial(setattr, lent, "gain")

    def given(x: Tensor, gain: float = 2.0) -> Tensor:
        return x * gain

    yield "defaults", lambda x: given(x), lambda v: setattr(given, "__defaults__", (v,))

    def coded(x: Tensor) -> Tensor:
        return x * 2

    codes = {3.0: (lambda x: x * 3).__code__, 5.0: (lambda x: x * 5).__code__, 2.0: coded.__code__}
    yield "code", lambda x: coded(x), lambda v: setattr(coded, "__code__", codes[v])
    classes = {v: type("Kind", (Thing,), {"gain": v}) for v in (2.0, 3.0, 5.0)}
    child, thing = type("Child", (classes[2.0],), {}), Thing()
    yield "class", lambda x: thing.gained(x), lambda v: setattr(thing, "__class__", classes[v])
    yield "bases", lambda x: x * child.gain, lambda v: setattr(child, "__bases__", (classes[v],))
    meta = type("Meta", (type,), {"gain": 2.0})
    of_meta: Any = meta("OfMeta", (), {})
    yield "metaclass", lambda x: x * of_meta.gain, functools.partial(setattr, meta, "gain")
    bare = Thing()
    yield "dict of an object", lambda x: bare.gained(x), lambda v: setattr(bare, "__dict__", {"gain": v})
    tensor, array = Marked(np.ones(1, np.float32)), np.ones(1, np.float32).view(Array)
    for owner in (Named(), Row(), Words(), tensor, array, ValueError()):
        name = type(owner).__name__
        yield f"attribute of {name}", _of(lambda x, o: x * o.gain, owner), functools.partial(setattr, owner, "gain")
    yield "class of Named", _of(lambda x, o: x * o.gain, Named()), functools.partial(setattr, Named, "gain")
    table = {"gain": 2.0}
    get, values, proxy = table.get, table.values(), types.MappingProxyType(table)
    set_table = functools.partial(table.__setitem__, "gain")
    yield "method of a dict", lambda x: x * get("gain"), set_table
    yield "view of a dict", lambda x: x * next(iter(values)), set_table
    yield "proxy of a dict", lambda x: x * proxy["gain"], set_table
    yield "iterator", _of(lambda x, i: x * next(i)["gain"], itertools.repeat(table)), set_table
    key = Thing()
    keys = {key: 1}
    yield "key of a dict", lambda x: x * next(iter(keys)).gain, functools.partial(setattr, key, "gain")
    cell = [2.0]
    thing_with = type("With", (), {"at": functools.partialmethod(lambda self, c, x: x * c[0], cell)})()
    yield "partialmethod", lambda x: thing_with.at(x), functools.partial(cell.__setitem__, 0)
    user, chain = collections.UserDict(gain=2.0), collections.ChainMap({"gain": 2.0})
    yield "UserDict", lambda x: x * user["gain"], functools.partial(user.__setitem__, "gain")
    yield "ChainMap", lambda x: x * chain["gain"], functools.partial(chain.__setitem__, "gain")
    options, local, weak = argparse.Namespace(), threading.local(), weakref.ref(key)
    yield "Namespace", lambda x: x * options.gain, functools.partial(setattr, options, "gain")
    yield "local of a thread", lambda x: x * local.gain, functools.partial(setattr, local, "gain")
    yield "weak reference", lambda x: x * weak().gain, functools.partial(setattr, key, "gain")  # type: ignore[union-attr]
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("gain")
    yield "ContextVar", lambda x: x * variable.get(), variable.set
    raw = bytearray(1)
    yield "bytearray", lambda x: x * raw[0], lambda v: raw.__setitem__(0, int(v))
    yield "memoryview", _of(lambda x, m: x * m[0], memoryview(raw)), lambda v: raw.__setitem__(0, int(v))


PLACES = {name: (function, change) for name, function, change in places()}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", PLACES)
def test_a_change_anywhere_is_seen(name: str) -> None:
    function, change = PLACES[name]
    change(2.0)
    jitted = morok.jit(function)
    for value in (2.0, 3.0, 5.0, 2.0):
        change(value)
        for _ in range(2):
            assert jitted(one()).item() == value
    assert jitted.plans == 3


def test_modules_that_a_function_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "user_pack").mkdir()
    (tmp_path / "user_pack" / "__init__.py").write_text("")
    (tmp_path / "user_pack" / "settings.py").write_text("GAIN = 2.0\nRATE = 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    @morok.jit
    def f(x: Tensor) -> Tensor:
        import user_pack.settings  # type: ignore[import-not-found]
        from user_pack.settings import RATE

        return x * user_pack.settings.GAIN * RATE

    assert f(one()).item() == 2.0  # imported by this call
    for name, expected in (("GAIN", 6.0), ("RATE", 18.0)):
        setattr(sys.modules["user_pack.settings"], name, expected / (1 if name == "GAIN" else 6))
        assert f(one()).item() == (6.0 if name == "GAIN" else 18.0)


def _by_attribute(name: str) -> Any:
    """A module that loads another when that is asked for, as by PEP 562."""
    text = f"import importlib as i\ndef __getattr__(n):\n    return globals().setdefault(n, i.import_module('{name[:-1]}' + n))\n"
    made = module(name + "_lazy")
    exec(text, vars(made))
    return made


@pytest.mark.parametrize("way", ["text", "attribute"])
def test_modules_that_are_loaded_at_first_use(way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    name = f"user_plug_{way}_q"
    (tmp_path / f"{name}.py").write_text("GAIN = 4.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    lazy, count = _by_attribute(name), {"n": 0}
    load = (lambda: importlib.import_module("user_plug_text_q")) if way == "text" else (lambda: lazy.q)
    f = morok.jit(lambda x: x * load().GAIN)
    assert [f(one()).item(), f(one()).item()] == [4.0, 4.0]
    sys.modules[name].GAIN = 5.0  # type: ignore[attr-defined]
    assert f(one()).item() == 5.0
    del sys.modules[name]

    def counts(x: Tensor) -> Tensor:
        importlib.import_module("user_plug_" + way + "_q")
        count["n"] += 1
        return x * 2

    with pytest.raises(JitEffectError, match="changes"):
        morok.jit(counts)(one())


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of an installed package."""
    made = module("user_installed", __file__=sysconfig.get_paths()["purelib"] + "/user_installed.py", Tensor=Tensor)
    monkeypatch.setitem(sys.modules, "user_installed", made)
    text = """
GAIN = 2.0
def function(x): return inner(x)
def inner(x): return x * GAIN
class Model:
    def __init__(self): self.gain, self.state = 2.0, Tensor([1.0])
    def __call__(self, x): return x * self.gain * GAIN
"""
    exec(compile(text, made.__file__, "exec"), vars(made))
    return made


def test_an_installed_package_is_the_users_where_the_function_is_of_it(installed: Any) -> None:
    model = installed.Model()
    calls = [morok.jit(installed.function), morok.jit(model), functools.partial(morok.jit(lambda m, x: m(x)), model)]
    for gain in (2.0, 3.0):
        installed.GAIN = gain
        assert [f(one()).item() for f in calls] == [gain, 2 * gain, 2 * gain]
    model.gain = 5.0
    assert [f(one()).item() for f in calls[1:]] == [15.0, 15.0]


def test_a_tensor_of_an_installed_object_is_written_where_it_is_now(installed: Any) -> None:
    model = installed.Model()

    @morok.jit
    def add(x: Tensor) -> Tensor:
        model.state.assign(model.state + x)
        return model.state * 1

    assert [add(one()).item(), add(one()).item()] == [2.0, 3.0]
    model.state = one(50.0)
    assert (add(one()).item(), model.state.item()) == (51.0, 51.0)


@dataclasses.dataclass
class Data:
    """A dataclass with more than its fields."""

    x: Tensor
    rate: ClassVar[float] = 2.0

    def gained(self) -> Tensor:
        return self.x * self.rate * GAIN * getattr(self, "more", 1.0)


class Tuple(NamedTuple):
    """A named tuple with a method."""

    x: Tensor

    def gained(self) -> Tensor:
        return self.x * self.rate * GAIN  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [Data, Tuple])
def test_what_the_class_of_a_container_is_and_reaches(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = morok.jit(lambda d: d.gained())
    for rate, gain in ((2.0, 2.0), (3.0, 2.0), (3.0, 5.0)):
        monkeypatch.setattr(kind, "rate", rate, raising=False)
        monkeypatch.setattr(sys.modules[__name__], "GAIN", gain)
        assert f(kind(one())).item() == rate * gain
    if kind is Data:
        monkeypatch.setattr(kind, "more", 1.0, raising=False)
        data: Any = kind(one())
        for more in (2.0, one(7.0), one(8.0)):
            data.more = more
            assert f(data).item() == 15 * float(more)


@pytest.mark.usefixtures("little_to_collect")
@pytest.mark.parametrize(
    "wrap", [Slotted, lambda v: Thing(gain=v), lambda v: frozenset({Thing(gain=v)}), lambda v: {Thing(gain=v): 1}]
)
def test_objects_among_arguments(wrap: Callable[[float], Any]) -> None:
    @morok.jit
    def f(x: Tensor, given: Any) -> Tensor:
        return x * (given.gain if hasattr(given, "gain") else next(iter(given)).gain)

    for value in (2.0, 3.0):
        given = wrap(value)
        owner = given if hasattr(given, "gain") else next(iter(given))
        assert f(one(), given).item() == value
        owner.gain = 9.0
        assert f(one(), given).item() == 9.0
        del given, owner  # the next may have these ids
        gc.collect()


def test_objects_of_a_slice_and_modules_and_methods_among_arguments() -> None:
    thing, settings = Thing(gain=2.0), module("user_settings", gain=2.0)
    f = morok.jit(lambda x, s, m, call: x * s.start.gain * m.gain + call(x))
    for changed in (thing, settings, thing):
        changed.gain += 1.0
        expected = thing.gain * settings.gain + thing.gain
        assert f(one(), slice(thing, None), settings, thing.gained).item() == expected
    assert f.plans == 3
    f(one(), slice(thing, None), settings, thing.gained)
    assert f.plans == 3


@pytest.mark.usefixtures("little_to_collect")
def test_tensors_that_are_keys() -> None:
    f = morok.jit(lambda x, table: x * next(iter(table)))
    for value in range(1, 6):
        table = {one(value): 1}
        assert f(one(), table).item() == value
        next(iter(table)).assign(one(7.0))
        assert f(one(), table).item() == 7.0
        del table
        gc.collect()


def test_a_container_given_twice() -> None:
    f = morok.jit(lambda a, b: (b, a[0] * (2.0 if a is b else 3.0)))
    x = one()
    for kind in (list, tuple, lambda v: {0: v[0]}):
        first, second = kind([x]), kind([x])
        for a, b in ((first, second), (first, first), (first, second), (second, second)):
            result, scaled = f(a, b)
            assert result is b
            assert scaled.item() == (2.0 if a is b else 3.0)


def test_a_module_that_is_a_dataclass_beside_a_list() -> None:
    @dataclasses.dataclass(eq=False)
    class Net(nn.Module):
        weight: Tensor

        def forward(self, x: Tensor) -> Tensor:
            return x * self.weight

    rows, net = [one()], Net(one(2.0))
    f = morok.jit(lambda net, rows: (rows, net(rows[0])))
    for _ in range(2):
        result = f(net, rows)
        assert result[0] is rows
        assert result[1].item() == 2.0


def test_arguments_that_the_function_reaches_are_themselves() -> None:
    weight, rows, data, names = one(), [one()], Data(one()), {}
    names[weight] = 2.0

    def f(x: Any) -> Any:
        return [x is weight, x is rows, x is data, names.get(x) if isinstance(x, Tensor) else None]

    jitted = morok.jit(f)
    for _ in range(2):
        for given in (one(), weight, rows, [rows[0]], data, Data(one()), weight, one(3.0)):
            assert jitted(given) == f(given)


@pytest.mark.parametrize("make", [lambda: one(1.0), lambda: Tensor.ones(1), lambda: one(0.5) * 2])
def test_an_argument_that_the_function_reaches_and_writes(make: Callable[[], Tensor]) -> None:
    held = make()

    @morok.jit
    def f(x: Tensor) -> Tensor:
        x.assign(x + 1)
        return held * 10

    assert [f(held).item(), f(held).item(), f(one()).item(), f(held).item(), held.item()] == [
        20.0,
        30.0,
        30.0,
        40.0,
        4.0,
    ]


def moves(d: Any) -> None:
    d["a"] = d.pop("a")


def increments(d: Any) -> None:
    d[0] += 1


def gains(d: Any) -> None:
    d.gain += 1


REACHED: list[tuple[str, Callable[[Any], None], Any]] = [
    ("slot", gains, Slotted(1.0)),
    ("module", gains, module("user_counts", gain=0)),
    ("order of a dict", moves, dict.fromkeys("abc")),
    ("order of an OrderedDict", lambda d: d.move_to_end("a"), collections.OrderedDict.fromkeys("abc")),
    ("bytearray", increments, bytearray(2)),
    ("attribute of a dict", gains, Named()),
]


@pytest.mark.parametrize(("function", "changed"), [row[1:] for row in REACHED], ids=[row[0] for row in REACHED])
def test_effects_anywhere_are_errors(function: Callable[[Any], None], changed: Any) -> None:
    def f(x: Tensor) -> Tensor:
        function(changed)
        return x * 2

    with pytest.raises(JitEffectError, match="changes"):
        morok.jit(f)(one())


@pytest.mark.parametrize("given", [Data(one()), Slotted(1.0), module("user_counts", gain=0), slice(Slotted(1.0))])
def test_effects_on_arguments_are_errors(given: Any) -> None:
    def f(x: Tensor, d: Any) -> Tensor:
        d = d.stop if isinstance(d, slice) else d
        d.gain = getattr(d, "gain", 0) + 1
        return x * 2

    with pytest.raises(JitEffectError, match="changes"):
        morok.jit(f)(one(), given)


def test_state_of_libraries_that_nobody_looks_at_may_change() -> None:
    @functools.lru_cache
    def cached(k: int) -> int:
        return k + 1

    @functools.singledispatch
    def dispatched(k: Any) -> float:
        return 2.0

    f = morok.jit(lambda x: x * cached(1) * dispatched(1))
    assert f(one()).item() == 4.0
    dispatched.register(int, lambda k: 3.0)
    assert f(one()).item() == 6.0


def test_results_that_the_function_reaches_and_one_list_twice() -> None:
    rows, table, data = [one()], {"a": 1}, Data(one())

    @morok.jit
    def f(x: Tensor) -> Any:
        made = [x + 1]
        return rows, table, data, made, (made, x)

    for _ in range(2):
        result = f(one())
        assert result[0] is rows
        assert result[1] is table
        assert result[2] is data
        assert result[3] is result[4][0]
    table["b"] = 2
    assert f(one())[1] == {"a": 1, "b": 2}


def test_an_argument_equal_to_another_is_itself_in_the_result() -> None:
    class Equal(Thing):
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

        def __repr__(self) -> str:
            return "Equal()"

    f = morok.jit(lambda x, o: (x * o.gain, o))
    for gain in (2.0, 3.0):
        given = Equal(gain=gain)
        result = f(one(), given)
        assert result[0].item() == gain
        assert result[1] is given


@pytest.mark.parametrize(
    "make",
    [
        lambda x: {x},
        lambda x: frozenset({x}),
        lambda x: collections.deque([x]),
        lambda x: bytearray(1),
        lambda x: Thing(a=x),
        lambda x: object(),
        lambda x: x.relu,
        lambda x: map(abs, [x]),
        lambda x: nn.Sequential(),
    ],
)
def test_results_of_other_kinds(make: Callable[[Tensor], Any]) -> None:
    with pytest.raises(JitArgumentError, match="returns a new"):
        morok.jit(lambda x: (make(x * 2), x))(one())


def test_a_tensor_of_a_class_has_its_attributes() -> None:
    f = morok.jit(lambda t: t * t.gain + t.more)
    for gain, more in ((2.0, one()), (3.0, one()), (3.0, one(5.0))):
        t = Marked(np.ones(1, np.float32))
        t.gain, t.more = gain, more  # type: ignore[attr-defined]
        assert f(t).item() == gain + more.item()
    with pytest.raises(JitEffectError, match="changes an argument"):
        morok.jit(lambda t: setattr(t, "gain", 4.0))(t)


def test_plans_of_one_key_are_kept_too() -> None:
    settings, calls = {"gain": 0.0}, itertools.count()

    @morok.jit
    def f(x: Tensor) -> Tensor:
        next(calls)
        return x * settings["gain"]

    for k in [1, 2, 3, 4, 5, 6] * 3:
        settings["gain"] = k
        assert f(one()).item() == k
    assert (f.plans, next(calls)) == (6, 12)
    holder = Thing(weight=one())
    g = morok.jit(lambda x: x * holder.weight)
    for k in range(8):
        holder.weight = one(k)
        assert g(one()).item() == k
    assert g.plans == 4  # each keeps a weight alive
    for k in range(8):
        holder.weight = np.array([k], np.float32)
        assert g(one()).item() == k
    assert g.plans == 4


def test_what_is_no_function_gets_no_self() -> None:
    linear = nn.Linear(1, 1)

    class Owner:
        partial = morok.jit(functools.partial(lambda k, x: x * k, 2.0))
        thing = morok.jit(Thing(gain=2.0).gained)
        module = morok.jit(linear)

        @morok.jit
        @staticmethod
        def static(x: Tensor) -> Tensor:
            return x * 3

        @morok.jit
        def method(self, x: Tensor) -> Tensor:
            return x * (4 if isinstance(self, Owner) else 0)

    owner = Owner()
    values = [f(one()).item() for f in (owner.partial, owner.thing, owner.static, Owner.static, owner.method)]
    assert values == [2.0, 2.0, 3.0, 3.0, 4.0]
    assert owner.module(one()).item() == linear(one()).item()


def test_attributes_of_a_jitted_function_are_those_of_the_function() -> None:
    def f(x: Tensor) -> Tensor:
        return x * jitted.scale

    f.scale = 2.0  # type: ignore[attr-defined]
    jitted = morok.jit(f)
    assert (jitted.scale, jitted(one()).item()) == (2.0, 2.0)
    jitted.scale = 3.0
    assert (f.scale, jitted(one()).item()) == (3.0, 3.0)  # type: ignore[attr-defined]
    del jitted.scale
    assert not hasattr(f, "scale")
    assert not hasattr(jitted, "scale")


class Raising:
    """An object whose lookups raise, as those of dicts with attributes do."""

    __slots__ = ("empty",)

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


def _released() -> memoryview:
    view = memoryview(b"a")
    view.release()
    return view


def _spec(step: int) -> None: ...


STRANGE = [Raising, _released, lambda: unittest.mock.MagicMock(spec=_spec), lambda: unittest.mock.MagicMock(spec=dict)]


@pytest.mark.parametrize("make", STRANGE)
def test_objects_that_cannot_be_looked_into(make: Callable[[], Any]) -> None:
    held = [make()]
    f = morok.jit(lambda x, given=None: x * (2 if held else 3))
    assert f(one()).item() == 2.0
    if type(held[0]) is Raising:
        assert f(one(), held[0]).item() == 2.0


def test_an_import_behind_many_names() -> None:
    space: dict[str, Any] = {"__name__": "user_many"}
    names = "".join(f"    if v: v = g{k}\n" for k in range(300))
    exec(f"def f(x):\n    v = 0\n{names}    import math\n    return x * math.floor(2.5)\n", space)
    assert morok.jit(space["f"])(one()).item() == 2.0


def under_dunders(table: dict[str, float]) -> Any:
    """A class that reads a table in attributes with names like those of Python."""

    class Kind:
        __slots__ = ("__gain__",)
        __config__ = table

        @morok.jit
        def __call__(self, x: Tensor) -> Tensor:
            return x * table["gain"]

        @property
        def __rate__(self) -> float:
            return table["gain"]

        @staticmethod
        def __static__(x: Tensor) -> Tensor:
            return x * table["gain"]

        @classmethod
        def __class_getitem__(cls, x: Tensor) -> Tensor:
            return x * table["gain"]

        def __new__(cls) -> Any:
            made: Any = object.__new__(cls)
            made.__gain__ = table["gain"]
            return made

    return Kind


DUNDERS: list[Callable[[Any, Tensor], Tensor]] = [
    lambda o, x: o(x),
    lambda o, x: x * o.__rate__,
    lambda o, x: o.__static__(x),
    lambda o, x: type(o)[x],
    lambda o, x: x * type(o)().__gain__,
    lambda o, x: x * o.__config__["gain"],
    lambda o, x: x * o.__gain__,
]


@pytest.mark.parametrize("use", DUNDERS)
def test_what_stands_under_names_like_those_of_python(use: Callable[[Any, Tensor], Tensor]) -> None:
    table = {"gain": 2.0}
    held = under_dunders(table)()
    f = morok.jit(lambda x: use(held, x))
    for gain in (2.0, 3.0):
        table["gain"] = held.__gain__ = gain
        assert f(one()).item() == gain


def row_of(*values: Any) -> np.ndarray[Any, Any]:
    made = np.empty(len(values), object)
    made[:] = values
    return made


class Unlike(np.ndarray[Any, Any]):
    """An array that iterates in another way."""

    def __iter__(self) -> Any:
        return iter(())


FIELDS = np.dtype([("n", "i4"), ("inner", [("x", "O", (2,))])])


@pytest.mark.parametrize("words", ["row", "matrix", "scalar", "fields", "class"])
def test_elements_of_arrays_of_objects(words: str) -> None:
    array: Any = {
        "row": row_of(2.0, 3.0),
        "matrix": np.array([[2.0, 3.0]], object),
        "scalar": np.array(2.0, object),
        "fields": np.zeros(2, FIELDS),
        "class": row_of(2.0, 3.0).view(Unlike),
    }[words]
    place: Any = array["inner"]["x"] if words == "fields" else array
    place[...] = 2.0
    gained = morok.jit(lambda x: x * place.item(0))
    for value in (2.0, 3.0, 4.0):
        place[...] = value
        assert gained(one()).item() == value
    assert gained.plans == 3


def test_what_arrays_of_objects_contain_is_looked_into() -> None:
    thing = Thing(arrays=row_of(one(2.0), {"gain": [3.0]}))
    gained = morok.jit(lambda x, t: x * t.arrays[0] + t.arrays[1]["gain"][0])
    assert gained(one(), thing).item() == 5.0
    thing.arrays[0].assign(one(4.0))
    assert (gained(one(), thing).item(), gained.plans) == (7.0, 1)
    thing.arrays[1]["gain"][0] = 5.0
    assert gained(one(), thing).item() == 9.0
    thing.arrays[0] = one(6.0)
    assert gained(one(), thing).item() == 11.0


def test_an_array_of_objects_that_contains_itself() -> None:
    array = row_of(2.0, None)
    array[1] = array
    gained = morok.jit(lambda x: x * array[1][0])
    assert gained(one()).item() == 2.0
    array[0] = 3.0
    assert gained(one()).item() == 3.0


def test_writing_to_an_array_of_objects_is_an_effect() -> None:
    array = row_of(2.0)

    def wrong(x: Tensor) -> Tensor:
        array[0] += 1.0
        return x * array[0]

    with pytest.raises(JitEffectError, match=r"was 2\.0 and is 3\.0"):
        morok.jit(wrong)(one())
