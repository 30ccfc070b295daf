"""Overlaps of written memory with other memory: several tensors may lie over one array."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from morok.runtime.buffer import Buffer


class Spans:
    """Places in memory, joined where they overlap."""

    def __init__(self, memory: Iterable[Buffer]) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []
        for begin, end in sorted((m.address, m.address + m.nbytes) for m in memory if m.nbytes):
            if self.ends and begin < self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.begins.append(begin)
                self.ends.append(end)

    def overlap(self, begin: int, end: int) -> bool:
        """True if one of them has a part of these bytes."""
        last = bisect_left(self.begins, end) - 1  # the last one that begins before the end
        return begin < end and last >= 0 and self.ends[last] > begin
