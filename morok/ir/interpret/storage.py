"""Memory of the interpreter: buffers of the caller, shared memory of a workgroup, registers of a thread."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from morok.arguments import shown
from morok.errors import IRError
from morok.ir.dtype import AddrSpace, DType, PtrType
from morok.ir.interpret.lane_values import INVALID, Pointer, Poison, known, zero
from morok.ir.op import Op

if TYPE_CHECKING:
    from morok.ir.interpret.lane_values import Lanes
    from morok.ir.uop import UOp

Buffers = dict[Any, list[Any]]  # by storage node or slot number
Read = tuple["Storage", int, int]  # a lane of memory, and the time of the read
Sources = tuple[frozenset[Read], ...]  # the reads that each lane of a value was computed from
Use = tuple[int, tuple[int, int], int]

ALLOCATED: Final = frozenset({Op.DefineLocal, Op.DefineReg})
NAMED: Final = frozenset({Op.Buffer, Op.Param, Op.DefineGlobal})


class Storage:
    """The lanes of one buffer; for registers, of one thread.

    For each lane, in this run: `writers` holds its last Store, `stored` the time of that, `uses` the uses since then of what was
    read there: the bit of the Store, its thread and lane, and the time. For what is computed where it is read, `sources` are the
    reads of each lane. For shared memory, `written` and `read` hold the thread (-1: several) and the epoch of the last store and
    the last read.
    """

    def __init__(self, node: UOp, data: list[Any], space: AddrSpace) -> None:
        self.node = node
        self.data = data
        self.space = space
        self.writers: dict[int, UOp] = {}
        self.stored: dict[int, int] = {}
        self.uses: dict[int, list[Use]] = {}
        self.sources: Sources = ()
        self.written: dict[int, tuple[int, int]] = {}
        self.read: dict[int, tuple[int, int]] = {}


class Memory:
    """All storage of one run. `epoch` counts barriers, `clock` stores of lanes, and where order is asked for reads and uses."""

    def __init__(self, buffers: Mapping[Any, list[Any]]) -> None:
        self.buffers = buffers
        self.shared: dict[Any, Storage] = {}
        self.private: dict[tuple[UOp, int], Storage] = {}
        self.epoch = 0
        self.clock = 0

    def tick(self) -> int:
        """The time of an access; the next one is later."""
        self.clock += 1
        return self.clock - 1

    def new_workgroup(self) -> None:
        """Forget shared memory and registers; the caller's buffers stay."""
        self.shared = {n: s for n, s in self.shared.items() if s.space is AddrSpace.GLOBAL}
        self.private = {}

    def storage_of(self, node: UOp, thread: int) -> Storage:
        """The storage that `node` defines."""
        if node.op is Op.DefineReg:
            key = (node, thread)
            found = self.private.get(key)
            if found is None:
                found = self.private[key] = Storage(node, _unwritten(node), AddrSpace.REG)
            return found
        found = self.shared.get(node)
        if found is None:
            if node.op is Op.DefineLocal:
                found = Storage(node, _unwritten(node), AddrSpace.LOCAL)
            else:
                found = Storage(node, self._contents(node), AddrSpace.GLOBAL)
            self.shared[node] = found
        return found

    def temporary(self, node: UOp, lanes: Lanes, sources: Sources = ()) -> Storage:
        """Storage for an element that is computed where it is read."""
        held = Storage(node, list(lanes), AddrSpace.REG)
        held.sources = sources
        return held

    def _contents(self, node: UOp) -> list[Any]:
        data = self.buffers.get(node)
        if data is None and node.op in (Op.Param, Op.DefineGlobal):
            data = self.buffers.get(node.arg)
        if data is None:
            raise IRError(f"no contents given for {node.text()}", hint="pass them in `buffers`, by node or by slot")
        if isinstance(data, (str, bytes, Mapping)) or not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
            raise IRError(f"the contents of {node.op.name} are {shown(data)}", expected="a list of elements")
        return data

    def load(self, at: Any, node: UOp, thread: int) -> Any:
        """The lane at `at`; 0 at an Invalid place, Poison outside the buffer."""
        if at is INVALID:
            return zero(node.dtype.scalar())
        if at.__class__ is Poison:
            return at
        assert isinstance(at, Pointer)
        storage, offset = at.storage, at.offset
        if not 0 <= offset < len(storage.data):
            return Poison(f"element {offset} of {len(storage.data)} in {storage.node.op.name}", node)
        if storage.space is AddrSpace.LOCAL:
            owner, epoch = storage.written.get(offset, (thread, -1))
            if owner != thread and epoch == self.epoch:
                return Poison(f"element {offset} was stored by another thread since the last barrier", node)
            reader, epoch = storage.read.get(offset, (thread, self.epoch))
            storage.read[offset] = (thread if reader == thread or epoch != self.epoch else -1, self.epoch)
        return storage.data[offset]

    def store(self, at: Any, value: Any, node: UOp, thread: int) -> None:
        """Write a lane; nothing at an Invalid place, and no value where the lane is Invalid: a load does not show that it may be
        Invalid, so memory holds none. Raises UndefinedError outside the buffer.
        """
        if at is INVALID:
            return
        known(at)
        assert isinstance(at, Pointer)
        storage, offset = at.storage, at.offset
        if not 0 <= offset < len(storage.data):
            raise Poison(f"element {offset} of {len(storage.data)} in {storage.node.op.name}", node).error()
        if storage.space is AddrSpace.LOCAL:
            reader, epoch = storage.read.get(offset, (thread, -1))
            if reader != thread and epoch == self.epoch:
                raise Poison(f"element {offset} was read by another thread since the last barrier", node).error()
            storage.written[offset] = (thread, self.epoch)
        storage.data[offset] = Poison("Invalid is stored, which is no value", node) if value is INVALID else value
        storage.writers[offset] = node
        storage.stored[offset] = self.tick()
        storage.uses.pop(offset, None)

    def check(self) -> None:
        """UndefinedError if the caller's memory holds Poison. IRError if an element was stored that is another buffer's, too."""
        given: dict[int, list[Storage]] = {}
        for storage in self.shared.values():
            if storage.space is AddrSpace.GLOBAL:
                given.setdefault(id(getattr(storage.data, "base", storage.data)), []).append(storage)
                for offset in storage.writers:
                    known(storage.data[offset])
        for one, other in (pair for alike in given.values() for pair in itertools.permutations(alike, 2)):
            _apart(one, other)


