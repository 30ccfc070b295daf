"""A cache on disk for matchers, indexes and what was found about rules. A missing or damaged entry is made again."""

from __future__ import annotations

import json
from typing import Any, Final

from morok.disk_cache import cache_of

FOLDER: Final = "rules"
LIMIT: Final = 128 << 20  # bytes: five times the size after all of Morok's tests


def load(key: str) -> bytes | None:
    """The bytes under `key`; None if there is no intact entry."""
    cache = cache_of(FOLDER, LIMIT)
    return None if cache is None else cache.get(key)


def save(key: str, payload: bytes) -> None:
    """Store the bytes under `key`, whole or not at all. An unwritable folder is no error: the entry is made again each time."""
    cache = cache_of(FOLDER, LIMIT)
    if cache is not None:
        cache.put(key, payload)


def load_json(key: str) -> Any:
    """The value that `save_json` stored under `key`; None if there is no intact entry."""
    kept = load(key)
    return None if kept is None else json.loads(kept)


def save_json(key: str, value: Any) -> None:
    """Store a value of lists, texts and numbers under `key`, as `save` does."""
    save(key, json.dumps(value).encode())
