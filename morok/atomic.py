"""Files that are whole or not there: written beside their place and renamed, read no further than they may reach."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Final

ABANDONED_SECONDS: Final = 3600.0
PART: Final = ".part"  # the end of a name that a killed writer leaves behind


def write(path: Path, content: bytes) -> None:
    """Put `content` in the place of the file, whole, or raise OSError and leave the old content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}{PART}")
    try:
        part.write_bytes(content)
        part.replace(path)
    except BaseException as problem:
        if isinstance(problem, OSError) and problem.filename is None:
            problem.filename = str(path)  # a full disk does not say which file it has no room for
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def sweep(path: Path) -> None:
    """Remove files that killed writers have left beside it, an hour ago or more."""
    with contextlib.suppress(OSError):
        for part in path.parent.iterdir():
            mine = part.name.startswith(f"{path.name}.") and part.name.endswith(PART)
            if mine and time.time() - part.stat().st_mtime > ABANDONED_SECONDS:
                part.unlink()


def read(path: Path, most: int) -> bytes:
    """The bytes of a file: one more than `most` of one that has more. OSError where there is none."""
    with path.open("rb") as file:
        return file.read(most + 1)
