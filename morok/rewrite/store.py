"""A folder of things that can be made again: what cannot be read, or is not what was written, is made again."""

from __future__ import annotations

import contextlib
import hashlib

from morok import atomic, cache_folder

_DIGEST = 32


def load(key: str) -> bytes | None:
    """What was kept under `key`; None if there is nothing whole."""
    folder = cache_folder.part("rules")
    if folder is None:
        return None
    try:
        content = (folder / key).read_bytes()
    except OSError:
        return None
    payload = content[_DIGEST:]
    return payload if hashlib.sha256(payload).digest() == content[:_DIGEST] else None


def save(key: str, payload: bytes) -> None:
    """Keep `payload`, whole or not at all. A folder that cannot be written is no error: it only costs time."""
    folder = cache_folder.part("rules")
    if folder is None:
        return
    with contextlib.suppress(OSError):
        cache_folder.make(folder)
        atomic.write(folder / key, hashlib.sha256(payload).digest() + payload)
