"""Inputs that a kernel has read before it writes: in their memory its result may lie.

A softmax reads a row, and then writes one at the same place of its output. Where both lie in the same memory a cache holds half
as much. Decided from the instructions, whose order is that in which they run: inside of the loops that all accesses share, every
load comes before the first store, and what one iteration of those loops touches no other does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.codegen.survey import Access
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp

_GLOBAL: Final = Op.DefineGlobal


def overwritable(accesses: Sequence[Access]) -> frozenset[int]:
    """The slots of the buffers in whose memory that of the only buffer which the kernel writes, slot 0, may lie; it must be of
    their size."""
    found = [a for a in accesses if a.kept.op is _GLOBAL]
    if any((a.kept.arg == 0) is not a.stores or not a.consecutive for a in found) or not any(a.stores for a in found):
        return frozenset()
    return frozenset(slot for slot in {a.kept.arg for a in found if not a.stores} if _read_before(found, slot))


def _read_before(accesses: Sequence[Access], slot: int) -> bool:
    """True if every read of `slot`, in an iteration of the loops around all of them, comes before anything is stored there."""
    own = [a for a in accesses if a.stores or a.kept.arg == slot]
    first = next(k for k, a in enumerate(own) if a.stores)
    shared = _shared([a.loops for a in own])
    depth = len(shared)
    # a loop further in, around a load and a store, would load what an earlier iteration has stored
    inner = [{r for a in own if a.stores is stores for r in a.loops[depth:]} for stores in (False, True)]
    sizes = {a.dtype.scalar().itemsize for a in own}
    if len(sizes) > 1 or any(not a.stores for a in own[first:]) or not inner[0].isdisjoint(inner[1]):
        return False
    if any(r.arg[1] is AxisType.Thread for a in own for r in a.loops[depth:]):
        return False  # threads do not wait for each other
    return _apart(shared, own)


def _shared(nests: Sequence[tuple[UOp, ...]]) -> tuple[UOp, ...]:
    """The loops with which all these nests begin."""
    out: list[UOp] = []
    for level in zip(*nests, strict=False):
        if any(r is not level[0] for r in level):
            break
        out.append(level[0])
    return tuple(out)


def _apart(loops: Sequence[UOp], accesses: Sequence[Access]) -> bool:
    """True if no two iterations of `loops` touch the same element."""
    steps = [accesses[0].at.terms.get(r, 0) for r in loops]
    low, high = [], []
    for a in accesses:
        rest = [(t, c) for t, c in a.at.terms.items() if t not in loops]
        # a counter waits for what runs before its loop, and takes the same values whatever that is
        mixed = any(t.op is not Op.Range and not t.ranges.isdisjoint(loops) for t, _ in rest)
        if mixed or [a.at.terms.get(r, 0) for r in loops] != steps:
            return False
        low.append(a.at.constant + sum(min(c * int(t.vmin), c * int(t.vmax)) for t, c in rest))
        high.append(a.at.constant + sum(max(c * int(t.vmin), c * int(t.vmax)) for t, c in rest) + a.dtype.count)
    reach = max(high) - min(low)
    for step, r in sorted(zip(steps, loops, strict=True), key=lambda pair: abs(pair[0])):
        if abs(step) < reach:
            return False
        reach += abs(step) * int(r.vmax)
    return True
