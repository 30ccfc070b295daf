"""Stage 12, before loops are launched: the check that the result of a kernel depends on no order of its blocks and threads.

Blocks run in any order and never wait for each other. The threads of a block wait for each other at barriers only. Each block has
its own shared memory, whose contents are undefined when the block begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.errors import LoweringError
from morok.ir.dtype import PtrType
from morok.ir.graph import reached
from morok.ir.launch import BLOCKS, THREADS, launched
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.passes.affine import lane_offsets, ungated
from morok.passes.range_stages import const_end

_SCHEDULE: Final = (
    "lower a kernel for the device that it was scheduled for: a CPU kernel may fill local buffers in loops"
)
_BARRIER: Final = "put a Barrier after the loops that store, and read the buffer After it"


def check_barriers(nodes: Sequence[UOp]) -> None:
    """LoweringError unless a kernel has the same result in every order in which a GPU may run its blocks and threads."""
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
    stack = [(dependence, False) for n in nodes if n.op is Op.After for dependence in n.src[1:]]
    while stack:
        dependence, behind_barrier = stack.pop()
        if (dependence, behind_barrier) in seen:
            continue
        seen.add((dependence, behind_barrier))
        if dependence.op is Op.Barrier or dependence.op is Op.Group:
            stack += [(s, behind_barrier or dependence.op is Op.Barrier) for s in dependence.src]
        elif dependence.op is Op.End:
            stack.append((dependence.src[0], behind_barrier))
            for r in filter(launched, dependence.src[1:]):
                if r.arg[1] in BLOCKS:
                    raise LoweringError(
                        f"a statement waits for all iterations of {r}, which run in different blocks: no barrier spans blocks",
                        expected="a loop over the threads of one block, or a loop that each thread runs",
                        hint=_SCHEDULE,
                    )
                if not behind_barrier:
                    raise LoweringError(
                        f"a statement waits for other threads without a barrier: {dependence}",
                        expected="a Barrier between the loop of threads and the statements that wait for it",
                        hint=_BARRIER,
                    )


def _check_shared(nodes: Sequence[UOp], stores: dict[UOp, list[UOp]]) -> None:
    """LoweringError unless a barrier separates every read of shared memory from all stores into it, each thread stores at places
    of its own, and no loop stores again while other threads may still read.
    """
    written = {s.src[0] for found in stores.values() for s in found}
    threads = any(n.op is Op.Range and n.arg[1] in THREADS for n in nodes)
    for n in nodes:
        if n.op is Op.Barrier and threads and not all(map(launched, n.ranges)):
            loops = ", ".join(str(r) for r in n.ranges if not launched(r))
            raise LoweringError(
                f"the loop {loops} fills a buffer in shared memory again while other threads may still read it",
                expected="buffers in shared memory that are filled once",
                hint=_SCHEDULE,
            )
        read = n.op is Op.Index and n not in written and storage(n) in stores
        if read and not _stored_before(n.src[0]).issuperset(stores[storage(n)]):
            raise LoweringError(
                f"buffer {storage(n)} in shared memory is read without a barrier after all stores into it",
                expected="a Barrier between the stores of the threads and the reads",
                hint=_BARRIER,
            )
    for buffer, found in stores.items():
        if not all(map(_stores_at_own_places, found)):
            raise LoweringError(
                f"several threads may store different values to one element of {buffer}",
                expected="a place of its own for each thread",
                hint=_SCHEDULE,
            )


def _stored_before(buffer: UOp) -> set[UOp]:
    """The stores that all threads have finished when `buffer`, a buffer under After and Barrier edges, is read."""
    barriers: list[UOp] = []
    while buffer.op is Op.After or buffer.op is Op.Barrier:
        barriers += [b for b in buffer.src[1:] if b.op is Op.Barrier]
        buffer = buffer.src[0]

    def onward(n: UOp) -> tuple[UOp, ...]:
        return () if n.op is Op.Store else n.src if n.op is Op.Group else n.src[:1]

    return {n for n in reached([s for b in barriers for s in b.src], onward) if n.op is Op.Store}


def _stores_at_own_places(store: UOp) -> bool:
    """True if threads of a block store different values only at different places. Threads along a range store the same
    if neither the place nor the value depends on it.
    """
    threads = {r for r in store.ranges if r.arg[1] in THREADS}
    place = store.src[0]
    found = lane_offsets(ungated(place.src[1]))  # a gate only masks stores
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
