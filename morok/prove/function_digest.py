"""A digest of the code that a function runs: its byte code, with what it refers to, as far as it is its own distribution's."""

from __future__ import annotations

import contextlib
import contextvars
import copyreg
import dis
import functools
import hashlib
import importlib.util
import inspect
import io
import math
import os
import re
import struct
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from morok.prove.distributions import (
    distribution_digest,
    distribution_files,
    file_digest,
    find,
    identity,
    installed,
    moroks,
    pythons,
)

DYNAMIC: Final = frozenset(  # by these code may reach what it does not mention
    ("getattr", "setattr", "delattr", "eval", "exec", "compile", "globals", "locals", "vars", "__import__", "import_module",
     "attrgetter", "methodcaller")
)  # fmt: skip
_THIS_PROCESS: Final = os.urandom(16).hex()  # and those that it forks
_MOST: Final = 1_000_000  # objects that are looked at
_MUTABLE: Final = (list, dict, set, bytearray)
_TEXTS: Final[tuple[Any, ...]] = (int, float, complex, str, bytes)
_SINGLE: Final = (*_TEXTS, bool, type(None), type(...))
_SEVERAL: Final[tuple[Any, ...]] = (tuple, frozenset, *_MUTABLE)
_WRAPPERS: Final = (property, functools.cached_property, staticmethod, classmethod)
_DOCSTRING: Final = 0x4000000  # CO_HAS_DOCSTRING of Python 3.13
_SKIPPED: Final = frozenset(  # of a class: what Python keeps there, and what nothing runs
    ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__firstlineno__", "__static_attributes__",
     "_abc_impl")
)  # fmt: skip


class Code(NamedTuple):
    """The code that a function refers to.

    digest    of all that it refers to; with all sources of the distributions whose code reaches what it does not mention, and
              the identities of installed ones
    files     that any of it was read from
    numbers   in it, and in what it refers to, as tables and constants of modules: at these it may do something else
    names     of globals and attributes in it
    closed    the kinds of objects among it that show nobody what they hold
    """

    digest: str
    files: tuple[str, ...]
    numbers: tuple[Any, ...]
    names: frozenset[str]
    closed: tuple[str, ...]


class Without(NamedTuple):
    """An object, or a class, of which some attributes do not count."""

    of: Any
    names: frozenset[str]


