"""The answers of a dialect's methods and code templates, where what they raise is a mistake of theirs."""

from __future__ import annotations

import functools
import types
from typing import Any

from morok.dialect import NOT_CONST, Dialect
from morok.prove.dialect_agreement import Wrong, said
from morok.prove.dialect_values import misnumbered


def call(dialect: Dialect, method: str, *args: Any) -> Any:
    """The result of a method; Wrong where it raises."""
    try:
        return getattr(dialect, method)(*args)
    except Exception as problem:
        raise Wrong(method, f"raises {said(problem)}") from None


def const_value(dialect: Dialect, node: Any) -> Any:
    """The value of a constant, a number of Python's own; NOT_CONST of any other node."""
    value = call(dialect, "const_value", node)
    if value is not NOT_CONST and value is not None and (wrong := misnumbered(value)):
        raise Wrong("const_value", f"is {wrong}", "an int, a float or a bool", constants=True)
    return value


def filled(dialect: Dialect, key: str, shown: str, **holes: Any) -> Any:
    """The value of a template with these values in its holes."""
    scope = {**getattr(dialect, "names", {}), "_d": dialect, **{f"hole_{k}": v for k, v in holes.items()}}
    try:
        return eval(_compiled(dialect.inline[key]), scope)
    except Exception as problem:
        raise Wrong(f"inline[{key!r}]", f"raises {said(problem)} for {shown}") from None


@functools.lru_cache
def _compiled(template: str) -> types.CodeType:
    return compile(
        template.format(**{k: f"hole_{k}" for k in ("n", "a", "b", "c", "op", "v", "d", "k")}), "<template>", "eval"
    )
