"""The names in a function's code: globals, attributes, texts and imports; the names of slots; which modules are libraries."""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import resolve_name
from types import CodeType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

_LIBRARIES: Final = tuple({sysconfig.get_paths()[k] + os.sep for k in ("stdlib", "platstdlib", "purelib", "platlib")})
LOOKUPS: Final = frozenset({
    "getattr", "hasattr", "vars", "dir", "globals", "eval", "exec", "__dict__", "__getattribute__", "attrgetter", "methodcaller",
    "getmembers", "getattr_static", "__import__", "import_module", "modules",
})  # fmt: skip
"""Names in code that looks up other names, which may be computed texts."""


def top(module: str) -> str:
    """The name of the package of a module."""
    return module.partition(".")[0]


@functools.cache
def is_library(module: str) -> bool:
    """True if the module of this name belongs to a library: Python's, Morok, or an installed one."""
    package, file = top(module), getattr(sys.modules.get(module), "__file__", None)
    if package == "morok" or (file is None and package in sys.stdlib_module_names):
        return True
    return file is not None and file.startswith(_LIBRARIES)


@functools.lru_cache(maxsize=1024)
def global_names(code: CodeType) -> tuple[str, ...]:
    """The names of globals in a function's code, and in the code of functions inside it."""
    found: dict[str, None] = {}
    for inner in _codes(code):
        found.update((i.argval, None) for i in dis.get_instructions(inner) if i.opname.endswith(("_GLOBAL", "_NAME")))
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def names_of(code: CodeType) -> frozenset[str]:
    """The names of attributes, globals and imports, and the texts, in a function's code and in that of functions inside it."""
    found: set[str] = set()
    for inner in _codes(code):
        found.update(part for name in inner.co_names for part in name.split("."))
        for constant in inner.co_consts:
            found.update(v for v in (constant if isinstance(constant, (tuple, frozenset)) else (constant,)) if type(v) is str)
    return frozenset(found)


@functools.lru_cache(maxsize=1024)
def imported(code: CodeType, package: str) -> tuple[str, ...]:
    """The full names of the modules that a function of this package imports, and of the names in them, with the packages that
    they are in."""
    found: dict[str, None] = {}
    for inner in _codes(code):
        before = [i for i in dis.get_instructions(inner) if i.opname not in ("EXTENDED_ARG", "CACHE")]
        for k, instruction in enumerate(before):
            if instruction.opname != "IMPORT_NAME":
                continue
            level = before[k - 2].argval  # the operands are the level of a relative import, and the names imported from it
            try:
                name = resolve_name("." * int(level or 0) + instruction.argval, package or None)
            except ImportError:
                continue
            parts = name.split(".")
            found.update((".".join(parts[: n + 1]), None) for n in range(len(parts)))
            found.update((f"{name}.{n}", None) for n in before[k - 1].argval or ())
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def members(kind: type[object]) -> tuple[tuple[str, MemberDescriptorType], ...]:
    """(name, descriptor) of the attributes that the objects of a class have in slots, or may have."""
    found = [(n, m) for base in kind.__mro__ for n, m in vars(base).items() if isinstance(m, MemberDescriptorType)]
    return tuple(
        (n, m) for n, m in found if n not in ("__weakref__", "__dictoffset__", "__weaklistoffset__", "__vectorcalloffset__")
    )


def slots(value: object) -> tuple[str, ...]:
    """The names of the attributes that an object has in slots, or may have."""
    kind: Any = type(value)
    return tuple(n for n, _ in members(kind))


@functools.lru_cache(maxsize=1024)
def dict_of(kind: type[object]) -> GetSetDescriptorType | None:
    """The descriptor by which Python itself reads the `__dict__` of the objects of a class, whatever the class defines."""
    found = [vars(base).get("__dict__") for base in kind.__mro__]
    return next((d for d in found if isinstance(d, GetSetDescriptorType)), None)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
