"""Queues of the estates (resources) of dead objects, for later cleanup instead of finalizers.

Finalizers in Python must do no work: an interrupt that arrives in one is printed and lost, and it may run at any point of its
thread. So no Python code runs when an owner dies: a function in C appends its resource to a queue.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Heir(weakref.ref[Any], Generic[T]):
    """A weak reference to an owner, with `left`, the resource to clean up."""

    __slots__ = ("left",)
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    left: T


class Estate(Generic[T]):
    """A queue of references to dead owners, in order of death; at most the last `most`."""

    def __init__(self, most: int | None = None) -> None:
        self._due: deque[Heir[T]] = deque(maxlen=most)

    def leave(self, owner: Any, what: T) -> Heir[T]:
        """A reference that, if the caller keeps it, enters the queue, with `what`, when `owner` dies."""
        heir: Heir[T] = Heir(owner, self._due.append)
        heir.left = what
        return heir

    def taken(self) -> Iterator[Heir[T]]:
        """The references to owners that died since the last call."""
        while self._due:
            try:
                yield self._due.popleft()
            except IndexError:  # another thread was faster
                return
