"""The objects that a function can reach without its arguments: closures, globals, defaults, attributes.

A plan is valid while all of them are unchanged. Each call checks this, so the check is one pass in C over what the objects refer
to, which compares each element by identity with the earlier one. Values are compared only if an identity differs.

All objects are looked into, except these: numbers, texts and other values that do not change; modules, functions and classes of
libraries; objects of NumPy, of Morok (but modules, tensors and jitted functions), of packages in `_OPAQUE`, and of installed
packages further away than what the function and its arguments hold directly. A package that the function, or the class of an
argument, is of is no library.

Of a module, the globals are watched whose names the code that is reached has as names or texts; all, if that code looks names up.
"""

from __future__ import annotations

import array
import contextlib
import contextvars
import functools
import gc
import sys
import threading
import types
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from operator import attrgetter, call, is_
from typing import Any, Final

import numpy as np

from morok.arguments import shown
from morok.described.code_names import LOOKUPS, dict_of, global_names, imported, is_library, members, names_of, top
from morok.described.value_keys import PLAIN, same
from morok.ir.dtype import DType
from morok.ir.uop import UOp
from morok.nn.module import Module
from morok.tensor.base import Lazy
from morok.tensor.variable import Variable

_DESCRIPTORS: Final = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
)
_LEAVES: Final = frozenset(
    {*PLAIN, float, complex, range, np.ndarray, DType, UOp, Variable, types.CodeType, types.GeneratorType, *_DESCRIPTORS}
)
_ROWS: Final = (list, tuple, set, frozenset, deque)
_RAW: Final = (bytearray, array.array, memoryview)
_OPAQUE: Final = frozenset({
    "_abc", "_asyncio", "_io", "_random", "_thread", "abc", "ast", "asyncio", "bz2", "codecs", "concurrent", "csv", "ctypes",
    "datetime", "dbm", "decimal", "fractions", "gzip", "hashlib", "importlib", "inspect", "io", "linecache", "logging", "lzma",
    "mmap", "multiprocessing", "numpy", "pathlib", "random", "re", "select", "selectors", "shelve", "socket", "sqlite3", "ssl",
    "subprocess", "tarfile", "tempfile", "threading", "time", "traceback", "typing", "unittest", "uuid", "warnings", "zipfile",
    "zoneinfo",
})  # fmt: skip
_CACHED: Final = type(is_library)  # a function with `functools.cache`: what it holds may change with each call
_state_of: Final = attrgetter("__code__", "__defaults__", "__kwdefaults__", "__dict__")  # of a function, what may be replaced
_PYTHONS: Final = frozenset({
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__dict__", "__doc__",
    "__firstlineno__", "__module__", "__orig_bases__", "__parameters__", "__qualname__", "__slotnames__", "__slots__",
    "__static_attributes__", "__type_params__", "__weakref__", "_abc_impl",
})  # fmt: skip
"""Names that Python itself sets in a class, perhaps later, as when an object is copied."""
_END: Final = object()
_ABSENT: Final = object()
_TOLERANT: Final = contextlib.suppress(Exception)  # of code of the user's, as a metaclass: what raises is taken as it is
_OURS: Final = "morok"


