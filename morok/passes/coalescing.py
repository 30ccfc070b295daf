"""Stage 12: the order of a block's threads that coalesces the memory accesses of its warps.

The hardware numbers the threads of a block along threadIdx.x, then y, then z; 32 consecutive threads are a warp. The accesses of
a warp to global memory transfer whole sectors of 32 bytes (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"):
the fewer sectors a warp touches, the less data moves.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from morok.ir.conjunctions import clauses
from morok.ir.dtype import AddrSpace, PtrType
from morok.ir.launch import BLOCKS, launched
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.passes.access_widths import access_widths, accesses
from morok.passes.affine import Linear, lane_offsets, linear
from morok.passes.target import Target

WARP: Final = 32  # threads
SECTOR: Final = 32  # bytes
MOST_TRIED: Final = 4  # thread ranges whose orders are all tried: 24 orders
FAR: Final = 1 << 20  # assumed distance, in elements, of unknown places
MANY: Final = 1 << 16  # assumed length of a loop without a bound

POINTS: Final = 64  # most places in the launch, and iterations, at which the gates of an access are evaluated

Mask = int  # threads of a block: bit k is the k-th
Point = Mapping[UOp, int]  # values of ranges
Order = tuple[int, ...]
Lanes = tuple[Any, ...]

# a byte offset for each thread, the first range slowest; None if the thread accesses nothing
Offsets = tuple[int | None, ...]
Accesses = dict[Offsets, Counter[int]]  # the number of accesses of all blocks, by the base of the offsets modulo SECTOR

NOWHERE: Final[Point] = MappingProxyType({})
_COMPARISONS: Final = {
    Op.Lt: operator.lt,
    Op.Le: operator.le,
    Op.Gt: operator.gt,
    Op.Ge: operator.ge,
    Op.Eq: operator.eq,
    Op.Ne: operator.ne,
}
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


@dataclass(slots=True)
class Comparison:
    """A comparison with 0 of a sum: each thread's part, the `others`, which all threads share, and a constant of each lane."""

    compare: Callable[[int, int], bool]
    threads: Sequence[int]
    others: Mapping[UOp, int]
    lanes: tuple[int, ...]
    found: dict[int, tuple[Mask, ...]] = field(default_factory=dict)

    def at(self, base: int) -> tuple[Mask, ...]:
        """The threads for which it holds, by lane, where the `others` add up to `base`."""
        known = self.found.get(base)
        if known is None:
            known = self.found[base] = tuple(
                [_mask([self.compare(at + base + k, 0) for at in self.threads]) for k in self.lanes]
            )
        return known


@dataclass(frozen=True, slots=True)
class Condition:
    """A clause of a gate, with the ranges besides those of threads that it depends on. Which threads pass is known once for all
    (`always`, by lane), by a comparison of sums, or is the same for all threads.
    """

    clause: UOp
    ranges: tuple[UOp, ...]
    compared: Comparison | None = None
    always: tuple[Mask, ...] | None = None


