"""Overlaps between written memory and other memory, as of several tensors over one array."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from morok.runtime.buffer import Buffer


class Spans:
    """A set of address ranges, with overlapping ranges merged."""

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
        """True if a range contains a byte of begin..end."""
        last = bisect_left(self.begins, end) - 1  # the last range that begins before `end`
        return begin < end and last >= 0 and self.ends[last] > begin
