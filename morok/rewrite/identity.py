"""Maps and keys by object identity, for objects that need not be hashable."""

from __future__ import annotations

from typing import Any


class IdentityMap:
    """A map keyed by object identity, with those methods of `dict` that the engine uses.

    It keeps its keys alive, so their addresses are not reused.
    """

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


class ByIdentity:
    """A hashable key for an object, equal to other keys of the same object. It keeps the object alive."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and other.of is self.of

    def __hash__(self) -> int:
        return id(self.of)
