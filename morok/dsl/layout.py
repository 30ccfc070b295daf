"""A pretty printer: documents that are broken into lines of at most WIDTH columns, from the outside in.

A line is broken at a blank of a `Chain` and inside the brackets of `Brackets`, and nowhere else. Text without either stays
whole, however long: a name, a number, the signs next to them (`name: x`, `a = `, `p @ `, `a..b`, a closing bracket).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

WIDTH: Final = 130
STEP: Final = 4
_DEEPEST: Final = WIDTH // 2  # the deepest indentation, so that lines have room


@dataclass(frozen=True, slots=True)
class Brackets:
    """`opening rows closing`; if that is too long, each row has an indented line of its own, and `closing` ends the last one.

    pad  the text behind `opening` if all is on one line
    """

    opening: str
    rows: tuple[Doc, ...]
    closing: str
    pad: str = ""


@dataclass(frozen=True, slots=True)
class Chain:
    """Two or more parts with a blank between any two; where that is too long, as many on each line as fit.

    fill  if false, each has a line of its own
    step  the columns by which lines after the first are indented deeper
    """

    parts: tuple[Doc, ...]
    fill: bool = True
    step: int = STEP


Doc: TypeAlias = "str | Brackets | Chain | tuple[Doc, ...]"  # a tuple: its parts side by side


def flat(doc: Doc) -> str:
    """The text on one line."""
    match doc:
        case str():
            return doc
        case Brackets():
            return f"{doc.opening}{doc.pad}{' '.join(map(flat, doc.rows))}{doc.closing}"
        case Chain():
            return " ".join(map(flat, doc.parts))
        case _:
            return "".join(map(flat, doc))


def broken(doc: Doc, column: int, indent: int, after: int = 0) -> str:
    """The text where it begins at `column` of a line that is indented by `indent`, and `after` columns follow its last line."""
    whole = flat(doc)
    if column + len(whole) + after <= WIDTH:
        return whole
    match doc:
        case str():
            return doc
        case Brackets():
            deep = min(indent + STEP, _DEEPEST)
            ends = [0] * (len(doc.rows) - 1) + [len(doc.closing) + after]
            lines = [" " * deep + broken(row, deep, deep, end) for row, end in zip(doc.rows, ends, strict=True)]
            return "\n".join((doc.opening, *lines)) + doc.closing
        case Chain():
            return _chain(doc, column, indent, after)
        case _:
            text = ""
            for n, part in enumerate(doc):
                text += broken(part, _end(column, text), indent, _unbroken(doc[n + 1 :], after))
            return text


def _chain(doc: Chain, column: int, indent: int, after: int) -> str:
    deep = min(indent + doc.step, _DEEPEST)
    last = len(doc.parts) - 1
    text = broken(doc.parts[0], column, deep)
    started = "\n" in text  # a part of several lines shares none of them
    for n, part in enumerate(doc.parts[1:], 1):
        end = after if n == last else 0
        whole = flat(part)
        if doc.fill and not started and _end(column, text) + 1 + len(whole) + end <= WIDTH:
            text += f" {whole}"
            continue
        piece = broken(part, deep, deep, end)
        text += f"\n{' ' * deep}{piece}"
        started = "\n" in piece
    return text


def _end(column: int, text: str) -> int:
    """The column behind a text that begins at `column`."""
    start = text.rfind("\n")
    return column + len(text) if start < 0 else len(text) - start - 1


def _unbroken(parts: Sequence[Doc], after: int) -> int:
    """The least number of columns that these parts, and `after` columns behind them, add to the line that they begin on."""
    width = 0
    todo = list(reversed(parts))
    while todo:
        part = todo.pop()
        match part:
            case str():
                width += len(part)
            case Brackets():
                return width + len(part.opening)
            case Chain():
                return width + _unbroken(part.parts[:1], 0)
            case _:
                todo.extend(reversed(part))
    return width + after
