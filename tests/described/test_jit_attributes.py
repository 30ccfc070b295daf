"""Attributes of what a jitted function reaches: a change of one that it can read is seen, of others no plan depends on."""

from __future__ import annotations

import abc
import collections
import contextlib
import copy
import dataclasses
import datetime
import functools
import itertools
import json
import logging
import operator
import pickle
import string
import sys
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, nn
from morok.described import reach
from morok.errors import JitEffectError

Change = Callable[[], Any]
Program = tuple[str, Callable[[Tensor], Tensor], list[Change], list[Change]]


@pytest.fixture(autouse=True)
def _nothing_is_tolerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that raise are taken as they are, which would hide faults of the search itself: here these are seen."""
    monkeypatch.setattr(reach, "_TOLERANT", contextlib.nullcontext())


def one(value: float = 1.0) -> Tensor:
    return Tensor(np.array([value], np.float32))


def up(owner: Any, name: str) -> Change:
    """A change that adds one to an attribute."""
    return lambda: setattr(owner, name, getattr(owner, name) + 1)


class Run:
    """A trainer: settings, and state that changes from step to step."""

    def __init__(self, **values: Any) -> None:
        self.steps, self.log, self.gain = 0, [], 1.0
        for name, value in values.items():
            setattr(self, name, value)

    def gained(self, x: Tensor) -> Tensor:
        return x * self.gain

    def step_done(self) -> None:
        self.steps += 1
        self.log.append(self.steps)


class Slotted:
    """A trainer without a dict."""

    __slots__ = ("gain", "steps")

    def __init__(self) -> None:
        self.gain, self.steps = 1.0, 0


class Measured:
    """A base class with a counter, and a method that others extend."""

    gain = 2.0
    count = 0

    def gained(self, x: Tensor) -> Tensor:
        return x * self.gain


class Mixed:
    """A class between."""

    rate = 3.0

    def gained(self, x: Tensor) -> Tensor:
        return super().gained(x) * self.rate  # type: ignore[misc]


class Extended(Mixed, Measured):
    """A class with both."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self._half = 0, 0.5

    @property
    def half(self) -> float:
        return self._half

    def gained(self, x: Tensor) -> Tensor:
        return super().gained(x) * self.half


@dataclasses.dataclass
class State:
    """A state of a training."""

    gain: float = 1.0
    steps: int = 0


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of a training."""

    gain: float = 1.0


class Loaded(nn.Module):
    """A layer with a counter."""

    def __init__(self) -> None:
        self.weight, self.steps, self.inner = one(2.0), 0, [nn.Linear(1, 1)]

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class Walked(Loaded):
    """A layer that walks its tensors."""

    def forward(self, x: Tensor) -> Tensor:
        return x * sum((t.sum() for t in self.parameters()), Tensor(0.0))


class Spelled(Loaded):
    """A layer that spells itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x * len(f"{self}")


