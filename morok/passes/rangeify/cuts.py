"""The cuts of a program into kernels: a value is stored, or recomputed by each consumer.

The decision is made for each value once, for all consumers together, from the roots down, when the number of computations by each
consumer is known. A value is stored if that takes less time: computing each element once, in a kernel of its own, writing it, and
reading it at each use, against computing it at each use.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Final

from morok.ir.op import AxisType, Op
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.passes import index_maps
from morok.passes.index_maps import Indices
from morok.passes.rangeify.cost import CALLS, HEAVY, READS, SPREAD, STRAIGHT, SUMMED, TURNED, Weights, is_free
from morok.passes.rangeify.state import CASTS_AND_VIEWS, Decision, Demand, beneath, count, is_leaf
from morok.passes.register_tiles import in_dots, shared_by, summed_singly, tiles
from morok.passes.target import Target

MOST_PLACES: Final = 4  # most index vectors at which a node is recomputed
# most reductions one behind the other in a kernel: optimizing it takes time quadratic in its loops
MOST_BEHIND: Final = 32
VECTOR: Final = 16  # elements of a vector
_SHRINK: Final = frozenset({Op.Shrink})
CLEAR: Final = 0.1  # the least saving, as a fraction of the time with storing


class Cuts:
    """The decisions about one graph.

    weights    the costs of its nodes
    overrides  State.overrides
    loops      the loops of each stored node
    tiled      for each stored node the sum of products in its kernel whose loops become tiles
    decisions  all but the trivial ones
    moved      the nodes stored in place of a reduction below
    """

    def __init__(self, weights: Weights, nested: bool, overrides: Mapping[UOp, bool]) -> None:
        self.weights, self.machine, self.nested, self.overrides = weights, weights.machine, nested, overrides
        self.loops: dict[UOp, list[UOp]] = {}
        self.tiled: dict[UOp, UOp] = {}
        self.decisions: list[Decision] = []
        self.moved: set[UOp] = set()

    def worth_storing(self, node: UOp, demands: Sequence[Demand]) -> bool:
        """True if storing the node's value takes less time than recomputing it for each demand."""
        weights, first, single = self.weights, demands[0], len(demands) == 1
        fast, slow, flags = weights.of[node]
        runs = first.runs if single else sum([d.runs for d in demands])
        size = weights.size(node)
        heavy, moved = bool(flags & HEAVY), False
        strays: list[bool] = []  # by demand; [] if none strays
        if heavy:
            cheap = False
            if single and runs <= size and self._is_once(node, first):
                return False
        else:
            if self.nested and flags & (SUMMED | SPREAD | TURNED):
                moved = bool(flags & SUMMED) and runs > size and any(self._takes_apart(d) for d in demands)
                strays = [self._strays(d, flags) for d in demands]
                if True not in strays:
                    strays.clear()
            cheap = not moved
            if cheap and (max(fast, slow) + bool(strays) * self.machine.stray) * runs >= self.machine.least:
                cheap = runs <= size and not strays and not flags & CALLS
                cheap = cheap and (node in weights.products or not any(d.folds for d in demands))
            if cheap and single:
                return False
        if node.dtype.is_index or (node.op is Op.Pad and not self.nested):
            return False
        why = self._always(node, demands, heavy, runs, size)
        if why:
            self.decisions.append(Decision(node, size, runs, math.inf, 0.0, True, why))
            return True
        if cheap or (not heavy and (not flags & READS or _widens(node) or is_free(node))):
            return False
        return self._saves(node, demands, runs, size, moved, strays)

    def ends(self, node: UOp, demands: Sequence[Demand], behind: int) -> bool:
        """True if a node with a reduction inside is stored because so many reductions, `behind`, wait for its value."""
        if behind < MOST_BEHIND or node.dtype.is_index or not self.weights.of[node][2] & (HEAVY | SUMMED):
            return False
        size, runs = self.weights.size(node), sum([d.runs for d in demands])
        self.decisions.append(Decision(node, size, runs, math.inf, 0.0, True, "many reductions one behind the other"))
        return True

    def worth_copying(self, node: UOp, demands: Sequence[Demand]) -> bool:
        """True if storing the elements of a view takes less time than reading them out of order. For columns this is asked of the
        last of several views; for elements repeated one by one, of the Reshape after the Expand.
        """
        weights = self.weights
        flags = weights.of[node][2]
        if not self.nested or flags & (HEAVY | SUMMED) or not flags & (SPREAD | TURNED):
            return False
        if flags & TURNED and node in weights.shown:
            strays = [self._strays(d, flags) for d in demands]
        elif (whole := beneath(node, _SHRINK)).op is Op.Reshape and whole.src[0].op is Op.Expand:
            strays = [
                not d.filling and bool(weights.of[d.kernel][2] & (HEAVY | SUMMED)) and _repeats(d) for d in demands
            ]
        else:
            return False
        return True in strays and self._saves(
            node, demands, sum([d.runs for d in demands]), weights.size(node), False, strays
        )

    def _is_once(self, node: UOp, d: Demand) -> bool:
        """True if the only consumer of a reduction computes it as fast as a kernel of its own; False for sums of products in
        tiles.
        """
        return not (d.folds or d.filling or d.gates or d.repeated or node in self.weights.tiles)

    def _takes_apart(self, demand: Demand) -> bool:
        """True if the kernel of a demand cannot compute reductions of a row in its outer loops: they are stored instead."""
        return bool(demand.gates) or demand.shared or len(demand.around) >= max(len(self.loops[demand.kernel]), 1)

    def _strays(self, d: Demand, flags: int) -> bool:
        """True if a demand reads the operands of a value out of order, in a kernel whose loop order is fixed, because it folds
        rows or has a tile of a product: columns, both rows and columns, or repeated elements, at a quotient of positions.
        Likewise a demand that fills a row buffer, unless the row is too short for vectors.
        """
        if not self.weights.of[d.kernel][2] & (HEAVY | SUMMED):
            return False
        if d.filling and count(shape_of(d.node)[-1:]) <= VECTOR // 2:
            return False
        if flags & TURNED and not flags & SUMMED and (len(d.around) < len(self.loops[d.kernel]) or flags & STRAIGHT):
            return True
        quotient = any(n.op is Op.Idiv for i in d.indices for n in (i, *i.src))
        return quotient and bool(flags & SPREAD) and not d.folds and not d.filling

    def _always(self, node: UOp, demands: Sequence[Demand], heavy: bool, runs: int, size: int) -> str:
        """The reason to store a node at any cost; "" if its cost decides."""
        if node.op is Op.Pad:
            return ""
        if heavy and (len(demands) > 1 or demands[0].repeated or 2 * runs >= 3 * size):
            return "a reduction, wanted several times"
        if len(demands) > MOST_PLACES and node.op is not Op.Iota and not all(map(is_leaf, node.src)):
            return "wanted at many places"
        return ""

    def _saves(
        self, node: UOp, demands: Sequence[Demand], runs: int, size: int, moved: bool, strays: Sequence[bool]
    ) -> bool:
        """True if storing takes clearly less time; if `moved` (otherwise a reduction below is stored), any saving counts."""
        machine = self.machine
        fast, slow, flags = self.weights.of[node]
        bytes_ns = node.dtype.itemsize * machine.bytes_ns(size * node.dtype.itemsize)
        gated = _is_gated(node)
        merged, stored = machine.launch if moved else 0.0, machine.launch + size * (fast + bytes_ns)
        for k, d in enumerate(demands):
            if flags & HEAVY:
                alone = not (d.folds or d.filling or d.gates)
                merged += d.runs * (fast if alone else slow * machine.filled if d.filling else slow)
                stored += d.runs * (bytes_ns if alone else machine.simple[1])
                continue
            times, in_vectors, factor = self._computed(d, size)
            if gated and (in_vectors or not factor) and (d.filling or d.folds or d.gates):
                merged += times * (machine.gated + self.weights.together.get(node, 0.0))
            if strays and strays[k] and not (factor and flags & TURNED):  # tiles read columns as fast as rows
                merged += times * machine.stray
            if in_vectors:
                merged, stored = merged + times * (fast + factor * machine.factor[0]), stored + times * bytes_ns
                if d.folds and not factor and not flags & TURNED:
                    merged += times * _rest(d, machine.target) * (slow - fast)
            else:
                share = 1.0 if factor else machine.loose
                merged += times * (share * slow + factor * machine.factor[1])
                stored += times * share * machine.simple[1]
        if node in self.weights.tiles and demands[0].depth == 0 and not demands[0].filling:
            merged += self._untiled(node, demands[0], runs)
        cut = merged - stored > (0.0 if moved else max(machine.least, CLEAR * stored))
        decided = self.overrides.get(node, cut)
        if moved and decided:
            self.moved.add(node)
        self.decisions.append(
            Decision(node, size, runs, merged, stored, decided, "" if decided is cut else "faster when timed")
        )
        return decided

    def _untiled(self, node: UOp, demand: Demand, runs: int) -> float:
        """The time lost by a second sum of products in a kernel, in ns: only the loops of one become tiles."""
        if self.tiled.setdefault(demand.kernel, node) is node:
            return 0.0
        length = count(shape_of(node.src[0])) / self.weights.size(node)
        return runs * length * self.machine.untiled

    def _computed(self, d: Demand, size: int) -> tuple[float, bool, bool]:
        """(computations of a value without reductions by a consumer, True if vectorized, True if it is a factor of a product).

        Loops in which the value is invariant repeat it, except the innermost ones, out of which it is hoisted, and those of a
        tile's rows or columns, which share it.
        """
        machine, own = self.machine, self.loops[d.kernel]
        if d.filling or not own:
            return size if d.repeated else d.runs, True, False
        known = frozenset[UOp]().union(*[i.ranges for i in d.indices])
        if not self.nested:
            return d.runs / min(_lengths([r for r in own if r not in known]), machine.shared), True, False
        last = own[-1]
        in_vectors = any(i is last or (i.op is Op.Add and last in i.src) for i in d.indices)
        if d.folds == 0 or known.issubset(own):  # a value invariant in a fold is hoisted out of it
            behind = 0
            while behind < len(own) and own[-1 - behind] not in known:
                behind += 1
            repeats = (
                _lengths(own[len(own) - behind :])
                if d.folds == 0
                else d.runs / max(_lengths(own[: len(own) - behind]), 1)
            )
            return d.runs / max(repeats, 1.0), in_vectors, False
        # for statistics of a row without the loop along the row
        idle = [r for r in own if r in d.around and r not in known]
        if not idle or (d.product is None and not d.scanned):
            return d.runs, in_vectors or max(map(_length, _in_order(d.indices)), default=0) >= VECTOR // 2, False
        if d.scanned:
            return d.runs / _lengths(idle), in_vectors, True
        # a factor of a product: once for all rows of a tile, if it is the one with columns, or for all columns
        along, target, itemsize = _lengths(idle[-1:]), machine.target, d.node.dtype.itemsize
        rows, columns = (along, last) if in_vectors else (_lengths([r for r in own if r in known][-1:]), idle[-1])
        times = tiles(rows, _length(columns), itemsize, target)[0 if in_vectors else 1]
        summed = 0 if d.product is None else self._lies_along_sum(d.product)
        if summed and in_dots(rows, _length(columns), summed, itemsize, target):
            return d.runs / shared_by(along), True, False
        return d.runs * times / along, in_vectors, True

    def _lies_along_sum(self, product: Demand) -> int:
        """The length of a sum of products along which both factors are contiguous in memory; 0 if they are not."""
        while product.node.op is not Op.Mul:  # casts and views, above the product alone
            (below,) = product.sources
            assert below is not None
            product = below
        length = 0
        for factor in product.sources:
            if factor is None:
                return 0
            node, indices = factor.node, factor.indices
            while node.op in CASTS_AND_VIEWS:
                if node.op is not Op.Cast:
                    indices, _ = index_maps.through(node, indices)
                node = node.src[0]
            loops = _in_order(indices)
            if any(r.arg[1] is not AxisType.Reduce for r in loops):
                return 0  # the columns of a tile, which comes first
            length = max(map(_length, loops), default=0)
            if not length or (node in self.weights.of and self.weights.of[node][2] & TURNED):
                return 0
        return length


