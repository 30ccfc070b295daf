"""Sizes that stand for all others: lanes, lengths, ranks, trips.

A size is drawn from values by `Sizes` alone, and is noted there: a proof cannot rest on a choice among some values that its
extent (morok.dsl.extent) does not name. What `Choices.pick` chooses among is all that there is, as the alternatives of a pattern.
"""

from __future__ import annotations

from typing import Any

from morok.dsl.extent import Extent, named, of_values
from morok.prove.encoding.obligation import Choices


class Tried:
    """Some sizes in place of all. They are asked of nothing but `Sizes`."""

    def __init__(self, *values: int) -> None:
        self.__values = values

    def extent(self, what: str, of: str) -> Extent:
        """The extent of one thing that these values cover."""
        return of_values(*named(what, of), self.__values)

    def _values(self) -> tuple[int, ...]:
        return self.__values


class Sizes:
    """The source of a reading's sizes: what they are chosen among is noted in the world that the question is about."""

    def __init__(self, choices: Choices, world: Any) -> None:
        self.choices = choices
        self.world = world

    def one(self, what: str, of: str, tried: Tried) -> int:
        """One of these values, for something that the rule calls so."""
        self.world.tries(tried.extent(what, of))
        values = tried._values()
        return values[self.choices.pick(len(values))]