class _Walk:
    """The objects that a function refers to, gone through.

    files    of the modules that have any of it
    dynamic  modules with code that reaches what it does not mention, or is not Python
    beside   modules of installed distributions, which are not gone through
    names    of globals and attributes in its code
    closed   kinds of objects that show nobody what they hold
    """

    def __init__(self, top: str, variable: bool) -> None:
        self.top = top
        self.variable = variable
        self.hash = hashlib.sha256(sys.version.encode())
        self.seen: dict[int, tuple[int, Any]] = {}  # by id, with a number, kept so that ids stay their own
        self.files: set[str] = set()
        self.numbers: dict[Any, None] = {}
        self.dynamic: set[str] = set()
        self.beside: set[str] = set()
        self.names: set[str] = set()
        self.closed: set[str] = set()
        self._own: dict[str, bool] = {}

    def own(self, module: str) -> bool:
        """True unless a module is Python's, Morok's, or of an installed distribution that is not the helper's, which is noted."""
        known = self._own.get(module)
        if known is None:
            other = module.partition(".")[0] != self.top and bool(module)
            beside = other and installed(module)
            if beside:
                self.beside.add(module)
            known = self._own[module] = not (other and (beside or pythons(module) or moroks(module)))
        return known

    def say(self, *what: Any) -> None:
        self.hash.update(repr(what).encode("utf-8", "backslashreplace"))

    def walk(self, root: Any) -> None:
        todo = [root]
        while todo and len(self.seen) < _MOST:
            at = todo.pop()
            if type(at) in _SINGLE:
                self.say(type(at).__name__, at if not isinstance(at, int) else hex(at))
                if type(at) in (int, float) and math.isfinite(at):
                    self.numbers[at] = None
                continue
            if id(at) in self.seen:
                self.say("again", self.seen[id(at)][0])
                continue
            self.seen[id(at)] = (len(self.seen), at)
            todo += reversed(self.parts(at))
        if todo:  # not all of it was gone through
            self.dynamic.add(self.top)

    def parts(self, at: Any) -> list[Any]:
        """The parts of an object that count; its own text is noted."""
        if isinstance(at, types.FunctionType):
            return self.function(at)
        if isinstance(at, types.CodeType):
            self.say("code", at.co_code, at.co_names, at.co_argcount, at.co_posonlyargcount, at.co_kwonlyargcount, at.co_flags)
            self.say(at.co_exceptiontable, _parameters(at), at.co_freevars, at.co_cellvars)
            return list(at.co_consts[has_docstring(at) :])
        if isinstance(at, types.MethodType):
            self.say("method")
            return [at.__func__, at.__self__]
        if type(at) is functools.partial:
            self.say("partial")
            return [at.func, at.args, at.keywords]
        if isinstance(at, _WRAPPERS):
            return self.wrapped(at)
        if type(at) is Without:
            return self.without(at)
        if type(at) is types.ModuleType:
            self.say("module", at.__name__, self.own(at.__name__))
            return []
        if isinstance(at, type):
            return [*self.kind(at), *at.__bases__]
        if isinstance(at, types.MappingProxyType):
            return [dict(at)]
        return self.several(at) if type(at) in _SEVERAL else self.other(at)

    def function(self, at: types.FunctionType) -> list[Any]:
        """The parts of a function; of another's, which may be a wrapper of the helper's own, what it holds alone."""
        module = str(at.__globals__.get("__name__") or "")  # where its code is from: `__module__` is what a wrapper says
        parts: list[Any] = [at.__defaults__, at.__kwdefaults__ and tuple(sorted(at.__kwdefaults__.items()))]
        for cell in at.__closure__ or ():
            try:
                parts.append(cell.cell_contents)
            except ValueError:
                self.say("empty")
        parts += [x for pair in sorted(vars(at).items()) for x in pair]
        if not self.own(module):
            self.say("function", module, at.__qualname__)
            return parts
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is not None:
            self.files.add(file)
        names = sorted(_names(at.__code__))
        if at.__code__.co_name != "__init__":  # which has run: what it made counts itself
            self.names.update(names)
        scope = at.__globals__
        if not DYNAMIC.isdisjoint(names):
            self.dynamic |= {module, *self.named(at.__code__)}
        parts.append(at.__code__)
        for name in names:
            if name in scope:
                found = scope[name]
                parts += [name, found, *self.members(found, names)]
        for imported in _imported(at.__code__, scope.get("__package__") or ""):
            if (imported in sys.modules or find(imported) is not None) and self.own(imported):
                with contextlib.suppress(ImportError):  # the helper fails where it cannot be had
                    parts += [imported, *self.members(importlib.import_module(imported), names)]
        return parts

    def named(self, code: types.CodeType) -> list[str]:
        """The modules that texts in this code name: what it reaches dynamically may be of these."""
        texts = {c for at in _codes(code) for c in at.co_consts if isinstance(c, str)}
        dotted = [t for t in texts if all(part.isidentifier() for part in t.split("."))]
        return [t for t in dotted if find(t) is not None and self.own(t)]

    def members(self, module: Any, names: Sequence[str]) -> list[Any]:
        """What a module of the helper's own has by these names, and the modules among it."""
        parts: list[Any] = []
        todo, seen = [module], {id(module)}
        while todo:
            at = todo.pop()
            if not isinstance(at, types.ModuleType) or not self.own(at.__name__):
                continue
            for n in names:
                found = getattr(at, n, None)
                if found is not None and not (isinstance(found, types.ModuleType) and id(found) in seen):
                    parts += [n, found]
                    seen.add(id(found))
                    todo.append(found)
        return parts

    def kind(self, at: type, skipped: frozenset[str] = _SKIPPED) -> list[Any]:
        self.say("class", at.__module__, at.__qualname__)
        if not self.own(str(at.__module__)):
            return []
        if _compiled(str(at.__module__)):
            self.dynamic.add(at.__module__)
        own = [x for n, v in sorted(vars(at).items()) if n not in skipped for x in (n, v)]
        return [type(at), *own]

    def without(self, at: Without) -> list[Any]:
        """The parts of an object or of a class; of its classes, without these attributes of theirs too."""
        if isinstance(at.of, type):
            return [*self.kind(at.of, _SKIPPED | at.names), *(Without(base, at.names) for base in at.of.__bases__)]
        held = [*sorted(getattr(at.of, "__dict__", {}).items()), *_slots(at.of)]
        if isinstance(at.of, types.ModuleType):
            held = [(n, v) for n, v in held if not n.startswith("__")]
        return [Without(type(at.of), at.names), *_plain(at.of), *(x for n, v in held if n not in at.names for x in (n, v))]

    def wrapped(self, at: Any) -> list[Any]:
        """The parts of a member of a class that wraps functions: these, the kind of the member, and what it holds besides."""
        held = [getattr(at, "__dict__", None)] if self.variable and self.own(type(at).__module__) else []
        if isinstance(at, property):
            return [type(at), at.fget, at.fset, at.fdel, *held]
        return [type(at), at.func if isinstance(at, functools.cached_property) else at.__func__, *held]

    def several(self, at: Any) -> list[Any]:
        if type(at) in _MUTABLE and not self.variable:
            self.say(type(at).__name__)
            return []
        self.say(type(at).__name__, len(at))
        if isinstance(at, dict):
            return [x for pair in at.items() for x in pair]
        if isinstance(at, bytearray):
            return [bytes(at)]
        return sorted(at, key=_placeless) if isinstance(at, (set, frozenset)) else list(at)

    def other(self, at: Any) -> list[Any]:
        """The parts of an object of any other class: the class, what the object is as one of Python's, and what it holds."""
        kind = type(at)
        self.say("object", kind.__module__, kind.__qualname__, getattr(at, "__qualname__", ""))
        if isinstance(at, (types.BuiltinFunctionType, types.MethodWrapperType)):
            module = getattr(at, "__module__", None) or "builtins"
            if self.own(module):
                self.dynamic.add(module)
            return [] if isinstance(at.__self__, types.ModuleType) else [at.__self__]
        parts = [kind, getattr(at, "__wrapped__", None), *_plain(at)]
        if self.variable:
            held = [x for pair in _slots(at) for x in pair]
            parts += [getattr(at, "__dict__", None), *held] if self.own(kind.__module__) else []
            if all(self.own(c.__module__) and not _compiled(c.__module__) for c in kind.__mro__[:-1]):
                return parts
        try:
            view = memoryview(at)
            if "O" not in view.format:  # else they are addresses
                self.say(view.format, view.shape, hashlib.sha256(view.tobytes()).hexdigest() if self.variable else "")
                return parts
        except (TypeError, ValueError, NotImplementedError):  # it is no array
            pass
        shown = repr(at)
        if len(shown) < 10_000 and " at 0x" not in shown:
            self.say(shown)
        return [*parts, *self.held(at)] if self.variable else parts

    def held(self, at: Any) -> list[Any]:
        """The contents of an object that is not of Python's code: what it would be made of again, or what it shows of them. One
        that shows nothing is another in each process.
        """
        found = _reduced(at)
        if found is None:
            found = _opened(at)
        if found is None:
            kind = f"{type(at).__module__}.{type(at).__qualname__}"
            self.closed.add(kind)
            found = [kind, _THIS_PROCESS]
        return found


