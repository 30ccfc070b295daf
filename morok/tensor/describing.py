"""The record of a description (trace) of a function by `morok.jit`: tensors made and written, random numbers drawn.

A description is a call of the function that computes nothing that depends on the call. The elements of its arguments and random
numbers are unknown: `unknown` Buffer nodes, without memory, represent them.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from morok.caller import caller
from morok.errors import JitEffectError, JitError, JitValueError
from morok.ir.cell import facts_of
from morok.ir.graph import toposort
from morok.ir.op import Op
from morok.ir.ranges import remember
from morok.ir.ranges import unknown as unvisited

if TYPE_CHECKING:
    import numpy as np

    from morok.ir.uop import UOp
    from morok.runtime.buffer import Buffer
    from morok.tensor.base import Lazy

Problem = TypeVar("Problem", bound=JitError)
Place = tuple[Any, ...]  # of an ndarray: see place_of()
_DEPENDS: Final = "depends"  # key in a node's memo: the words for an unknown value in its graph, or None
_UNKNOWN: Final = object()  # key in a Buffer node's memo: the description, in words, of an unknown value
_current: Final[contextvars.ContextVar[Description | None]] = contextvars.ContextVar("morok description", default=None)
current: Final = _current.get
descriptions: Final[list[Description]] = []  # in progress, of all threads
_planning: Final[contextvars.ContextVar[bool]] = contextvars.ContextVar("morok planning", default=False)


def _forget() -> None:
    """End the descriptions of other threads, in a forked child: only the thread that forked runs there."""
    mine = current()
    descriptions[:] = [d for d in descriptions if d is mine]


os.register_at_fork(after_in_child=_forget)


def unknown(node: UOp, what: str) -> UOp:
    """`node`, a Buffer node, marked as unknown during a description; `what` names its value in error messages."""
    facts_of(node)[_UNKNOWN] = what
    return node


def stands_for(node: UOp) -> str | None:
    """The words for the value of an unknown node, as in unknown(); None for any other node."""
    found: str | None = node.memo.get(_UNKNOWN)
    return found


def refuse(what: str) -> JitValueError:
    """The error for elements that are needed while a function is described. The description keeps it: it has failed, even if
    the function catches the error.
    """
    return _kept(
        JitValueError(
            f"elements that depend on {what} are needed while a function is described",
            place=caller(),
            expected="tensors as results; where() in place of if",
            hint="pass numbers that the function needs in Python as Python numbers: each gets a plan of its own",
        )
    )


def _kept(problem: Problem) -> Problem:
    """The error, kept by the description in which it is raised."""
    here = current()
    # None elsewhere: in a thread that the function has started
    for description in descriptions if here is None else (here,):
        description.refused = description.refused or problem
    return problem


def refuse_elsewhere(node: UOp) -> None:
    """JitEffectError if a node depends on unknown values, although this thread or task describes nothing: the function that is
    described has started it. While nothing is described this need not be asked.
    """
    if _planning.get():
        return
    for n in unvisited(node, _DEPENDS):
        remember(n, _DEPENDS, stands_for(n) or next((word for s in n.src if (word := s.memo[_DEPENDS])), None))
    what: str | None = node.memo[_DEPENDS]
    if what is not None:
        raise _kept(
            JitEffectError(
                f"a tensor that depends on {what} is made or written in another thread than the function that is described",
                place=caller(),
                expected="a function that works in one thread",
                hint="start the thread with the function's context: contextvars.copy_context().run",
            )
        )


@contextlib.contextmanager
def planning() -> Iterator[None]:
    """A context in which this thread or task makes a plan of what it has described, whose nodes depend on unknown values."""
    token = _planning.set(True)
    try:
        yield
    finally:
        _planning.reset(token)


def described_as(tensor: Lazy) -> UOp:
    """The node of a tensor as this thread or task sees it, while functions are described."""
    description = current()
    found = description.now.get(id(tensor)) if description is not None else None
    return tensor._uop if found is None else found


class Description:
    """One description. A tensor is outer if it is older than the description.

    made      the tensors that the description made
    before    (tensor, node before the first write) of each outer tensor written, by identity
    now       their nodes in the description, by identity: other threads, and the program afterwards, see the nodes before
    marks     the marks of these tensors since their writes, by identity (see viewed.py)
    stands    (stand-in, its mark when the description began) of each tensor among the arguments, by identity
    assigned  the Assign nodes of these writes
    keys      a node for each random key, in the order drawn; the nodes of an earlier description are used again
    events    in order, a seed for each call that sets it, and None for each key drawn
    arrays    for Buffer nodes made of an ndarray: the array, the dtype it was converted to, True if it was copied
    reads     (memory, bytes) of each outer buffer whose elements Python read, or a tensor computed in the description, by the
              serial number of the node
    elements  (array, bytes) of each ndarray whose elements became numbers of the graph, by its place in memory
    written_arrays  (node, True if in other memory) of the tensor over each array that an inner jitted function writes
    constants  the nodes that stand for arguments which are constants, without memory: the arguments' numbers
    without_memory  the numbers of those whose views it writes, as it may not if they have memory
    computed  True if outer tensors were computed
    refused   the first error for elements that were needed, or for work in another thread
    born      Buffer nodes whose name is this or greater were made by the description
    """

    def __init__(self, born: int, keys: list[UOp], new_key: Callable[[str], UOp]) -> None:
        self.made: list[weakref.ref[Lazy]] = []
        self.before: dict[int, tuple[Lazy, UOp]] = {}
        self.now: dict[int, UOp] = {}
        self.marks: dict[int, object] = {}
        self.stands: dict[int, tuple[weakref.ref[Lazy], object]] = {}
        self.assigned: set[UOp] = set()
        self.keys = keys
        self.events: list[int | None] = []
        self.arrays: dict[UOp, tuple[np.ndarray[Any, Any], np.dtype[Any], bool]] = {}
        self.reads: dict[int, tuple[Buffer, bytes]] = {}
        self.elements: dict[Place, tuple[np.ndarray[Any, Any], bytes]] = {}
        self.written_arrays: list[tuple[UOp, bool]] = []
        self.constants: dict[UOp, int] = {}
        self.without_memory: set[int] = set()
        self.computed = False
        self.refused: JitError | None = None
        self.born = born
        self._own: set[int] = set()
        self._new_key = new_key

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """A context in which this description is the current one, in this thread or task."""
        token = _current.set(self)
        descriptions.append(self)
        try:
            yield
        finally:
            descriptions.remove(self)
            _current.reset(token)

    def note(self, tensor: Lazy) -> None:
        """Record a new tensor."""
        self.made.append(weakref.ref(tensor))
        self._own.add(id(tensor))  # an id used again belongs to a new tensor, which is recorded here too

    def is_own(self, tensor: Lazy) -> bool:
        return id(tensor) in self._own

    def write(self, tensor: Lazy, uop: UOp) -> bool:
        """True if the tensor is outer, and is `uop` in this description from now on; False for one that the description made."""
        if self.is_own(tensor):
            return False
        self.before.setdefault(id(tensor), (tensor, tensor.uop))
        self.now[id(tensor)] = uop
        self.marks.pop(id(tensor), None)
        if uop.op is Op.Assign:
            self.assigned.add(uop)
        return True

    def writes(self, uop: UOp) -> bool:
        """True if a node contains writes of the function."""
        return any(node.op is Op.Assign for node in toposort([uop]))

    def key(self, device: str) -> UOp:
        """The unknown node of the next random key."""
        k = sum(e is None for e in self.events)
        self.events.append(None)
        if k == len(self.keys):
            self.keys.append(unknown(self._new_key(device), "random numbers"))
        return self.keys[k]

    def admit(self, tensors: Iterable[Lazy]) -> None:
        """JitValueError if computing these tensors now needs unknown values, or the values that the function writes."""
        tensors = list(tensors)
        for node in toposort([t.uop for t in tensors]):
            if node.op is Op.Buffer and (what := stands_for(node)) is not None:
                raise refuse(what)
            if node in self.assigned:
                raise refuse("writes of the function")
        self.computed = self.computed or any(not self.is_own(t) and t.uop.op is not Op.Reshape for t in tensors)

    def read(self, uop: UOp, memory_of: Callable[[UOp], Buffer | None]) -> None:
        """Record the elements of the outer buffers and of the arrays of `uop`, which are about to be read."""
        for node in toposort([uop]):
            if node in self.arrays:
                self.read_array(self.arrays[node][0])
            elif node.op is Op.Buffer and node.src[0].arg < self.born and node.serial not in self.reads:
                memory = memory_of(node)
                if memory is not None and memory.is_allocated:
                    self.reads[node.serial] = memory, memory.numpy().tobytes()

    def admit_buffer(self, tensor: Lazy, node: UOp, memory: Buffer | None) -> None:
        """JitValueError if a tensor's memory, that of its innermost node, is not the same in each call; else its elements are
        recorded.
        """
        if (what := stands_for(node)) is not None:
            raise refuse(what)
        if memory is not None:
            self.read(node, lambda _: memory)
        elif not (self.is_own(tensor) or id(tensor) in self.now or node.op is Op.Const):
            raise refuse("a tensor that is not computed yet")

    def read_array(self, data: Any) -> None:
        """Record the elements of an ndarray, or of those in nested lists, which are about to be read."""
        if isinstance(data, (list, tuple)):
            for part in data:
                self.read_array(part)
        elif hasattr(data, "__array_interface__"):
            self.elements.setdefault(place_of(data), (data, data.tobytes()))


def place_of(array: np.ndarray[Any, Any]) -> Place:
    """The place of an ndarray in memory: equal for two views of the same elements."""
    there = array.__array_interface__
    return there["data"], there["typestr"], array.shape, array.strides


def read_array(data: Any) -> Any:
    """`data`; the function that is being described, if there is one, needs the elements of the ndarrays in it as numbers."""
    if (description := current()) is not None:
        description.read_array(data)
    return data
