"""Tables of live objects, by key: one object for each key, for as long as somebody has it."""

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
    """Forget a key whose object has died; an interrupt that arrives here is lost, since it is raised in a callback."""
    with _lock:  # `entered` gets a new object into the table only behind this
        entry = table.get(key)
        if entry is not None and entry() is None:
            table.pop(key, None)


# How WeakValueDictionary forgets: one atomic step in C.
remove_dead: Final[Callable[[Any, Any], None]] = getattr(_weakref, "_remove_dead_weakref", in_python)


class Entry(weakref.ref[T]):
    """A weak reference to an object of a table.

    forget  removes it from there once the object has died
    """

    __slots__ = ("forget",)
    forget: Callable[[], None]


# What is called when an object dies: no Python, in which an interrupt that arrives would be lost.
forget: Final = operator.methodcaller("forget")


class Alive(dict[Any, Entry[T]], Generic[T]):
    """One table.

    remove  called with the key of an object that has died
    """

    __slots__ = ("remove",)

    def __init__(self) -> None:
        self.remove = functools.partial(remove_dead, self)

    def entered(self, key: Any, made: T) -> T:
        """The object behind `key`: `made`, unless another is alive."""
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
