"""The cost model for storing values: the time to compute a value, in nanoseconds.

The constants are for one core of a server (x86-64 with AVX-512 at 2.6 GHz, the machine of `bench/results`), and for a data-centre
GPU. A factor of two is accurate enough: a value is stored only if that saves a multiple of the cost of storing.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from morok.ir.op import Op
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.passes.rangeify.early import continues, picks_one
from morok.passes.rangeify.state import (
    CASTS_AND_VIEWS,
    COSTLY,
    MOVEMENT,
    STORAGE,
    THREADS,
    UNPADDED,
    beneath,
    count,
    enlarges,
)
from morok.passes.target import Target

# The work of an op in simple operations (additions, comparisons, reads), for ops that take more than one.
WORK: Final = {
    Op.Exp: 8.0,
    Op.Exp2: 10.0,
    Op.Log: 12.0,
    Op.Log2: 16.0,
    Op.Tanh: 15.0,
    Op.Erf: 25.0,
    Op.Sin: 75.0,
    Op.Cos: 75.0,
    Op.Tan: 90.0,
    Op.Pow: 140.0,
    Op.Sqrt: 7.0,
    Op.Fdiv: 5.0,
    Op.Reciprocal: 5.0,
    Op.Idiv: 75.0,
    Op.Mod: 75.0,
    Op.Threefry: 50.0,
}


@dataclass(frozen=True, slots=True)
class Machine:
    """The times of one machine, in ns per element. Pairs are (vectorized in a kernel of its own, on a GPU in full warps; scalar,
    one element at a time, inside a loop of another kernel).

    simple   one unit of WORK
    call     one unit of WORK of a function in COSTLY
    loose    the fraction of the scalar time in a fold that is no tile: its elements do not depend on each other
    product  a multiply-add of a sum of products: in a register tile; in a plain loop, with the latency of each addition
    factor   extra for a factor of such a product that is computed, not just read: the right one, in vectors; the left, in scalars
    gate     a comparison of positions, and the select by it
    gated    extra in a fold, or in a part of a concatenation, if several comparisons decide
    stray    extra for a read out of order, in a kernel whose loops cannot be interchanged
    untiled  extra for a multiply-add of a second sum of products in a kernel: only the loops of one become tiles
    filled   the slowdown of a reduction that fills a buffer inside a kernel
    caches   (bytes, ns per byte of a buffer of at most so many bytes), ascending; the last is memory
    launch   the start of a kernel
    least    the least saving, in ns, for which a value is stored: a twelfth of 50 us, the shortest time that is compared
    shared   the results of a thread that use one element of a factor of a product; on a CPU `tiles` says how many
    target   its registers and vectors
    """

    simple: tuple[float, float]
    call: tuple[float, float]
    loose: float
    product: tuple[float, float]
    factor: tuple[float, float]
    gate: tuple[float, float]
    gated: float
    stray: float
    untiled: float
    filled: float
    caches: tuple[tuple[float, float], ...]
    launch: float
    least: float
    shared: int
    target: Target

    def bytes_ns(self, nbytes: float) -> float:
        """The time to read or write one byte of a buffer of `nbytes` bytes, in ns."""
        for size, ns in self.caches:
            if nbytes <= size:
                return ns
        return math.inf


# Measured on an Intel Xeon and an AMD EPYC, like WORK: for 64 K elements, beyond the time of a copy. Such a copy takes 8 and 3 us
# (60 and 180 bytes/ns) from L2; the last-level cache gives 30 and 85, memory 10 and 35 bytes/ns. Padding costs a copy 0.02 ns per
# element; it costs 0.2 to 0.4 ns in a sum of rows that are padded too, or concatenated off a vector's boundary. A read down a
# column, or at a quotient of positions, takes 0.5 to 0.8 ns, and 2.6 ns after a product in tiles. Ten multiplications and
# additions take 1 us more, relu in the loops of a matrix product 0.4 ns each time, gates 2 ns. A matrix product does 80
# multiply-adds per ns, in a plain loop 0.66, and two in one kernel 40. A maximum of nine elements takes 9 ns if it fills a
# buffer, 0.4 ns in a kernel of its own. A record of a plan takes 0.1 us.
CPU: Final = Machine(
    simple=(0.02, 0.2),
    call=(0.02, 0.4),
    loose=0.5,
    product=(1 / 60, 1.5),
    factor=(0.015, 0.25),
    gate=(0.03, 1.0),
    gated=0.2,
    stray=0.7,
    untiled=0.01,
    filled=8.0,
    caches=((1 << 20, 1 / 100), (1 << 25, 1 / 50), (math.inf, 1 / 20)),
    launch=100.0,
    least=4000.0,
    shared=1,
    target=Target("LLVM", vector_bytes=64, registers=32),
)
# Estimated from published figures: 10^4 simple operations and 1,500 bytes of memory per ns (twice that from L2), 3 us from one
# kernel to the next. A thread computes a tile of 4 x 4.
GPU: Final = Machine(
    simple=(1e-4, 1e-4),
    call=(1e-4, 1e-4),
    loose=1.0,
    product=(1e-4, 1e-4),
    factor=(0.0, 0.0),
    gate=(2e-4, 2e-4),
    gated=0.0,
    stray=0.0,
    untiled=0.0,
    filled=1.0,
    caches=((1 << 25, 1 / 3000), (math.inf, 1 / 1500)),
    launch=3000.0,
    least=4000.0,
    shared=4,
    target=THREADS,
)


@functools.cache
def machine_of(target: Target) -> Machine:
    """The times of a target: those of GPU, or of CPU, where functions take longer in narrower vectors. Anything else waits for
    memory as much as for arithmetic.
    """
    if target.has_local:
        return GPU
    fast, slow = CPU.call
    wider = CPU.target.vector_bytes / max(target.vector_bytes, 4)
    return replace(CPU, call=(min(fast * wider, slow), slow), target=target)


_BOUNDARY: Final = frozenset({Op.Contiguous, Op.Assign, Op.Copy})
_MEMORY: Final = STORAGE | _BOUNDARY
_UNASKED: Final = STORAGE | {Op.Bind}


# Flags of a node: the computation of its value contains ..
HEAVY: Final = 1  # a reduction
CALLS: Final = 2  # a function in COSTLY
GATED: Final = 4  # a select by position, as from padding
READS: Final = 8  # a read of memory; without one the value depends on positions and constants alone
# a reduction that many elements use, such as the mean of a row: one kernel can compute it before them
SUMMED: Final = 16
SPREAD: Final = 32  # a view that repeats elements
STRAIGHT: Final = 64  # a read of memory along its last axis in the loop over the node's last axis
TURNED: Final = 128  # a read of memory in another order

# The cost of one element of a node: ns in a kernel of its own, ns inside a loop of another kernel, and the flags above.
Weight = tuple[float, float, int]
_NOTHING: Final[Weight] = (0.0, 0.0, 0)
_Change = Callable[[float, float, int], Weight]
_OF_ROWS: Final = GATED | SUMMED | SPREAD | STRAIGHT | TURNED  # the flags that a reduction clears


class Weights:
    """The cost of the nodes of a graph: each with all operands, down to stored nodes and to views that repeat elements.

    Below such a view a reduction is always stored (and so is a scalar one used by a tensor), and other values have fewer elements
    than above it. The cost of a shared operand is divided among its uses.

    of        the weight of each node
    tiles     the reductions that become register tiles: sums of products with two repeated factors
    products  the operands of these sums
    together  for each concatenation the ns beyond those in `of` if all parts are computed for each element, because the loop is
              not cut at their ends
    sizes     cache of `size`
    visits    the number of edges visited so far
    """

    def __init__(self, order: Sequence[UOp], stored: Collection[UOp], machine: Machine) -> None:
        self.machine, self.order = machine, order
        self.of: dict[UOp, Weight] = {}
        self.tiles: set[UOp] = set()
        self.products: set[UOp] = set()
        self.together: dict[UOp, float] = {}
        self.sizes: dict[UOp, int] = {}
        self.visits = 0
        self._shares = Counter(itertools.chain.from_iterable([node.src for node in order]))
        self._own: list[tuple[UOp, float, float, int, tuple[UOp, ...], _Change | None]] = []
        self._reads: dict[UOp, Weight] = {}
        for node in order:
            if node.op in _MEMORY:
                self._reads[node] = self._read(node)
            if node.src and node.op not in _UNASKED:
                self._own.append(self._alone(node))
        self.weigh(stored)

    def weigh(self, stored: Collection[UOp]) -> None:
        """Recompute `of`, with the nodes in `stored` read from memory."""
        reads = {**self._reads, **{n: self._read(n) for n in stored}}
        of, shares = self.of, self._shares
        of.clear()
        for node, fast, slow, flags, sources, change in self._own:
            self.visits += len(sources)
            joined = node.op is Op.Concat
            if joined:
                self.together[node] = 0.0
            for s in sources:
                found = reads.get(s)
                if found is not None:
                    a, b, f = found
                elif (found := of.get(s)) is None:
                    continue
                else:
                    a, b, f = found
                    n = shares[s]
                    if n > 1:
                        a, b = a / n, b / n
                if joined:  # an element is of one part
                    share = self.size(s) / self.size(node)
                    self.together[node] += a * (1.0 - share)
                    a *= share
                fast += a
                slow += b
                flags |= f
            of[node] = (fast, slow, flags) if change is None else change(fast, slow, flags)

    def size(self, node: UOp) -> int:
        """The number of elements of a node, at least 1."""
        found = self.sizes.get(node)
        if found is None:
            found = self.sizes[node] = max(count(shape_of(node)), 1)
        return found

    @functools.cached_property
    def shown(self) -> set[UOp]:
        """The nodes with a user that is no view."""
        return {s for node in self.order if node.op not in UNPADDED for s in node.src}

    def costly(self, node: UOp) -> int:
        """The flags of a node that its computation contains a reduction, or a function in COSTLY."""
        return self.of[node][2] & (HEAVY | CALLS)

    def _alone(self, node: UOp) -> tuple[UOp, float, float, int, tuple[UOp, ...], _Change | None]:
        """(node, the weight of the node itself, the operands to add to it, the change to that sum or None)"""
        op, machine = node.op, self.machine
        if op in _BOUNDARY:
            return node, *_NOTHING, (), None
        if op in MOVEMENT:
            if op is Op.Pad:
                return node, *machine.gate, GATED, node.src[:1], _padded
            special = (
                _repeats
                if op is Op.Expand and enlarges(node)
                else _turned
                if op is Op.Permute and _turns(node)
                else None
            )
            return node, *_NOTHING, node.src[:1], special
        if op is Op.Concat:
            fast, slow = machine.gate
            return node, fast * len(node.src), slow * len(node.src), GATED, node.src, _padded
        if op is Op.ReduceAxis:
            return node, *_NOTHING, node.src, self._reduced(node)
        work = WORK.get(op, 0.0 if is_free(node) else 1.0)
        fast, slow = machine.call if op in COSTLY else machine.simple
        sources = tuple([s for s in node.src if s.src])
        if not all(shape_of(s) for s in sources) and shape_of(node):
            sources = tuple([s for s in sources if shape_of(s)])
        vectors = (
            max(node.dtype.itemsize / 4, 1.0) if node.dtype.is_float else 1.0
        )  # for as many elements as one of f32 holds
        return node, work * fast * vectors, work * slow, CALLS if op in COSTLY else 0, sources, None

    def _read(self, node: UOp) -> Weight:
        size = node.dtype.itemsize
        return size * self.machine.bytes_ns(size * count(shape_of(node))), self.machine.simple[1], READS | STRAIGHT

    def _reduced(self, node: UOp) -> _Change:
        """The function from the weight of a reduction's operand to the reduction's. A sum that picks one element is a read."""
        machine = self.machine
        fast, slow = machine.simple
        length = count(shape_of(node.src[0])) / max(count(shape_of(node)), 1)
        product = _product(node)
        if product is not None:
            self.tiles.add(node)
            self.products.add(product)
        if picks_one(node):
            return lambda a, b, flags: (a + slow, b + 2 * slow, flags & ~_OF_ROWS)
        if product is not None:
            each, alone = machine.product
            return lambda a, b, flags: (length * each, length * (b + alone), flags & ~_OF_ROWS | HEAVY)
        if continues(node):
            return lambda a, b, flags: (a + slow, length * (b + slow), flags & ~_OF_ROWS | HEAVY)
        return lambda a, b, flags: (length * (a + 4 * fast), length * (b + slow), flags & ~_OF_ROWS | HEAVY)


def _repeats(fast: float, slow: float, flags: int) -> Weight:
    return 0.0, 0.0, flags & READS | SPREAD | (SUMMED if flags & HEAVY else 0)


def _turned(fast: float, slow: float, flags: int) -> Weight:
    return fast, slow, flags ^ (STRAIGHT | TURNED) if flags & STRAIGHT != (flags & TURNED) >> 1 else flags


def _padded(fast: float, slow: float, flags: int) -> Weight:
    """The weight of a padded or concatenated value: HEAVY is cleared, since a reduction inside would have gates in its loops."""
    return fast, slow, flags & ~HEAVY


def is_free(node: UOp) -> bool:
    """True if a node has the bits of its operand and costs nothing."""
    return node.op is Op.Bitcast or (node.op is Op.Cast and node.src[0].dtype is node.dtype)


def _turns(node: UOp) -> bool:
    """True if a Permute moves the last axis of more than one element."""
    long = [a for a, n in zip(node.arg, shape_of(node), strict=True) if n != 1]
    return bool(long) and long[-1] != max(long)


def _product(node: UOp) -> UOp | None:
    """The product that a reduction sums, if both factors are repeated, as in a matrix product; else None."""
    value = beneath(node.src[0], CASTS_AND_VIEWS)
    return value if node.arg[0] is Op.Add and value.op is Op.Mul and all(map(_repeated, value.src)) else None


def _repeated(node: UOp) -> bool:
    while node.op in CASTS_AND_VIEWS:
        if enlarges(node):
            return True
        node = node.src[0]
    return False
