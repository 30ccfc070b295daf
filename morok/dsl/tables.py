"""The parser of the grammar. Its tables, which take 0.12 s to make, are kept in the cache under what they are made of."""

from __future__ import annotations

import contextlib
import hashlib
import io
import sys
from pathlib import Path
from typing import Any, Final

from lark import Lark
from lark import __version__ as lark_version

from morok import atomic, cache_folder

FOLDER: Final = "grammar"
_DIGEST: Final = 32


def parser(grammar: str, transformer: Any, **options: Any) -> Lark:
    """The parser of a grammar, as Lark makes it with these options; from kept tables where there are whole ones."""
    made_of = (grammar, sorted(map(repr, options.items())), lark_version, sys.version)
    name = hashlib.sha256(repr(made_of).encode()).hexdigest()
    folder = cache_folder.part(FOLDER)
    kept = None if folder is None else _read(folder / name)
    if kept is not None:
        with contextlib.suppress(Exception):  # not what this Lark reads: made again
            found: Lark = Lark.__new__(Lark)._load(io.BytesIO(kept), transformer=transformer)
            return found
    made = Lark(grammar, transformer=transformer, **options)
    if folder is not None:
        tables = io.BytesIO()
        made.save(tables, exclude_options=("transformer",))
        with contextlib.suppress(OSError):
            cache_folder.make(folder)
            atomic.write(folder / name, hashlib.sha256(tables.getvalue()).digest() + tables.getvalue())
    return made


def _read(path: Path) -> bytes | None:
    """What was kept, if it is what was written."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    tables = content[_DIGEST:]
    return tables if hashlib.sha256(tables).digest() == content[:_DIGEST] else None
