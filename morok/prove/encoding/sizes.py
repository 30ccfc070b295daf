"""Sizes that stand for all others: lanes, lengths, ranks, trips, helpers' integers, axes.

A size is drawn from values by `Sizes` alone, and is noted there: a proof cannot rest on a choice among some values that its
extent (morok.dsl.extent) does not name. What `Choices.pick` chooses among is all that there is, as the alternatives of a pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from morok.dsl.extent import Extent, named, of_values
from morok.prove.encoding.obligation import Choices

T = TypeVar("T")


class Tried(Generic[T]):
    """Some values in place of all. They are asked of nothing but `Sizes`."""

    def __init__(self, values: Sequence[T], extent: Extent | None = None) -> None:
        self.__values = tuple(values)
        self.__extent = extent

    def extent(self, what: str, of: str) -> Extent:
        """The extent of one thing that these values cover."""
        what, of = named(what, of)
        if self.__extent is not None:
            return self.__extent._replace(what=what, of=of)
        return of_values(what, of, [v for v in self.__values if isinstance(v, int)])

    def __len__(self) -> int:
        return len(self.__values)

    def _values(self) -> tuple[T, ...]:
        return self.__values


class Sizes:
    """Where a reading gets its sizes: what they are chosen among is noted in the world that the question is about."""

    def __init__(self, choices: Choices, world: Any) -> None:
        self.choices = choices
        self.world = world

    def one(self, what: str, of: str, tried: Tried[T]) -> T:
        """One of these values, for something that the rule calls so."""
        values = self.all(what, of, tried)
        return values[self.choices.pick(len(values))]

    def all(self, what: str, of: str, tried: Tried[T]) -> tuple[T, ...]:
        """All of these values, for a choice among those of them that there can be."""
        self.world.tries(tried.extent(what, of))
        return tried._values()


def numbers(*values: int) -> Tried[int]:
    return Tried(values)