class Reach:
    """A snapshot of the values that these objects can reach.

    values   path, in words -> value; a path is numbered where several places have the same words, as an attribute of an object
             and of its class, or two arguments of one class
    tensors  the distinct tensors among the values
    ids      the ids of all objects among the values; `tensor_ids` are those of the tensors
    """

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        roots = list(roots)
        self.values: dict[str, Any] = {}
        self.tensors: list[Lazy] = []
        self._own = {name for _, root in roots for name in _packages(root)}
        self._places: Counter[str] = Counter()  # of each path
        self._seen: dict[int, Any] = {}
        self._keyed: list[Iterable[Any]] = []  # dicts, whose keys are compared
        self._views: list[Iterable[Any]] = []
        self._watched: list[Any] = []  # objects, of which all that they refer to is compared
        self._slots: tuple[list[Any], list[Any]] = ([], [])  # attributes in slots: the descriptors, and the objects
        self._globals: tuple[list[dict[str, Any]], list[str]] = ([], [])  # globals: the modules' dicts, and the names
        self._functions: list[types.FunctionType] = []
        self._calls: list[Any] = []  # functions without arguments, whose values are compared
        self._raw: list[tuple[Any, bytes | None]] = []  # objects compared by their bytes
        self._names = {"__getattr__"}  # all names and texts in the code that is reached
        self._known: dict[int, set[str]] = {}  # the names watched of a module, by the id of its dict
        self._spaces: dict[int, tuple[dict[str, Any], int]] = {}  # modules that are reached as objects, and how far away
        self._pending: deque[tuple[str, Any, int]] = deque((p, v, 0) for p, v in roots)
        self._walk()
        self.ids = frozenset(self._seen)
        self.tensor_ids = frozenset(map(id, self.tensors))
        for made in (self._seen, self._places, self._known, self._spaces, self._names):
            made.clear()
        self._referring = tuple(self._watched)
        self._referents = gc.get_referents(*self._referring)
        self._there, self._keys = [*self._elements()], [*chain.from_iterable(self._keyed)]

    def _walk(self) -> None:
        while self._pending:
            while self._pending:
                path, value, distance = self._pending.popleft()
                with _TOLERANT:
                    self._visit(path, value, distance)
            if self._names & LOOKUPS:
                self._texts_of_modules()
            for found, distance in list(self._spaces.values()):
                self._named(found, [n for n in found if self._is_used(n)], distance)

    def _is_used(self, name: str) -> bool:
        return name in self._names or (not name.startswith("__") and not self._names.isdisjoint(LOOKUPS))

    def _texts_of_modules(self) -> None:
        """Visit the loaded modules whose names are texts in code that looks names up."""
        for name in sorted(self._names & sys.modules.keys()):
            if not self._is_foreign(name) and id(sys.modules[name]) not in self._seen:
                self._pending.append((name, sys.modules[name], 1))

    def _elements(self) -> Iterator[Any]:
        there = [*self._views]
        if self._globals[0]:
            there.append(map(dict.get, *self._globals, repeat(_ABSENT)))
        if self._slots[0]:
            there.append(map(_read, *self._slots))
        if self._functions:
            there.append(chain.from_iterable(map(_state_of, self._functions)))
        if self._calls:
            there.append(map(call, self._calls))
        there.append((_END,))
        return chain.from_iterable(there)

    def unchanged(self) -> bool:
        """True if every value is the same object as before. False decides nothing: the new object may be equal."""
        if self._referring:
            found = gc.get_referents(*self._referring)
            if len(found) != len(self._referents) or not all(map(is_, found, self._referents)):
                return False
        try:
            if not all(map(is_, self._elements(), self._there)):
                return False
            if self._keyed and [*chain.from_iterable(self._keyed)] != self._keys:
                return False
        except Exception:  # a dict changed meanwhile; code of the user's
            return False
        return not self._raw or all(_bytes(value) == content for value, content in self._raw)

    def difference(self, other: Reach) -> str:
        """The first path with different values in `other`, in words; "" if there is none."""
        for path, value in other.values.items():
            old = self.values.get(path, _ABSENT)
            if old is _ABSENT:
                return f"{path} is new"
            if not same(old, value):
                return f"{path} was {_said(old)} and is {_said(value)}"
        gone = next((path for path in self.values if path not in other.values), None)
        if gone is not None:
            return f"{gone} is gone"
        moved = next((a for a, b in zip(self.values, other.values, strict=True) if a != b), None)
        return "" if moved is None else f"{moved} has another place"

    def _is_foreign(self, module: Any) -> bool:
        """True if the module of this name belongs to a library that neither the function nor an argument is of."""
        name = str(module)
        return is_library(name) and top(name) not in self._own

    def _visit(self, path: str, value: Any, distance: int) -> None:
        self._places[path] += 1
        path = path if self._places[path] == 1 else f"{path} ({self._places[path]})"
        self.values[path] = value
        kind = type(value)
        if kind in _LEAVES:
            if kind is str:
                self._names.add(value)
            return
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if _is(value, _RAW):
            self.values[path] = content = _bytes(value)
            self._raw.append((value, content))
        elif not self._is_special(path, value, distance):
            if kind not in (tuple, frozenset, dict) and not _is(value, (Lazy, BaseException)):
                self._watched.append(value)
            self._container(path, value, distance)
            self._object(path, value, distance)

    def _is_special(self, path: str, value: Any, distance: int) -> bool:
        """True if an object is a module, function or class, or stands for another object: this has visited it then."""
        if _is(value, types.ModuleType):
            if not self._is_foreign(value.__name__):
                self._space(vars(value), distance)
        elif _is(value, types.FunctionType):
            self._function(path, value, distance)
        elif _is(value, type):
            self._class(path, value, distance)
        elif _is(value, (types.BuiltinMethodType, types.MethodWrapperType)):
            self._below([(f"{path}.__self__", value.__self__)], distance)
        elif _is(value, types.MethodType):
            self._below([(path, value.__func__), (f"{path}.__self__", value.__self__)], distance - 1)
        elif _is(value, weakref.ref):
            self._calls.append(value)
            self._below([(f"{path}()", value())], distance)
        elif _is(value, contextvars.ContextVar):
            self._calls.append(functools.partial(value.get, _ABSENT))
            if (found := value.get(_ABSENT)) is not _ABSENT:
                self._below([(f"{path}.get()", found)], distance)
        elif _is(value, _CACHED) or (top(str(type(value).__module__)) == _OURS and hasattr(value, "__wrapped__")):
            self._below([(path, value.__wrapped__)], distance - 1)
        else:
            return False
        return True

    def _below(self, found: Iterable[tuple[str, Any]], distance: int) -> None:
        self._pending.extend((path, value, distance + 1) for path, value in found)

    def _container(self, path: str, value: Any, distance: int) -> None:
        """Watch and visit what a tensor, dict or row of values contains."""
        if _is(value, Lazy):
            self.tensors.append(value)
        elif _is(value, dict):
            self._dict(path, value, "[{}]", distance)
        elif _is(value, _ROWS):
            base: Any = next(kind for kind in _ROWS if _is(value, kind))  # a class may iterate in another way
            self._below([(f"{path}[{k}]", v) for k, v in enumerate(base.__iter__(value))], distance)

    def _dict(self, path: str, found: dict[Any, Any], spelling: str, distance: int) -> None:
        """Watch and visit the keys and values of a dict."""
        keys = found if _is(found, OrderedDict) else dict.keys(found)  # it has an order of its own
        self._keyed.append(keys) if all(type(k) is str for k in keys) else self._views.append(keys)
        if found:
            self._watched.append(found)
        for k in keys:
            if type(k) not in PLAIN:
                self._below([(f"a key of {path}", k)], distance)
            self._below([(path + spelling.format(_spelled(k) if "[" in spelling else k), dict.__getitem__(found, k))], distance)

    def _space(self, found: dict[str, Any], distance: int) -> None:
        """Watch the names of a module, and those of its globals that are used (see `_walk`)."""
        if id(found) not in self._spaces:
            self._spaces[id(found)] = found, distance
            self._keyed.append(found)
            self._named(found, [n for n in found if self._is_used(n)], distance)

    def _named(self, found: dict[str, Any], names: Iterable[str], distance: int) -> None:
        """Watch these names in a module's dict, and visit their values."""
        known = self._known.setdefault(id(found), set())
        new = [n for n in names if n not in known]
        known.update(new)
        self._globals[0].extend([found] * len(new))
        self._globals[1].extend(new)
        module = found.get("__name__", "")
        self._below([(f"{module}.{n}", found[n]) for n in new if n in found], distance)

    def _function(self, path: str, f: types.FunctionType, distance: int) -> None:
        self._functions.append(f)
        if self._is_foreign(f.__globals__.get("__name__", "")):  # it may be around a function, and keep its own state beside that
            self._below([(f"{path}.{n}", v) for n, v in f.__dict__.items() if n.startswith("__") or n[0] != "_"], distance)
            self._watched.append(f.__dict__)
            return
        self._dict(path, f.__dict__, ".{}", distance)
        code, closure = f.__code__, f.__closure__ or ()
        self._names |= names_of(code)
        self._below([(f"{path}.__code__", code)], distance)
        self._watched.extend(closure)
        for name, cell in zip(code.co_freevars, closure, strict=True):
            self._below([(f"{path}: {name}", content) for content in gc.get_referents(cell)], distance)
        self._named(f.__globals__, global_names(code), distance)
        if not names_of(code).isdisjoint({"globals", "eval", "exec"}):
            self._space(f.__globals__, distance)
        self._below([(f"{path}: default {k}", v) for k, v in enumerate(f.__defaults__ or ())], distance)
        if f.__kwdefaults__:
            self._dict(f"{path}: default ", f.__kwdefaults__, "{}", distance)
        for name in imported(code, f.__globals__.get("__package__") or ""):
            if name in sys.modules:  # it is loaded, and no other name in a module
                self._below([(name, sys.modules[name])], distance)

    def _class(self, path: str, value: type, distance: int) -> None:
        if self._is_foreign(value.__module__):
            return
        self._watched.append(value)
        self._keyed.append(vars(value))
        self._views.append(vars(value).values())
        self._below([(f"{path}.{k}", v) for k, v in vars(value).items() if k not in _PYTHONS], distance)
        self._below([(f"{path}.{base.__name__}", base) for base in value.__bases__], distance)
        self._below([(f"the class of {path}", type(value))], distance)

    def _object(self, path: str, value: Any, distance: int) -> None:
        """Watch and visit the attributes of an object, and visit its class."""
        kind, package = type(value), top(str(type(value).__module__))
        if self._is_foreign(kind.__module__) and not _is(value, Module):
            if _is(value, threading.local):  # each thread has other attributes
                self._calls.append(functools.partial(_own, value))
            elif package in _OPAQUE or package == _OURS:
                return
            if package not in sys.stdlib_module_names:
                if distance > 1:
                    return
            elif not _is(value, (dict, *_ROWS, BaseException)):
                self._inside(path, value, distance)
        self._attributes(path, value, distance)
        self._below([(kind.__name__, kind)], distance)

    def _inside(self, path: str, value: Any, distance: int) -> None:
        """Watch and visit what an object of Python's own packages refers to, other than its attributes and class."""
        own = _own(value)
        found = [v for v in gc.get_referents(value) if v is not own and v is not type(value)]
        self._below([(f"{path}: {k}", v) for k, v in enumerate(found)], distance)

    def _attributes(self, path: str, value: Any, distance: int) -> None:
        kind: Any = type(value)
        for name, member in () if _is(value, Lazy) else members(kind):
            self._slots[0].append(member)
            self._slots[1].append(value)
            if (found := _read(member, value)) is not _ABSENT:
                self._below([(f"{path}.{name}", found)], distance)
        if (own := _own(value)) is not None:
            self._dict(path, own, ".{}", distance)