def of_trainers() -> Iterator[Program]:
    """(name, function, changes that it sees, changes that no plan depends on)"""
    run, held = Run(), Run(inner=Run())
    yield "method", run.gained, [up(run, "gain")], [run.step_done, functools.partial(setattr, run, "new", 1)]
    yield (
        "object in an object",
        lambda x: x * held.inner.gain,
        [up(held.inner, "gain"), lambda: setattr(held, "inner", Run(gain=9.0))],
        [up(held, "steps"), lambda: held.inner.step_done(), lambda: setattr(held.inner, "last", one())],
    )
    swapped = Run()
    yield (
        "dict of an object",
        lambda x: x * swapped.gain,
        [lambda: setattr(swapped, "__dict__", {"gain": swapped.gain + 1, "steps": 1}), up(swapped, "gain")],
        [lambda: setattr(swapped, "__dict__", {**vars(swapped), "steps": 7}), up(swapped, "steps")],
    )
    slotted = Slotted()
    yield "slots", lambda x: x * slotted.gain, [up(slotted, "gain")], [up(slotted, "steps")]
    extended = Extended()
    yield (
        "inheritance",
        extended.gained,
        [up(Measured, "gain"), up(Mixed, "rate"), up(extended, "_half"), lambda: setattr(extended, "gain", 5.0)],
        [up(Measured, "count"), up(extended, "steps")],
    )
    shadowed = Run()
    yield (
        "method of an object",
        lambda x: shadowed.gained(x),
        [
            lambda: setattr(shadowed, "gained", lambda x: x * 77),
            lambda: delattr(shadowed, "gained"),
            up(shadowed, "gain"),
        ],
        [shadowed.step_done],
    )
    state, settings = Run(state=State(), config=Config()), State()
    yield (
        "dataclasses",
        lambda x: x * state.state.gain * state.config.gain,
        [up(state.state, "gain"), lambda: setattr(state, "config", dataclasses.replace(state.config, gain=4.0))],
        [up(state.state, "steps"), state.step_done],
    )
    yield "dataclass that is compared", lambda x: x * (2.0 if settings == State() else 3.0), [up(settings, "steps")], []
    yield "dataclass in a list", lambda x: x * (2.0 + [State()].count(settings)), [up(settings, "steps")], []
    yield (
        "dataclass compared by operator",
        lambda x: x * (2.0 + operator.eq(settings, State())),
        [up(settings, "steps")],
        [],
    )
    yield "dataclass that is spelled", lambda x: x * len(f"{settings}"), [lambda: setattr(settings, "steps", 10**9)], []
    schedule = Run(schedule=Run(base=1.0, at=0))
    schedule.schedule.rate = types.MethodType(lambda self: self.base * 0.5**self.at, schedule.schedule)
    yield "schedule", lambda x: x * schedule.schedule.rate(), [up(schedule.schedule, "at")], [schedule.step_done]
    calls = Run(hooks=[Run(gain=2.0), Run(gain=3.0)])
    yield (
        "callbacks",
        lambda x: functools.reduce(lambda v, h: h.gained(v), calls.hooks, x),
        [up(calls.hooks[1], "gain"), lambda: calls.hooks.append(Run(gain=5.0))],
        [calls.hooks[0].step_done, calls.step_done],
    )


def of_places() -> Iterator[Program]:
    """As of_trainers()."""
    table, weak, partial = {"a": [Run()]}, Run(), Run()
    yield "dict and list", lambda x: table["a"][0].gained(x), [up(table["a"][0], "gain")], [table["a"][0].step_done]
    reference, proxy = weakref.ref(weak), weakref.proxy(weak)
    yield "weak reference", lambda x: reference().gained(x), [up(weak, "gain")], [weak.step_done]  # type: ignore[union-attr]
    yield "weak proxy", lambda x: proxy.gained(x), [up(weak, "gain")], [weak.step_done]
    yield "partial", functools.partial(lambda o, x: x * o.gain, partial), [up(partial, "gain")], [partial.step_done]
    shared = Run()

    def lent(x: Tensor) -> Tensor:
        return x * lent.gain * shared.gain  # type: ignore[attr-defined]

    lent.gain, lent.calls = 1.0, 0  # type: ignore[attr-defined]
    yield (
        "attributes of a function",
        lent,
        [up(lent, "gain"), up(shared, "gain")],
        [up(lent, "calls"), shared.step_done],
    )

    class Table:
        gain, count = 2.0, 0

        class Inner:
            gain, count = 3.0, 0

        @staticmethod
        def static(x: Tensor) -> Tensor:
            return x * Table.gain

        @classmethod
        def of_class(cls, x: Tensor) -> Tensor:
            return x * cls.gain

    for name, function in (
        ("class", lambda x: x * Table.gain),
        ("static method", lambda x: Table.static(x)),
        ("class method", Table.of_class),
    ):
        yield name, function, [up(Table, "gain")], [up(Table, "count")]
    yield (
        "inner class",
        lambda x: x * Table.Inner.gain,
        [up(Table.Inner, "gain")],
        [up(Table.Inner, "count"), up(Table, "count")],
    )
    lazy = type("LazyModule", (types.ModuleType,), {"gain": property(lambda self: self.hidden)})("user_lazy_class")
    lazy.hidden = 1.0
    yield "class of a module", lambda x: x * lazy.gain, [up(lazy, "hidden")], []
    logged = Run(logger=logging.getLogger("user.logger"))

    def logs(x: Tensor) -> Tensor:
        logged.logger.debug("gain %s", logged.gain)
        return logged.gained(x)

    yield "logger", logs, [up(logged, "gain")], [logged.step_done]
    borg = {"gain": 1.0, "steps": 0}
    first, second = Run(), Run()
    vars(first).clear()
    first.__dict__ = second.__dict__ = borg
    yield (
        "two objects with one dict",
        lambda x: first.gained(second.gained(x)),
        [up(first, "gain")],
        [up(second, "steps")],
    )


