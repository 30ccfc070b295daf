"""Promotion of accumulators from DefineReg memory to values (mem2reg), and the merges of these values at control flow.

A DefineReg with constant indices in all accesses is a set of intervals of lanes; each interval becomes a loop-carried value.
Accesses that overlap without being equal fall back to one value for each lane; a computed index needs real memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from morok.codegen.survey import Access, Survey
from morok.ir.dtype import DType, PtrType
from morok.ir.op import Op
from morok.ir.places import passed
from morok.ir.uop import UOp


class Slot:
    """The value of `lanes` consecutive lanes of a register from `start` on; each interval of a register has one Slot."""

    __slots__ = ("dtype", "lanes", "reg", "start")

    def __init__(self, reg: UOp, start: int, lanes: int) -> None:
        assert isinstance(reg.dtype, PtrType)
        self.reg = reg
        self.start = start
        self.lanes = lanes
        self.dtype: DType = reg.dtype.base.scalar().vec(lanes)


@dataclass(slots=True)
class Registers:
    """The registers of one kernel.

    slots    the slots of each register that needs no memory, by start
    touched  the slots of each Load and Store of such a register, in order
    merged   for each Range the slots that need a phi: carried from iteration to iteration or, if the loop may not run, used
             outside of it; for each If the slots stored inside and used outside of it
    memory   registers that need memory
    shared   `shared_loops`
    """

    shared: frozenset[UOp] = frozenset()
    slots: dict[UOp, dict[int, Slot]] = field(default_factory=dict)
    touched: dict[UOp, tuple[Slot, ...]] = field(default_factory=dict)
    merged: dict[UOp, tuple[Slot, ...]] = field(default_factory=dict)
    memory: set[UOp] = field(default_factory=set)


def _interval(a: Access) -> tuple[int, int] | None:
    """(first lane, number of lanes) of an ungated access to a register at a constant index; None for others."""
    place = a.place
    if (
        place.op is not Op.Index
        or len(place.src) != 2
        or place.src[1].op is not Op.Const
        or place.src[1].dtype.count != 1
    ):
        return None
    if passed(place.src[0]) is not a.kept:
        return None
    base = a.kept.dtype
    assert isinstance(base, PtrType)
    return int(place.src[1].arg) * base.base.count, a.dtype.count


def _partition(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Disjoint intervals that cover the same lanes: the given ones if they are disjoint, else single lanes."""
    ordered = sorted(set(intervals))
    for (a, n), (b, _) in pairwise(ordered):
        if a + n > b:
            return [(lane, 1) for lane in sorted({i for a, n in ordered for i in range(a, a + n)})]
    return ordered


def analyze(instructions: Sequence[UOp], survey: Survey) -> Registers:
    """The Registers of `instructions`, from their survey."""
    result = Registers(shared_loops(survey))
    found: dict[UOp, set[tuple[int, int]]] = {u: set() for u in instructions if u.op is Op.DefineReg}
    intervals: list[tuple[Access, tuple[int, int]]] = []
    for a in survey.accesses:
        if a.kept.op is Op.DefineReg:
            interval = _interval(a)
            if interval is None:
                result.memory.add(a.kept)
            else:
                found.setdefault(a.kept, set()).add(interval)
                intervals.append((a, interval))
    for reg, members in found.items():
        if reg not in result.memory:
            result.slots[reg] = {start: Slot(reg, start, lanes) for start, lanes in _partition(members)}
    for a, (start, lanes) in intervals:
        if a.kept in result.slots:
            result.touched[a.node] = _covering(result.slots[a.kept], start, lanes)
    if result.touched:
        _find_merged(instructions, result)
    return result


def _covering(slots: dict[int, Slot], start: int, lanes: int) -> tuple[Slot, ...]:
    """The slots of `lanes` lanes from `start` on."""
    first = slots[start]
    if first.lanes == lanes:
        return (first,)
    out = [first]
    while (at := out[-1].start + out[-1].lanes) < start + lanes:
        out.append(slots[at])
    return tuple(out)


def shared_loops(found: Survey) -> frozenset[UOp]:
    """The loops that are not run in full by every thread: THREAD axes, whose iterations the threads divide, and outermost other
    loops with stores to global buffers, which one thread runs. Every thread runs all other code itself. Empty without THREAD
    axes.
    """
    threads = [loop.ranges for loop in found.loops if loop.is_shared_by_threads]
    shared = {ranges[-1] for ranges in threads}
    around = {r for ranges in threads for r in ranges[:-1]}
    if shared:
        for nest in {a.loops for a in found.accesses if a.stores and a.kept.op is Op.DefineGlobal}:
            alone = next((r for r in nest if r not in around), None)
            if alone is not None and shared.isdisjoint(nest):
                shared.add(alone)
    return frozenset(shared)


def runs(loop: UOp) -> bool:
    """True if a Range has at least one iteration."""
    return loop.src[0].vmin >= 1


@dataclass(slots=True)
class _Region:
    """An open Range or If, from instruction number `start` on.

    written  slots stored anywhere inside
    surely   slots stored in every execution
    exposed  slots that may be read before they are stored inside
    """

    opener: UOp | None
    start: int
    written: dict[Slot, None] = field(default_factory=dict)
    surely: set[Slot] = field(default_factory=set)
    exposed: set[Slot] = field(default_factory=set)


def _find_merged(instructions: Sequence[UOp], result: Registers) -> None:
    """Fill in `merged`. A loop carries a slot that it stores, if an iteration may read the slot before storing it. So an
    accumulator that a loop initializes is carried only by the loops inside. A slot without reads outside of a loop is not merged
    after it.
    """
    touched = result.touched
    regions = [_Region(None, 0)]
    reads: dict[Slot, tuple[int, int]] = {}  # numbers of the first and the last instruction that reads the slot
    for k, u in enumerate(instructions):
        if u.op is Op.Load and u in touched:
            for slot in touched[u]:
                reads[slot] = (reads[slot][0] if slot in reads else k, k)

    def read(slots: Iterable[Slot]) -> None:
        for slot in slots:
            for region in reversed(regions):
                if slot in region.surely:
                    break
                region.exposed.add(slot)

    for k, u in enumerate(instructions):
        op = u.op
        if op is Op.Load:
            if u in touched:
                read(touched[u])
        elif op is Op.Store:
            if u in touched:
                slots = touched[u]
                regions[-1].written.update(dict.fromkeys(slots))
                regions[-1].surely.update(slots)
        elif op is Op.Range or op is Op.If:
            regions.append(_Region(u, k))
        elif op is Op.End or op is Op.EndIf:
            if len(regions) == 1:
                return  # never opened: an error that the renderer reports
            region = regions.pop()
            outer = regions[-1]
            outer.written.update(region.written)
            opener, exposed = region.opener, region.exposed
            assert opener is not None
            if op is Op.End and runs(opener) and opener not in result.shared:
                result.merged[opener] = tuple([s for s in region.written if s in exposed])
                outer.surely |= region.surely
            else:  # it may not have run, so slots may keep their values
                outside = {s for s, (first, last) in reads.items() if first < region.start or last > k}
                kept = tuple([s for s in region.written if s in exposed or s in outside])
                result.merged[opener] = kept
                read(kept)