def _is(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """True if a value is of these classes, whatever it says itself, as mocks and proxies do by `__class__`."""
    return issubclass(type(value), kinds)


def _bytes(value: Any) -> bytes | None:
    """The bytes of a value; None if it has none now, as a memoryview that is released."""
    try:
        return bytes(memoryview(value))
    except (TypeError, ValueError, NotImplementedError):
        return None


def _read(member: Any, value: Any) -> Any:
    """The content of a slot of an object, read past the class's own `__getattr__`; `_ABSENT` if there is none."""
    try:
        return member.__get__(value)
    except (AttributeError, TypeError, ValueError, SystemError):
        return _ABSENT


def _own(value: Any) -> Any:
    """The dict of an object's attributes, read past what its class defines; None if it has none."""
    kind: Any = type(value)
    if (found := dict_of(kind)) is None:
        return threading.local.__getattribute__(value, "__dict__") if _is(value, threading.local) else None
    try:
        own = found.__get__(value)
    except (AttributeError, TypeError):
        return None
    return own if _is(own, dict) else None


def _packages(root: Any) -> Iterator[str]:
    """The package of a function or class, and of an object's class, unless it is Python's, NumPy or Morok."""
    root = root.__func__ if _is(root, types.MethodType) else root
    at = root if _is(root, (type, types.FunctionType)) else type(root)
    name = root.__name__ if _is(root, types.ModuleType) else str(at.__module__)
    if top(name) not in sys.stdlib_module_names | {_OURS, "builtins", "numpy"}:
        yield top(name)


def _spelled(key: Any) -> str:
    return repr(key) if type(key) in PLAIN or type(key) is float else type(key).__name__


def _said(value: Any) -> str:
    return "another tensor" if _is(value, Lazy) else shown(value)