def of_modules() -> Iterator[Program]:
    """As of_trainers()."""
    loaded, walked, spelled, inner = Loaded(), Walked(), Spelled(), Loaded()
    model = nn.Sequential(inner, nn.BatchNorm(1))
    yield "layer", loaded, [lambda: setattr(loaded, "weight", one(5.0))], [up(loaded, "steps"), loaded.train]
    yield (
        "layers in layers",
        lambda x: model(x.reshape(1, 1, 1, 1)).reshape(1),
        [lambda: setattr(inner, "weight", one(5.0)), lambda: setattr(model.layers[1], "eps", 0.5)],
        [up(inner, "steps")],
    )
    yield (
        "layer that walks its tensors",
        walked,
        [
            lambda: setattr(walked, "weight", one(5.0)),
            lambda: setattr(walked, "new", one(7.0)),
            lambda: walked.inner.append(nn.Linear(1, 1)),
            lambda: setattr(walked, "steps", one(3.0)),
        ],
        [lambda: setattr(walked, "count", 1), lambda: setattr(walked, "count", 2)],
    )
    yield (
        "layer that spells itself",
        spelled,
        [lambda: spelled.inner.append(nn.Linear(1, 1)), lambda: setattr(spelled, "new", nn.Linear(2, 2))],
        [up(spelled, "steps")],
    )


def of_operators() -> Iterator[Program]:
    """As of_trainers(): operators call methods without naming them."""

    class Valued:
        def __init__(self) -> None:
            self.factor = self.item = self.inner = self.called = self.found = self.size = self.index = 1
            self.steps = 0

        def __mul__(self, other: Any) -> Any:
            return other * self.factor

        def __getitem__(self, key: Any) -> Any:
            return self.item

        def __enter__(self) -> Any:
            return self.inner

        def __exit__(self, *problem: object) -> None:
            pass

        def __call__(self) -> Any:
            return self.called

        def __contains__(self, key: Any) -> bool:
            return self.found % 2 == 0

        def __len__(self) -> int:
            return self.size

        def __index__(self) -> int:
            return self.index

        def __iter__(self) -> Iterator[Any]:
            yield self.listed

        def __eq__(self, other: object) -> bool:
            return self.equal % 2 == 0

        __hash__ = None  # type: ignore[assignment]

    v = Valued()
    v.listed, v.equal = 1, 0

    def f(x: Tensor) -> Tensor:
        with v as inner:
            x = (v * x) * v[0] * inner * v() * len(v) * operator.index(v) * sum(v)
        return x * (2.0 if 3 in v else 3.0) * (5.0 if v == 1 else 7.0)

    names = ("factor", "item", "inner", "called", "found", "size", "index", "listed", "equal")
    yield "operators", f, [up(v, n) for n in names], [up(v, "steps")]

    class Point:
        __match_args__ = ("first", "second")

        def __init__(self) -> None:
            self.first = self.second = 1.0

    point = Point()

    def matches(x: Tensor) -> Tensor:
        match point:
            case Point(a, b):
                return x * a * b
        return x

    yield "match", matches, [up(point, "first"), up(point, "second")], []

    class Turned:
        def __init__(self) -> None:
            self.value = 1.0

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([self.value], np.float32)

        def max(self, axis: Any = None, out: Any = None) -> float:
            return self.value

    turned = Turned()
    yield "arrays", lambda x: x * Tensor(np.asarray(turned)) * float(np.amax(turned)), [up(turned, "value")], []


