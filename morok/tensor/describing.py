"""The notes taken while a function of tensors is described (`morok.jit`): tensors made and written, random numbers drawn.

A description is a call of the function in which nothing is computed that depends on the call. What the arguments hold is not
known in it, nor are random numbers: Buffer nodes without memory stand for them, its `unknown` nodes.
"""

from __future__ import annotations

import contextlib
import contextvars
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from morok.caller import caller
from morok.errors import JitValueError
from morok.ir.cell import facts_of
from morok.ir.graph import toposort
from morok.ir.op import Op

if TYPE_CHECKING:
    import numpy as np

    from morok.ir.uop import UOp
    from morok.runtime.buffer import Buffer
    from morok.tensor.base import Lazy

_UNKNOWN: Final = object()  # under which a Buffer node keeps what it stands for, in words
_current: Final[contextvars.ContextVar[Description | None]] = contextvars.ContextVar("morok description", default=None)
current: Final = _current.get
descriptions: Final[list[Description]] = []  # those that any thread is at


def unknown(node: UOp, what: str) -> UOp:
    """A Buffer node that stands for `what`, which has no elements while a function is described."""
    facts_of(node)[_UNKNOWN] = what
    return node


def stands_for(node: UOp) -> str | None:
    """The thing that an unknown node stands for; None for any other node."""
    found: str | None = node.memo.get(_UNKNOWN)
    return found


def refuse(what: str) -> JitValueError:
    return JitValueError(
        f"the elements of what depends on {what} are asked for while a function is described",
        place=caller(),
        expected="tensors as results; where() in place of if",
        hint="what the function reads in Python, pass as a Python number: there is a plan for each",
    )


def described_as(tensor: Lazy) -> UOp:
    """The node of a tensor as this thread or task sees it, while functions are described."""
    description = current()
    found = description.now.get(id(tensor)) if description is not None else None
    return tensor._uop if found is None else found


class Description:
    """One description.

    made      the tensors that it made
    before    of the tensors written in it that had been there, what they were: by identity
    now       what they are in it, and nowhere else: other threads, and the program afterwards, see what they were
    assigned  the Assign nodes of these writes
    keys      a node for each random key, in the order in which they are drawn; those of an earlier description are used again
    events    the seeds that are set, and None for each key that is drawn
    arrays    the ndarrays that Buffer nodes were made of: the array, the dtype it was converted to, and whether it was copied
    reads     of memory that was there and that Python has looked at, the serial number of its node, itself, and its bytes
    computed  whether tensors that had been there were computed
    born      of Buffer nodes whose name is this or greater, the description made them
    """

    def __init__(self, born: int, keys: list[UOp], new_key: Callable[[str], UOp]) -> None:
        self.made: list[weakref.ref[Lazy]] = []
        self.before: dict[int, tuple[Lazy, UOp]] = {}
        self.now: dict[int, UOp] = {}
        self.assigned: set[UOp] = set()
        self.keys = keys
        self.events: list[int | None] = []
        self.arrays: dict[UOp, tuple[np.ndarray[Any, Any], np.dtype[Any], bool]] = {}
        self.reads: list[tuple[int, Buffer, bytes]] = []
        self.computed = False
        self.born = born
        self._own: set[int] = set()
        self._new_key = new_key

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """This description is the current one, in this thread or task."""
        token = _current.set(self)
        descriptions.append(self)
        try:
            yield
        finally:
            descriptions.remove(self)
            _current.reset(token)

    def note(self, tensor: Lazy) -> None:
        """A tensor was made."""
        self.made.append(weakref.ref(tensor))
        self._own.add(id(tensor))  # an identity that is used again is a new tensor's, made here too

    def is_own(self, tensor: Lazy) -> bool:
        return id(tensor) in self._own

    def write(self, tensor: Lazy, uop: UOp) -> bool:
        """Let a tensor that had been there be `uop` in this description; False for one that the description made."""
        if self.is_own(tensor):
            return False
        self.before.setdefault(id(tensor), (tensor, tensor.uop))
        self.now[id(tensor)] = uop
        if uop.op is Op.Assign:
            self.assigned.add(uop)
        return True

    def key(self, device: str) -> UOp:
        """The node of the next random key."""
        k = sum(e is None for e in self.events)
        self.events.append(None)
        if k == len(self.keys):
            self.keys.append(unknown(self._new_key(device), "random numbers"))
        return self.keys[k]

    def admit(self, tensors: Iterable[Lazy]) -> None:
        """JitValueError where computing these tensors now needs unknown values, or would write for good."""
        tensors = list(tensors)
        for node in toposort([t.uop for t in tensors]):
            if node.op is Op.Buffer and (what := stands_for(node)) is not None:
                raise refuse(what)
            if node in self.assigned:
                raise refuse("what the function writes")
        self.computed = self.computed or any(not self.is_own(t) and t.uop.op is not Op.Reshape for t in tensors)

    def read(self, uop: UOp, memory_of: Callable[[UOp], Buffer | None]) -> None:
        """Python is about to look at the elements of `uop`: of memory that had been there they are noted."""
        for node in toposort([uop]):
            if node.op is Op.Buffer and node.src[0].arg < self.born:
                memory = memory_of(node)
                if memory is not None and memory.is_allocated:
                    self.reads.append((node.serial, memory, memory.numpy().tobytes()))