class _Block:
    """The accesses of a block's threads, numbered along `ranges`, the first slowest. Gates are evaluated for all blocks and
    iterations; in other places that are no sums, ranges are assumed at their middle.
    """

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
        first = self.first([user.op is Op.Store and r not in place.ranges for r in self.ranges])
        conditions = [c for gate in gates for clause in clauses(gate) if (c := self.condition(clause)) is not None]
        ranges = list(dict.fromkeys(r for c in conditions for r in c.ranges))
        each = max(1, times // math.prod([_length(r) for r in ranges]))  # iterations and blocks at one point
        sums = lane_offsets(index)
        total, lanes = sums or (Linear({}, 0), tuple(range(index.dtype.count)))
        terms = [(t, c * size) for t, c in total.terms.items() if not self.varies(t)]
        at_points = [t for t in terms if _is_of_ranges(t[0]) and all(r in ranges for r in t[0].ranges)]
        passing = self.passing(conditions, ranges, at_points, index.dtype.count)
        if sums is None:
            for lane, of_threads in enumerate(zip(*self.values(index), strict=True)):
                places = [at * size if isinstance(at, int) else None for at in of_threads]
                for (masks, _), n in passing.items():
                    self.count(places, masks[lane] & first, Counter({0: n * each}), 0)
            return
        widths = [1] if apart else access_widths(self.target, place.dtype)
        alignment = total.factor if self.target.aligned else None
        elements = [at * size for at in self.offsets(total)]
        starts = _starts([t for t in terms if t not in at_points], each)
        for begin, _ in accesses(widths, sorted(set(lanes)), alignment):
            of_lanes = [k for k, at in enumerate(lanes) if at == begin]
            for (masks, start), n in passing.items():
                let = 0
                for k in of_lanes:
                    let |= masks[k]
                shifted = Counter({at: m * n for at, m in starts.items()})
                self.count(elements, let & first, shifted, start + begin * size)

    def count(self, offsets: Sequence[int | None], let: Mask, starts: Counter[int], more: int) -> None:
        """Add accesses by the threads of `let` to `found`, whose bases are `more` behind `starts`."""
        if not let:
            return
        count = self.found.setdefault(tuple([at if let >> k & 1 else None for k, at in enumerate(offsets)]), Counter())
        for start, n in starts.items():
            count[(start + more) % SECTOR] += n

    def first(self, idle: Sequence[bool]) -> Mask:
        """The threads that are the first along each idle range."""
        return _mask([not any(i and off for i, off in zip(t, idle, strict=True)) for t in self.threads()])

    def passing(
        self, conditions: Sequence[Condition], ranges: Sequence[UOp], terms: Sequence[tuple[UOp, int]], lanes: int
    ) -> Counter[tuple[tuple[Mask, ...], int]]:
        """The number of values of `ranges` at which the conditions let these threads pass, by lane, and `terms` add up to this
        offset modulo SECTOR.
        """
        found = Counter[tuple[tuple[Mask, ...], int]]()
        everyone = (1 << math.prod(self.sizes)) - 1
        for point, n in _points(ranges):
            masks = [everyone] * lanes
            for c in conditions:
                of_lanes = self.threads_of(c, point)
                masks = [m & of_lanes[k % len(of_lanes)] for k, m in enumerate(masks)]
            found[tuple(masks), sum(c * self.value(t, point) for t, c in terms) % SECTOR] += n
        return found

    def condition(self, clause: UOp) -> Condition | None:
        """A clause of a gate; None if which threads pass it is not known from ranges, or takes long to find out."""
        if not _is_of_ranges(clause):
            return None
        ranges = tuple([r for r in clause.ranges if r not in self.ranges])
        if not self.varies(clause):
            return Condition(clause, ranges)
        if not ranges:
            return Condition(clause, ranges, always=self.masks(self.values(clause)))
        compare = _COMPARISONS.get(clause.op)
        sums = lane_offsets(clause.src[0] - clause.src[1]) if compare is not None else None
        if compare is None or sums is None:
            return None
        own, others = dict[UOp, int](), dict[UOp, int]()
        total = _without_casts(sums[0])
        lanes = tuple([k + total.constant for k in sums[1]])
        for term, c in total.terms.items():
            if not self.varies(term):
                others[term] = c
            elif all(r in self.ranges for r in term.ranges):
                own[term] = c
            else:
                return None
        return Condition(clause, ranges, Comparison(compare, self.offsets(Linear(own, 0)), others, lanes))

    def threads_of(self, condition: Condition, point: Point) -> tuple[Mask, ...]:
        """The threads that a condition lets pass at a point, by lane."""
        if condition.always is not None:
            return condition.always
        if condition.compared is None:
            (lanes,) = self.values(condition.clause, [(0,) * len(self.sizes)], point)
            return tuple([-1 if v else 0 for v in lanes])
        compared = condition.compared
        return compared.at(sum(c * self.value(t, point) for t, c in compared.others.items()))

    def value(self, term: UOp, point: Point) -> int:
        """The value of a scalar of ranges at a point; 0 where it has none."""
        known = point.get(term)
        if known is not None:
            return known
        ((found,),) = self.values(term, [(0,) * len(self.sizes)], point)
        return found if isinstance(found, int) else 0

    def masks(self, of_threads: Sequence[Lanes]) -> tuple[Mask, ...]:
        """The threads for which a condition holds, by lane."""
        return tuple([_mask(map(bool, lane)) for lane in zip(*of_threads, strict=True)])

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

    def threads(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(range, self.sizes))

    def values(
        self, node: UOp, threads: Sequence[tuple[int, ...]] | None = None, point: Point = NOWHERE
    ) -> list[Lanes]:
        """The lanes of a node for each thread, of all or of these; `far_apart` if they depend on memory."""
        from morok.ir.interpret.lane_values import INVALID, scalar_value  # lazy: few places are no sums

        every = list(self.threads()) if threads is None else threads
        done: dict[UOp, list[Lanes]] = {}
        for n in node.toposort():
            if n in self.ranges:
                axis = self.ranges.index(n)
                done[n] = [(t[axis],) for t in every]
            elif n.op is Op.Range or n.op is Op.DefineVar:
                done[n] = [(point.get(n, _middle(n)),)] * len(every)
            elif n.op is Op.Const or n.op is Op.VConst:
                done[n] = [n.arg if n.op is Op.VConst else (n.arg,) * n.dtype.count] * len(every)
            elif n.op is Op.Invalid:
                done[n] = [(INVALID,) * n.dtype.count] * len(every)
            elif n.entry.pointwise or n.op in _REARRANGED:
                done[n] = [scalar_value(n, list(lanes)) for lanes in zip(*[done[s] for s in n.src], strict=True)]
            else:
                return self.far_apart(node)
        return done[node]

    def far_apart(self, node: UOp) -> list[Lanes]:
        """Indices in different sectors for threads that differ in a range that `node` depends on."""
        steps = [FAR * math.prod(self.sizes[:k]) * (r in node.ranges) for k, r in enumerate(self.ranges)]
        return [(sum(i * step for i, step in zip(t, steps, strict=True)),) * node.dtype.count for t in self.threads()]


def _is_of_ranges(node: UOp) -> bool:
    """True if a node is computed of ranges and constants alone."""
    return all(n.op is Op.Range or n.op in _FROM_OPERANDS or n.entry.pointwise for n in node.toposort())


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


def _points(ranges: Sequence[UOp]) -> Iterator[tuple[dict[UOp, int], int]]:
    """Values of ranges, each with the number of values that it stands for: all there are, or POINTS of them."""
    counts = [_length(r) for r in ranges]
    while math.prod(counts) > POINTS:
        most = counts.index(max(counts))
        counts[most] = -(-counts[most] // 2)
    parts = [
        [range(k * _length(r) // n, (k + 1) * _length(r) // n) for k in range(n)]
        for r, n in zip(ranges, counts, strict=True)
    ]
    for chosen in itertools.product(*parts):
        yield {r: p[len(p) // 2] for r, p in zip(ranges, chosen, strict=True)}, math.prod(map(len, chosen))


def _without_casts(total: Linear) -> Linear:
    """A sum in which casts of indices to integers are replaced by the indices' own sums."""
    found, constant = dict[UOp, int](), total.constant
    for term, c in total.terms.items():
        inner = linear(term.src[0]) if term.op is Op.Cast and term.src[0].dtype.is_index else Linear({term: 1}, 0)
        constant += c * inner.constant
        for t, k in inner.terms.items():
            found[t] = found.get(t, 0) + c * k
    return Linear(found, constant)


def _mask(passes: Iterable[bool]) -> Mask:
    """The threads that pass, of all in order."""
    return sum(1 << k for k, takes in enumerate(passes) if takes)


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
