"""Names of files as text: on Unix they are bytes, and those that are no UTF-8 are characters in Python that no encoding has."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable
from typing import Final

SHOWN: Final = "morok.shown"  # how a stream writes what its encoding has not: bytes of a name as they are, the rest as escapes


def nearest(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The names that look most like a wrong one, the best first."""
    import difflib  # lazy: only mistakes need it

    return difflib.get_close_matches(name, known, most, 0.6)


def readable(name: str) -> str:
    r"""`name` as text that can be written anywhere: a byte that is no UTF-8 is shown as \xff."""
    return os.fsencode(name).decode(errors="backslashreplace")


def data(text: str) -> bytes:
    """A text with names in it as bytes, for a digest."""
    return text.encode(errors="surrogateescape")


def _shown(problem: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(problem)
    except UnicodeError:
        return codecs.backslashreplace_errors(problem)


codecs.register_error(SHOWN, _shown)
