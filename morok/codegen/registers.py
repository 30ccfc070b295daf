"""Accumulators: which memory of DefineReg becomes values, and where control flow changes them.

A DefineReg whose every access is at a constant index is a set of intervals of lanes; each interval is a value that loops
carry. Accesses that overlap without being equal fall back to one value a lane; a computed index needs real memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from morok.ir.dtype import DType, PtrType
from morok.ir.op import AxisType, Op
from morok.ir.places import passed, storage
from morok.ir.uop import UOp


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that stands for `lanes` consecutive lanes of a register from `start` on."""

    reg: UOp
    start: int
    lanes: int

    @property
    def dtype(self) -> DType:
        assert isinstance(self.reg.dtype, PtrType)
        return self.reg.dtype.base.scalar().vec(self.lanes)


@dataclass(slots=True)
class Registers:
    """The registers of one kernel.

    slots    the values of each register that needs no memory, by start
    merged   for each Range the slots whose value an iteration takes from the one before; for each If those stored inside
    memory   registers that need memory
    shared   loops of which each thread runs a part
    """

    shared: frozenset[UOp] = frozenset()
    slots: dict[UOp, dict[int, Slot]] = field(default_factory=dict)
    merged: dict[UOp, tuple[Slot, ...]] = field(default_factory=dict)
    memory: set[UOp] = field(default_factory=set)

    def covering(self, place: UOp, dtype: DType) -> list[Slot]:
        """The slots that an access of `dtype` at `place` (an Index into a register) touches, in order."""
        place = passed(place)
        reg = storage(place)
        start, lanes = _interval(place, dtype)
        found = self.slots[reg]
        out: list[Slot] = []
        at = start
        while at < start + lanes:
            slot = found[at]
            out.append(slot)
            at += slot.lanes
        return out


def _interval(place: UOp, dtype: DType) -> tuple[int, int]:
    """First lane and number of lanes of an access at the constant place `place`."""
    base = storage(place).dtype
    assert isinstance(base, PtrType)
    offset = place.src[1].arg if place.op is Op.Index and len(place.src) > 1 else 0
    return int(offset) * base.base.count, dtype.count


def _constant(place: UOp) -> bool:
    """Whether a place in a register is at one constant index, ungated."""
    return (
        place.op is Op.Index
        and len(place.src) == 2
        and place.src[1].op is Op.Const
        and place.src[1].dtype.count == 1
        and passed(place.src[0]).op is Op.DefineReg
    )


def _partition(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Disjoint intervals covering the same lanes: the given ones where they are disjoint, else single lanes."""
    ordered = sorted(set(intervals))
    for (a, n), (b, _) in pairwise(ordered):
        if a + n > b:
            return [(lane, 1) for lane in sorted({i for a, n in ordered for i in range(a, a + n)})]
    return ordered


def analyze(instructions: Sequence[UOp]) -> Registers:
    """What `instructions` do with their registers."""
    accesses: dict[UOp, set[tuple[int, int]]] = {}
    result = Registers(shared_loops(instructions))
    for u in instructions:
        if u.op is Op.DefineReg:
            accesses.setdefault(u, set())
        elif u.op is Op.Load or u.op is Op.Store:
            place = passed(u.src[0])
            reg = storage(place)
            if reg.op is Op.DefineReg:
                dtype = u.dtype if u.op is Op.Load else u.src[1].dtype
                if _constant(place):
                    accesses.setdefault(reg, set()).add(_interval(place, dtype))
                else:
                    accesses.setdefault(reg, set())
                    result.memory.add(reg)
    for reg, intervals in accesses.items():
        if reg not in result.memory:
            result.slots[reg] = {start: Slot(reg, start, lanes) for start, lanes in _partition(intervals)}
    _find_merged(instructions, result)
    return result


def shared_loops(instructions: Sequence[UOp]) -> frozenset[UOp]:
    """The loops of a kernel that threads share: its THREAD axes, whose iterations they divide among them, and the outermost loops
    beside those that store to buffers, which one thread runs. What else there is every thread does for itself.
    """
    around: set[UOp] = set()  # loops with a THREAD axis in them
    shared: set[UOp] = set()
    open_: list[UOp] = []
    nests: list[tuple[UOp, ...]] = []  # of the stores
    for u in instructions:
        if u.op is Op.Range:
            if u.arg[1] is AxisType.Thread:
                shared.add(u)
                around.update(open_)
            open_.append(u)
        elif u.op is Op.End and open_:
            open_.pop()
        elif u.op is Op.Store and open_ and storage(u.src[0]).op is Op.DefineGlobal:
            nests.append(tuple(open_))
    if shared:
        for nest in nests:
            alone = next((r for r in nest if r not in around), None)
            if alone is not None and shared.isdisjoint(nest):
                shared.add(alone)
    return frozenset(shared)


def runs(loop: UOp) -> bool:
    """Whether a Range has at least one iteration."""
    return loop.src[0].vmin >= 1


@dataclass(slots=True)
class _Region:
    """An open Range or If: the slots stored anywhere inside, those stored in every execution, those read before that."""

    opener: UOp | None
    written: dict[Slot, None] = field(default_factory=dict)
    surely: set[Slot] = field(default_factory=set)
    exposed: set[Slot] = field(default_factory=set)


def _find_merged(instructions: Sequence[UOp], result: Registers) -> None:
    """Fill `merged`: a loop carries what it stores and, in an iteration, may read before it stores it. An accumulator that a
    loop sets anew is not carried by that loop, only by those inside.
    """
    regions = [_Region(None)]

    def read(slots: Iterable[Slot]) -> None:
        for slot in slots:
            for region in reversed(regions):
                if slot in region.surely:
                    break
                region.exposed.add(slot)

    for u in instructions:
        if u.op is Op.Range or u.op is Op.If:
            regions.append(_Region(u))
        elif u.op is Op.End or u.op is Op.EndIf:
            if len(regions) == 1:
                return  # closed without being opened: the renderer says so
            region = regions.pop()
            outer = regions[-1]
            outer.written.update(region.written)
            assert region.opener is not None
            if u.op is Op.End and runs(region.opener) and region.opener not in result.shared:
                result.merged[region.opener] = tuple(s for s in region.written if s in region.exposed)
                outer.surely |= region.surely
            else:  # afterwards a slot may hold what it held before
                result.merged[region.opener] = tuple(region.written)
                read(region.written)
        elif u.op is Op.Load or u.op is Op.Store:
            place = passed(u.src[0])
            if storage(place) in result.slots:
                if u.op is Op.Load:
                    read(result.covering(place, u.dtype))
                else:
                    slots = result.covering(place, u.src[1].dtype)
                    regions[-1].written.update(dict.fromkeys(slots))
                    regions[-1].surely.update(slots)
