"""A digest of the code that a function runs: its byte code, with what it refers to, as far as it is its own distribution's."""

from __future__ import annotations

import functools
import hashlib
import math
import sys
import sysconfig
import types
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
        file = getattr(sys.modules.get(module), "__file__", None)
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
                parts += [name, found]
                if isinstance(found, types.ModuleType) and self.own(found.__name__):
                    parts += [x for n in names if (x := getattr(found, n, None)) is not None]
        wrapped = getattr(at, "__wrapped__", None)
        return parts if wrapped is None else [*parts, wrapped]

    def kind(self, at: type) -> list[Any]:
        self.say("class", at.__module__, at.__qualname__)
        if not self.own(at.__module__):
            return []
        skipped = ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__")
        own = [x for n, v in sorted(vars(at).items()) if n not in skipped for x in (n, getattr(v, "__func__", v))]
        return [*at.__bases__, *own]

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
            return [kind, getattr(at, "__dict__", None)]
        shown = repr(at)
        self.say(shown if len(shown) < 10_000 and " at 0x" not in shown else "")
        return []


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
