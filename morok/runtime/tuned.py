"""The results of searches, on disk, by the structure of a kernel or program, the target and the settings of the search.

SQLite in write-ahead mode: several processes may search at once, and a killed writer leaves the earlier contents. A read-only
folder, a full disk or a damaged file disable the cache, without an error.
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
from morok.passes.appended import appended_key
from morok.passes.target import Target

T = TypeVar("T")

_GENERATION: Final = 3  # changes with the meaning of the stored results
_SCHEMA: Final = "create table if not exists found (key text primary key, opts text not null, made real not null)"


def key(ast: UOp, *particulars: Any) -> str:
    """A digest of the structure of a Sink's program, without names, and of `particulars`, on which its optimizations depend."""
    digest = hashlib.sha256(_canonical_text((_GENERATION, particulars)).encode())
    for op, dtype, src, arg in table(ast):
        digest.update(repr((op.name, str(dtype), src, None if op is Op.Sink else arg)).encode())
    return digest.hexdigest()


def _canonical_text(value: Any) -> str:
    """`value` as text that is equal in all processes: the order of a set in its repr is not."""
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(_canonical_text, value))) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_canonical_text, value)) + ")"
    if is_dataclass(value):
        return type(value).__name__ + _canonical_text(tuple([getattr(value, f.name) for f in fields(value)]))
    return repr(value)


def text(opts: Sequence[Opt]) -> str:
    return json.dumps([[o.op.name, o.axis, o.arg] for o in opts])


def read(text: str) -> tuple[Opt, ...]:
    return tuple(Opt(OptOp[name], axis, arg) for name, axis, arg in json.loads(text))


def sealed(key: str, content: str) -> str:
    """A text as it is stored, with a checksum of it and its key: SQLite detects few changed bits."""
    return f"{hashlib.sha256(f'{key} {content}'.encode()).hexdigest()[:16]} {content}"


def unsealed(key: str, kept: Any) -> str:
    """The text of a sealed() text; ValueError if it is damaged."""
    content = kept[17:] if isinstance(kept, str) else ""
    if kept != sealed(key, content):
        raise ValueError("damaged")
    return content


def store_for(target: Target) -> Found | None:
    """The store of search results for a target; None also where rules were added at run time: they have no key for the disk."""
    return None if appended_key() or target.own_rules else found_here()


def found_here() -> Found | None:
    """The store of search results on this machine; None if there is no usable cache folder."""
    folder = cache_folder.part()
    return None if folder is None else Found(folder)


class Found:
    """The store of search results in one folder."""

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
        """The optimizations stored for `key`; None if there are none, or they cannot be read."""
        return self.look_up(key, read)

    def look_up(self, key: str, read: Callable[[str], T]) -> T | None:
        """The result of `read` for the text stored for `key`; None if there is none, or it cannot be read."""
        try:
            with self._open() as connection:
                row = connection.execute("select opts from found where key = ?", (key,)).fetchone()
            return None if row is None else read(unsealed(key, row[0]))
        except sqlite3.OperationalError:
            return self._read_only(key, read)  # a read-only folder
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
        """True after storing `opts` for `key`; False if the folder cannot be written."""
        return self.keep(key, text(opts))

    def keep(self, key: str, content: str) -> bool:
        """True after storing a text for `key`; False if the folder cannot be written."""
        try:
            with self._open() as connection:
                connection.execute(
                    "insert or replace into found values (?, ?, ?)", (key, sealed(key, content), time.time())
                )
            return True
        except sqlite3.OperationalError:
            return False
        except (OSError, sqlite3.DatabaseError):
            self._discard()
            return False

    def _discard(self) -> None:
        """Remove the file: it is no valid database."""
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self.path.with_name(self.path.name + suffix).unlink()
