"""A folder of files that can be made again: an unreadable or changed file is made again."""

from __future__ import annotations

from typing import Final

from morok.disk_cache import cache_of

FOLDER: Final = "rules"
LIMIT: Final = 128 << 20  # bytes: five times what the tests of all of Morok leave there


def load(key: str) -> bytes | None:
    """The bytes kept under `key`; None if there is nothing whole."""
    cache = cache_of(FOLDER, LIMIT)
    return None if cache is None else cache.get(key)


def save(key: str, payload: bytes) -> None:
    """Keep `payload`, whole or not at all. A folder that cannot be written is no error: it only costs time."""
    cache = cache_of(FOLDER, LIMIT)
    if cache is not None:
        cache.put(key, payload)
