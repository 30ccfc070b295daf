"""The objects that a function can reach without its arguments: closures, globals, defaults, attributes.

A plan is valid while all of them are unchanged. Each call checks this, so the check is one pass in C over live views of dicts and
over lists, which compares each element by identity with the earlier one. Values are compared only if an identity differs.

Code of libraries is excluded, as are objects of their classes, except containers and Morok's modules and tensors.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
import types
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from operator import attrgetter, is_
from types import CodeType
from typing import Any, Final

import numpy as np

from morok.arguments import shown
from morok.described.value_keys import PLAIN, same
from morok.ir.dtype import DType
from morok.ir.uop import UOp
from morok.nn.module import Module
from morok.tensor.base import Lazy
from morok.tensor.variable import Variable

_LEAVES: Final = (*PLAIN, float, complex, range, slice, np.generic, np.ndarray, DType, UOp, Variable)
_END: Final = object()
_ABSENT: Final = object()
_LIBRARIES: Final = tuple({sysconfig.get_paths()[k] + os.sep for k in ("stdlib", "platstdlib", "purelib", "platlib")})
_contents: Final = attrgetter("cell_contents")
_OURS: Final = "morok"
_WRAPPERS: Final = ("functools", _OURS)  # packages with wrappers of functions: caches, and results of `morok.jit`


@functools.cache
def _is_library(module: str) -> bool:
    """True if the module of this name belongs to a library: Python's, Morok, or an installed one."""
    top = module.partition(".")[0]
    if top in (_OURS, "builtins") or top in sys.stdlib_module_names - {"__main__"}:
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and file.startswith(_LIBRARIES)


@functools.lru_cache(maxsize=1024)
def _global_names(code: CodeType) -> tuple[str, ...]:
    """The names of globals in a function's code, and in the code of functions inside it."""
    found: dict[str, None] = {}
    for inner in _codes(code):
        found.update((i.argval, None) for i in dis.get_instructions(inner) if i.opname.endswith(("_GLOBAL", "_NAME")))
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def _names(code: CodeType) -> frozenset[str]:
    """The names of attributes and globals in a function's code, and in the code of functions inside it."""
    return frozenset(name for inner in _codes(code) for name in inner.co_names)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


