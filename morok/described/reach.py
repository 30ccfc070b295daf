"""The objects that a function can reach without its arguments: closures, globals, defaults, attributes.

A plan is valid while all of them are unchanged. Each call checks this, by morok/described/watch.py; values are compared only if
an identity differs.

All objects are looked into, except these: numbers, texts and other values that do not change; modules, functions and classes of
libraries; objects of NumPy, of Morok (but modules, tensors and jitted functions), of packages in `_OPAQUE`; and objects of
installed packages, unless the function or an argument holds them directly. The package of the function, or of an argument's
class, is no library.

Of a module, an object, a function and a class, those globals and attributes are watched whose names the code that is reached has,
as `used_names` says.
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
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from morok.arguments import shown
from morok.described.code_names import global_names, has_own_class, imported, members, names_of, top
from morok.described.used_names import Names
from morok.described.value_keys import PLAIN, is_a, same
from morok.described.watch import ABSENT, Watch, bytes_of, elements_of, own_dict, read_slot
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
_RUNNING: Final = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_LEAVES: Final = frozenset(
    {*PLAIN, float, complex, range, np.ndarray, DType, UOp, Variable, types.CodeType, *_RUNNING, *_DESCRIPTORS}
)
_ROWS: Final = (list, tuple, set, frozenset, deque)
_CONTAINERS: Final = frozenset({tuple, frozenset, dict})  # they refer to their contents alone
_RAW: Final = (bytearray, array.array, memoryview)
_OPAQUE: Final = frozenset({
    "_abc", "_asyncio", "_io", "_random", "_thread", "abc", "ast", "asyncio", "bz2", "codecs", "concurrent", "csv", "ctypes",
    "datetime", "dbm", "decimal", "fractions", "gzip", "hashlib", "importlib", "inspect", "io", "linecache", "logging", "lzma",
    "mmap", "multiprocessing", "numpy", "pathlib", "random", "re", "select", "selectors", "shelve", "socket", "sqlite3", "ssl",
    "subprocess", "tarfile", "tempfile", "threading", "time", "traceback", "typing", "unittest", "uuid", "warnings", "zipfile",
    "zoneinfo",
})  # fmt: skip
_CACHED: Final = type(names_of)  # a function with `functools.cache`, whose contents may change with each call
_PYTHONS: Final = frozenset({
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__dict__", "__doc__",
    "__firstlineno__", "__module__", "__orig_bases__", "__parameters__", "__qualname__", "__slotnames__", "__slots__",
    "__static_attributes__", "__type_params__", "__weakref__", "_abc_impl",
})  # fmt: skip
"""Names that Python itself sets in a class, perhaps later, as when an object is copied."""
# code of the user, as of a metaclass, may raise: the object is then left alone
_TOLERANT: Final = contextlib.suppress(Exception)
_OURS: Final = "morok"


@dataclass(slots=True)
class _Space:
    """A place whose values are watched by name: the globals of a module, the attributes of an object, function or class.

    found   the dict
    owner   the object, function or class; None for a module
    slots   the attributes in slots: the names and descriptors
    known   the names that are watched
    is_all  True if all names that count are to be watched; False for the globals of a function, of which it has the names itself
    """

    path: str
    found: dict[str, Any]
    distance: int
    owner: Any
    slots: dict[str, Any] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    is_all: bool = False


class Reach:
    """A snapshot of the values that these objects can reach.

    values   path, in words -> value; a path is numbered where several places have the same words, as an attribute of an object
             and of its class, or two arguments of one class
    tensors  the distinct tensors among the values
    ids      the ids of all objects among the values; `data_ids` are those of the tensors and arrays
    """

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        roots = list(roots)
        self.values: dict[str, Any] = {}
        self.tensors: list[Lazy] = []
        self._names = Names({name for _, root in roots for name in _packages(root)})
        self._places: Counter[str] = Counter()  # of each path
        self._seen: dict[int, Any] = {}
        self._spaces: dict[tuple[int, int], _Space] = {}  # by the ids of the dict and the owner
        self._watch = Watch()
        self.unchanged = self._watch.unchanged  # asked before each call, so without a call in between
        self._pending: deque[tuple[str, Any, int, bool]] = deque((p, v, 0, False) for p, v in roots)
        self._walk()
        for space in self._spaces.values():
            self._watch_names(space)
        self.ids = frozenset(self._seen)
        arrays = [v for v in self.values.values() if is_a(v, np.ndarray)]
        self.data_ids = frozenset(map(id, (*self.tensors, *arrays)))
        for made in (self._seen, self._places, self._spaces):
            made.clear()
        self._watch.begin()

    def _walk(self) -> None:
        while self._pending:
            while self._pending:
                path, value, distance, is_own = self._pending.popleft()
                with _TOLERANT:
                    self._visit(path, value, distance, is_own)
            self._names.settle()
            if self._names.looks:
                self._texts_of_modules()
            for space in [s for s in self._spaces.values() if s.is_all]:
                self._use(
                    space, [n for n in (*space.found, *space.slots) if n not in space.known and self._is_used(space, n)]
                )

    def _is_used(self, space: _Space, name: str) -> bool:
        if space.owner is None:
            return self._names.is_global(name)
        if is_a(space.owner, type):
            return name not in _PYTHONS and self._names.of_class(name, space.owner)
        return self._names.is_attribute(name, space.found.get(name), space.owner)

    def _use(self, space: _Space, names: Iterable[str]) -> None:
        """Visit the values of these names, which are to be watched in a place."""
        new = [n for n in names if n not in space.known]
        space.known.update(new)
        for n in new:
            found = space.found.get(n, ABSENT)
            if n in space.slots:
                found = read_slot(space.slots[n], space.owner)
            if found is not ABSENT:
                is_own = is_a(space.owner, type) and is_a(found, types.FunctionType) and found.__code__.co_name == n
                self._below([(f"{space.path}.{n}", found)], space.distance, is_own)

    def _watch_names(self, space: _Space) -> None:
        """Watch the values of the known names of a place: one by one, or an object's all at once if all its names are known."""
        owner, known = space.owner, space.known
        is_object = owner is not None and not is_a(owner, (type, types.FunctionType))
        if is_object:
            whole = known.issuperset(space.found) and known.issuperset(space.slots)
            (self._watch.watched if whole else self._watch.partly).append(owner)
            for name in known & space.slots.keys():
                self._watch.slots[0].append(space.slots[name])
                self._watch.slots[1].append(owner)
            if self._names.walks and is_a(owner, Module):
                self._watch.typed.append(space.found)
        names = [n for n in known if n not in space.slots]
        if is_object and known.issuperset(space.found):
            self._watch.watched.append(space.found)
        else:
            self._watch.named[0].extend([space.found] * len(names))
            self._watch.named[1].extend(names)

    def _texts_of_modules(self) -> None:
        """Visit the loaded modules whose names are texts in code that looks names up."""
        for name in sorted(self._names.found & sys.modules.keys()):
            if not self._names.is_foreign(name) and id(sys.modules[name]) not in self._seen:
                self._below([(name, sys.modules[name])], 0)

    def difference(self, other: Reach) -> str:
        """The first path with different values in `other`, in words; "" if there is none."""
        for path, value in other.values.items():
            old = self.values.get(path, ABSENT)
            if old is ABSENT:
                return f"{path} is new"
            if not same(old, value):
                return f"{path} was {_in_words(old)} and is {_in_words(value)}"
        gone = next((path for path in self.values if path not in other.values), None)
        if gone is not None:
            return f"{gone} is gone"
        moved = next((a for a, b in zip(self.values, other.values, strict=True) if a != b), None)
        return "" if moved is None else f"{moved} has another place"

    def _visit(self, path: str, value: Any, distance: int, is_own: bool) -> None:
        """Watch a value, and visit the objects that it refers to. `is_own` is True for the class of an object or class, for a
        base class, and for a method under its own name: the code itself need not have these.
        """
        self._places[path] += 1
        path = path if self._places[path] == 1 else f"{path} ({self._places[path]})"
        self.values[path] = value
        kind = type(value)
        if kind in _LEAVES and not _has_objects(value):
            self._leaf(value)
            return
        if is_a(value, type) and not is_own:
            self._names.add_class(value)
        elif is_a(value, classmethod):
            self._names.found.add("__class__")
        elif is_a(value, types.FunctionType) and not is_own:
            self._names.add_function(value.__code__)
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if is_a(value, _RAW):
            self.values[path] = content = bytes_of(value)
            self._watch.raw.append((value, content))
        elif not self._is_special(path, value, distance):
            self._container(path, value, distance)
            self._object(path, value, distance)

    def _leaf(self, value: Any) -> None:
        """Note the names in a value that refers to no other object."""
        if type(value) is str:
            self._names.found.add(value)
        elif is_a(value, _DESCRIPTORS):
            self._names.found.add(value.__name__)
        elif is_a(value, _RUNNING):
            self._names.add_unknown()

    def _is_special(self, path: str, value: Any, distance: int) -> bool:
        """True if an object is a module, function or class, or stands for another object; then it has been visited."""
        if is_a(value, types.ModuleType):
            if self._names.is_foreign(value.__name__):
                self._names.add_library(value.__name__)
            else:
                self._space(value.__name__, vars(value), distance)
                self._below([(f"the class of {path}", type(value))], distance, True)
        elif is_a(value, types.FunctionType):
            self._function(path, value, distance)
        elif is_a(value, type):
            self._class(path, value, distance)
        elif is_a(value, (types.BuiltinMethodType, types.MethodWrapperType)):
            if value.__name__ != "__new__":  # a class has it, too
                self._names.found.add(value.__name__)
            if is_a(value.__self__, types.ModuleType) and not self._names.is_foreign(value.__self__.__name__):
                self._names.add_unknown()  # an extension of the user's in another language
            self._below([(f"{path}.__self__", value.__self__)], distance)
        elif is_a(value, types.MethodType):
            self._below([(path, value.__func__), (f"{path}.__self__", value.__self__)], distance - 1)
        elif is_a(value, weakref.ProxyTypes):
            self._watch.calls.append(functools.partial(_behind, value))
            self._below([(f"{path}.__self__", _behind(value))], distance)
        elif is_a(value, weakref.ref):
            self._watch.calls.append(value)
            self._below([(f"{path}()", value())], distance)
        elif is_a(value, contextvars.ContextVar):
            self._watch.calls.append(functools.partial(value.get, ABSENT))
            if (found := value.get(ABSENT)) is not ABSENT:
                self._below([(f"{path}.get()", found)], distance)
        elif is_a(value, _CACHED) or (top(str(type(value).__module__)) == _OURS and hasattr(value, "__wrapped__")):
            self._below([(path, value.__wrapped__)], distance - 1)
        else:
            return False
        return True

    def _below(self, found: Iterable[tuple[str, Any]], distance: int, is_own: bool = False) -> None:
        self._pending.extend((path, value, distance + 1, is_own) for path, value in found)

    def _container(self, path: str, value: Any, distance: int) -> None:
        """Watch a tensor, a dict, a row of values or an array of objects, and visit its contents."""
        if is_a(value, Lazy):
            self.tensors.append(value)
        elif is_a(value, dict):
            self._dict(path, value, "[{}]", distance)
        elif is_a(value, _ROWS):
            base: Any = next(kind for kind in _ROWS if is_a(value, kind))  # a class may iterate in another way
            self._below([(f"{path}[{k}]", v) for k, v in enumerate(base.__iter__(value))], distance)
        elif _has_objects(value):
            self._names.add_unknown()
            for part in _objects(value):
                self._watch.arrays.append(part)
                self._below([(f"{path}[{k}]", v) for k, v in enumerate(elements_of(part))], distance)

    def _dict(self, path: str, found: dict[Any, Any], spelling: str, distance: int) -> None:
        """Watch and visit the keys and values of a dict."""
        keys = found if is_a(found, OrderedDict) else dict.keys(found)  # it has an order of its own
        self._watch.keyed.append(keys) if all(type(k) is str for k in keys) else self._watch.views.append(keys)
        if found:
            self._watch.watched.append(found)
        for k in keys:
            if type(k) not in PLAIN:
                self._below([(f"a key of {path}", k)], distance)
            self._below(
                [(path + spelling.format(_spelled(k) if "[" in spelling else k), dict.__getitem__(found, k))], distance
            )

    def _space(self, path: str, found: dict[str, Any], distance: int, owner: Any = None, is_all: bool = True) -> _Space:
        """The place of a dict. Its keys are watched if all names that count are; `_walk` finds out which these are."""
        space = self._spaces.setdefault((id(found), id(owner)), _Space(path, found, distance, owner))
        if is_all and not space.is_all:
            space.is_all, space.distance = True, distance
            self._watch.keyed.append(found)
        return space

    def _function(self, path: str, f: types.FunctionType, distance: int) -> None:
        self._watch.functions.append(f)
        module = f.__globals__.get("__name__", "")
        if self._names.is_foreign(module):  # it may be around a function, and keep its own state beside that
            self._names.add_alias(f.__name__)
            self._names.add_library(module)
            self._below(
                [(f"{path}.{n}", v) for n, v in f.__dict__.items() if n.startswith("__") or n[0] != "_"], distance
            )
            self._watch.watched.append(f.__dict__)
            inner = [c for cell in f.__closure__ or () for c in gc.get_referents(cell)]
            self._below(
                [(f"{path}: a function", v) for v in inner if is_a(v, (types.FunctionType, types.MethodType))], distance
            )
            return
        self._space(path, f.__dict__, distance, f)
        code, closure = f.__code__, f.__closure__ or ()
        self._names.add_code(code)
        self._below([(f"{path}.__code__", code)], distance)
        self._watch.watched.extend(closure)
        for name, cell in zip(code.co_freevars, closure, strict=True):
            is_own = name == "__class__" and not has_own_class(code)
            self._below([(f"{path}: {name}", content) for content in gc.get_referents(cell)], distance, is_own)
        looks_up = not names_of(code).isdisjoint({"globals", "eval", "exec"})
        self._use(self._space(module, f.__globals__, distance, is_all=looks_up), global_names(code))
        self._below([(f"{path}: default {k}", v) for k, v in enumerate(f.__defaults__ or ())], distance)
        if f.__kwdefaults__:
            self._dict(f"{path}: default ", f.__kwdefaults__, "{}", distance)
        for name in imported(code, f.__globals__.get("__package__") or ""):
            if name in sys.modules:  # it is loaded, and no other name in a module
                self._below([(name, sys.modules[name])], distance)

    def _class(self, path: str, value: type, distance: int) -> None:
        if self._names.is_foreign(value.__module__):
            self._names.add_library(value.__module__)
            return
        self._watch.watched.append(value)
        self._names.is_open(value)
        if not self._names.is_foreign(type(value).__module__):  # its methods have the class
            self._names.add_class(value)
        for found in gc.get_referents(vars(value)):
            self._space(path, found, distance, value)
        self._below([(f"{path}.{base.__name__}", base) for base in value.__bases__], distance, True)
        self._below([(f"the class of {path}", type(value))], distance, True)

    def _object(self, path: str, value: Any, distance: int) -> None:
        """Watch and visit the attributes of an object, and visit its class."""
        kind: Any = type(value)
        package = top(str(kind.__module__))
        is_open = self._names.is_open(kind)
        if not is_open and kind not in _CONTAINERS and not is_a(value, (Lazy, BaseException)):
            self._watch.watched.append(value)
        if self._names.is_foreign(kind.__module__) and not is_a(value, Module):
            self._names.add_object(value)
            if is_a(value, threading.local):  # each thread has other attributes
                self._watch.calls.append(functools.partial(own_dict, value))
            elif package in _OPAQUE or package == _OURS:
                return
            if package not in sys.stdlib_module_names:
                if distance > 1:
                    return
            elif not is_a(value, (dict, *_ROWS, BaseException)):
                self._inside(path, value, distance)
        if is_open:
            own = own_dict(value)
            space = self._space(path, {} if own is None else own, distance, value)
            space.slots = dict(members(kind))
        else:
            self._attributes(path, value, distance)
        self._below([(kind.__name__, kind)], distance, True)

    def _inside(self, path: str, value: Any, distance: int) -> None:
        """Watch an object of Python's own packages, and visit the objects that it refers to besides its attributes and class."""
        own = own_dict(value)
        found = [v for v in gc.get_referents(value) if v is not own and v is not type(value)]
        self._below([(f"{path}: {k}", v) for k, v in enumerate(found)], distance)

    def _attributes(self, path: str, value: Any, distance: int) -> None:
        """Watch and visit all attributes of an object."""
        kind: Any = type(value)
        for name, member in () if is_a(value, Lazy) else members(kind):
            self._watch.slots[0].append(member)
            self._watch.slots[1].append(value)
            if (found := read_slot(member, value)) is not ABSENT:
                self._below([(f"{path}.{name}", found)], distance)
        if (own := own_dict(value)) is not None:
            self._dict(path, own, ".{}", distance)


