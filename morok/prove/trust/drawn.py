"""Random numbers that are written down, and can be drawn again with some of them less: what is made of them is then smaller."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

FIRST: Final = 8  # of the things that are chosen from, so many are tried in the place of one
UNIT: Final = 2.0**-53  # `choice` of what is drawn as k * UNIT is the item k
LAST: Final = 0.999  # no chance below 1 is met by it


class Drawn(random.Random):
    """Numbers that were drawn before, and random ones behind them. All methods draw by `random`, as Python says of subclasses.

    given  those drawn before
    drawn  all of them
    """

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.given: Sequence[float] = ()
        self.drawn: list[float] = []

    def random(self) -> float:
        at = len(self.drawn)
        self.drawn.append(self.given[at] if at < len(self.given) else super().random())
        return self.drawn[-1]


def less(drawn: Sequence[float]) -> Iterator[tuple[float, ...]]:
    """Other numbers to draw, one place after the other: an earlier choice, perhaps without what followed from it."""
    for i in range(len(drawn)):
        before, after = tuple(drawn[:i]), tuple(drawn[i + 1 :])
        yield before + after
        for first in (*(k * UNIT for k in range(FIRST)), LAST):
            if first != drawn[i]:
                yield (*before, first, *after)
                yield (*before, first, *after[1:])
                yield (*before, first)
