"""Inputs whose memory a kernel's output may reuse, since they are read before they are overwritten.

A softmax reads a row, then writes a row at the same place of its output. If both are in the same memory, they take half the
cache. The condition on the instructions, in execution order: inside the loops common to all accesses, every load precedes the
first store, and different iterations of those loops access different elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from morok.codegen.survey import Access
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp


def overwritable(accesses: Sequence[Access]) -> frozenset[int]:
    """The slots of inputs whose memory the only output, slot 0, may reuse if it has their size; empty if the kernel writes
    another buffer.
    """
    found = [a for a in accesses if a.kept.op is Op.DefineGlobal]
    if any((a.kept.arg == 0) is not a.stores or not a.consecutive for a in found) or not any(a.stores for a in found):
        return frozenset()
    return frozenset(slot for slot in {a.kept.arg for a in found if not a.stores} if _read_before(found, slot))


def _read_before(accesses: Sequence[Access], slot: int) -> bool:
    """True if in each iteration of the loops around all accesses every read of `slot` precedes the first store."""
    own = [a for a in accesses if a.stores or a.kept.arg == slot]
    first = next(k for k, a in enumerate(own) if a.stores)
    shared = _shared([a.loops for a in own])
    depth = len(shared)
    # an inner loop around both a load and a store would load what an earlier iteration stored
    inner = [{r for a in own if a.stores is stores for r in a.loops[depth:]} for stores in (False, True)]
    sizes = {a.dtype.scalar().itemsize for a in own}
    if len(sizes) > 1 or any(not a.stores for a in own[first:]) or not inner[0].isdisjoint(inner[1]):
        return False
    if any(r.arg[1] is AxisType.Thread for a in own for r in a.loops[depth:]):
        return False  # threads do not wait for each other
    return _apart(shared, own)


def _shared(nests: Sequence[tuple[UOp, ...]]) -> tuple[UOp, ...]:
    """The common outer loops of these nests."""
    out: list[UOp] = []
    for level in zip(*nests, strict=False):
        if any(r is not level[0] for r in level):
            break
        out.append(level[0])
    return tuple(out)


def _apart(loops: Sequence[UOp], accesses: Sequence[Access]) -> bool:
    """True if no two iterations of `loops` access the same element."""
    steps = [accesses[0].at.terms.get(r, 0) for r in loops]
    low, high = [], []
    for a in accesses:
        rest = [(t, c) for t, c in a.at.terms.items() if t not in loops]
        # the operands of a Range order its loop, so its values do not depend on `loops`
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