def _apart(one: Storage, other: Storage) -> None:
    """IRError if a buffer has an element that was stored to another one."""
    shift = getattr(one.data, "offset", 0) - getattr(other.data, "offset", 0)
    d = other.node.dtype
    size = d.size * d.base.count if isinstance(d, PtrType) and d.size >= 0 else len(other.data)
    if any(0 <= at + shift < size for at in one.writers):
        raise IRError(
            f"{one.node.text()} and {other.node.text()} are one memory, and it is stored to",
            expected="memory of its own for each",
        )


def _unwritten(node: UOp) -> list[Any]:
    d = node.dtype
    assert isinstance(d, PtrType)
    if d.size < 0:
        raise IRError(f"{node.text()} has no size", expected="a pointer to a number of elements, as f32.ptr(16)")
    return [Poison("a read of memory that nothing wrote", node)] * (d.size * d.base.count)


def consecutive(at: Lanes, count: int) -> Lanes:
    """The places of `count` lanes: those given, or `count` from the one given on."""
    if len(at) == count or len(at) != 1:
        return at
    first = at[0]
    if not isinstance(first, Pointer):
        return at * count
    return tuple([Pointer(first.storage, first.offset + i) for i in range(count)])


def element(d: DType) -> DType:
    """The dtype of the elements of a buffer of dtype `d`."""
    return d.base if isinstance(d, PtrType) else d
