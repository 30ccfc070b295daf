"""Stage 12, before loops are launched: the check that no kernel depends on an order of blocks or threads.

Blocks run in any order and never wait for each other; the threads of a block wait for each other at barriers only. Each block has
its own shared memory, undefined when the block begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.errors import LoweringError
from morok.ir.dtype import PtrType
from morok.ir.launch import BLOCKS, THREADS, launched
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.passes.affine import lane_offsets
from morok.passes.range_stages import const_end

HINT: Final = "schedule the program for the device that it is lowered for: kernels for a CPU fill local buffers in loops"


def check_fences(nodes: Sequence[UOp]) -> None:
    """LoweringError unless the nodes of a kernel compute the same in every order in which a GPU may run blocks and threads."""
    _check_waits(nodes)
    stores: dict[UOp, list[UOp]] = {}
    for n in nodes:
        if n.op is Op.Store and (buffer := storage(n.src[0])).op is Op.DefineLocal:
            stores.setdefault(buffer, []).append(n)
    if stores:
        _check_shared(nodes, stores)


def _check_waits(nodes: Sequence[UOp]) -> None:
    """LoweringError if a node waits for all iterations of a launched loop: over blocks, or over threads without a barrier."""
    seen: set[tuple[UOp, bool]] = set()
    stack = [(d, False) for n in nodes if n.op is Op.After for d in n.src[1:]]
    while stack:
        d, fenced = stack.pop()
        if (d, fenced) in seen:
            continue
        seen.add((d, fenced))
        if d.op is Op.Barrier or d.op is Op.Group:
            stack += [(s, fenced or d.op is Op.Barrier) for s in d.src]
        elif d.op is Op.End:
            stack.append((d.src[0], fenced))
            for r in filter(launched, d.src[1:]):
                if r.arg[1] in BLOCKS:
                    raise LoweringError(
                        f"{r} is spread over blocks, and something waits for all of it: a barrier holds the threads of one block",
                        expected="a loop over threads of a block, or one that each thread runs",
                        hint=HINT,
                    )
                if not fenced:
                    raise LoweringError(f"nothing holds back what waits for other threads: {d}")


def _check_shared(nodes: Sequence[UOp], stores: dict[UOp, list[UOp]]) -> None:
    """LoweringError unless a barrier separates every read of shared memory from all stores into it, each thread stores at places
    of its own, and no loop stores again while other threads may still read.
    """
    written = {s.src[0] for found in stores.values() for s in found}
    threads = any(n.op is Op.Range and n.arg[1] in THREADS for n in nodes)
    for n in nodes:
        if n.op is Op.Barrier and threads and not all(map(launched, n.ranges)):
            loops = ", ".join(str(r) for r in n.ranges if not launched(r))
            raise LoweringError(f"{loops} fills shared memory again while other threads may still read it", hint=HINT)
        read = n.op is Op.Index and n not in written and storage(n) in stores
        if read and not _stored_before(n.src[0]).issuperset(stores[storage(n)]):
            raise LoweringError(f"{storage(n)} is read with no barrier behind all that is stored into it")
    for buffer, found in stores.items():
        if not all(map(_places_of_their_own, found)):
            raise LoweringError(f"threads may store different values at one place of {buffer}", hint=HINT)


def _stored_before(buffer: UOp) -> set[UOp]:
    """The stores that all threads have finished when `buffer`, a buffer under After and Barrier edges, is read."""
    barriers: list[UOp] = []
    while buffer.op is Op.After or buffer.op is Op.Barrier:
        barriers += [b for b in buffer.src[1:] if b.op is Op.Barrier]
        buffer = buffer.src[0]
    stack = [s for b in barriers for s in b.src]
    found: set[UOp] = set()
    while stack:
        n = stack.pop()
        if n.op is Op.Store:
            found.add(n)
        else:
            stack += n.src if n.op is Op.Group else n.src[:1]
    return found


def _places_of_their_own(store: UOp) -> bool:
    """True if threads of a block that may store different values store at different places. Threads along a range that neither
    place nor value depends on store the same.
    """
    threads = {r for r in store.ranges if r.arg[1] in THREADS}
    place = store.src[0]
    index = place.src[1]
    while index.op is Op.Where:  # a gate, which only masks stores
        index = index.src[1]
    found = lane_offsets(index)
    pointer = storage(place).dtype
    assert isinstance(pointer, PtrType)
    if not threads or found is None:
        return not threads
    terms, lanes = found
    each = max(1, store.src[1].dtype.count // len(lanes))
    places = {lane + i for lane in lanes for i in range(each)}
    for term, step in terms.terms.items():
        if launched(term) and term.arg[1] in BLOCKS:
            continue
        n = const_end(term) if term.op is Op.Range else None
        if n is None or len(places) * n > pointer.size:
            return False
        more = {at + step * i for at in places for i in range(n)}
        if len(more) < len(places) * n:
            return False
        places = more
    return threads <= terms.terms.keys()
