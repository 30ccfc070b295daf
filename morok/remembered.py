"""A table of results that may be asked for again, bounded by number and by size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from morok.locks import REMEMBERED

V = TypeVar("V")

NODE: Final = 900  # bytes of a node, with what is found out about it in the course of time
_ENTRIES: Final = 1024
_BYTES: Final = 1 << 28


class Remembered(Generic[V]):
    """A dictionary of at most so many entries, and so many bytes together; the longest unused leave first. Safe under threads."""

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
        """Remember `value`, with which some `nbytes` are held; the last one stays, whatever it holds."""
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
