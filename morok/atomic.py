"""Atomic writing of files, by writing a temporary file and renaming it; and reading up to a size."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
ABANDONED_SECONDS: Final = 3600.0
PART: Final = ".part"  # suffix of temporary files, which a killed writer leaves behind


@contextlib.contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """A context in which an OSError without a file name gets this one: a full disk has none."""
    try:
        yield
    except OSError as problem:
        if problem.filename is None:
            problem.filename = str(path)
        raise


def write(path: Path, content: bytes, mode: int | None = None) -> None:
    """Replace the content of the file atomically, and its permissions if given; OSError, with the old content intact."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}{PART}")
    try:
        with naming(path):
            part.write_bytes(content)
            if mode is not None:
                part.chmod(stat.S_IMODE(mode))
            part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def rewrite(path: Path, text: str) -> None:
    """Replace the text of a user's file atomically; OSError, with the old text intact. Its permissions stay, a link stays a link,
    and a file that may not be written is refused.
    """
    with path.open("r+b"):
        pass
    write(path.resolve(), text.encode(), path.stat().st_mode)


def sweep(path: Path) -> None:
    """Remove temporary files for `path` that killed writers left an hour ago or more."""
    with contextlib.suppress(OSError):
        for part in path.parent.iterdir():
            mine = part.name.startswith(f"{path.name}.") and part.name.endswith(PART)
            if mine and time.time() - part.stat().st_mtime > ABANDONED_SECONDS:
                part.unlink()


def read(path: Path, most: int, own: bool = False) -> bytes:
    """The first `most` + 1 bytes of a file: more than `most` if it is too large. OSError if it cannot be read, or is no file:
    a pipe would be waited for, and is read once.

    own  refuse a file of another user, and one that others can write
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    with path.open("rb") as file:
        if own:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & OTHERS:
                raise OSError(errno.EPERM, "others can write to it", str(path))
        return file.read(most + 1)
