"""The results of searches, on disk: by the structure of a kernel, or of a program, its target and the settings of the search.

SQLite in its write-ahead mode: several processes may search at once, and a killed writer leaves what was there before. A folder
that cannot be written, a full disk or a damaged file cost the cache and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from morok import cache_folder
from morok.ir.op import Op
from morok.ir.pickling import table
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp

T = TypeVar("T")

_GENERATION: Final = 3  # changes with the meaning of what is kept
_SCHEMA: Final = "create table if not exists found (key text primary key, opts text not null, made real not null)"


def key(ast: UOp, *particulars: Any) -> str:
    """A digest of the structure of a Sink's program, without names, and of all else that its best optimizations depend on."""
    digest = hashlib.sha256(_said((_GENERATION, particulars)).encode())
    for op, dtype, src, arg in table(ast):
        digest.update(repr((op.name, str(dtype), src, None if op is Op.Sink else arg)).encode())
    return digest.hexdigest()


def _said(value: Any) -> str:
    """`value` as every process writes it: Python's text of a set has an order that changes from one to the next."""
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(_said, value))) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_said, value)) + ")"
    if is_dataclass(value):
        return type(value).__name__ + _said(tuple([getattr(value, f.name) for f in fields(value)]))
    return repr(value)


def text(opts: Sequence[Opt]) -> str:
    return json.dumps([[o.op.name, o.axis, o.arg] for o in opts])


def read(text: str) -> tuple[Opt, ...]:
    return tuple(Opt(OptOp[name], axis, arg) for name, axis, arg in json.loads(text))


def sealed(key: str, said: str) -> str:
    """A text with a checksum of it and of its key, as it is kept: SQLite notices few of the bits that a disk changes."""
    return f"{hashlib.sha256(f'{key} {said}'.encode()).hexdigest()[:16]} {said}"


def unsealed(key: str, kept: Any) -> str:
    """The text that was sealed; ValueError where this is none."""
    said = kept[17:] if isinstance(kept, str) else ""
    if kept != sealed(key, said):
        raise ValueError("damaged")
    return said


def found_here() -> Found | None:
    """The store of search results on this machine; None where there is none."""
    folder = cache_folder.part()
    return None if folder is None else Found(folder)


class Found:
    """The cache in one folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "beam.sqlite"

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.parent.mkdir(parents=True, exist_ok=True)
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=5.0)
        try:
            connection.execute("pragma journal_mode=wal")
            connection.execute(_SCHEMA)
            yield connection
            connection.commit()
        finally:
            connection.close()

    def get(self, key: str) -> tuple[Opt, ...] | None:
        """The optimizations found for `key`; None if none were, or they cannot be read."""
        return self.look_up(key, read)

    def look_up(self, key: str, read: Callable[[str], T]) -> T | None:
        """The result kept for `key`, as `read` reads its text; None if there is none, or it cannot be read."""
        try:
            with self._open() as connection:
                row = connection.execute("select opts from found where key = ?", (key,)).fetchone()
            return None if row is None else read(unsealed(key, row[0]))
        except sqlite3.OperationalError:
            return self._read_only(key, read)  # a folder that cannot be written may be read all the same
        except (OSError, sqlite3.DatabaseError, ValueError, KeyError, TypeError):
            self._discard()
            return None

    def _read_only(self, key: str, read: Callable[[str], T]) -> T | None:
        try:
            connection = sqlite3.connect(f"{self.path.as_uri()}?mode=ro&immutable=1", uri=True)
        except (sqlite3.Error, ValueError):
            return None
        try:
            row = connection.execute("select opts from found where key = ?", (key,)).fetchone()
            return None if row is None else read(unsealed(key, row[0]))
        except (sqlite3.Error, ValueError, KeyError, TypeError):
            return None
        finally:
            connection.close()

    def put(self, key: str, opts: Sequence[Opt]) -> bool:
        """Keep `opts` under `key`; False if the folder cannot take it."""
        return self.keep(key, text(opts))

    def keep(self, key: str, said: str) -> bool:
        """Keep a text under `key`; False if the folder cannot take it."""
        try:
            with self._open() as connection:
                connection.execute("insert or replace into found values (?, ?, ?)", (key, sealed(key, said), time.time()))
            return True
        except sqlite3.OperationalError:
            return False
        except (OSError, sqlite3.DatabaseError):
            self._discard()
            return False

    def _discard(self) -> None:
        """A file that is no database helps nobody."""
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self.path.with_name(self.path.name + suffix).unlink()
