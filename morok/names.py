"""Names of files as text. On Unix they are bytes; Python decodes bytes that are no UTF-8 to surrogates, which no encoding has."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Sequence
from typing import Final

# error handler of streams: writes a name's bytes unchanged, other unencodable characters as escapes
SHOWN: Final = "morok.shown"


def nearest(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Up to `most` different ones of the `known` names that are similar to a wrong one, the best first."""
    import difflib  # lazy: only mistakes need it

    return difflib.get_close_matches(name, dict.fromkeys(known), most, 0.6)


def did_you_mean(close: Sequence[str], otherwise: str = "") -> str:
    """A hint that asks whether one of these names was meant; without names the other hint."""
    return f"did you mean {' or '.join(close)}?" if close else otherwise


def readable(name: str) -> str:
    r"""`name` as text for any encoding: a byte that is no UTF-8 becomes an escape such as \xff."""
    return os.fsencode(name).decode(errors="backslashreplace")


def data(text: str) -> bytes:
    """The bytes of any text, of surrogates too: for a digest, or to look for it among other bytes."""
    return text.encode(errors="surrogatepass")


def _shown(problem: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(problem)
    except UnicodeError:
        return codecs.backslashreplace_errors(problem)


codecs.register_error(SHOWN, _shown)