def _compiled(module: str) -> bool:
    """True for a module that is not read from Python text."""
    file = find(module)
    return file is not None and file.suffix != ".py"


def has_docstring(code: types.CodeType) -> bool:
    """True if the first constant of a code is its docstring: lambdas, comprehensions and bodies of classes have none there."""
    if not code.co_consts or not isinstance(code.co_consts[0], str) or code.co_name.startswith("<"):
        return False
    return bool(code.co_flags & (_DOCSTRING if sys.version_info >= (3, 13) else inspect.CO_OPTIMIZED))


def _parameters(code: types.CodeType) -> tuple[str, ...]:
    """The names of the parameters that a call may give by name, in order."""
    return code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]


def _placeless(at: Any) -> str:
    """The text of an object without the address that it has in this process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(at))


def _plain(at: Any) -> list[Any]:
    """An object of a class that is made of one of Python's, as one of that."""
    texts = [kind.__repr__(at) for kind in _TEXTS if isinstance(at, kind)]
    if isinstance(at, dict):
        return [*texts, dict(dict.items(at))]
    return [*texts, *(kind(kind.__iter__(at)) for kind in _SEVERAL if isinstance(at, kind))]


def _slots(at: Any) -> list[tuple[str, Any]]:
    """The contents of an object's slots, by name."""
    members = [(n, d) for c in type(at).__mro__ for n, d in sorted(vars(c).items()) if isinstance(d, types.MemberDescriptorType)]
    return [(n, d.__get__(at)) for n, d in members if hasattr(at, d.__name__)]


