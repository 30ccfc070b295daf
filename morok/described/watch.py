"""The check of the objects that a function reaches, before each call of its plan: one pass in C over their references, which
compares each by identity with the earlier one.
"""

from __future__ import annotations

import gc
import threading
import types
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from operator import attrgetter, call, is_
from typing import Any, Final

import numpy as np

from morok.described.code_names import dict_of
from morok.described.value_keys import is_a

# the parts of a function that may be replaced
_state_of: Final = attrgetter("__code__", "__defaults__", "__kwdefaults__", "__dict__")
elements_of: Final[Any] = vars(np.ndarray)["flat"].__get__  # past what a class of arrays defines
_END: Final = object()
ABSENT: Final = object()


class Watch:
    """Objects whose references are compared with those at the time of `begin`.

    keyed      dicts, whose keys are compared by equality: texts
    views      keys of dicts, compared by identity
    watched    objects, all references of which are compared
    partly     objects, of which the class and the dict are compared
    typed      dicts, of which the classes of the values are compared
    slots      attributes in slots: the descriptors, and the objects
    named      values by name: the dicts, and the names
    functions  functions, of which the parts that may be replaced are compared
    arrays     arrays of objects, whose elements are compared
    calls      functions without arguments, whose values are compared
    raw        (object, its bytes), compared by the bytes
    """

    def __init__(self) -> None:
        self.keyed: list[Iterable[Any]] = []
        self.views: list[Iterable[Any]] = []
        self.watched: list[Any] = []
        self.partly: list[Any] = []
        self.typed: list[dict[str, Any]] = []
        self.slots: tuple[list[Any], list[Any]] = ([], [])
        self.named: tuple[list[dict[str, Any]], list[str]] = ([], [])
        self.functions: list[types.FunctionType] = []
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.calls: list[Any] = []
        self.raw: list[tuple[Any, bytes | None]] = []

    def begin(self) -> None:
        """Take the references that `unchanged` compares with."""
        self._referring = tuple(self.watched)
        self._referents = gc.get_referents(*self._referring)
        self._there, self._keys = [*self._elements()], [*chain.from_iterable(self.keyed)]

    def _elements(self) -> Iterator[Any]:
        there = [*self.views]
        if self.named[0]:
            there.append(map(dict.get, *self.named, repeat(ABSENT)))
        if self.partly:
            there += [map(type, self.partly), map(own_dict, self.partly)]
        if self.typed:
            there.append(map(type, chain.from_iterable(map(dict.values, self.typed))))
        if self.slots[0]:
            there.append(map(read_slot, *self.slots))
        if self.functions:
            there.append(chain.from_iterable(map(_state_of, self.functions)))
        if self.arrays:
            there.append(chain.from_iterable(map(elements_of, self.arrays)))
        if self.calls:
            there.append(map(call, self.calls))
        there.append((_END,))
        return chain.from_iterable(there)

    def unchanged(self) -> bool:
        """True if every value is the same object as before. False decides nothing: the new object may be equal."""
        if self._referring:
            found = gc.get_referents(*self._referring)
            if len(found) != len(self._referents) or not all(map(is_, found, self._referents)):
                return False
        try:
            if not all(map(is_, self._elements(), self._there)):
                return False
            if self.keyed and [*chain.from_iterable(self.keyed)] != self._keys:
                return False
        except Exception:  # a dict changed meanwhile; code of the user's
            return False
        return not self.raw or all(bytes_of(value) == content for value, content in self.raw)


def bytes_of(value: Any) -> bytes | None:
    """The bytes of a value; None if it has none now, as a memoryview that is released."""
    try:
        return bytes(memoryview(value))
    except (TypeError, ValueError, NotImplementedError):
        return None


def read_slot(member: Any, value: Any) -> Any:
    """The content of a slot of an object, read past the class's own `__getattr__`; `ABSENT` if there is none."""
    try:
        return member.__get__(value)
    except (AttributeError, TypeError, ValueError, SystemError):
        return ABSENT


def own_dict(value: Any) -> Any:
    """The dict of an object's attributes, whatever `__dict__` its class defines; None if it has none."""
    kind: Any = type(value)
    if (found := dict_of(kind)) is None:
        return threading.local.__getattribute__(value, "__dict__") if is_a(value, threading.local) else None
    try:
        own = found.__get__(value)
    except (AttributeError, TypeError):
        return None
    return own if is_a(own, dict) else None