class Reach:
    """A snapshot of the values that these objects can reach.

    values   path, in words -> value; a path is numbered where several places have the same words, as an attribute of an object
             and of its class, or two arguments of one class
    tensors  the distinct tensors among the values
    """

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        self.values: dict[str, Any] = {}
        self._places: Counter[str] = Counter()  # of each path
        self.tensors: list[Lazy] = []
        self._seen: dict[int, Any] = {}
        self._views: list[Iterable[Any]] = []
        self._keyed: list[Iterable[str]] = []
        self._cells: list[types.CellType] = []
        self._names: tuple[list[dict[str, Any]], list[str]] = ([], [])  # globals: the modules' dicts, and the names
        self._slots: tuple[list[Any], list[str]] = ([], [])  # attributes in slots: the objects, and the names
        self._pending: deque[tuple[str, Any, frozenset[str]]] = deque((p, v, frozenset()) for p, v in roots)
        while self._pending:
            self._visit(*self._pending.popleft())
        self._seen.clear()
        self._there, self._keys = [*self._elements()], [*chain.from_iterable(self._keyed)]

    def _elements(self) -> Iterator[Any]:
        there = [*self._views]
        if self._names[0]:
            there.append(map(dict.get, *self._names))
        if self._slots[0]:
            there.append(map(getattr, *self._slots, repeat(_ABSENT)))
        if self._cells:
            there.append(map(_contents, self._cells))
        there.append((_END,))
        return chain.from_iterable(there)

    def unchanged(self) -> bool:
        """True if every value is the same object as before. False decides nothing: the new object may be equal."""
        try:
            return all(map(is_, self._elements(), self._there)) and [*chain.from_iterable(self._keyed)] == self._keys
        except (RuntimeError, ValueError, AttributeError):  # a dict changed meanwhile; an empty cell; a missing attribute
            return False

    def difference(self, other: Reach) -> str:
        """The first path with different values in `other`, in words; "" if there is none."""
        for path, value in other.values.items():
            old = self.values.get(path, _ABSENT)
            if old is _ABSENT:
                return f"{path} is new"
            if not same(old, value):
                return f"{path} was {_said(old)} and is {_said(value)}"
        gone = next((path for path in self.values if path not in other.values), None)
        return "" if gone is None else f"{gone} is gone"

    def _visit(self, path: str, value: Any, names: frozenset[str]) -> None:
        self._places[path] += 1
        self.values[path if self._places[path] == 1 else f"{path} ({self._places[path]})"] = value
        kind = type(value)
        if kind in _LEAVES or isinstance(value, (np.generic, np.ndarray, UOp)):
            return
        if kind is types.ModuleType:  # visited for each function, which may use other names of it
            if not _is_library(value.__name__):
                self._named(path, vars(value), sorted(names & vars(value).keys()))
            return
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, Lazy):
            self.tensors.append(value)
        elif isinstance(value, dict):
            self._dict(path, value, "[{!r}]")
        elif isinstance(value, (list, deque, set, frozenset)):
            self._views.append(value)
            self._below((f"{path}[{k}]", v) for k, v in enumerate(value))
        elif isinstance(value, tuple):
            self._below((f"{path}[{k}]", v) for k, v in enumerate(value))
        elif isinstance(value, types.FunctionType):
            self._function(path, value)
        elif isinstance(value, types.MethodType):
            self._below([(path, value.__func__), (f"{path}.__self__", value.__self__)])
        elif isinstance(value, functools.partial):
            self._below([(f"{path}.func", value.func), (f"{path}.args", value.args), (f"{path}.keywords", value.keywords)])
        elif isinstance(value, property):
            self._below([(path, f) for f in (value.fget, value.fset) if f is not None])
        elif isinstance(value, (staticmethod, classmethod, functools.cached_property)):
            self._below([(path, value.func if isinstance(value, functools.cached_property) else value.__func__)])
        elif isinstance(value, type):
            if not _is_library(value.__module__):
                self._of_dict(vars(value))
                self._below((f"{path}.{k}", v) for k, v in vars(value).items() if not _is_pythons(k, v))
                self._below((f"{path}.{base.__name__}", base) for base in value.__bases__)
        elif isinstance(value, (Module, types.SimpleNamespace)) or not _is_library(str(kind.__module__)):
            self._object(path, value)
        elif str(kind.__module__).partition(".")[0] in _WRAPPERS and hasattr(value, "__wrapped__"):
            self._below([(path, value.__wrapped__)])

    def _below(self, found: Iterable[tuple[str, Any]], names: frozenset[str] = frozenset()) -> None:
        self._pending.extend((path, value, names) for path, value in found)

    def _dict(self, path: str, found: Any, spelling: str) -> None:
        self._of_dict(found)
        self._below((path + spelling.format(k), v) for k, v in found.items())

    def _of_dict(self, found: Any) -> None:
        """Watch the values and keys of a dict; if all keys are strings, these are compared by value, which is faster."""
        if all(type(k) is str for k in found):
            self._keyed.append(found)
        else:
            self._views.append(found)
        self._views.append(found.values())

    def _named(self, path: str, found: dict[str, Any], names: Iterable[str], code: frozenset[str] = frozenset()) -> None:
        """Watch these names in a module's dict, and visit their values; `code` are the names in the code that uses them."""
        there = list(names)
        self._names[0].extend([found] * len(there))
        self._names[1].extend(there)
        self._below(((f"{path}.{n}" if path else n, found[n]) for n in there if n in found), code)

    def _function(self, path: str, f: types.FunctionType) -> None:
        if _is_library(f.__module__ or ""):
            return
        code, inner = f.__code__, _names(f.__code__)
        for name, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
            try:
                self._below([(f"{path}: {name}", cell.cell_contents)], inner)
            except ValueError:  # an empty cell
                continue
            self._cells.append(cell)
        self._named(f.__module__ or "", f.__globals__, _global_names(code), inner)
        self._below((f"{path}: default {k}", v) for k, v in enumerate(f.__defaults__ or ()))
        if f.__kwdefaults__:
            self._dict(f"{path}: default ", f.__kwdefaults__, "{}")
        if f.__dict__:
            self._dict(path, f.__dict__, ".{}")

    def _object(self, path: str, value: Any) -> None:
        """Watch and visit the attributes of an object, and visit its class."""
        if hasattr(value, "__dict__"):
            self._dict(path, vars(value), ".{}")
        slots = [
            name
            for base in type(value).__mro__
            for name, member in vars(base).items()
            if isinstance(member, types.MemberDescriptorType)
        ]
        if slots:
            self._slots[0].extend([value] * len(slots))
            self._slots[1].extend(slots)
            self._below((f"{path}.{n}", v) for n in slots if (v := getattr(value, n, _ABSENT)) is not _ABSENT)
        self._below([(type(value).__name__, type(value))])


def _is_pythons(name: str, value: Any) -> bool:
    """True if Python itself sets this attribute of a class, perhaps later, as when an object is copied."""
    return name.startswith("__") and name.endswith("__") and not isinstance(value, types.FunctionType)


def _said(value: Any) -> str:
    return "another tensor" if isinstance(value, Lazy) else shown(value)
