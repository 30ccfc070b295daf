"""A digest of the code that a function runs: its byte code, with what it refers to, as far as it is its own distribution's."""

from __future__ import annotations

import contextlib
import dis
import functools
import hashlib
import importlib.util
import math
import sys
import sysconfig
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

_PACKAGE: Final = str(Path(__file__).resolve().parent.parent)
DYNAMIC: Final = frozenset(  # by these code may reach what it does not mention
    ("getattr", "setattr", "delattr", "eval", "exec", "compile", "globals", "locals", "vars", "__import__", "import_module",
     "attrgetter", "methodcaller")
)  # fmt: skip
_MOST: Final = 1_000_000  # objects that are looked at
_MUTABLE: Final = (list, dict, set, bytearray)


class Code(NamedTuple):
    """The code that a function refers to.

    digest    of all that it refers to
    files     of the modules that have any of it
    numbers   the constants in it: at these it may do something else
    dynamic   modules with code that reaches what it does not mention, or is not Python
    """

    digest: str
    files: tuple[str, ...]
    numbers: tuple[Any, ...]
    dynamic: tuple[str, ...] = ()


@functools.cache
def others() -> tuple[str, ...]:
    """The folders of what is no part of a pack: Python's own modules, and what is installed."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return (*{str(Path(p)) for n in names if (p := sysconfig.get_paths().get(n))}, _PACKAGE)


class _Walk:
    def __init__(self, top: str, variable: bool) -> None:
        self.top = top
        self.variable = variable
        self.hash = hashlib.sha256(sys.version.encode())
        self.seen: dict[int, tuple[int, Any]] = {}  # by id, with a number, kept so that ids stay their own
        self.files: set[str] = set()
        self.numbers: dict[Any, None] = {}
        self.dynamic: set[str] = set()

    def own(self, module: str) -> bool:
        """True if a module is of the helper's own distribution, or of none that is installed."""
        if module.partition(".")[0] == self.top:
            return True
        file = _file_of(module)
        return file is not None and not any(file.startswith(folder) for folder in others())

    def say(self, *what: Any) -> None:
        self.hash.update(repr(what).encode("utf-8", "backslashreplace"))

    def walk(self, root: Any) -> None:
        todo = [root]
        while todo and len(self.seen) < _MOST:
            at = todo.pop()
            if at is None or isinstance(at, (bool, int, float, complex, str, bytes)) or at is ...:
                self.say(type(at).__name__, at if not isinstance(at, int) else hex(at))
                continue
            if id(at) in self.seen:
                self.say("again", self.seen[id(at)][0])
                continue
            self.seen[id(at)] = (len(self.seen), at)
            todo += reversed(self.parts(at))

    def parts(self, at: Any) -> list[Any]:
        """The parts of an object that count; its own text is noted."""
        if isinstance(at, types.FunctionType):
            return self.function(at)
        if isinstance(at, types.CodeType):
            self.say("code", at.co_code, at.co_names, at.co_argcount, at.co_kwonlyargcount, at.co_flags)
            self.say(getattr(at, "co_exceptiontable", b""), at.co_freevars, at.co_cellvars)
            self.numbers.update(dict.fromkeys(c for c in at.co_consts if type(c) in (int, float) and c == c))
            return [c for i, c in enumerate(at.co_consts) if not (i == 0 and isinstance(c, str))]  # the first is the docstring
        if isinstance(at, types.MethodType):
            return [at.__func__, at.__self__]
        if isinstance(at, functools.partial):
            return [at.func, at.args, at.keywords]
        if isinstance(at, types.ModuleType):
            self.say("module", at.__name__)
            return []
        if isinstance(at, type):
            return self.kind(at)
        if isinstance(at, (tuple, frozenset, *_MUTABLE)):
            return self.several(at)
        wrapped = getattr(at, "__wrapped__", None)
        if wrapped is not None:
            self.say("wrapper", type(at).__qualname__)
            return [wrapped]
        return self.other(at)

    def function(self, at: types.FunctionType) -> list[Any]:
        module = at.__module__ or ""
        if not self.own(module):
            self.say("function", module, at.__qualname__)
            return []
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is not None:
            self.files.add(file)
        parts: list[Any] = [at.__code__, at.__defaults__, at.__kwdefaults__ and tuple(sorted(at.__kwdefaults__.items()))]
        for cell in at.__closure__ or ():
            try:
                parts.append(cell.cell_contents)
            except ValueError:
                self.say("empty")
        names = sorted(_names(at.__code__))
        scope = at.__globals__
        if not DYNAMIC.isdisjoint(names):
            self.dynamic.add(module)
        for name in names:
            if name in scope:
                found = scope[name]
                parts += [name, found, *self.members(found, names)]
        for imported in _imported(at.__code__, scope.get("__package__") or ""):
            if self.own(imported):
                with contextlib.suppress(ImportError):  # the helper fails where it cannot be had
                    parts += [imported, *self.members(importlib.import_module(imported), names)]
        wrapped = getattr(at, "__wrapped__", None)
        return parts if wrapped is None else [*parts, wrapped]

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

    def kind(self, at: type) -> list[Any]:
        self.say("class", at.__module__, at.__qualname__)
        if not self.own(at.__module__):
            return []
        skipped = ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__")
        own = [x for n, v in sorted(vars(at).items()) if n not in skipped for x in (n, *_functions(v))]
        return [type(at), *at.__bases__, *own]

    def several(self, at: Any) -> list[Any]:
        if isinstance(at, _MUTABLE) and not self.variable:
            self.say(type(at).__name__)
            return []
        self.say(type(at).__name__, len(at))
        if isinstance(at, dict):
            return [x for pair in at.items() for x in pair]
        if isinstance(at, bytearray):
            return [bytes(at)]
        return sorted(at, key=repr) if isinstance(at, (set, frozenset)) else list(at)

    def other(self, at: Any) -> list[Any]:
        kind = type(at)
        if isinstance(at, types.BuiltinFunctionType) and self.own(at.__module__ or "builtins"):
            self.dynamic.add(str(at.__module__))
        self.say("object", kind.__module__, kind.__qualname__, getattr(at, "__qualname__", ""))
        if self.own(kind.__module__) and self.variable:
            return [kind, getattr(at, "__dict__", None), *_slots(at)]
        try:
            view = memoryview(at)
            self.say(view.format, view.shape, hashlib.sha256(view.tobytes()).hexdigest() if self.variable else "")
            return []
        except (TypeError, ValueError, NotImplementedError):  # it is no array
            pass
        shown = repr(at)
        if len(shown) < 10_000 and " at 0x" not in shown:
            self.say(shown)
            return []
        return _reduced(at) if self.variable else []


