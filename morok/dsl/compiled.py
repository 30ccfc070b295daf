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


class Generated(NamedTuple):
    """Generated text, before it knows any object.

    source   defines one function per op, and MATCH: op name -> function; "" stands for every other op
    names    of the rules, by number
    helpers  "module:function" of each helper the text calls, by the name it calls it
    """

    source: str
    names: tuple[str, ...]
    helpers: Mapping[str, str]


def to_code(generated: Generated) -> CodeType:
    """The text compiled, under a file name by which tracebacks find its lines."""
    digest = hashlib.sha256(generated.source.encode()).hexdigest()[:12]
    return compile(generated.source, f"<rules {digest}>", "exec", dont_inherit=True)


def link(code: CodeType, generated: Generated, dialect: Dialect, wrap: Callable[[str, Any], Any] | None = None) -> dict[str, Any]:
    """MATCH of the generated text: op name -> function. `wrap` replaces each helper (its name, the function) by another."""
    source = generated.source
    linecache.cache[code.co_filename] = (len(source), None, source.splitlines(keepends=True), code.co_filename)
    namespace: dict[str, Any] = {
        **values.NAMES,
        **getattr(dialect, "names", {}),
        "_d": dialect,
        "_failures": (
            values.NoValue,
            ZeroDivisionError,
            OverflowError,
            IndexError,
            getattr(dialect, "undefined", values.NoValue),
        ),
        "_derive": getattr(dialect, "derive", None),
        "_subst": dialect.facts.get("subst"),
        "NOT_CONST": NOT_CONST,
    }
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
            module, _, function = generated.helpers[name].rpartition(":")
            helper = getattr(importlib.import_module(module), function)
            namespace[name] = helper if wrap is None else wrap(function, helper)
    exec(code, namespace)
    found: dict[str, Any] = namespace["MATCH"]
    return found


def _names(code: CodeType) -> set[str]:
    """Every global name that a code object and those inside it mention."""
    names: set[str] = set()
    stack = [code]
    while stack:
        at = stack.pop()
        names.update(at.co_names)
        stack.extend(c for c in at.co_consts if isinstance(c, CodeType))
    return names