def of_texts() -> Iterator[Program]:
    """As of_trainers(): names that are texts in the code where it looks them up, as others are not."""
    run, held, name = Run(), Run(inner=Run()), "ga" + "in".lower()
    for label, function in {
        "getattr of a text": lambda x: x * getattr(run, "gain"),  # noqa: B009
        "getattr or else": lambda x: x * getattr(run, "gain", 2.0 + len("ab")) * getattr(run, "other", 1.0),
        "hasattr of a text": lambda x: x * run.gain if hasattr(run, "gain") else x,
        "getattr of what it finds": lambda x: x * getattr(getattr(held, "inner"), "gain") + run.gain,  # noqa: B009
        "getattr in a comprehension": lambda x: x * sum([getattr(r, "gain") for r in (run, held)]),  # noqa: B009
    }.items():
        yield label, function, [up(run, "gain")], [run.step_done, held.step_done]
    yield "text that is there later", lambda x: x * getattr(held, "rate", 1.0), [lambda: setattr(held, "rate", 7.0)], []
    found = Run()
    for label, function in {
        "getattr of a sum": lambda x: x * getattr(found, "ga" + name[2:]),
        "getattr of one of two": lambda x: x * getattr(found, "gain" if name else "steps"),
        "getattr of a text and of another name": lambda x: x * getattr(found, "gain") * getattr(found, name),  # noqa: B009
        "getattr of stars": lambda x: x * getattr(*(found, name)),
        "getattr that is mapped": lambda x: x * sum(map(getattr, [found], [name])),
        "getattr of a name or a text": lambda x: x * getattr(found, name, "gain"),
        "getattr inside a getattr": lambda x: x * getattr(found, "other", getattr(found, name)),
    }.items():
        yield label, function, [up(found, "gain")], []


def of_lookups() -> Iterator[Program]:
    """As of_trainers(): names that are computed."""
    run, name = Run(), "ga" + "in".lower()
    template = "{0.gain}"
    got, of_object, table = run.__getattribute__, object.__getattribute__, vars(run)
    aliases = [getattr, operator.attrgetter, str.format, eval]
    for label, function in {
        "getattr": lambda x: x * getattr(run, name),
        "getattr of a table": lambda x: x * aliases[0](run, name),
        "vars": lambda x: x * vars(run)[name],
        "dict of an object, held": lambda x: x * table[name],
        "method of an object": lambda x: x * got(name),
        "method of a class": lambda x: x * of_object(run, name),
        "attrgetter": lambda x: x * aliases[1](name)(run),
        "format": lambda x: x * float(template.format(run)),
        "format of a text": lambda x: x * float(aliases[2]("{0." + name + "}", run)),
        "Formatter": lambda x: x * float(string.Formatter().vformat("{0." + name + "}", (run,), {})),
        "eval": lambda x: x * aliases[3]("run." + name, {"run": run}),
        "copy": lambda x: x * copy.copy(run).__reduce_ex__(2)[2][name],
        "json": lambda x: x * json.loads(json.dumps(run, default=lambda o: {"gain": o.gain}))["gain"],
        "pickle": lambda x: x * len(pickle.dumps(run)),
    }.items():
        changes = [lambda: setattr(run, "gain", run.gain * 1000)] if label == "pickle" else [up(run, "gain")]
        yield label, function, changes, []
    dotted, method = operator.attrgetter("inner.steps"), operator.methodcaller("gained", one())
    held = Run(inner=Run(steps=1))
    yield "attrgetter, held", lambda x: x * dotted(held), [up(held.inner, "steps")], []
    yield "methodcaller, held", lambda x: x * method(held), [up(held, "gain")], []
    state = State()
    yield "asdict", lambda x: x * sum(dataclasses.asdict(state).values()), [up(state, "gain"), up(state, "steps")], []

    class Described:
        def __set_name__(self, owner: type, name: str) -> None:
            self.name = "_" + name

        def __get__(self, owner: Any, kind: Any = None) -> Any:
            return getattr(owner, self.name)

        def __set__(self, owner: Any, value: Any) -> None:
            setattr(owner, self.name, value)

    described = type("Owner", (), {"gain": Described()})()
    described.gain = 1.0
    yield "descriptor", lambda x: x * described.gain, [up(described, "gain")], []

    class Forwarding:
        def __init__(self, target: Any) -> None:
            object.__setattr__(self, "target", target)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.target, name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(self.target, name, value)

    forwarding = Forwarding(Run())
    yield "__getattr__", lambda x: x * forwarding.gain, [up(forwarding, "gain")], []

    class Prefixed:
        def __getattribute__(self, name: str) -> Any:
            return object.__getattribute__(self, "_" + name)

    prefixed: Any = Prefixed()
    prefixed._gain = 1.0
    yield "__getattribute__", lambda x: x * prefixed.gain, [lambda: setattr(prefixed, "_gain", prefixed.gain + 1)], []
    user, generated = collections.UserDict(gain=1.0), Run()
    numbers = (generated.gain for _ in itertools.count())
    yield "class of a library", lambda x: x * user["gain"], [functools.partial(user.__setitem__, "gain", 5.0)], []
    yield "generator", lambda x: x * next(numbers) * generated.inner, [up(generated, "gain")], []
    generated.inner = 1.0

    @typing.runtime_checkable
    class HasRate(typing.Protocol):
        rate: float

    rated = Run()
    yield (
        "protocol",
        lambda x: x * (2.0 if isinstance(rated, HasRate) else 3.0),
        [lambda: setattr(rated, "rate", 1.0)],
        [],
    )


