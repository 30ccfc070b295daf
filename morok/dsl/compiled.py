"""Generated matchers as functions: without the compiler, so that one kept on disk is used without loading it."""

from __future__ import annotations

import hashlib
import importlib
import linecache
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, NamedTuple

from morok.dialect import NOT_CONST, Dialect
from morok.dsl import values
from morok.errors import UnknownNameError


class Generated(NamedTuple):
    """A generated matcher, before it knows any object.

    code     defines one function per op, and MATCH: op name -> function; "" stands for every other op
    source   its text, read only when somebody wants to see it
    names    of the rules, by number
    helpers  "module:function" of each helper the code calls, by the name it calls it
    """

    code: CodeType
    source: Callable[[], str]
    names: tuple[str, ...]
    helpers: Mapping[str, str]


def generated(source: str, names: tuple[str, ...], helpers: Mapping[str, str]) -> Generated:
    """Text made into code, under a file name by which tracebacks find its lines."""
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    code = compile(source, f"morok-rules-{digest}.py", "exec", dont_inherit=True)
    return Generated(code, lambda: source, names, helpers)


class _Loader:
    """What linecache asks for the text of a module that is no file."""

    def __init__(self, source: Callable[[], str]) -> None:
        self.source = source

    def get_source(self, name: str) -> str:
        return self.source()


def link(
    made: Generated,
    dialect: Dialect,
    wrap: Callable[[str, Any], Any] | None = None,
    tried: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """MATCH of generated code: op name -> function. `wrap` replaces each helper (its name, the function) by another; `tried` is
    what a counting matcher calls.
    """
    code = made.code
    namespace: dict[str, Any] = {
        **values.NAMES,
        **getattr(dialect, "names", {}),
        "_d": dialect,
        "_failures": (*values.FAILURES, getattr(dialect, "undefined", values.NoValue)),
        "_derive": getattr(dialect, "derive", None),
        "_keep": getattr(dialect, "keep", None),
        "_settle": getattr(dialect, "settle", None),
        "_subst": dialect.facts.get("subst"),
        "NOT_CONST": NOT_CONST,
        "_tried": tried,
        "__name__": code.co_filename,
        "__loader__": _Loader(made.source),
    }
    linecache.lazycache(code.co_filename, namespace)
    for name in _names(code):
        if name in namespace:
            continue
        kind, _, rest = name.partition("_")
        if kind == "K":
            namespace[name] = dialect.ops[rest].key
        elif kind == "D":
            namespace[name] = dialect.dtypes[rest]
        elif kind == "E":
            namespace[name] = dialect.ops[rest].evaluate
        elif kind == "F":
            namespace[name] = dialect.facts[rest]
        elif kind == "H":
            function, helper = _helper(made.helpers[name])
            namespace[name] = helper if wrap is None else wrap(function, helper)
    exec(code, namespace)
    found: dict[str, Any] = namespace["MATCH"]
    return found


def _helper(home: str) -> tuple[str, Any]:
    """The name of a helper and its function, by "module:function"; UnknownNameError where there is none."""
    module, _, name = home.rpartition(":")
    expected = f'a module with a function {name}, named at the head of the rule file: helpers "package.module"'
    if module == "None":
        raise UnknownNameError(f"the rule file of the helper {name} names no module", expected=expected)
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as problem:
        hint = "it is imported as by any Python program: is it installed, or its folder in PYTHONPATH?"
        raise UnknownNameError(f"the helper {name}: {problem}", expected=expected, hint=hint) from problem
    if found is None:
        raise UnknownNameError(f"{module} has no function {name}, which a rule file declares", expected=expected)
    return name, found


def _names(code: CodeType) -> set[str]:
    """Every global name that a code object and those inside it mention."""
    names: set[str] = set()
    stack = [code]
    while stack:
        at = stack.pop()
        names.update(at.co_names)
        stack.extend(c for c in at.co_consts if isinstance(c, CodeType))
    return names
