"""A least-recently-used cache, bounded by the number and the size of its entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from morok.locks import REMEMBERED

V = TypeVar("V")

NODE: Final = 900  # estimated bytes of a node, with the facts cached in it
_ENTRIES: Final = 1024
_BYTES: Final = 1 << 28


class Remembered(Generic[V]):
    """A dictionary of at most `entries` entries and `nbytes` bytes; the least recently used are dropped first. Thread-safe."""

    def __init__(self, entries: int = _ENTRIES, nbytes: int = _BYTES) -> None:
        self.entries, self.nbytes = entries, nbytes
        self.held = 0
        self._entries: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> V | None:
        with REMEMBERED:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: V, nbytes: int) -> None:
        """Store `value`, of about `nbytes` bytes; the newest entry stays, even above the limit."""
        with REMEMBERED:
            old = self._entries.pop(key, None)
            self._entries[key] = value, nbytes
            self.held += nbytes if old is None else nbytes - old[1]
            while len(self._entries) > self.entries or (self.held > self.nbytes and len(self._entries) > 1):
                _, (_, gone) = self._entries.popitem(last=False)
                self.held -= gone

    def clear(self) -> None:
        with REMEMBERED:
            self._entries.clear()
            self.held = 0