def of_makers() -> Iterator[Program]:
    """As of_trainers(): functions that make objects, whose class reads attributes of others."""
    run = Run(hidden=1.0)

    class Base:
        def __init__(self) -> None:
            self.value = run.hidden

        @classmethod
        def made(cls) -> Any:
            return cls()

        def by_type(self, x: Tensor) -> Tensor:
            return x * type(self)().value

        def by_class(self, x: Tensor) -> Tensor:
            return x * __class__().value  # type: ignore[name-defined]

        def by_method(self, x: Tensor) -> Tensor:
            return x * self.made().value

    class Child(Base):
        def __init__(self) -> None:
            super().__init__()

    table, factory = {"child": Child}, functools.partial(Child)
    for label, function in {
        "class": lambda x: x * Child().value,
        "class of an object": Child().by_type,
        "class of a method": Child().by_class,
        "class method": Child().by_method,
        "class in a dict": lambda x: x * table["child"]().value,
        "partial of a class": lambda x: x * factory().value,
    }.items():
        yield (
            label,
            function,
            [up(run, "hidden")],
            [] if label in ("class of an object", "class method") else [up(run, "steps")],
        )

    class WithSetter:
        def __init__(self) -> None:
            self.gain = 2.0

        @property
        def gain(self) -> float:
            return self._gain

        @gain.setter
        def gain(self, value: float) -> None:
            self._gain = value * run.hidden

        def gained(self, x: Tensor) -> Tensor:
            return x * self._gain

    yield "setter", lambda x: WithSetter().gained(x), [up(run, "hidden")], [up(run, "steps")]

    class Meta(type):
        def __call__(cls, *values: Any) -> Any:
            made = super().__call__(*values)
            made.scaled = made.value * run.gain
            return made

    class OfMeta(metaclass=Meta):
        value = 2.0

    yield "metaclass", lambda x: x * OfMeta().scaled, [up(run, "gain"), up(OfMeta, "value")], [up(run, "steps")]

    class Abstract(abc.ABC, typing.Generic[typing.TypeVar("T")]):  # type: ignore[misc]
        @abc.abstractmethod
        def gained(self, x: Tensor) -> Tensor: ...

    class Concrete(Abstract):  # type: ignore[type-arg]
        def __init__(self) -> None:
            self.gain, self.steps = 1.0, 0

        def gained(self, x: Tensor) -> Tensor:
            return x * self.gain

    concrete = Concrete()
    yield "abstract class", concrete.gained, [up(concrete, "gain")], [up(concrete, "steps")]


def of_libraries() -> Iterator[Program]:
    """As of_trainers(): objects of libraries that have code of the program's."""
    run, kind = Run(hidden=1.0), typing.TypeVar("kind")

    class Hidden(typing.Generic[kind]):
        def __init__(self) -> None:
            self.value = run.hidden

    alias, over = Hidden[int], np.vectorize(lambda v: v * run.hidden)
    one_by_one, held = np.frompyfunc(lambda v: v * run.hidden, 1, 1), super(Extended, Extended())
    yield "alias of a class", lambda x: x * alias().value + run.log, [up(run, "hidden")], []
    run.log = 0  # type: ignore[assignment]
    yield "vectorize", lambda x: x * float(over(2.0)) + run.log, [up(run, "hidden")], []
    yield "frompyfunc", lambda x: x * float(one_by_one(2.0)) + run.log, [up(run, "hidden")], []

    class Zone(datetime.tzinfo):
        def utcoffset(self, at: Any) -> datetime.timedelta:
            return datetime.timedelta(hours=run.hidden)

    at = datetime.datetime(2020, 1, 1, tzinfo=Zone())
    yield "datetime", lambda x: x * at.utcoffset().seconds + run.log, [up(run, "hidden")], []  # type: ignore[union-attr]
    owner = type("Owner", (), {"gain": property(operator.attrgetter("hidden"))})()
    owner.hidden, owner.steps = 1.0, 0
    yield "attrgetter of a property", lambda x: x * owner.gain, [up(owner, "hidden")], []
    yield "super, held", lambda x: held.gained(x), [up(Measured, "gain"), up(Mixed, "rate")], [up(Measured, "count")]
    bound, partial = types.MethodType(getattr, run), functools.partial(getattr, run)
    yield "method of getattr", lambda x: x * bound("hid" + "den".lower()), [up(run, "hidden")], []
    yield "partial of getattr", lambda x: x * partial("hid" + "den".lower()), [up(run, "hidden")], []
    yield "dir", lambda x: x * len(run.__dir__()), [functools.partial(setattr, run, "other", 1)], []
    first, second = State(), State()
    yield "list that has a dataclass", lambda x: x * (2 + [first].__contains__(second)), [up(first, "steps")], []


