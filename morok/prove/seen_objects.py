"""Objects and classes as they are, seen without running any code of theirs: no `__getattr__`, no property, no `__repr__`."""

from __future__ import annotations

import contextlib
import contextvars
import copyreg
import functools
import io
import re
import struct
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final

# What Python asks of an object that is to be pickled.
REDUCING: Final = (
    "__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs_ex__", "__getnewargs__", "__iter__", "__len__", "items",
    "__getattribute__", "__getattr__", "__class__",
)  # fmt: skip
SHOWING: Final = ("__repr__", "__getattribute__", "__getattr__", "__class__")  # and what asks it for its text
_HEAP: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE: of classes that were made at run time
_DEEPEST: Final = 20  # objects in objects of which the text of one is made
_members: Final[Callable[[type], Any]] = type.__dict__["__dict__"].__get__
mro: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
bases: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__bases__"].__get__
qualname: Final[Callable[[type], str]] = type.__dict__["__qualname__"].__get__
builtins_of: Final[Callable[[Any], dict[str, Any]]] = types.FunctionType.__dict__["__builtins__"].__get__
_flags: Final[Callable[[type], int]] = type.__dict__["__flags__"].__get__
Owns = Callable[[type], bool]


def members(kind: type) -> dict[str, Any]:
    """The members of a class itself, by name."""
    return dict(_members(kind))


def module_of(kind: type) -> str:
    """The name of the module that a class says it is of."""
    found = type.__dict__["__module__"].__get__(kind)
    return found if type(found) is str else ""


def state(at: Any) -> dict[str, Any]:
    """The attributes that an object itself has; none of one that has no dictionary."""
    for kind in mro(type(at)):
        found = _members(kind).get("__dict__")
        if type(found) in (types.GetSetDescriptorType, types.MemberDescriptorType):
            held = found.__get__(at)
            return held if isinstance(held, dict) else {}
    return {}


def slots(at: Any) -> list[tuple[str, Any]]:
    """The contents of an object's slots, by name."""
    found = []
    for kind in mro(type(at)):
        for name, member in sorted(members(kind).items()):
            if type(member) is types.MemberDescriptorType and name != "__dict__":
                with contextlib.suppress(AttributeError):  # it is empty
                    found.append((name, member.__get__(at)))
    return found


def home(scope: dict[str, Any]) -> str:
    """The name of the module that has these names; "" where they are of none, whatever they say."""
    name = scope.get("__name__")
    found = sys.modules.get(name) if type(name) is str else None
    return str(name) if isinstance(found, types.ModuleType) and state(found) is scope else ""


def stands_in(kind: type, module: str) -> bool:
    """True of a class that its module has under its name, and of one that was not made at run time."""
    if not _flags(kind) & _HEAP:
        return True
    at: Any = sys.modules.get(module)
    for part in qualname(kind).split("."):
        at = _members(at).get(part) if isinstance(at, type) else state(at).get(part)
    return at is kind


def name_of(at: Any) -> str:
    """The qualified name of a function or a member of a class that is not Python's code; "" of anything else."""
    return "" if _flags(type(at)) & _HEAP else str(getattr(at, "__qualname__", ""))


def wrapped(at: Any) -> list[Any]:
    """The functions in a property, a static or class method, or a cached property."""
    if isinstance(at, property):
        return [property.__dict__[n].__get__(at) for n in ("fget", "fset", "fdel")]
    if isinstance(at, functools.cached_property):
        return [state(at).get("func")]
    base = staticmethod if isinstance(at, staticmethod) else classmethod
    return [base.__dict__["__func__"].__get__(at)]


def said_of(at: Any, name: str) -> list[Any]:
    """The objects that a function, a class or a code says of itself by this name."""
    if isinstance(at, types.CodeType):
        return (
            [*at.co_consts[:1]]
            if name == "__doc__"
            else [at.co_qualname]
            if name in ("__name__", "__qualname__")
            else []
        )
    if name == "__subclasses__":
        return type.__subclasses__(at) if isinstance(at, type) else []
    own = _members(at) if isinstance(at, type) else {}
    if name == "__annotations__" and sys.version_info >= (3, 14):  # made by a function, which counts
        return [own.get("__annotate_func__") if isinstance(at, type) else at.__annotate__]
    return [own.get(name) if isinstance(at, type) else getattr(at, name)]


def runs(at: Any, names: tuple[str, ...], owns: Owns) -> bool:
    """True if one of these methods of an object is of a class that is `owned`."""
    for name in names:
        kind = next((kind for kind in mro(type(at)) if name in _members(kind)), object)
        if owns(kind) and type(_members(kind)[name]) is not types.WrapperDescriptorType:
            return True
    return False


def text_of(at: Any, owns: Owns, depth: int = 0) -> str:
    """A text of an object without the address that it has in this process; of an object whose text is made by code that is
    `owned`, that of its attributes.
    """
    if depth > _DEEPEST:
        return ""
    if type(at) in (tuple, frozenset):
        found = [text_of(x, owns, depth + 1) for x in at]
        return f"({', '.join(found if type(at) is tuple else sorted(found))})"
    if runs(at, SHOWING, owns):
        held = [*sorted(state(at).items()), *slots(at)]
        return f"{qualname(type(at))} {[(n, text_of(v, owns, depth + 1)) for n, v in held]}"
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", repr(at))
    except Exception:  # of something in it
        return ""


def reduced(at: Any) -> list[Any] | None:
    """The parts that an object would be made of again, as it is pickled; None of one that is not."""
    kind = type(at)
    if kind in weakref.ProxyTypes:  # they ask what they stand for
        return None
    if issubclass(kind, (types.BuiltinFunctionType, types.GenericAlias)):
        return []
    try:
        made = copyreg.dispatch_table[kind](at) if kind in copyreg.dispatch_table else at.__reduce_ex__(4)
    except Exception:  # whatever its own code does
        return None
    if isinstance(made, str):  # it is what goes by that name in some module
        return (
            [made]
            if any(vars(m).get(made) is at for m in list(sys.modules.values()) if type(m) is types.ModuleType)
            else None
        )
    return [x for part in made for x in (part if isinstance(part, Iterator) else (part,))]


def opened(at: Any) -> list[Any] | None:
    """The parts that an object which is not pickled shows; None of one that shows nothing of them."""
    for kinds, parts in _OPENED:
        if issubclass(type(at), kinds):
            return parts(at)
    return None


def _in_context(variable: contextvars.ContextVar[Any]) -> list[Any]:
    """The default of a context variable, and its present value."""

    def present() -> list[Any]:
        try:
            return [variable.get()]
        except LookupError:
            return []

    return [contextvars.Context().run(present), present()]


def _written(stream: io.IOBase) -> list[Any] | None:
    """The parts of a file that count: none of one that is only written, and of any other nobody knows what it holds."""
    try:
        return None if stream.readable() else []
    except (OSError, ValueError):  # it is closed
        return []


_OPENED: Final[tuple[tuple[Any, Callable[[Any], list[Any] | None]], ...]] = (
    (weakref.ReferenceType, lambda at: [at()]),
    (threading.local, lambda at: [vars(at)]),
    (contextvars.ContextVar, _in_context),
    (struct.Struct, lambda at: [at.format]),
    ((type({}.keys()), type({}.values()), type({}.items())), lambda at: [list(at)]),
    (types.GetSetDescriptorType, lambda at: [at.__objclass__, at.__name__]),
    (type(functools.lru_cache(len)), lambda at: []),  # what it wraps counts, and what it remembers does not
    ((type(threading.Lock()), type(threading.RLock())), lambda at: []),
    (io.IOBase, _written),
)
