"""A digest of the code that a function runs: its byte code, with what it refers to, as far as it is its own distribution's."""

from __future__ import annotations

import contextlib
import dis
import functools
import hashlib
import importlib.util
import inspect
import math
import operator
import os
import re
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from morok.dsl.compiled import codes, names_in
from morok.prove import seen_objects as objects
from morok.prove.distributions import (
    contents_of,
    distribution_digest,
    distribution_files,
    file_digest,
    find,
    identity,
    importable,
    installed,
    loaded_file,
    moroks,
    pythons,
    source_folder,
)

DYNAMIC: Final = frozenset(  # by these code may reach what it does not mention
    ("getattr", "setattr", "delattr", "eval", "exec", "compile", "globals", "locals", "vars", "dir", "__import__",
     "import_module", "attrgetter", "methodcaller", "__dict__", "__getattribute__", "__globals__", "__builtins__", "__code__",
     "f_globals", "f_locals", "f_builtins", "_getframe", "get_objects", "get_referrers", "get_referents", "getmembers",
     "getattr_static", "get_type_hints", "signature", "getdoc", "getsource")
)  # fmt: skip
_WORD: Final = re.compile(r"[^\W\d]\w*")
_PATH: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")  # of a module, and of what it has
_NOTHING: Final = object()
_DOORS: Final = {  # by id: what goes by names that it is given, whatever it is called by
    id(f): f
    for f in (getattr, setattr, delattr, eval, exec, compile, globals, locals, vars, dir, __import__, importlib.import_module,
              operator.attrgetter, operator.methodcaller)
}  # fmt: skip
_SCOPES: Final = frozenset(  # and by these the names of its own module
    ("eval", "exec", "compile", "globals", "locals", "vars", "__globals__", "f_globals", "_getframe", "get_objects")
)
_IMPORTS: Final = frozenset(("import_module", "__import__"))  # and by these modules whose names are texts
_FORMATS: Final = frozenset(("format", "format_map", "vformat"))  # which read attributes of what they are given
_THIS_PROCESS: Final = os.urandom(16).hex()  # and those that it forks
_MOST: Final = 1_000_000  # objects that are looked at
_MUTABLE: Final = (list, dict, set, bytearray)
_TEXTS: Final[tuple[Any, ...]] = (int, float, complex, str, bytes)
# Python's modules that compute from what they are given, and those whose ways to code are gone through here: any other may read
# what lies outside of the process, as a file, the environment or a clock, of which no digest is.
_COMPUTING: Final = frozenset(
    (
        "builtins", "__main__", "abc", "array", "ast", "base64", "binascii", "bisect", "cmath", "codecs",
        "collections", "contextlib", "contextvars", "copy", "copyreg", "ctypes", "dataclasses", "decimal", "dis", "enum",
        "fractions", "frozen_importlib", "functools", "gc", "graphlib", "hashlib", "heapq", "importlib", "inspect",
        "itertools", "json", "keyword", "logging", "marshal", "math", "numbers", "opcode", "operator", "pickle",
        "pkgutil", "pprint", "pydecimal", "pydoc", "queue", "re", "reprlib", "runpy", "sre", "statistics", "string",
        "struct", "sys", "textwrap", "thread", "threading", "traceback", "types", "typing", "unicodedata", "unittest",
        "warnings", "weakref", "weakrefset", "zlib",
    )
)  # fmt: skip
_SINGLE: Final = (*_TEXTS, bool, type(None), type(...))
_SEVERAL: Final[tuple[Any, ...]] = (tuple, frozenset, *_MUTABLE)
_PLAIN: Final = frozenset((*_TEXTS, *_SEVERAL, bool, object))  # of objects of these all is known
_WRAPPERS: Final = (property, functools.cached_property, staticmethod, classmethod)
_DOCSTRING: Final = 0x4000000  # CO_HAS_DOCSTRING of Python 3.13
_SKIPPED: Final = frozenset(  # of a class: what Python keeps there, and what nothing runs
    ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__firstlineno__", "__static_attributes__",
     "_abc_impl", "__slotnames__")
)  # fmt: skip
_SAID: Final = (  # of functions and classes: these count where code names them
    "__doc__", "__annotations__", "__name__", "__qualname__", "__module__", "__subclasses__"
)  # fmt: skip
_MODULES_OWN: Final = frozenset(  # of a module: what Python keeps there
    ("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__path__", "__file__", "__cached__", "__builtins__",
     "__annotations__")
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
    """The objects that a function refers to, gone through. No code of theirs is run, whatever it makes of its attributes.

    files    of the modules that have any of it
    dynamic  modules with code that reaches what it does not mention, or is not Python
    loose    such modules of which only the texts were read
    beside   modules of installed distributions, which are not gone through
    names    of globals and attributes in its code, and words in texts that it reaches: names may be made of these
    closed   kinds of objects that show nobody what they hold
    modules  those of the helper's own that it reaches: of these counts what has one of the names, in whatever code that stands;
             all, where code reaches what it does not mention
    others   modules of others that it reaches: of these counts what code of the helper's own has put in the place of theirs
    """

    def __init__(self, top: str, variable: bool) -> None:
        self.top = top
        self.variable = variable
        self.hash = hashlib.sha256(sys.version.encode())
        self.seen: dict[int, tuple[int, Any]] = {}  # by id, with a number, kept so that ids stay their own
        self.files: set[str] = set()
        self.numbers: dict[Any, None] = {}
        self.dynamic: set[str] = set()
        self.loose: set[str] = set()
        self.beside: set[str] = set()
        self.names: set[str] = set()
        self.closed: set[str] = set()
        self.modules: dict[int, tuple[Any, bool]] = {}  # with True where all counts
        self.others: dict[int, types.ModuleType] = {}
        self._named: set[str] = set()  # modules by texts
        self._attributes: set[str] = set()
        self._constants: set[str] = set()  # texts in code
        self._making: set[str] = set()  # names in code that has run: what it made counts itself
        self._texts: dict[str, None] = {}  # whose words are no names yet
        # functions, classes and codes: what they say of themselves counts where code names it
        self._sayers: list[Any] = []
        self._told: set[tuple[int, str]] = set()
        self._own: dict[str, bool] = {}
        self._outside: dict[str, bool] = {}

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

    def owns(self, kind: type) -> bool:
        """True of a class of a module of the helper's own, or of none: one that only says that it is of another is its own."""
        module = objects.module_of(kind)
        return self.own(module) or not objects.stands_in(kind, module)

    def say(self, *what: Any) -> None:
        self.hash.update(repr(what).encode("utf-8", "backslashreplace"))

    def walk(self, root: Any) -> None:
        todo = [root]
        while todo:
            at = todo.pop()
            if type(at) in _SINGLE:
                self.say(type(at).__name__, at if not isinstance(at, int) else hex(at))
                if type(at) is str:
                    self._texts[at] = None
                elif type(at) is bytes:
                    self._texts[at.decode("latin-1")] = None
                elif type(at) is int or (type(at) is float and math.isfinite(at)):
                    self.numbers[at] = None
            elif id(at) in self.seen:
                self.say("again", self.seen[id(at)][0])
            elif len(self.seen) == _MOST:  # nobody has seen all of it: it is another whenever it is asked for
                self.closed.add(f"more than {_MOST:,} objects")
                self.say(os.urandom(16))
                return
            else:
                self.seen[id(at)] = (len(self.seen), at)
                todo += reversed(self.parts(at))
            if not todo:
                todo = self.named_parts()[::-1]

    # What counts by its name

    def named_parts(self) -> list[Any]:
        """The objects that the modules reached have by the names that were found, and has not been gone through."""
        self.names.update(word for text in self._texts for word in _WORD.findall(text))
        texts, self._texts = self._texts, {}
        names = self.names | self._making
        self.note_named(texts)
        parts: list[Any] = []
        if "modules" in names:  # of `sys`, by whatever name
            loaded = [sys.modules.get(t) for t in sorted({*texts, *names})]
            parts += [m for m in loaded if isinstance(m, types.ModuleType) and self.owns_module(m)]
            parts = [m for m in parts if id(objects.state(m)) not in self.modules]
        every = not self.names.isdisjoint(_FORMATS) or bool(self.dynamic)
        for at, whole in list(self.modules.values()):
            parts += self.members(at, names, every or whole)
        others = list(self.others.values())
        for other in others:
            scope = objects.state(other)
            module = scope.get("__name__")
            parts += self.placed(other, scope, module, names)
            below = [m for n in names if isinstance(m := scope.get(n), types.ModuleType) and id(m) not in self.others]
            below = [m for m in below if str(objects.state(m).get("__name__")).startswith(f"{module}.")]
            self.others.update((id(m), m) for m in below)
            others += below
        for at in self._sayers:
            parts += self.said(at, names)
        return parts

    def placed(self, at: Any, scope: dict[str, Any], module: Any, names: Iterable[Any]) -> list[Any]:
        """The functions that code of the helper's own has put under these names into a module, or a class, of another's, with
        those that it has put into classes of the module.
        """
        home = str(module).partition(".")[0]
        parts: list[Any] = []
        for n in sorted(n for n in names if type(n) is str and n in scope and (id(at), n) not in self._told):
            found = scope[n]
            if isinstance(found, type) and isinstance(at, types.ModuleType):
                parts += self.placed_in(found) if objects.module_of(found).partition(".")[0] == home else []
            if not isinstance(found, types.FunctionType):
                continue
            maker = objects.home(found.__globals__)  # "" of what `namedtuple` and its like make
            if maker.partition(".")[0] not in ("", home) and self.own(maker):
                self._told.add((id(at), n))
                self.say("placed", n)
                parts.append(found)
        return parts

    def placed_in(self, kind: type) -> list[Any]:
        """The functions that code of the helper's own has put into a class of another's."""
        members = objects.members(kind)
        return self.placed(kind, members, objects.module_of(kind), members)

    def note_named(self, texts: Iterable[str]) -> None:
        """Note the files of modules that texts name, which whatever a text is given to may import; no code is run for it. The
        names of attributes are no such texts.
        """
        if moroks(self.top):  # whose code imports by no text but for names that users give
            return
        texts = [t for t in texts if t in self._constants or t not in self._attributes]
        there = importable() if texts else set()
        todo = sorted(
            {path for text in texts for path in _paths(text) if path.partition(".")[0] in there}, reverse=True
        )
        while todo:
            parts = todo.pop().split(".")
            # what goes on behind may be what the module has
            for name in (".".join(parts[: i + 1]) for i in range(len(parts))):
                file = None if name in self._named else find(name)
                self._named.add(name)
                if file is not None and self.own(name):
                    todo += (p for p in reversed(self.source(name, file)) if p.partition(".")[0] in there)

    def source(self, name: str, file: Path) -> list[str]:
        """The paths of modules that a module's file mentions, which is noted; with all of its distribution where its code reaches
        what it does not mention.
        """
        contents = contents_of(file)
        self.files.add(str(file))
        self.say("source", name, hashlib.sha256(contents).hexdigest())
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        paths, loose = _mentioned(contents if file.suffix == ".py" else b"", package)
        if loose:
            self.loose.add(name)
        return paths

    def attributes(self, held: Sequence[tuple[str, Any]]) -> list[Any]:
        self._attributes.update(n for n, _ in held)
        return [x for pair in held for x in pair]

    def members(self, scope: dict[str, Any], names: set[str], every: bool) -> list[Any]:
        """The objects of a module's names that count; its function for the names that it lacks is always asked."""
        parts: list[Any] = []
        for n in sorted(n for n in scope if type(n) is str):
            counts = (
                n in names or n == "__getattr__" or (every and n not in _MODULES_OWN and not self.outside(scope[n]))
            )
            if counts and (id(scope), n) not in self._told:
                self._told.add((id(scope), n))
                self.say("named", n)
                parts.append(scope[n])
        return parts

    def said(self, at: Any, names: set[str]) -> list[Any]:
        """The objects that a function, a class or a code says of itself, as far as code names it."""
        parts: list[Any] = []
        for n in _SAID:
            if n in names and (id(at), n) not in self._told:
                self._told.add((id(at), n))
                found = objects.said_of(at, n)
                self.say("said", n, [t for t in found if type(t) is str])
                parts += [x for x in found if type(x) is not str]
        return parts

    def reached(self, scope: dict[str, Any], whole: bool = False) -> None:
        """Note a module by its names; `whole`: all of these count."""
        self.modules[id(scope)] = (scope, whole or self.modules.get(id(scope), (scope, False))[1])
        file = scope.get("__file__")
        if type(file) is str:
            self.files.add(file)

    # What is gone through

    def parts(self, at: Any) -> list[Any]:
        """The parts of an object that count; its own text is noted."""
        kind = type(at)
        if module := self.outside(at):
            return self.read_outside(module)
        if id(at) in _DOORS:
            self.dynamic.add(self.top)
        if kind is types.FunctionType:
            return self.function(at)
        if kind is types.CodeType:
            return self.code(at)
        if kind is types.MethodType:
            self.say("method")
            return [at.__func__, at.__self__]
        if kind is functools.partial:
            self.say("partial")
            return [at.func, at.args, at.keywords]
        if issubclass(kind, _WRAPPERS):
            return self.wrapped(at)
        if kind is Without:
            return self.without(at)
        if issubclass(kind, types.ModuleType):
            return self.module(at)
        if issubclass(kind, type):
            return [*self.kind(at), *objects.bases(at)]
        if kind is types.MappingProxyType:
            return [dict(at)]
        return self.several(at) if kind in _SEVERAL else self.other(at)

    def outside(self, at: Any) -> str:
        """The module of Python's that an object is of, if that may read what is outside of the process; else nothing."""
        kind = type(at)
        if issubclass(kind, types.ModuleType):
            name = objects.state(at).get("__name__")
        elif kind is types.FunctionType:
            name = objects.home(at.__globals__)
        elif issubclass(kind, types.BuiltinFunctionType):
            name = getattr(at, "__module__", None)
        else:
            name = objects.module_of(at if issubclass(kind, type) else kind)
        # which shows what it holds, or nothing
        stream = name == "_io" and not issubclass(kind, (type, types.BuiltinFunctionType))
        return name if type(name) is str and not stream and self.reads_outside(name) else ""

    def reads_outside(self, module: str) -> bool:
        """True for a module of Python's that may read what is outside of the process. Morok's own is known not to."""
        known = self._outside.get(module)
        if known is None:
            computing = module.partition(".")[0].lstrip("_") in _COMPUTING and not module.startswith(
                "importlib.resources"
            )
            known = self._outside[module] = not (computing or module.startswith("__") or moroks(self.top)) and pythons(
                module
            )
        return known

    def read_outside(self, module: str) -> list[Any]:
        """The parts of a module of Python's that may read what is outside of the process: others in each process."""
        self.closed.add(f"Python's {module}")
        return [module, _THIS_PROCESS]

    def code(self, at: types.CodeType) -> list[Any]:
        self.say(
            "code", at.co_code, at.co_names, at.co_argcount, at.co_posonlyargcount, at.co_kwonlyargcount, at.co_flags
        )
        self.say(at.co_exceptiontable, _parameters(at), at.co_freevars, at.co_cellvars)
        self._sayers.append(at)
        constants = at.co_consts[has_docstring(at) :]
        self._constants.update(c for c in constants if type(c) is str)
        return list(constants)

    def function(self, at: types.FunctionType) -> list[Any]:
        """The parts of a function; of another's, which may be a wrapper of the helper's own, what it holds alone."""
        scope = at.__globals__
        # where its code is from: `__module__` is what a wrapper says, `__name__` what a copy says
        module = objects.home(scope)
        parts: list[Any] = [at.__defaults__, at.__kwdefaults__ and tuple(sorted(at.__kwdefaults__.items()))]
        for cell in at.__closure__ or ():
            try:
                parts.append(cell.cell_contents)
            except ValueError:
                self.say("empty")
        parts += self.attributes(sorted(vars(at).items()))
        if not self.own(module):
            self.say("function", module, at.__qualname__)
            return parts
        if file := loaded_file(module):
            self.files.add(file)
        names = sorted(names_in(at.__code__))
        (self._making if at.__code__.co_name == "__init__" else self.names).update(names)
        if not DYNAMIC.isdisjoint(names):
            self.dynamic |= {module or self.top, *self.named(at.__code__)}
        if not _SCOPES.isdisjoint(names):
            self.reached(scope, whole=True)
        self._sayers.append(at)
        parts.append(at.__code__)
        for name in names:
            found = scope.get(name, objects.builtins_of(at).get(name, _NOTHING))
            if found is not _NOTHING and id(found) not in _DOORS:  # these are told by their names
                self.say("global", name)
                parts.append(found)
        for imported in [
            *_imported(at.__code__, scope.get("__package__") or ""),
            *self.imported_by_text(at.__code__, names),
        ]:
            if self.reads_outside(imported):
                parts += self.read_outside(imported.partition(".")[0])
            elif (imported in sys.modules or find(imported) is not None) and self.own(imported):
                with contextlib.suppress(Exception):  # the helper fails where it cannot be had
                    parts.append(importlib.import_module(imported))
            elif isinstance(other := sys.modules.get(imported), types.ModuleType):
                self.others[id(other)] = other
        return parts

    def imported_by_text(self, code: types.CodeType, names: Sequence[str]) -> list[str]:
        return [] if _IMPORTS.isdisjoint(names) else self.named(code)

    def named(self, code: types.CodeType) -> list[str]:
        """The modules that texts in this code name: what it reaches dynamically may be of these."""
        texts = {c for at in codes(code) for c in at.co_consts if isinstance(c, str)}
        dotted = sorted(t for t in texts if all(part.isidentifier() for part in t.split(".")))
        return [t for t in dotted if find(t) is not None and self.own(t)]

    def module(self, at: types.ModuleType) -> list[Any]:
        """The class of a module; what it has counts by its names."""
        scope = objects.state(at)
        self.say("module", scope.get("__name__"), self.owns_module(at))
        if not self.owns_module(at):
            self.others[id(at)] = at
            return []
        self.reached(scope)
        return [type(at)]

    def owns_module(self, at: types.ModuleType) -> bool:
        """True of a module of the helper's own; one that only has the name of another is its own."""
        name = objects.state(at).get("__name__")
        return type(name) is not str or self.own(name) or sys.modules.get(name) is not at

    def kind(self, at: type, skipped: frozenset[str] = _SKIPPED) -> list[Any]:
        module = objects.module_of(at)
        self.say("class", module, objects.qualname(at))
        if not self.owns(at):
            return self.placed_in(at)
        if _compiled(module):
            self.dynamic.add(module)
        self._sayers.append(at)
        own = [(n, v) for n, v in sorted(objects.members(at).items()) if n not in skipped]
        self.say([n for n, _ in own])
        return [type(at), *(v for _, v in own)]

    def without(self, at: Without) -> list[Any]:
        """The parts of an object or of a class; of its classes, without these attributes of theirs too."""
        if issubclass(type(at.of), type):
            return [*self.kind(at.of, _SKIPPED | at.names), *(Without(base, at.names) for base in objects.bases(at.of))]
        held = [*sorted(objects.state(at.of).items()), *objects.slots(at.of)]
        if issubclass(type(at.of), types.ModuleType):
            held = [(n, v) for n, v in held if not n.startswith("__")]
        parts = [Without(type(at.of), at.names), *self.plain(at.of)]
        return [*parts, *self.attributes([(n, v) for n, v in held if n not in at.names])]

    def wrapped(self, at: Any) -> list[Any]:
        """The parts of a member of a class that wraps functions: these, the kind of the member, and what it holds besides."""
        kind = type(at)
        held = [objects.state(at)] if self.variable and self.owns(kind) else []
        return [kind, *objects.wrapped(at), *held]

    def several(self, at: Any) -> list[Any]:
        if type(at) in _MUTABLE and not self.variable:
            self.say(type(at).__name__)
            return []
        self.say(type(at).__name__, len(at))
        if isinstance(at, dict):
            return [x for pair in at.items() for x in pair]
        if isinstance(at, bytearray):
            return [bytes(at)]
        return self.ordered(at) if isinstance(at, (set, frozenset)) else list(at)

    def ordered(self, at: Iterable[Any]) -> list[Any]:
        """The members of a set, in an order that is the same in every process where their texts differ."""
        return sorted(at, key=lambda member: objects.text_of(member, self.owns))

    def plain(self, at: Any) -> list[Any]:
        """The contents of an object of a class that is made of one of Python's, as one of that."""
        kind = type(at)
        parts: list[Any] = [base.__repr__(at) for base in _TEXTS if issubclass(kind, base)]
        if issubclass(kind, dict):
            return [*parts, *(x for pair in dict.items(at) for x in pair)]
        for base in _SEVERAL:
            if issubclass(kind, base):
                held = list(base.__iter__(at))
                parts += [len(held), *(self.ordered(held) if issubclass(kind, (set, frozenset)) else held)]
        return parts

    def other(self, at: Any) -> list[Any]:
        """The parts of an object of any other class: the class, what the object is as one of Python's, and what it holds."""
        kind = type(at)
        self.say("object", objects.module_of(kind), objects.qualname(kind), objects.name_of(at))
        if issubclass(kind, (types.BuiltinFunctionType, types.MethodWrapperType)):
            module = getattr(at, "__module__", None) or "builtins"
            if self.own(module):
                self.dynamic.add(module)
            return [] if isinstance(at.__self__, types.ModuleType) else [at.__self__]
        state = objects.state(at)
        known = self.outside(kind) != ""  # of a stream, which is not asked to read, its class was said above
        parts = [*(() if known else (kind,)), state.get("__wrapped__"), *self.plain(at)]
        if self.variable and self.owns(kind):
            self._attributes.update(n for n in state if type(n) is str)
            parts += [state, *self.attributes(objects.slots(at))]
        if all(c in _PLAIN or (self.owns(c) and not _compiled(objects.module_of(c))) for c in objects.mro(kind)):
            return parts
        return [*parts, *self.shown(at)]

    def shown(self, at: Any) -> list[Any]:
        """The contents that an object not of Python's code shows, where no code of the helper's own is asked."""
        if not objects.runs(at, ("__buffer__",), self.owns):
            try:
                view = memoryview(at)
                if "O" not in view.format:  # else they are addresses
                    self.say(
                        view.format, view.shape, hashlib.sha256(view.tobytes()).hexdigest() if self.variable else ""
                    )
                    return []
            except (TypeError, ValueError, NotImplementedError):  # it is no array
                pass
        if not objects.runs(at, objects.SHOWING, self.owns):
            shown = repr(at)
            if len(shown) < 10_000 and " at 0x" not in shown:
                self.say(shown)
        return self.held(at) if self.variable else []

    def held(self, at: Any) -> list[Any]:
        """The contents of an object that is not of Python's code: what it would be made of again, or what it shows of them. One
        that shows nothing is another in each process.
        """
        found = None if objects.runs(at, objects.REDUCING, self.owns) else objects.reduced(at)
        if found is None:
            found = objects.opened(at)
        if found is None:
            kind = f"{objects.module_of(type(at))}.{objects.qualname(type(at))}"
            self.closed.add(kind)
            found = [kind, _THIS_PROCESS]
        return found


def _compiled(module: str) -> bool:
    """True for a module that is not read from Python text."""
    file = find(module)
    return file is not None and file.suffix != ".py"


@functools.lru_cache(maxsize=256)
def _mentioned(contents: bytes, package: str) -> tuple[list[str], bool]:
    """The paths of modules that a module's text imports, or names by texts; True where it reaches what it does not mention."""
    try:
        code = compile(contents, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return [], False
    constants = [c for at in codes(code) for c in at.co_consts]
    texts = {c if isinstance(c, str) else c.decode("latin-1") for c in constants if isinstance(c, (str, bytes))}
    paths = {path for text in texts for path in _paths(text)}
    return sorted({*paths, *_imported(code, package)}), not DYNAMIC.isdisjoint(names_in(code))


def _paths(text: str) -> Iterator[str]:
    """The parts of a text that may be paths of modules; in a pickle a letter before them says what they are."""
    for path in _PATH.findall(text):
        yield path
        yield path[1:]


def has_docstring(code: types.CodeType) -> bool:
    """True if the first constant of a code is its docstring: lambdas, comprehensions and bodies of classes have none there."""
    if not code.co_consts or not isinstance(code.co_consts[0], str) or code.co_name.startswith("<"):
        return False
    return bool(code.co_flags & (_DOCSTRING if sys.version_info >= (3, 13) else inspect.CO_OPTIMIZED))


def _parameters(code: types.CodeType) -> tuple[str, ...]:
    """The names of the parameters that a call may give by name, in order."""
    return code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]


def _imported(code: types.CodeType, package: str) -> list[str]:
    """The modules that a function's body imports, with those that a name it imports may be."""
    found: dict[str, None] = {}
    for at in codes(code):
        before: list[Any] = []
        for i in dis.get_instructions(at):
            if i.opname == "IMPORT_NAME":
                level, names = before[-2:]
                # a relative import without a package fails when it runs
                with contextlib.suppress(ImportError, ValueError):
                    module = importlib.util.resolve_name("." * level + i.argval, package)
                    found |= dict.fromkeys([module, *(f"{module}.{n}" for n in names or () if n != "*")])
            before = [*before, i.argval][-2:]
    return sorted(found)


def code_of(function: Any, module: str, variable: bool = True) -> Code:
    """The code of a helper of a module; `variable`: with what lists, tables and objects hold at present."""
    walk = _Walk(module.partition(".")[0], variable)
    walk.walk(function)
    file = loaded_file(module)
    files = walk.files | ({file} if file else set())
    said = set()
    for name in sorted(filter(None, walk.dynamic | walk.loose)):
        whole = (source_folder(name), installed(name), name.partition(".")[0])
        if whole not in said:  # once for all modules of a package
            said.add(whole)
            walk.say("all of", distribution_digest(name))
            files.update(distribution_files(name))
        walk.say("of it", name)
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