def programs() -> dict[str, Program]:
    kinds = (of_trainers, of_places, of_modules, of_operators, of_texts, of_lookups, of_makers, of_libraries)
    return {f"{kind.__name__[3:]}: {p[0]}": p for kind in kinds for p in kind()}


@pytest.mark.parametrize("name", programs())
def test_attributes_that_count_and_others(name: str) -> None:
    _, function, seen, others = programs()[name]  # a new one, which no other test has changed
    jitted, x = morok.jit(function), one(3.0)
    assert jitted(x).tolist() == function(x).tolist()
    for change in (*seen, *others, *seen[:1]):
        change()
        described = jitted.plans
        assert jitted(x).tolist() == jitted(x).tolist() == function(x).tolist()
        if change in others:
            assert jitted.plans == described


class Counted:
    """An object that is reset by what has made it."""

    def __init__(self) -> None:
        self.steps = 0

    reset = __init__

    def step_done(self) -> None:
        self.steps += 1


INITIALISE = Counted.__init__


def sets(counted: Counted) -> None:
    counted.steps = 1


def initialises(counted: Counted) -> None:
    counted.__init__()  # type: ignore[misc]


def resets(counted: Counted) -> None:
    counted.reset()


def initialises_held(counted: Counted) -> None:
    INITIALISE(counted)


def sets_by_name(counted: Counted) -> None:
    setattr(counted, "st" + "eps".lower(), 1)


def counts(counted: Counted) -> None:
    counted.step_done()


@pytest.mark.parametrize("function", [sets, initialises, initialises_held, resets, sets_by_name, counts])
def test_attributes_that_are_only_set_count(function: Callable[[Counted], None]) -> None:
    counted = Counted()
    counted.steps = 5

    def f(x: Tensor) -> Tensor:
        function(counted)
        return x * 2

    with pytest.raises(JitEffectError, match="changes"):
        morok.jit(f)(one())


def test_an_attribute_that_is_set_to_what_it_is() -> None:
    run = Run(mode="a")

    @morok.jit
    def f(x: Tensor) -> Tensor:
        run.mode = "a"
        return x * 2

    assert f(one()).item() == 2.0
    run.mode = "b"
    with pytest.raises(JitEffectError, match=r"mode was b and is a|mode was 'b' and is 'a'"):
        f(one())


def test_an_argument_that_nobody_reads_in_an_attribute_is_an_argument() -> None:
    run = Run(last=None)

    @morok.jit
    def f(x: Tensor) -> Tensor:
        return x * run.gain

    for k in range(4):
        run.last = one(k)
        assert f(run.last).item() == k
    assert f.plans == 1


def test_a_module_that_is_loaded_by_what_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    made = types.ModuleType("user_settings_of_names")
    vars(made).update(GAIN=1.0, STEPS=0)
    monkeypatch.setitem(sys.modules, made.__name__, made)

    @morok.jit
    def f(x: Tensor) -> Tensor:
        import user_settings_of_names as settings  # type: ignore[import-not-found]

        return x * settings.GAIN

    for gain in (1.0, 2.0):
        made.GAIN = gain  # type: ignore[attr-defined]
        for _ in range(2):
            made.STEPS += 1
            assert f(one()).item() == gain
    assert f.plans == 2
