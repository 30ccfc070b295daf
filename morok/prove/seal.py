"""The seal of the built-in ledger: for each rule file a digest of its bytes, of its page's, and of the sources of its verdicts.

It is made where page and file have been compared rule by rule, and spares every process to do so again. A file that lacks its
line, or has another, is compared. A merge of two branches leaves the lines of both, and `morok prove --write` the right one.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from morok import atomic
from morok.prove import fingerprints

NAME: Final = "seal"
_MOST: Final = 1 << 20


def line(content: bytes, page: bytes, sources: str) -> str:
    """The line that vouches for a rule file of these bytes."""
    return fingerprints.digest(f"{fingerprints.digest(content)} {fingerprints.digest(page)} {sources}")


def holds(folder: Path, file: str, wanted: str) -> bool:
    """True if the seal in a folder has this line for a file."""
    path = folder / NAME
    try:
        status = path.stat()
    except OSError:
        return False
    return f"{file} {wanted}" in _lines(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=4)
def _lines(path: Path, *stamp: int) -> frozenset[str]:
    try:
        return frozenset(atomic.read(path, _MOST).decode().splitlines())
    except (OSError, ValueError):
        return frozenset()


def read(folder: Path) -> dict[str, str]:
    """The last line of each file; none of a seal that is damaged."""
    path = folder / NAME
    try:
        rows = [row.split(" ") for row in atomic.read(path, _MOST).decode().splitlines()]
    except (OSError, ValueError):
        return {}
    return {row[0]: row[1] for row in rows if len(row) == 2}


def write(folder: Path, lines: Mapping[str, str]) -> None:
    """Make these the lines of the seal."""
    atomic.write(folder / NAME, "".join(f"{file} {wanted}\n" for file, wanted in sorted(lines.items())).encode())
