"""A map keyed by the identity of nodes that need not be hashable."""

from __future__ import annotations

from typing import Any


class IdentityMap:
    """The part of a dict that the engine needs. Keys are kept alive, so that an address is never reused."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: dict[int, tuple[Any, Any]] = {}

    def get(self, key: Any) -> Any:
        """The value of `key`, or None."""
        found = self._items.get(id(key))
        return None if found is None else found[1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[id(key)] = (key, value)

    def __getitem__(self, key: Any) -> Any:
        return self._items[id(key)][1]
