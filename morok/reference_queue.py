"""Queues of the resources of dead objects, to be released later, instead of by finalizers.

Finalizers in Python must do no work: an interrupt that arrives in one is printed and lost, and it may run at any point of its
thread. So no Python code runs when an owner dies: a function in C appends its resource to a queue.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class OwnerReference(weakref.ref[Any], Generic[T]):
    """A weak reference to the owner of a resource, with the `resource` to release after the owner's death."""

    __slots__ = ("resource",)
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    resource: T


class ReferenceQueue(Generic[T]):
    """A queue of references to dead owners, in order of death; at most the last `most`."""

    def __init__(self, most: int | None = None) -> None:
        self._due: deque[OwnerReference[T]] = deque(maxlen=most)

    def watch(self, owner: Any, what: T) -> OwnerReference[T]:
        """A reference to `owner` with `what` as resource. If the caller keeps it, it enters the queue when `owner` dies."""
        reference: OwnerReference[T] = OwnerReference(owner, self._due.append)
        reference.resource = what
        return reference

    def drain(self) -> Iterator[OwnerReference[T]]:
        """The references to owners that died since the last call, removed from the queue."""
        while self._due:
            try:
                yield self._due.popleft()
            except IndexError:  # another thread was faster
                return
