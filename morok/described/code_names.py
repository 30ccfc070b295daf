"""The names in a function's code: globals, attributes, texts and imports; the names of slots; which modules are libraries."""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from importlib.util import resolve_name
from itertools import pairwise
from types import CodeType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

_LIBRARIES: Final = tuple({sysconfig.get_paths()[k] + os.sep for k in ("stdlib", "platstdlib", "purelib", "platlib")})
LOOKUPS: Final = frozenset({
    "getattr", "hasattr", "setattr", "delattr", "vars", "dir", "globals", "locals", "eval", "exec", "compile", "FunctionType",
    "__dict__", "__dir__", "__getattribute__", "__setattr__", "__delattr__", "__getstate__", "__reduce__", "__reduce_ex__",
    "__subclasses__", "attrgetter", "methodcaller", "getmembers", "getattr_static", "__import__", "import_module", "modules",
    "_getframe", "format", "format_map", "vformat", "asdict", "astuple", "replace", "wraps", "update_wrapper",
})  # fmt: skip
"""Names in code that looks up other names, which may be computed texts."""
_NAMED: Final = frozenset({"getattr", "hasattr", "setattr", "delattr"})
"""Functions that look up no name but the text which is their second operand, where that stands in the code."""
SETS: Final = "="
"""The name that code which sets or deletes attributes has besides its own."""
_CALL: Final = "PRECALL" if "PRECALL" in dis.opmap else "CALL"
"""The instruction that takes a function's operands from the stack."""
_SPELLING: Final = ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE")


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
    """The names of attributes, globals and imports, and the texts, in a function's code and in the functions inside it; and the
    methods that its operators call.
    """
    found: set[str] = set()
    for inner in _codes(code):
        instructions = [i for i in dis.get_instructions(inner) if i.opname != "EXTENDED_ARG"]
        named = _with_texts(instructions) if not _NAMED.isdisjoint(inner.co_names) else set()
        if not named.isdisjoint({"setattr", "delattr"}):
            found.add(SETS)
        found.update(part for name in inner.co_names if name not in named for part in name.split("."))
        found.update(_texts(inner.co_consts))
        for i in instructions:
            if i.opname in _SPELLING or i.argrepr in ("%", "%="):
                found.add("__format__")
            elif i.opname in ("STORE_ATTR", "DELETE_ATTR"):
                found.add(SETS)
            elif i.opname in ("CONTAINS_OP", "COMPARE_OP"):
                found.add("__eq__")  # lists are compared by `==` of what they contain, also by `<`
            elif i.opname == "MATCH_CLASS":
                found.add("__match_args__")
    if code.co_name in ("__setattr__", "__delattr__"):  # for the object itself, of which all attributes count
        found -= {"__setattr__", "__delattr__"}
    # of a dataclass: it compares and names the class, no more
    if code.co_qualname.startswith("__create_fn__.<locals>."):
        found -= {"type", "__class__", "__qualname__", "__eq__"}
    return frozenset(found)


def _with_texts(instructions: list[dis.Instruction]) -> set[str]:
    """The functions of `_NAMED` that code calls with a constant text as second argument, and uses in no other way."""
    uses = [(i.argval, k) for k, i in enumerate(instructions) if i.opname != "LOAD_CONST" and i.argval in _NAMED]
    return {name for name, _ in uses} - {name for name, k in uses if not _has_text(instructions, k)}


def _has_text(instructions: list[dis.Instruction], start: int) -> bool:
    """True if the global that an instruction loads is called, and the second of its operands is a text. The depth of the stack
    says where each operand begins: the last place where so many lie on it as stand before that operand.
    """
    if instructions[start].opname != "LOAD_GLOBAL" or not (instructions[start].arg or 0) & 1:
        return False
    depth, begins = 0, {}
    for k in range(start + 1, len(instructions)):
        i = instructions[k]
        begins[depth] = k
        if i.opname == _CALL and i.arg == depth:
            text = instructions[begins[1]] if depth in (2, 3) else i
            return text.opname == "LOAD_CONST" and type(text.argval) is str and begins[2] == begins[1] + 1
        if i.opcode in dis.hasjrel or i.opcode in dis.hasjabs:
            return False
        depth += dis.stack_effect(i.opcode, i.arg)
    return False


@functools.lru_cache(maxsize=1024)
def only_set(code: CodeType) -> frozenset[str]:
    """The names of attributes that a method sets in its object, and has for nothing else."""
    found: Counter[str] = Counter()
    instructions = list(dis.get_instructions(code))
    for before, i in pairwise(instructions):
        if i.opname == "STORE_ATTR" and before.opname == "LOAD_FAST" and before.argval == code.co_varnames[0]:
            found[i.argval] += 1
    used = Counter(i.argval for inner in _codes(code) for i in dis.get_instructions(inner) if i.argval in found)
    return frozenset(n for n, k in found.items() if used[n] == k)


def _texts(constants: tuple[object, ...] | frozenset[object]) -> Iterator[str]:
    for constant in constants:
        if type(constant) is str:
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from _texts(constant)


@functools.lru_cache(maxsize=1024)
def has_own_class(code: CodeType) -> bool:
    """True if a method takes its class, `__class__`, otherwise than for `super()`."""
    names = [(i.opname, i.argval) for inner in _codes(code) for i in dis.get_instructions(inner)]
    taken = sum(name == "__class__" and op in ("LOAD_DEREF", "LOAD_CLASSDEREF") for op, name in names)
    return bool(taken > sum(op == "LOAD_SUPER_ATTR" for op, _ in names))


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
            # the operands are the level of a relative import, and the names imported from it
            level = before[k - 2].argval
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
    found = [(n, m) for base in kind.__mro__ for n, m in vars(base).items() if type(m) is MemberDescriptorType]
    return tuple(
        (n, m)
        for n, m in found
        if n not in ("__weakref__", "__dictoffset__", "__weaklistoffset__", "__vectorcalloffset__")
    )


def slots(value: object) -> tuple[str, ...]:
    """The names of the attributes that an object has in slots, or may have."""
    kind: Any = type(value)
    return tuple(n for n, _ in members(kind))


@functools.lru_cache(maxsize=1024)
def dict_of(kind: type[object]) -> GetSetDescriptorType | None:
    """Python's own descriptor of the `__dict__` of a class's objects, even if the class defines another; None without."""
    found = [vars(base).get("__dict__") for base in kind.__mro__]
    return next((d for d in found if type(d) is GetSetDescriptorType), None)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