def _has_objects(value: Any) -> bool:
    return is_a(value, np.ndarray) and bool(value.dtype.hasobject)


def _objects(array: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """The views of an array that are of objects: the array itself, or fields of it, also of fields in these."""
    for name in array.dtype.names or ():
        yield from _objects(np.ndarray.__getitem__(array, name))
    if array.dtype.kind == "O":
        yield array


def _behind(proxy: Any) -> Any:
    """The object that a weak proxy stands for; None if it is gone."""
    try:
        return proxy.__sizeof__.__self__
    except (AttributeError, ReferenceError):
        return None


def _packages(root: Any) -> Iterator[str]:
    """The package of a function or class, and of an object's class, unless it is Python's, NumPy or Morok."""
    root = root.__func__ if is_a(root, types.MethodType) else root
    at = root if is_a(root, (type, types.FunctionType)) else type(root)
    name = root.__name__ if is_a(root, types.ModuleType) else str(at.__module__)
    if top(name) not in sys.stdlib_module_names | {_OURS, "builtins", "numpy"}:
        yield top(name)


def _spelled(key: Any) -> str:
    return repr(key) if type(key) in PLAIN or type(key) is float else type(key).__name__


def _in_words(value: Any) -> str:
    return "another tensor" if is_a(value, Lazy) else shown(value)