def _file_of(module: str) -> str | None:
    """The file of a module, whether or not it is loaded yet."""
    loaded = sys.modules.get(module)
    if loaded is not None:
        return getattr(loaded, "__file__", None)
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):  # no such module, or its package is none
        return None
    return None if spec is None or not spec.has_location else spec.origin


def _functions(member: Any) -> list[Any]:
    """The functions behind a member of a class; the member itself, if it is none of the known kinds of these."""
    if isinstance(member, property):
        return [member.fget, member.fset, member.fdel]
    if isinstance(member, functools.cached_property):
        return [member.func]
    return [getattr(member, "__func__", member)]


def _slots(at: Any) -> list[Any]:
    """The contents of an object's slots, by name."""
    members = [(n, d) for c in type(at).__mro__ for n, d in sorted(vars(c).items()) if isinstance(d, types.MemberDescriptorType)]
    return [x for n, d in members if hasattr(at, d.__name__) for x in (n, d.__get__(at))]


def _reduced(at: Any) -> list[Any]:
    """What an object would be made of again, as it is pickled; nothing of one that cannot be."""
    if isinstance(at, (types.BuiltinFunctionType, types.GenericAlias)):
        return []
    try:
        made = at.__reduce_ex__(4)
    except Exception:  # whatever its own code does
        return []
    return [] if isinstance(made, str) else [x for part in made for x in (part if hasattr(part, "__next__") else (part,))]


def _imported(code: types.CodeType, package: str) -> list[str]:
    """The modules that a function's body imports, with those that a name it imports may be."""
    found: dict[str, None] = {}
    stack = [code]
    while stack:
        at = stack.pop()
        stack.extend(c for c in at.co_consts if isinstance(c, types.CodeType))
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
    names: set[str] = set()
    stack = [code]
    while stack:
        at = stack.pop()
        names.update(at.co_names)
        stack.extend(c for c in at.co_consts if isinstance(c, types.CodeType))
    return names


def code_of(function: Any, module: str, variable: bool = True) -> Code:
    """The code of a helper of a module; `variable`: with what lists, tables and objects hold at present."""
    walk = _Walk(module.partition(".")[0], variable)
    walk.walk(function)
    file = getattr(sys.modules.get(module), "__file__", None)
    files = walk.files | ({file} if file is not None else set())
    numbers = tuple(n for n in walk.numbers if not (isinstance(n, float) and math.isinf(n)))
    return Code(walk.hash.hexdigest(), tuple(sorted(files)), numbers, tuple(sorted(walk.dynamic)))
