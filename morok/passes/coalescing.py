"""Stage 12: the order of a block's threads that coalesces the memory accesses of its warps.

The hardware numbers the threads of a block along threadIdx.x, then y, then z; 32 consecutive threads are a warp. The accesses of
a warp to global memory transfer whole sectors of 32 bytes (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"):
the fewer sectors a warp touches, the less data moves.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from morok.ir.conjunctions import clauses
from morok.ir.dtype import AddrSpace, PtrType
from morok.ir.launch import BLOCKS, launched
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.passes.access_widths import access_widths, accesses
from morok.passes.affine import Linear, lane_offsets
from morok.passes.target import Target

WARP: Final = 32  # threads
SECTOR: Final = 32  # bytes
MOST_TRIED: Final = 4  # thread ranges whose orders are all tried: 24 orders
FAR: Final = 1 << 20  # assumed distance, in elements, of unknown places
MANY: Final = 1 << 16  # assumed length of a loop without a bound

Order = tuple[int, ...]
Lanes = tuple[Any, ...]

# a byte offset for each thread, the first range slowest; None if the thread accesses nothing
Offsets = tuple[int | None, ...]
Accesses = dict[Offsets, Counter[int]]  # the number of accesses of all blocks, by the base of the offsets modulo SECTOR

_REARRANGED: Final = frozenset({Op.Vectorize, Op.Gep, Op.Cat})
_FROM_OPERANDS: Final = _REARRANGED | {Op.Const, Op.VConst}


def thread_order(ranges: Sequence[UOp], nodes: Sequence[UOp], target: Target) -> list[UOp]:
    """The thread ranges of a kernel in the order in which its warps touch the fewest sectors, the fastest first; `ranges` itself
    if no order touches fewer.
    """
    moved = [r for r in ranges if r.vmax > 0]
    if len(moved) < 2:
        return list(ranges)
    block = _Block(moved, nodes, target)
    best = _best(block.sizes, block.found)
    return [moved[k] for k in best] + [r for r in ranges if r.vmax == 0]


def _best(sizes: Sequence[int], found: Accesses) -> Order:
    """The order of axes of least cost, the fastest first: greedy, one axis at a time, down to the last MOST_TRIED axes."""
    rest: Order = tuple(range(len(sizes)))
    fixed: Order = ()
    while len(rest) > MOST_TRIED:
        tried = [(*fixed, a, *(b for b in rest if b != a)) for a in rest]
        fixed = min(tried, key=lambda order: cost(order, sizes, found))[: len(fixed) + 1]
        rest = tuple([a for a in rest if a != fixed[-1]])
    orders = [fixed + last for last in itertools.permutations(rest)]
    return min(orders, key=lambda order: cost(order, sizes, found))


def cost(order: Order, sizes: Sequence[int], found: Accesses) -> int:
    """The number of sectors that all warps touch together, if the threads are numbered along `order`, the fastest axis first."""
    steps = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    threads = [0]
    for axis in order:
        threads = [n + i * steps[axis] for i in range(sizes[axis]) for n in threads]
    warps = [threads[k : k + WARP] for k in range(0, len(threads), WARP)]
    total = 0
    for offsets, starts in found.items():
        for warp in warps:
            places = {at for n in warp if (at := offsets[n]) is not None}
            total += sum(len({(at + start) // SECTOR for at in places}) * times for start, times in starts.items())
    return total


class _Block:
    """The accesses of a block's threads, numbered along `ranges`, the first slowest; other ranges are assumed at their middle."""

    def __init__(self, ranges: Sequence[UOp], nodes: Sequence[UOp], target: Target) -> None:
        self.ranges = ranges
        self.target = target
        self.sizes = [int(r.vmax) + 1 for r in ranges]
        self.blocks = math.prod([_length(n) for n in nodes if n.op is Op.Range and n.arg[1] in BLOCKS])
        self.strided: dict[tuple[int, ...], list[int]] = {}
        self.found: Accesses = {}
        for place, user in _places(nodes):
            self.add(place, user)

    def add(self, place: UOp, user: UOp) -> None:
        """Count the accesses to a vector of places, in `found`: as wide as the target's can be."""
        times = self.blocks * math.prod([_length(r) for r in user.ranges if not launched(r)])
        index, gates = place.src[1], list[UOp]()
        while index.op is Op.Where:
            gates.append(index.src[0])
            index = index.src[1]
        apart = not all(map(_is_uniform, gates))  # lanes with different gates need separate accesses
        size = place.dtype.scalar().itemsize
        # along these only the first thread stores
        idle = [user.op is Op.Store and r not in place.ranges for r in self.ranges]
        passing = self.passing(gates, index.dtype.count)
        sums = lane_offsets(index)
        if sums is None:
            for lane, let in zip(zip(*self.values(index), strict=True), passing, strict=True):
                offsets = self.taking_part([at * size if isinstance(at, int) else None for at in lane], idle, let)
                self.found.setdefault(offsets, Counter())[0] += times
            return
        total, lanes = sums
        widths = [1] if apart else access_widths(self.target, place.dtype)
        alignment = total.factor if self.target.aligned else None
        elements = [n * size for n in self.offsets(total)]
        starts = _starts([(t, c * size) for t, c in total.terms.items() if not self.varies(t)], times)
        for begin, _ in accesses(widths, sorted(set(lanes)), alignment):
            let = [any(t) for t in zip(*[p for at, p in zip(lanes, passing, strict=True) if at == begin], strict=True)]
            count = self.found.setdefault(self.taking_part(elements, idle, let), Counter())
            for start, n in starts.items():
                count[(start + begin * size) % SECTOR] += n

    def passing(self, gates: Sequence[UOp], lanes: int) -> list[list[bool]]:
        """By lane and thread: False if a condition that depends on threads alone masks the access."""
        known = [c for gate in gates for c in clauses(gate) if self.ranges_alone(c)]
        found = [[True] * math.prod(self.sizes) for _ in range(lanes)]
        for condition in known:
            of_threads = self.values(condition)
            for k, lane in enumerate(found):
                for thread, values in enumerate(of_threads):
                    lane[thread] = lane[thread] and bool(values[k % len(values)])
        return found

    def ranges_alone(self, condition: UOp) -> bool:
        """True if a condition depends on the thread ranges and constants alone."""
        return all(n in self.ranges or n.op in _FROM_OPERANDS or n.entry.pointwise for n in condition.toposort())

    def varies(self, term: UOp) -> bool:
        """True if a term's value may differ between threads."""
        return any(r in term.ranges for r in self.ranges)

    def offsets(self, total: Linear) -> list[int]:
        """The offset of each thread, in elements: the sum of the terms that vary between threads."""
        steps = tuple([total.terms.get(r, 0) for r in self.ranges])
        found = self.strided.get(steps)
        if found is None:
            found = [0]
            for step, n in zip(steps, self.sizes, strict=True):
                found = [at + step * i for at in found for i in range(n)]
            self.strided[steps] = found
        for term, c in total.terms.items():
            if term not in self.ranges and self.varies(term):
                found = [
                    at + c * v if isinstance(v, int) else at for at, (v,) in zip(found, self.values(term), strict=True)
                ]
        return found

    def taking_part(
        self, offsets: Sequence[int | None], idle: Sequence[bool], passing: Sequence[bool]
    ) -> tuple[int | None, ...]:
        """The offsets, with None for threads that are masked, or are not the first along an idle range."""
        if any(idle):
            first = [not any(i and off for i, off in zip(t, idle, strict=True)) for t in self.threads()]
            passing = [a and b for a, b in zip(passing, first, strict=True)]
        return tuple([at if takes else None for at, takes in zip(offsets, passing, strict=True)])

    def threads(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(range, self.sizes))

    def values(self, node: UOp) -> list[Lanes]:
        """The lanes of a node of dtype index for each thread; `far_apart` if they depend on memory."""
        from morok.ir.interpret.lane_values import INVALID, scalar_value  # lazy: few places are no sums

        done: dict[UOp, list[Lanes]] = {}
        for n in node.toposort():
            if n in self.ranges:
                axis = self.ranges.index(n)
                done[n] = [(t[axis],) for t in self.threads()]
            elif n.op is Op.Range or n.op is Op.DefineVar:
                done[n] = [(_middle(n),)] * math.prod(self.sizes)
            elif n.op is Op.Const or n.op is Op.VConst:
                done[n] = [n.arg if n.op is Op.VConst else (n.arg,) * n.dtype.count] * math.prod(self.sizes)
            elif n.op is Op.Invalid:
                done[n] = [(INVALID,) * n.dtype.count] * math.prod(self.sizes)
            elif n.entry.pointwise or n.op in _REARRANGED:
                done[n] = [scalar_value(n, list(lanes)) for lanes in zip(*[done[s] for s in n.src], strict=True)]
            else:
                return self.far_apart(node)
        return done[node]

    def far_apart(self, node: UOp) -> list[Lanes]:
        """Indices in different sectors for threads that differ in a range that `node` depends on."""
        steps = [FAR * math.prod(self.sizes[:k]) * (r in node.ranges) for k, r in enumerate(self.ranges)]
        return [(sum(i * step for i, step in zip(t, steps, strict=True)),) * node.dtype.count for t in self.threads()]


