"""The estate of dead objects, kept for somebody who has time for it.

A finalizer in Python is no place for work: an interrupt that arrives there is printed and lost, and it runs inside whatever the
thread was doing. So nothing in Python runs when an owner dies: one step in C queues what it leaves behind.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Heir(weakref.ref[Any], Generic[T]):
    """A reference to an owner, with its estate."""

    __slots__ = ("left",)
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    left: T


class Estate(Generic[T]):
    """The heirs of dead owners, in the order in which these died: at most the last `most`, if given."""

    def __init__(self, most: int | None = None) -> None:
        self._due: deque[Heir[T]] = deque(maxlen=most)

    def leave(self, owner: Any, what: T) -> Heir[T]:
        """The heir that gets `what` when `owner` dies, if it is alive by then."""
        heir: Heir[T] = Heir(owner, self._due.append)
        heir.left = what
        return heir

    def taken(self) -> Iterator[Heir[T]]:
        """The heirs of the owners that have died since the last time."""
        while self._due:
            try:
                yield self._due.popleft()
            except IndexError:  # another thread was faster
                return