def _reduced(at: Any) -> list[Any] | None:
    """The parts that an object would be made of again, as it is pickled; None of one that is not."""
    if isinstance(at, (types.BuiltinFunctionType, types.GenericAlias)):
        return []
    try:
        made = copyreg.dispatch_table[type(at)](at) if type(at) in copyreg.dispatch_table else at.__reduce_ex__(4)
    except Exception:  # whatever its own code does
        return None
    if isinstance(made, str):  # it is what goes by that name in some module
        return [made] if any(vars(m).get(made) is at for m in list(sys.modules.values()) if type(m) is types.ModuleType) else None
    return [x for part in made for x in (part if isinstance(part, Iterator) else (part,))]


def _opened(at: Any) -> list[Any] | None:
    """The parts that an object which is not pickled shows; None of one that shows nothing of them."""
    for kinds, parts in _OPENED:
        if isinstance(at, kinds):
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


def _imported(code: types.CodeType, package: str) -> list[str]:
    """The modules that a function's body imports, with those that a name it imports may be."""
    found: dict[str, None] = {}
    for at in _codes(code):
        before: list[Any] = []
        for i in dis.get_instructions(at):
            if i.opname == "IMPORT_NAME":
                level, names = before[-2:]
                with contextlib.suppress(ImportError, ValueError):  # a relative import without a package fails when it runs
                    module = importlib.util.resolve_name("." * level + i.argval, package)
                    found |= dict.fromkeys([module, *(f"{module}.{n}" for n in names or () if n != "*")])
            before = [*before, i.argval][-2:]
    return sorted(found)


def _names(code: types.CodeType) -> set[str]:
    return {name for at in _codes(code) for name in at.co_names}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code, and that of functions inside it."""
    stack = [code]
    while stack:
        at = stack.pop()
        yield at
        stack.extend(c for c in at.co_consts if isinstance(c, types.CodeType))


def code_of(function: Any, module: str, variable: bool = True) -> Code:
    """The code of a helper of a module; `variable`: with what lists, tables and objects hold at present."""
    walk = _Walk(module.partition(".")[0], variable)
    walk.walk(function)
    file = getattr(sys.modules.get(module), "__file__", None)
    files = walk.files | ({file} if file is not None else set())
    for name in sorted(walk.dynamic):
        walk.say("all of", name, distribution_digest(name))
        files.update(distribution_files(name))
    for name in sorted(walk.beside):
        at = str(find(name) or "")
        known = identity(name.partition(".")[0])
        walk.say("installed", name, known.digest, file_digest(at))
        files |= {at, *known.files}
    closed = tuple(sorted(walk.closed))
    return Code(walk.hash.hexdigest(), tuple(sorted(files)), tuple(walk.numbers), frozenset(walk.names), closed)


def helper_code(function: Any, module: str, contexts: Iterable[str | None], variable: bool = True) -> Code:
    """The code that runs where rules call a helper: its own, and that of the classes of what it is given for their contexts."""
    home = sys.modules.get(module)
    given = [getattr(home, name, None) for name in sorted({c for c in contexts if c is not None})]
    return code_of((function, *given), module, variable)