def _starts(terms: Sequence[tuple[UOp, int]], times: int) -> Counter[int]:
    """A histogram of the sum of `terms` (node, stride in bytes) modulo SECTOR, over about `times` accesses."""
    found = Counter({0: 1})
    for term, step in terms:
        n = math.prod([_length(r) for r in ({term} if term.op is Op.Range else term.ranges)])
        period = SECTOR // math.gcd(SECTOR, step)
        more = Counter[int]()
        for k in range(min(period, n)):
            for start, count in found.items():
                more[(start + k * step) % SECTOR] += count * (n // period + (k < n % period))
        found = more
    scale = max(1, times // found.total())
    return Counter({start: count * scale for start, count in found.items()})


def _length(r: UOp) -> int:
    """The greatest length of a range, capped at MANY + 1."""
    return int(min(r.vmax, MANY)) + 1


def _middle(n: UOp) -> int:
    """A value near the middle of a node's bounds."""
    return int(max(n.vmin, -MANY) + min(n.vmax, MANY)) // 2


def _places(nodes: Sequence[UOp]) -> Iterator[tuple[UOp, UOp]]:
    """(place, user) for every place in global memory that is written, by a Store, or read, where the user is the place itself."""
    read: dict[UOp, None] = {}
    for n in nodes:
        stored = n.op is Op.Store
        if stored and _is_global(n.src[0]):
            yield n.src[0], n
        for s in n.src[1 if stored else 0 :]:
            if s.op is Op.Index:
                read[s] = None
    for place in read:
        if _is_global(place):
            yield place, place


def _is_global(place: UOp) -> bool:
    d = storage(place).dtype
    return isinstance(d, PtrType) and d.space is AddrSpace.GLOBAL


def _is_uniform(gate: UOp) -> bool:
    """True if a gate is a scalar, or a Vectorize of equal lanes."""
    return gate.dtype.count == 1 or (gate.op is Op.Vectorize and all(s is gate.src[0] for s in gate.src))
