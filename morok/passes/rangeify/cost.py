"""The cost of computing a value, in nanoseconds, for the decision where to store one.

The constants are those of one core of a server (x86-64 with AVX-512 at 2.6 GHz, the machine of `bench/results`), and of a data
centre's GPU. They need to be right within a factor of two: what is stored saves a multiple of what it costs, or is let alone.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from morok.ir.op import Op
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.passes.rangeify.early import continues, picks_one
from morok.passes.rangeify.state import COSTLY, MOVEMENT, STORAGE, count, enlarges

# The work of a function, in simple operations (additions, comparisons, reads).
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
    """The time of what is done for one number, in ns. Pairs are for two places: in a kernel of its own, where numbers fill
    vectors (of a GPU: warps), and inside a loop that is not its own, one number at a time.

    simple   a unit of WORK
    loose    the share of the latter that it takes in a fold that is no tile: one number does not wait for another
    product  a multiply-add of a sum of products: in a register tile, and in a plain loop, which waits for each sum
    factor   what a factor of such a product takes longer where it is not read from memory as it is: a vector of the right one,
             a number of the left one
    gate     a comparison of positions, and the choice that it decides
    gated    what a number takes longer in a fold, or in a part of something joined, where several comparisons decide
    stray    what a number takes longer that is read out of order, by a kernel whose loops are not free to change places
    untiled  what a multiply-add of a second sum of products in a kernel takes longer: the loops of one alone become tiles
    filled   how many times longer a reduction takes where it fills a buffer inside a kernel
    caches   bytes, and the ns a byte of what is no larger; the last is memory
    launch   the start of a kernel
    least    ns that a stored value must save: a twelfth of 50 us, below which nothing is compared
    rows     times that a tile of a product uses a number of its left operand once computed (as many as it has columns)
    columns  likewise of its right one, of which a vector is computed at once (as many as it has rows)
    """

    simple: tuple[float, float]
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
    rows: int
    columns: int

    def bytes_ns(self, nbytes: float) -> float:
        """The time of one byte of a buffer of so many."""
        for size, ns in self.caches:
            if nbytes <= size:
                return ns
        return math.inf


# Measured, as WORK is (of 64 K numbers, above the time of a copy), on an Intel Xeon and an AMD EPYC. A copy of them takes 8 and
# 3 us, 60 and 180 bytes a ns, from the second cache, and 30 and 85, 10 and 35 bytes a ns from the last one and from memory.
# Padding takes a copy 0.02 ns more a number, and a sum of rows that are padded, too, or joined where no vector begins, 0.2 to
# 0.4 ns. A number that is read down a column, or at a quotient of positions, takes 0.5 to 0.8 ns, and 2.6 behind a product in
# tiles. Ten multiplications and additions take 1 us more, relu in the loops of a matrix product 0.4 ns each time, gates 2 ns. A
# matrix product does 80 multiply-adds a ns, one in a plain loop 0.66, and two in a kernel 40; a maximum of nine numbers takes 9
# ns in the filling of a buffer, and 0.4 in a kernel of its own. A record of a plan takes 0.1 us.
CPU: Final = Machine(
    simple=(0.02, 0.2),
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
    rows=64,
    columns=8,
)
# Reasoned, of published figures: 10^4 simple operations and 1,500 bytes a ns (of the second cache twice that), 3 us from one
# kernel to the next. A thread computes a tile of 4 x 4.
GPU: Final = Machine(
    simple=(1e-4, 1e-4),
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
    rows=4,
    columns=4,
)

_BOUNDARY: Final = frozenset({Op.Contiguous, Op.Assign, Op.Copy})
_MEMORY: Final = STORAGE | _BOUNDARY
_VIEWS: Final = MOVEMENT - {Op.Pad}
_UNASKED: Final = STORAGE | {Op.Bind}


# What a node's value takes, besides time.
HEAVY: Final = 1  # a reduction
CALLS: Final = 2  # a function in COSTLY
GATED: Final = 4  # a choice by position, as of what is padded
READS: Final = 8  # memory; what reads none is computed from positions and constants
SUMMED: Final = 16  # a reduction that many elements use, as the mean of a row: one kernel computes it on the way to them
SPREAD: Final = 32  # a view that shows elements several times
STRAIGHT: Final = 64  # memory, in an order whose last axis is the last of what is computed
TURNED: Final = 128  # memory, in another order

# What one element of a node takes: ns in a kernel of its own, ns inside a loop of another kernel, and the flags above.
Weight = tuple[float, float, int]
_NOTHING: Final[Weight] = (0.0, 0.0, 0)
_Change = Callable[[float, float, int], Weight]
_OF_ROWS: Final = GATED | SUMMED | SPREAD | STRAIGHT | TURNED  # what a reduction is no more, whatever it reduces


class Weights:
    """The cost of the nodes of a graph, each with all below it as far as something stored, or a view that repeats elements.

    Under such a view a reduction is always stored (and so is a scalar one that meets a tensor), and anything else is smaller
    there than above. What several consumers share is divided among them.

    of        the weight of each node
    tiles     the reductions that become register tiles: sums of products both of whose factors are read again and again
    products  what they are sums of
    sizes     the elements of nodes that were asked about
    visits    edges that were looked at, in all
    """

    def __init__(self, order: Sequence[UOp], stored: Collection[UOp], machine: Machine) -> None:
        self.machine, self.order = machine, order
        self.of: dict[UOp, Weight] = {}
        self.tiles: set[UOp] = set()
        self.products: set[UOp] = set()
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
        """Weigh the nodes again, where these are stored."""
        reads = {**self._reads, **{n: self._read(n) for n in stored}}
        of, shares = self.of, self._shares
        of.clear()
        for node, fast, slow, flags, sources, change in self._own:
            self.visits += len(sources)
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
                fast += a
                slow += b
                flags |= f
            of[node] = (fast, slow, flags) if change is None else change(fast, slow, flags)

    def size(self, node: UOp) -> int:
        """The elements of a node, one at least."""
        found = self.sizes.get(node)
        if found is None:
            found = self.sizes[node] = max(count(shape_of(node)), 1)
        return found

    @functools.cached_property
    def shown(self) -> set[UOp]:
        """The nodes that something else than a view reads."""
        return {s for node in self.order if node.op not in _VIEWS for s in node.src}

    def heavy(self, node: UOp) -> bool:
        return bool(self.of[node][2] & HEAVY)

    def _alone(self, node: UOp) -> tuple[UOp, float, float, int, tuple[UOp, ...], _Change | None]:
        """A node, what it takes itself, the operands that it takes besides, and what it makes of the weight of all that."""
        op, machine = node.op, self.machine
        if op in _BOUNDARY:
            return node, *_NOTHING, (), None
        if op in MOVEMENT:
            if op is Op.Pad:
                return node, *machine.gate, GATED, node.src[:1], _padded
            special = _repeats if op is Op.Expand and enlarges(node) else _turned if op is Op.Permute and _turns(node) else None
            return node, *_NOTHING, node.src[:1], special
        if op is Op.Concat:
            fast, slow = machine.gate
            return node, fast * len(node.src), slow * len(node.src), GATED, node.src, _padded
        if op is Op.ReduceAxis:
            return node, *_NOTHING, node.src, self._reduced(node)
        work = WORK.get(op, 0.0 if is_free(node) else 1.0)
        fast, slow = machine.simple
        sources = tuple([s for s in node.src if s.src])
        if not all(shape_of(s) for s in sources) and shape_of(node):
            sources = tuple([s for s in sources if shape_of(s)])
        return node, work * fast, work * slow, CALLS if op in COSTLY else 0, sources, None

    def _read(self, node: UOp) -> Weight:
        size = node.dtype.itemsize
        return size * self.machine.bytes_ns(size * count(shape_of(node))), self.machine.simple[1], READS | STRAIGHT

    def _reduced(self, node: UOp) -> _Change:
        """The change that a reduction makes to the weight of its operand. A sum that picks one element is a read."""
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
    """The weight of a padded or joined value: no reduction of its own any more, its loops would have gates."""
    return fast, slow, flags & ~HEAVY


def is_free(node: UOp) -> bool:
    """True if a node shows the same bits, which nothing computes."""
    return node.op is Op.Bitcast or (node.op is Op.Cast and node.src[0].dtype is node.dtype)


def _turns(node: UOp) -> bool:
    """True if a Permute moves the last axis of more than one element."""
    long = [a for a, n in zip(node.arg, shape_of(node), strict=True) if n != 1]
    return bool(long) and long[-1] != max(long)


def _product(node: UOp) -> UOp | None:
    """The product that a reduction sums, if both its factors are repeated, as those of a matrix product are."""
    value = node.src[0]
    while value.op is Op.Cast or value.op in MOVEMENT:
        value = value.src[0]
    return value if node.arg[0] is Op.Add and value.op is Op.Mul and all(map(_repeated, value.src)) else None


def _repeated(node: UOp) -> bool:
    while node.op in MOVEMENT or node.op is Op.Cast:
        if enlarges(node):
            return True
        node = node.src[0]
    return False