def _rest(d: Demand, target: Target) -> float:
    """The fraction of a fold's elements that it takes one at a time: those behind the last whole vector of each row."""
    row = next((i for i in reversed(d.indices) if i.ranges), None)
    if row is None or row.op is not Op.Range or row.arg[1] is not AxisType.Reduce:
        return 0.0
    length = _length(row)
    return summed_singly(length, d.node.dtype.itemsize, target) / length


def _length(r: UOp) -> int:
    return int(r.vmax) + 1


def _lengths(loops: Sequence[UOp]) -> int:
    return math.prod(map(_length, loops))


def _repeats(d: Demand) -> bool:
    """True if a loop reads an element of an Expand several times before the next; in a fold, if its own loop does."""
    node, indices = d.node, d.indices
    while node.op is Op.Shrink:
        node, indices = node.src[0], index_maps.through(node, indices)[0]
    for i, n in zip(index_maps.through(node, indices)[0], shape_of(node.src[0].src[0]), strict=True):
        if (
            i.op is Op.Mod
            and n == 1
            and (not d.folds or (i.src[0].op is Op.Range and i.src[0].arg[1] is AxisType.Reduce))
        ):
            return True
    return False


def _in_order(indices: Indices) -> list[UOp]:
    """The loops with stride 1 along the last axis that varies."""
    last = next((i for i in reversed(indices) if i.ranges), None)
    terms, found = [] if last is None else [last], []
    while terms:
        term = terms.pop()
        if term.op is Op.Add:
            terms += term.src
        elif term.op is Op.Range:
            found.append(term)
    return found


def _is_gated(node: UOp) -> bool:
    """True if several comparisons of positions decide on each vector of a node, in a loop along its last axis: several padded
    axes, or parts concatenated along it that end inside a vector.
    """
    shape = shape_of(node)
    if node.op is Op.Pad:
        return sum(before is not after for before, after in zip(shape, shape_of(node.src[0]), strict=True)) > 1
    if node.op is not Op.Concat or node.arg != len(shape) - 1:
        return False
    ends = itertools.accumulate(count(shape_of(part)[-1:]) for part in node.src[:-1])
    return any(end % VECTOR for end in ends)


def _widens(node: UOp) -> bool:
    """True if a node is a cast to a wider dtype: its operand would be smaller to store."""
    return node.op is Op.Cast and node.src[0].dtype.itemsize < node.dtype.itemsize
