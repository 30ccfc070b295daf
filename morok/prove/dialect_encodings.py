"""The encodings that a theory has for rules over its dialect, each kind once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from types import CellType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final

from morok.dialect import Dialect, built_in

BUILT_IN: Final = 3  # encodings of the built-in dialect that are tried
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))


def worlds(theory: Any, dialect: Dialect, op: str, dtypes: Sequence[str]) -> list[Any]:
    """The makers of the encodings of rules with this op at these dtypes: with the op alone, and with all others."""
    one, every = frozenset({op}), frozenset(dialect.ops)
    if built_in(dialect):
        return _distinct(theory.attempts(one, list(dtypes), False, False), attrgetter("name"))[:BUILT_IN]
    asked = ((ops, numeric) for ops in (one, every) for numeric in (False, True))
    return _distinct((a for ops, n in asked for a in theory.attempts(ops, list(dtypes), n, False)), kind_of)


def _distinct(attempts: Iterable[Any], key: Callable[[Any], Hashable]) -> list[Any]:
    found: dict[Hashable, Any] = {}
    for attempt in attempts:
        found.setdefault(key(attempt), attempt)
    return list(found.values())


def kind_of(attempt: Any) -> Hashable:
    """The kind of an encoding: its class and its state, of which its name is a part that it may read as any other.

    State that cannot be read makes it one of its own kind, so that nobody takes it for another one that was verified.
    """
    return _state(_fields(attempt) | {"": type(attempt)}, ())


def _fields(of: Any) -> dict[str, Any]:
    """The values of an object's slots, and what is in its `__dict__`."""
    slots = [(n, d) for c in type(of).__mro__ for n, d in vars(c).items() if isinstance(d, MemberDescriptorType)]
    return {n: d.__get__(of) for n, d in slots if hasattr(of, d.__name__)} | getattr(of, "__dict__", {})


class _Itself:
    """An object as a key: equal to itself alone, and alive for as long as the key is."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


def _state(of: Any, around: tuple[int, ...]) -> Hashable:
    """An object as a key by what it does: functions by their code and what they close over, instances by class and fields.

    around  the objects that it is a part of, by identity
    """
    if type(of) in _PLAIN:
        return type(of), repr(of)
    if id(of) in around:
        return around.index(id(of))
    parts: Iterable[Any]
    if isinstance(of, FunctionType):
        parts = (of.__defaults__, of.__kwdefaults__, of.__closure__, of.__dict__)
        return of.__code__, _Itself(of.__globals__), *(_state(p, (*around, id(of))) for p in parts)
    if isinstance(of, (set, frozenset)):
        return type(of), frozenset(_state(p, (*around, id(of))) for p in of)
    if type(of) in (tuple, list):
        parts = of
    elif isinstance(of, dict) and type(of) is dict:
        parts = [p for item in of.items() for p in item]
    elif isinstance(of, CellType):
        parts = () if of == CellType() else (of.cell_contents,)
    elif isinstance(of, MethodType):
        parts = (of.__func__, of.__self__)
    elif isinstance(of, functools.partial):
        parts = (of.func, of.args, of.keywords)
    elif _is_written_in_python(of):
        parts = [p for item in _fields(of).items() for p in item]
    else:
        return _Itself(of)
    return (_Itself(type(of)), *(_state(p, (*around, id(of))) for p in parts))


def _is_written_in_python(of: Any) -> bool:
    """True if all that an instance holds is in its slots and its `__dict__`."""
    bases = type(of).__mro__[:-1]
    return not isinstance(of, (type, ModuleType)) and all({"__dict__", "__slots__"} & vars(c).keys() for c in bases)
