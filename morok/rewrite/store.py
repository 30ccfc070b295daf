"""A folder of things that can be made again: what cannot be read, or is not what was written, is made again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from pathlib import Path

from morok import config

_DIGEST = 32


def _path(key: str) -> Path:
    return config.cache_dir() / "rules" / key


def load(key: str) -> bytes | None:
    """What was kept under `key`; None if there is nothing whole."""
    try:
        content = _path(key).read_bytes()
    except OSError:
        return None
    payload = content[_DIGEST:]
    return payload if hashlib.sha256(payload).digest() == content[:_DIGEST] else None


def save(key: str, payload: bytes) -> None:
    """Keep `payload`, whole or not at all. A folder that cannot be written is no error: it only costs time."""
    path = _path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{key}.{os.getpid()}.{threading.get_ident()}.part")
        try:
            part.write_bytes(hashlib.sha256(payload).digest() + payload)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
