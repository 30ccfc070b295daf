"""The origin of a node: the user's line, then each rule that rewrote it.

An origin holds code objects and names, never nodes, so that it keeps no graph alive. It takes no part in the identity of
a node: of equal nodes the one made first is kept, with its origin.
"""

from __future__ import annotations

import linecache
from itertools import islice
from types import CodeType
from typing import Final

# A user's expression: its code object and the offset of the instruction that made the node; the line is found when asked for.
Written = tuple[CodeType, int]
# A rewriting: the origin of the replaced node, the stage ("" outside the pipeline), the rule, the number of steps so far.
Rewritten = tuple["Written | Rewritten | None", str, str, int]
Origin = Written | Rewritten

LONGEST: Final = 256  # steps that a chain may have; beyond them it is not extended


def rewritten(origin: Origin | None, stage: str, rule: str) -> Origin:
    """The origin of a node by which `rule`, in `stage`, replaces a node of origin `origin`."""
    if origin is None or len(origin) == 2:
        return (origin, stage, rule, 1)
    if origin[3] >= LONGEST:
        return origin
    return (origin, stage, rule, origin[3] + 1)


def describe(origin: Origin | None) -> list[str]:
    """One entry a step: `file.py:12 `a + 0``, then `stage 4 rule `identity.add_zero``."""
    steps: list[str] = []
    while origin is not None:
        if len(origin) == 2:
            steps.append(_user_line(*origin))
            break
        previous, stage, rule, _ = origin
        steps.append(f"stage {stage} rule `{rule}`" if stage else f"rule `{rule}`")
        origin = previous
    steps.reverse()
    return steps


def place(origin: Origin | None) -> tuple[str, int] | None:
    """The user's file and line at the root of the chain."""
    while origin is not None and len(origin) != 2:
        origin = origin[0]
    if origin is None:
        return None
    code, offset = origin
    return code.co_filename, _position(code, offset)[0]


def _position(code: CodeType, offset: int) -> tuple[int, int | None, int | None, int | None]:
    """Line, last line, first column (in bytes of UTF-8), last column of an instruction."""
    for line, last, first_column, last_column in islice(code.co_positions(), offset // 2, None):
        return line or code.co_firstlineno, last, first_column, last_column
    return code.co_firstlineno, None, None, None


def _user_line(code: CodeType, offset: int) -> str:
    line, last, first, end = _position(code, offset)
    where = f"{code.co_filename}:{line}"
    text = linecache.getline(code.co_filename, line)
    if not text.strip():
        return where
    if last == line and first is not None and end is not None:
        text = text.encode()[first:end].decode(errors="replace")
    return f"{where} `{text.strip()}`"
