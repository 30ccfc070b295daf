"""A cache on disk, with one file for each entry, so that processes need no locks.

Files are written under a temporary name and renamed, so that readers see all of a file or nothing, even if the writer is killed;
they contain a digest of their key and data, since a power failure may leave a renamed file without its data, and a file may be
copied to the place of another. A read-only folder or a full disk disables the cache, without an error.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from morok import atomic, cache_folder

_MAGIC: Final = b"MRKOBJ2\n"
_PRUNE_AT: Final = "00"  # suffix of keys, which are hex digests, whose put() also prunes: one in 256
LIMIT: Final = 512 << 20
_ABANDONED_SECONDS: Final = 3600.0


class DiskCache:
    """Bytes by key in a folder, up to `limit` bytes in all; the least recently used entries are removed first."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.o"

    def get(self, key: str) -> bytes | None:
        """The bytes stored for `key`; None if there are none, or they cannot be read, are damaged, another key's, or in a file
        that somebody else can write: folders inside the cache may be open to others, though it is not.
        """
        path = self.path(key)
        try:
            data = atomic.read(path, self.limit, own=True)
        except OSError:
            return None
        head = len(_MAGIC) + 32
        value = data[head:]
        if data[:head] != _head(key, value):
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):  # a read-only folder
            os.utime(path)
        return value

    def put(self, key: str, value: bytes) -> bool:
        """True after storing `value` for `key`; False if the folder cannot be written."""
        import tempfile  # lazy: the import takes longer than finding a kernel

        path = self.path(key)
        temporary = ""
        try:
            self.folder.parent.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self.folder.parent, self.folder, path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(_head(key, value) + value)
            os.replace(temporary, path)
        except OSError:
            if temporary:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            return False
        if key.endswith(_PRUNE_AT):
            self.prune()
        return True

    def prune(self) -> None:
        """Remove files of killed writers, and the least recently used entries beyond the limit.

        Only two numbers for each entry are kept in memory: there may be hundreds of thousands.
        """
        times, sizes = array("d"), array("q")
        for used, size, _ in self._entries():
            times.append(used)
            sizes.append(size)
        beyond = sum(sizes) - self.limit
        if beyond <= 0:
            return
        for k in sorted(range(len(times)), key=times.__getitem__):
            beyond -= sizes[k]
            if beyond <= 0:
                self._remove_until(times[k])
                return

    def _remove_until(self, time_of_use: float) -> None:
        """Remove the entries last used at or before this time."""
        for used, _, path in self._entries():
            if used <= time_of_use:
                with contextlib.suppress(OSError):
                    os.unlink(path)

    def _entries(self) -> Iterator[tuple[float, int, str]]:
        """(time of last use, bytes, path) of each entry. Removes abandoned temporary files."""
        now = time.time()
        for file in _files(self.folder):
            try:
                status = file.stat(follow_symlinks=False)
            except OSError:
                continue  # another process removed it
            if not file.name.startswith(".new-"):
                yield status.st_mtime, status.st_size, file.path
            elif now - status.st_mtime > _ABANDONED_SECONDS:
                with contextlib.suppress(OSError):
                    os.unlink(file.path)


def _head(key: str, value: bytes) -> bytes:
    """The bytes before `value` in the entry of `key`, and in no other entry's."""
    sha = hashlib.sha256(f"{len(key)} {key}\n".encode())
    sha.update(value)
    return _MAGIC + sha.digest()


def _files(folder: os.DirEntry[str] | Path) -> Iterator[os.DirEntry[str]]:
    """The files in a folder and its subfolders, except unreadable ones."""
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry)
            else:
                yield entry


def cache_of(name: str, limit: int = LIMIT) -> DiskCache | None:
    """The cache in the folder `name`, of up to `limit` bytes; None if the cache folder must not be used."""
    folder = cache_folder.part(name)
    return None if folder is None else _cache_at(str(folder), limit)


@functools.lru_cache(maxsize=8)
def _cache_at(folder: str, limit: int) -> DiskCache:
    return DiskCache(Path(folder), limit)
