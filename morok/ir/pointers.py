"""The table of pointer types, in which one stays for as long as somebody has it: there are as many as sizes of memory.

`ir.dtype` makes them and asks here. What is written there is part of every proof; how long a type lives means nothing to any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from morok.ir.alive import Alive
from morok.ir.dtype import PtrType


class Pointers(dict[Any, PtrType]):
    """A table as `PtrType.of` uses it; the types are in `alive`."""

    def __init__(self, before: Mapping[Any, PtrType]) -> None:
        self.alive: Alive[PtrType] = Alive()
        for key, made in before.items():
            self.alive.entered(key, made)

    def get(self, key: Any, default: Any = None) -> Any:
        entry = self.alive.get(key)
        return default if entry is None else entry()

    def setdefault(self, key: Any, default: Any = None) -> PtrType:
        return self.alive.entered(key, default)


PtrType._interned = Pointers(PtrType._interned)
