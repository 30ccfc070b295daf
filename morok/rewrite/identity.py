"""Keys that are equal for one object alone, whether it is hashable or not."""

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


class Same:
    """A key that is equal to another of the same object alone, which it keeps alive."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.of is self.of

    def __hash__(self) -> int:
        return id(self.of)
