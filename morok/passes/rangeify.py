"""Rangeify: views become index arithmetic, reductions become loops, and what must be stored is marked.

Eight passes, in the order of PASSES. Afterwards the graph is a Sink of Bufferize nodes: each is a value over its ranges, and
reads others as Index(Bufferize, indices..). No movement op and no ReduceAxis is left. A Bufferize in local memory is a row that a
kernel keeps for itself.

Ranges are assigned from the results down: a node is asked for its value at an index vector by each of its consumers, and
passes on what it needs of its operands. Consumers come before their operands, so all demands on a node are known when it is
its turn, and whether it gets a buffer of its own can be decided by what computing it again would cost.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.errors import IRTypeError
from morok.ir.dtype import FLOAT_FORMAT, AddrSpace
from morok.ir.graph import substitute, toposort
from morok.ir.maker import maker
from morok.ir.op import AxisType, Op, Undefined
from morok.ir.shape import Shape, dim, shape_of
from morok.ir.uop import UOp
from morok.passes import movement
from morok.passes.movement import ZERO, Indices, number

MOVEMENT: Final = frozenset({Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip})
STORAGE: Final = frozenset({Op.Buffer, Op.BufferView})
# Marks that Tensor methods leave for others and that mean nothing to a schedule.
TRANSPARENT: Final = frozenset({Op.Detach, Op.ContiguousBackward, Op.Precast})
# Functions that cost as much as a dozen additions.
COSTLY: Final = frozenset({Op.Exp, Op.Exp2, Op.Log, Op.Log2, Op.Sin, Op.Cos, Op.Tan, Op.Tanh, Op.Erf, Op.Pow})
SPLIT_RATIO: Final = 32768  # elements reduced to one from which a reduction is done in two steps
SPLIT_PARTS: Final = 256  # most partial results of the first step
SPLIT_LEAST: Final = 8
MOST_PLACES: Final = 4  # index vectors at which a node without a buffer may be computed
MOST_REPEATS: Final = 8  # how often a costly function may be computed anew for one element
PADDED_BYTES: Final = 1 << 20  # of a padded operand inside a kernel: half of a usual second cache
ROW_BYTES: Final = 1 << 18  # of a buffer inside a kernel: what stays in a cache near the processor

_ids: Final = itertools.count()


@dataclass(slots=True, eq=False)
class Demand:
    """A consumer's wish: the value of `node` at `indices`, where all `gates` hold.

    kernel    the stored node that it is computed for
    runs      how often it is computed there, if nothing is hoisted
    depth     how many reductions surround it
    repeated  whether an Expand lies on the way: several runs ask for the same element
    around    the ranges at which the reductions right around it are computed
    shared    whether several kernels want it
    sources   the demands on its operands, None for operands that are values themselves
    ranges    the loops of a ReduceAxis
    """

    node: UOp
    indices: Indices
    gates: tuple[UOp, ...]
    kernel: UOp
    runs: int
    depth: int
    repeated: bool
    around: frozenset[UOp] = frozenset()
    shared: bool = False
    sources: list[Demand | None] = field(default_factory=list)
    ranges: tuple[UOp, ...] = ()
    value: UOp | None = None


@dataclass(slots=True)
class State:
    """What the passes hand on.

    roots    the nodes to be stored, in the order of the outputs
    nested   whether the loops of a kernel lie one inside the other: what an outer one computes is there for the inner ones. On a
             GPU each output is a thread
    stored   for each node that gets a buffer the demand that fills it
    rows     likewise for each that gets one inside its kernel, filled anew in every iteration of the outer loops
    demands  for every node the demands on it, by indices and gates
    order    all nodes, operands first
    sink     from core on: Sink(Bufferize..), one a root
    held     from core on: the Bufferize that holds each stored node, as long as it holds all of it
    most     buffers that one kernel may use, its own included; 0: any number
    became   what the nodes of the graph as it came were rewritten to before ranges were assigned
    """

    roots: list[UOp]
    device: str
    nested: bool = False
    stored: dict[UOp, Demand] = field(default_factory=dict)
    rows: dict[UOp, Demand] = field(default_factory=dict)
    demands: dict[UOp, dict[tuple[Indices, tuple[UOp, ...]], Demand]] = field(default_factory=dict)
    order: list[UOp] = field(default_factory=list)
    sink: UOp | None = None
    held: dict[UOp, UOp] = field(default_factory=dict)
    most: int = 0
    became: dict[UOp, UOp] = field(default_factory=dict)

    def rewritten(self, done: Mapping[UOp, UOp]) -> None:
        """Go on with other nodes, before there is a sink."""
        self.roots = [done[r] for r in self.roots]
        self.became = {n: done[now] for n, now in self.became.items() if now in done} if self.became else dict(done)

    def replace(self, done: Mapping[UOp, UOp]) -> None:
        """Go on with other nodes."""
        assert self.sink is not None
        self.sink = done[self.sink]
        self.held = {n: made for n, b in self.held.items() if (made := done.get(b)) is not None and len(made.src) == len(b.src)}


def otherwise(made: UOp | None, node: UOp) -> UOp:
    """`made`, or `node` where there is none; `or` would ask a constant for its truth."""
    return node if made is None else made


# Early rewrites.


def early_rewrites(state: State) -> None:
    """Drop marks and views that change nothing, and join views of views."""
    done: dict[UOp, UOp] = {}
    for node in toposort(state.roots):
        src = tuple([done[s] for s in node.src])
        new = node if src == node.src else node.replace(src)
        op = new.op
        if op in TRANSPARENT:
            new = new.src[0]
        elif op is Op.Reshape:
            below = new.src[0]
            if below.op is Op.Reshape:
                new = UOp.new(Op.Reshape, (below.src[0], *new.src[1:]))
            if shape_of(new) == shape_of(new.src[0]):
                new = new.src[0]
        elif (op is Op.Expand and shape_of(new) == shape_of(new.src[0])) or (op is Op.Contiguous and is_stored(new.src[0])):
            new = new.src[0]
        elif op is Op.ReduceAxis:
            new = otherwise(_joined(new), new)
        elif new.entry.pointwise:
            new = otherwise(_folded(new), new)
        done[node] = new
    state.rewritten(done)


def uniform(node: UOp) -> UOp | None:
    """The constant that every element of a node is, where views alone lie above it."""
    while node.op in MOVEMENT and node.op is not Op.Pad:
        node = node.src[0]
    return node if node.op is Op.Const else None


def _folded(node: UOp) -> UOp | None:
    """A pointwise op of constant tensors as a constant tensor; None where there is none, or no value."""
    constants = [uniform(s) for s in node.src]
    values = [c.arg for c in constants if c is not None]
    evaluate = node.entry.evaluate
    if len(values) != len(constants) or evaluate is None:
        return None
    try:
        if node.op is Op.Cast:
            result = evaluate(node.dtype, values[0], node.src[0].dtype)
        else:
            result = evaluate(node.src[-1].dtype, *values)
    except Undefined:
        return None
    constant, shape = UOp.const(result, node.dtype), shape_of(node)
    if not shape:
        return constant
    ones = UOp.new(Op.Reshape, (constant, *[number(1) for _ in shape]))
    return ones if shape_of(ones) == shape else UOp.new(Op.Expand, (ones, *map(number, shape)))


def _joined(node: UOp) -> UOp | None:
    """A sum of sums as one sum, over the axes of both; likewise the other reductions."""
    below = node.src[0]
    if below.op is not Op.ReduceAxis or below.arg[0] is not node.arg[0]:
        return None
    inner = below.arg[1]
    left = [a for a in range(len(shape_of(below.src[0]))) if a not in inner]
    axes = tuple(sorted((*inner, *[left[a] for a in node.arg[1]])))
    return UOp.new(Op.ReduceAxis, below.src, (node.arg[0], axes))


def is_stored(node: UOp) -> bool:
    """Whether a node is memory already, seen in row-major order, or on its way there."""
    while node.op is Op.Reshape:
        node = node.src[0]
    return node.op in STORAGE or node.op in (Op.Contiguous, Op.Assign)


# Split of large reductions.


def split_reductions(state: State) -> None:
    """A reduction of very many elements to few becomes two: partial results, stored, and their reduction."""
    done: dict[UOp, UOp] = {}
    for node in toposort(state.roots):
        src = tuple([done[s] for s in node.src])
        new = node if src == node.src else node.replace(src)
        if new.op is Op.ReduceAxis:
            new = otherwise(_split(new), new)
        done[node] = new
    state.rewritten(done)


def _split(node: UOp) -> UOp | None:
    op, axes = node.arg
    shape = shape_of(node.src[0])
    sizes = [d for d in shape if isinstance(d, int)]
    if len(sizes) != len(shape):
        return None
    kept = math.prod(n for a, n in enumerate(sizes) if a not in axes)
    if math.prod(sizes) // max(kept, 1) < SPLIT_RATIO or _picks_one(node) or _continues(node):
        return None
    for a in axes:
        for parts in range(SPLIT_PARTS, SPLIT_LEAST - 1, -1):
            if sizes[a] % parts == 0 and sizes[a] > parts:
                split = (*sizes[:a], parts, sizes[a] // parts, *sizes[a + 1 :])
                wide = UOp.new(Op.Reshape, (node.src[0], *map(number, split)))
                inner = tuple(x if x < a else x + 1 for x in axes)
                partial = UOp.new(Op.Contiguous, (UOp.new(Op.ReduceAxis, (wide,), (op, inner)),))
                at = a - sum(1 for x in axes if x < a)
                return UOp.new(Op.ReduceAxis, (partial,), (op, (at,)))
    return None


def _picks_one(node: UOp) -> bool:
    """Whether a sum is the element at one position: `load_collapse.gather` makes it a read."""
    value = node.src[0]
    if value.op is not Op.Where or value.src[0].op is not Op.Eq or uniform(value.src[2]) is None:
        return False
    position = value.src[0].src[0]
    while position.op in MOVEMENT:
        position = position.src[0]
    return position.op is Op.Iota


def _continues(node: UOp) -> bool:
    """Whether elements are folded up to a position, as a scan does: the loop over positions continues each fold."""
    value = node.src[0]
    return value.op is Op.Where and value.src[0].op in (Op.Le, Op.Lt) and all(map(_is_position, value.src[0].src))


def _is_position(x: UOp) -> bool:
    while x.op in MOVEMENT or x.op is Op.Cast:
        x = x.src[0]
    return x.op is Op.Iota


# Range assignment.


def assign_ranges(state: State) -> None:
    """Give every stored node its loops and every demand its indices; decide which nodes are stored (the realize map)."""
    order = state.order = toposort(state.roots)
    forced = set(state.roots) | {n for n in order if n.op in (Op.Contiguous, Op.Assign, Op.Copy)}
    heavy, costly = _weigh(order, forced)
    _assign(state, forced, heavy, costly)
    # above what turned out to be stored nothing is heavy any more: what was stored for that alone is computed instead
    chosen = set(state.stored)
    lighter, _ = _weigh(order, chosen)
    needed = {n for n in chosen if n in forced or n in lighter or n not in heavy}
    if needed != chosen:
        _, costly = _weigh(order, needed)
        state.stored, state.rows, state.demands = {}, {}, {}
        _assign(state, needed, lighter, costly)
    while state.most and (more := _beyond_limit(state)):
        needed = {*state.stored, *more}
        state.stored, state.rows, state.demands = {}, {}, {}
        _assign(state, needed, lighter, costly)


def _beyond_limit(state: State) -> set[UOp]:
    """What to store besides, so that no kernel uses more than `state.most` buffers; what reads most goes first."""
    reads: dict[UOp, frozenset[UOp]] = {}
    more: set[UOp] = set()
    for node in state.order:
        if node.op in STORAGE:
            reads[node] = frozenset({node})
            continue
        below = {s: reads[s] for s in node.src}
        together = frozenset().union(*below.values())
        while len(together) >= state.most and (most := max(below, key=lambda s: len(below[s]), default=node)) is not node:
            if len(below[most]) <= 1:
                break  # single buffers: this many operands no limit can take apart
            more.add(most)
            below[most] = reads[most] = frozenset({most})
            together = frozenset().union(*below.values())
        reads[node] = frozenset({node}) if node in state.stored else together
    return more


def _assign(state: State, forced: set[UOp], heavy: set[UOp], costly: set[UOp]) -> None:
    """Pass the demands down from the results, storing the `forced` nodes and those worth it."""
    loops: dict[tuple[UOp, int, int, int | UOp], UOp] = {}
    for node in reversed(state.order):
        if node.op in STORAGE or (not shape_of(node) and _is_leaf(node)) or node.op in (Op.Unique, Op.Device):
            continue
        maker.origin = node.origin
        demands = state.demands.get(node, {})
        if node in forced or (demands and _keeps_buffer(state, node, list(demands.values()), node in heavy, node in costly)):
            shape = shape_of(node)
            indices = tuple(ZERO if d == 1 else new_range(d, AxisType.Loop) for d in shape)
            own = Demand(node, indices, (), node, _count(shape), 0, False)
            state.stored[node] = own
            _descend(state, own, loops)
        elif state.nested and (row := _row(state, node, list(demands.values()), node in costly)) is not None:
            state.rows[node] = row
            _descend(state, row, loops)
        else:
            for demand in demands.values():
                _descend(state, demand, loops)


def new_range(end: int | UOp, axis: AxisType) -> UOp:
    """A loop like no other; kernels number theirs from 0 later."""
    return UOp.range(number(end), next(_ids), axis)


def _count(shape: Shape) -> int:
    return math.prod(int(d.vmax) if isinstance(d, UOp) else d for d in shape)


def _is_leaf(node: UOp) -> bool:
    return not node.src or node.op is Op.Bind


def _weigh(order: list[UOp], stored: set[UOp]) -> tuple[set[UOp], set[UOp]]:
    """The nodes that compute a reduction, and those that compute a costly function, without anything stored in between.

    Under an Expand a reduction is always stored (and so is a scalar one that meets a tensor), so it does not weigh on
    what lies above.
    """
    heavy: set[UOp] = set()
    costly: set[UOp] = set()
    for node in order:
        op = node.op
        if op in (Op.Contiguous, Op.Assign, Op.Expand):
            continue
        if op is Op.ReduceAxis or any(s in heavy and s not in stored and not _spreads(s, node) for s in node.src):
            heavy.add(node)
        if op in COSTLY or any(s in costly and s not in stored for s in node.src):
            costly.add(node)
    return heavy, costly


def _keeps_buffer(state: State, node: UOp, demands: list[Demand], heavy: bool, costly: bool) -> bool:
    """Whether storing the node's value costs less than computing it wherever it is wanted."""
    if node.op in MOVEMENT or (state.nested and _once_a_row(state, node, demands)):
        return False
    size = max(_count(shape_of(node)), 1)
    runs = sum(d.runs for d in demands)
    if heavy:
        return len(demands) > 1 or demands[0].repeated or 2 * runs >= 3 * size
    if len(demands) > MOST_PLACES:
        return node.op is not Op.Iota and not all(_is_leaf(s) for s in node.src)
    return costly and runs >= MOST_REPEATS * size and any(d.repeated for d in demands)


def _once_a_row(state: State, node: UOp, demands: list[Demand]) -> bool:
    """Whether the outer loops of the one kernel that wants a node compute each element once, before the inner loops use it.

    So the maximum and the sum of a softmax's row, for one: nothing is stored, and the row is still in the nearest cache when it
    is read again. Not where reductions inside further loops use it: those change places when they become tiles.
    """
    if len(demands) != 1 or demands[0].gates or demands[0].shared:
        return False
    (demand,) = demands
    own = [i for i in state.stored[demand.kernel].indices if i.op is Op.Range]
    rows = [i for i in demand.indices if i is not ZERO]
    if len(rows) == len(own) or set(rows) != set(own[: len(rows)]) or not demand.around <= set(rows):
        return False
    demand.runs, demand.repeated = _count(shape_of(node)), False
    return True


def _row(state: State, node: UOp, demands: list[Demand], costly: bool) -> Demand | None:
    """What fills a buffer that a kernel keeps for itself; None where it is not worth it, or the places do not have the form."""
    if node.op is Op.Pad:
        return _padded(state, node, demands)
    return _costly_row(state, node, demands) if costly else None


def _padded(state: State, node: UOp, demands: list[Demand]) -> Demand | None:
    """For what is padded, and read again and again by a reduction, as by a convolution: behind the padding no read has a gate."""
    shape = shape_of(node)
    if len(demands) != 1 or demands[0].gates or demands[0].shared or not all(isinstance(n, int) for n in shape):
        return None
    (demand,) = demands
    if not demand.depth or demand.runs < MOST_REPEATS * _count(shape):
        return None
    own = (i for i in state.stored[demand.kernel].indices if i is not ZERO)
    outer = 0
    while outer < len(shape) and (demand.indices[outer] is ZERO or demand.indices[outer] is next(own, None)):
        outer += 1
    if not 0 < _count(shape[outer:]) * node.dtype.itemsize <= PADDED_BYTES:
        return None
    inner = tuple(new_range(n, AxisType.Loop) for n in shape[outer:])
    return Demand(node, (*demand.indices[:outer], *inner), (), demand.kernel, _count(shape), demand.depth, False)


def _costly_row(state: State, node: UOp, demands: list[Demand]) -> Demand | None:
    """For a costly node that a kernel wants several times inside the same outer loops: the exponentials of a softmax's row, for
    their sum and for the result.
    """
    shape = shape_of(node)
    if len(demands) < 2 or any(d.gates or d.shared or d.kernel is not demands[0].kernel for d in demands):
        return None
    own = [i for i in state.stored[demands[0].kernel].indices if i.op is Op.Range]
    same = [all(d.indices[a] is demands[0].indices[a] for d in demands) for a in range(len(shape))]
    rows = {i for i, outer in zip(demands[0].indices, same, strict=True) if outer and i is not ZERO}
    if rows != set(own[: len(rows)]) or not all(d.around <= rows for d in demands):
        return None
    sizes = [d for d, outer in zip(shape, same, strict=True) if not outer]
    for d in demands:
        along = [i for i, outer in zip(d.indices, same, strict=True) if not outer]
        whole = all(i.op is Op.Range and dim(i.src[0]) == n for i, n in zip(along, sizes, strict=True))
        if not whole or len(set(along)) != len(along):
            return None
    if not all(isinstance(n, int) for n in sizes) or _count(tuple(sizes)) * node.dtype.itemsize > ROW_BYTES:
        return None
    indices = tuple(
        i if outer else new_range(n, AxisType.Loop) for i, n, outer in zip(demands[0].indices, shape, same, strict=True)
    )
    return Demand(node, indices, (), demands[0].kernel, _count(shape), max(d.depth for d in demands), False)


def _descend(state: State, demand: Demand, loops: dict[tuple[UOp, int, int, int | UOp], UOp]) -> None:
    """Pass a demand on to the node's operands."""
    node = demand.node
    op = node.op
    if op in MOVEMENT:
        indices, gates = movement.through(node, demand.indices)
        demand.sources = [_want(state, node.src[0], indices, (*demand.gates, *gates), demand, repeated=_repeats(node))]
    elif op is Op.ReduceAxis:
        _, axes = node.arg
        shape = shape_of(node.src[0])
        inner: list[UOp] = []
        rest = iter(demand.indices)
        for axis, size in enumerate(shape):
            if axis not in axes:
                inner.append(next(rest))
            elif size == 1:
                inner.append(ZERO)
            else:
                # reductions side by side share their loops, one inside the other never does
                key = (demand.kernel, demand.depth, axes.index(axis), size)
                if key not in loops:
                    loops[key] = new_range(size, AxisType.Reduce)
                inner.append(loops[key])
        demand.ranges = tuple(inner[a] for a in axes if inner[a] is not ZERO)
        times = _count(tuple(shape[a] for a in axes))
        demand.sources = [_want(state, node.src[0], tuple(inner), demand.gates, demand, times=times, deeper=1)]
    elif op is Op.Assign:
        demand.sources = [None, _want(state, node.src[1], demand.indices, demand.gates, demand)]
    elif op is not Op.Iota:
        demand.sources = [
            _want(state, s, demand.indices if shape_of(s) else (), demand.gates, demand, repeated=_spreads(s, node))
            for s in node.src
        ]


def _spreads(scalar: UOp, node: UOp) -> bool:
    """Whether an operand is a scalar that every element of `node` uses."""
    return not shape_of(scalar) and bool(shape_of(node))


def _repeats(node: UOp) -> bool:
    return node.op is Op.Expand and _count(shape_of(node)) > _count(shape_of(node.src[0]))


def _want(
    state: State,
    node: UOp,
    indices: Indices,
    gates: tuple[UOp, ...],
    by: Demand,
    repeated: bool = False,
    times: int = 1,
    deeper: int = 0,
) -> Demand | None:
    """The demand on `node` at these indices, made or joined; None for what is a value by itself."""
    if not shape_of(node) and _is_leaf(node):
        return None
    gates = tuple(dict.fromkeys(gates))
    table = state.demands.setdefault(node, {})
    found = table.get((indices, gates))
    runs, depth, repeated = by.runs * times, by.depth + deeper, by.repeated or repeated
    around = frozenset(r for i in by.indices for r in i.ranges) if deeper else by.around
    if found is None:
        found = table[indices, gates] = Demand(node, indices, gates, by.kernel, runs, depth, repeated, around, by.shared)
        return found
    found.shared = found.shared or by.shared or found.kernel is not by.kernel
    found.runs = found.runs + runs if found.shared else max(found.runs, runs)
    found.depth, found.repeated = max(found.depth, depth), found.repeated or repeated or found.shared
    found.around |= around
    return found


# Core rangeify.


def core(state: State) -> None:
    """Compute every demand's value from those of its operands: the graph without views."""
    values: dict[UOp, UOp] = {}
    for node in state.order:
        maker.origin = node.origin
        own = state.stored.get(node)
        if own is not None:
            value = _value(own, values)
            ranges = [i for i in own.indices if i.op is Op.Range]
            values[node] = UOp.new(Op.Bufferize, (value, *ranges), (state.device, AddrSpace.GLOBAL))
        row = state.rows.get(node)
        filled: UOp | None = None
        if row is not None:
            outer = next(iter(state.demands[node].values())).indices
            ranges = [i for i, o in zip(row.indices, outer, strict=True) if i is not o]
            filled = UOp.new(Op.Bufferize, (_value(row, values), *ranges), (state.device, AddrSpace.LOCAL))
        for demand in state.demands.get(node, {}).values():
            if own is not None:
                places = [i for i, o in zip(demand.indices, own.indices, strict=True) if o.op is Op.Range]
                demand.value = read(values[node], places, demand.gates)
            elif row is not None and filled is not None:
                places = [i for i, o in zip(demand.indices, row.indices, strict=True) if i is not o]
                demand.value = read(filled, places, ())
            else:
                demand.value = _value(demand, values)
    # a root may have turned out to be memory already
    state.sink = UOp.sink(*[values.get(r, r) for r in state.roots])
    state.held = values


def read(storage: UOp, indices: Sequence[UOp], gates: Sequence[UOp]) -> UOp:
    """The element of a buffer at these indices; 0 where a gate is false."""
    return storage.index(*indices or (ZERO,), gate=conjunction(gates) if gates else None)


def conjunction(gates: Sequence[UOp]) -> UOp:
    out = gates[0]
    for g in gates[1:]:
        out = out & g
    return out


def _value(demand: Demand, held: Mapping[UOp, UOp]) -> UOp:
    node = demand.node
    op = node.op
    if op in STORAGE:
        return read(node, demand.indices, demand.gates)
    if op is Op.Iota:
        return demand.indices[0]
    below = [node.src[k] if d is None else d.value for k, d in enumerate(demand.sources)]
    src = tuple([v for v in below if v is not None])
    assert len(src) == len(below)
    if op is Op.Pad:
        inner = demand.sources[0]
        own = inner.gates[len(demand.gates) :] if inner is not None else tuple(movement.through(node, demand.indices)[1])
        # a gated read is 0 by itself
        if not own or (inner is not None and src[0].op is Op.Index and inner.gates):
            return src[0]
        return conjunction(own).where(src[0], UOp.const(0, node.dtype))
    if op in MOVEMENT or op is Op.Contiguous:
        return src[0]
    if op is Op.ReduceAxis:
        return src[0].reduce(node.arg[0], *demand.ranges) if demand.ranges else src[0]
    if op is Op.Assign:
        return _assignment(node, demand, src[1], held)
    return node.replace(src)


def _assignment(node: UOp, demand: Demand, value: UOp, held: Mapping[UOp, UOp]) -> UOp:
    """The value stored over a buffer's own elements; through a temporary if it reads the buffer elsewhere than it writes.

    Where the target is an earlier assignment to the buffer, that one (in `held`) comes before: Index(After(buffer, ..), flat).
    """
    target = node.src[0]
    earlier: list[UOp] = []
    while target.op in (Op.Reshape, Op.Assign):
        if target.op is Op.Assign and not earlier:
            earlier.append(held[target])
        target = target.src[0]
    if target.op not in STORAGE:
        raise IRTypeError(f"Assign: {target.op.name} is no memory to write to", expected="a buffer, or a buffer reshaped")
    flat = movement.flatten(demand.indices, shape_of(node))
    inside = toposort((value,))
    if any(n.op is Op.Index and n.src[0] is target and n.src[1] is not flat for n in inside):
        ranges = [i for i in demand.indices if i.op is Op.Range]
        fresh = {r: new_range(dim(r.src[0]), AxisType.Loop) for r in ranges}
        moved = substitute((value,), fresh)[0]
        temporary = UOp.new(Op.Bufferize, (moved, *fresh.values()), (target.src[1].arg, AddrSpace.GLOBAL))
        value = read(temporary, ranges, ())
    return UOp.new(Op.Assign, (target.after(*earlier).index(flat), value))


# Reduction simplification.


def simplify_reductions(state: State) -> None:
    """Take out of a reduction what its loops do not change."""
    assert state.sink is not None
    nodes = state.sink.toposort()
    if not any(n.op is Op.Reduce for n in nodes):
        return
    done: dict[UOp, UOp] = {}
    for node in nodes:
        src = tuple([done[s] for s in node.src])
        new = node if src == node.src else node.replace(src)
        done[node] = otherwise(_simpler(new), new) if new.op is Op.Reduce else new
    state.replace(done)


def _simpler(node: UOp) -> UOp | None:
    """sum(x) over a loop that x does not know is n * x; max(x) is x. Floats only where no order of adding rounds."""
    op, body, d = node.arg, node.src[0], node.dtype
    inside = body.ranges
    idle = [r for r in node.src[1:] if r not in inside]
    times = 1
    for r in idle:
        if r.src[0].op is not Op.Const or r.src[0].arg < 1:
            return None
        times *= r.src[0].arg
    if not idle:
        return None
    if op in (Op.Max, Op.Min):
        folded = body
    elif op is Op.Add and d.is_int:
        folded = body * UOp.const(times, d)
    elif op is Op.Add and d.is_float and body.op is Op.Const and _adds_exactly(body, times):
        folded = UOp.const(body.arg * times, d)
    else:
        return None
    left = [r for r in node.src[1:] if r in inside]
    return folded.reduce(op, *left) if left else folded


def _adds_exactly(c: UOp, times: int) -> bool:
    """Whether every partial sum of `times` copies of a constant is a float."""
    value: float = c.arg
    return math.isfinite(value) and value.is_integer() and abs(value) * times <= 2 ** FLOAT_FORMAT[c.dtype][0]


# Buffer folding, dead axes, buffer removal.


def fold_buffers(state: State) -> None:
    """A stored constant is the constant; a stored copy of a whole buffer in its own order is that buffer."""

    def fold(read_: UOp, source: UOp) -> UOp | None:
        value = source.src[0]
        if value.op is Op.Const:
            return value if not read_.arg else read_.src[-1].where(value, UOp.const(0, value.dtype))
        return None

    _rewrite_reads(state, fold)


def drop_dead_axes(state: State) -> None:
    """Loops over which a stored value does not change are not stored."""

    def drop(read_: UOp, source: UOp) -> UOp | None:
        value, ranges = source.src[0], source.src[1:]
        needed = value.ranges
        alive = [k for k, r in enumerate(ranges) if r in needed]
        if len(alive) == len(ranges) or value.op is Op.Assign:
            return None
        smaller = UOp.new(Op.Bufferize, (value, *[ranges[k] for k in alive]), source.arg)
        gates = read_.src[-1:] if read_.arg else ()
        return read(smaller, [read_.src[1 + k] for k in alive], gates)

    _rewrite_reads(state, drop)


def remove_buffers(state: State) -> None:
    """A stored value that turned out to be cheap (its reduction is gone) is computed where it is read."""
    kept: dict[UOp, bool] = {}

    def inline(read_: UOp, source: UOp) -> UOp | None:
        if source not in kept:
            kept[source] = _worth_storing(source)
        if kept[source]:
            return None
        value, ranges = source.src[0], source.src[1:]
        indices = read_.src[1 : 1 + len(ranges)]
        here = substitute((value,), dict(zip(ranges, indices, strict=True)))[0]
        return read_.src[-1].where(here, UOp.const(0, here.dtype)) if read_.arg else here

    _rewrite_reads(state, inline)


def _worth_storing(source: UOp) -> bool:
    """Anything that reads memory or reduces; arithmetic on positions is computed anew."""
    if source.src[0].op is Op.Assign:
        return True
    return any(n.op in (Op.Index, Op.Reduce) or n.op in COSTLY for n in toposort((source.src[0],)))


def _rewrite_reads(state: State, rewrite: Callable[[UOp, UOp], UOp | None]) -> None:
    """Replace reads of stored values, operands first; stored values that nothing reads any more disappear."""
    assert state.sink is not None
    nodes = state.sink.toposort()
    if sum(1 for n in nodes if n.op is Op.Bufferize) == len(set(state.sink.src)):
        return  # nothing is stored but the results
    done: dict[UOp, UOp] = {}
    for node in nodes:
        src = tuple([done[s] for s in node.src])
        new = node if src == node.src else node.replace(src)
        if new.op is Op.Index and new.src[0].op is Op.Bufferize:
            new = otherwise(rewrite(new, new.src[0]), new)
        done[node] = new
    state.replace(done)


PASSES: Final[tuple[tuple[str, Callable[[State], None]], ...]] = (
    ("early rewrites", early_rewrites),
    ("split of large reductions", split_reductions),
    ("range assignment", assign_ranges),
    ("core rangeify", core),
    ("reduction simplification", simplify_reductions),
    ("buffer folding", fold_buffers),
    ("dead axis removal", drop_dead_axes),
    ("cost-based buffer removal", remove_buffers),
)


def rangeify(
    roots: Sequence[UOp],
    device: str,
    observe: Callable[[str, State], None] | None = None,
    most_buffers: int = 0,
    nested: bool = False,
) -> State:
    """The state after the eight passes: `sink` has one Bufferize a root, or the Buffer that it is.

    `observe` sees the state after each pass; no kernel will use more than `most_buffers` buffers, unless that is 0; `nested` is
    State.nested.
    """
    state = State(list(roots), device, nested, most=most_buffers)
    outer = maker.origin
    try:
        for name, run in PASSES:
            # what a pass makes comes from the node it works on, or else from the first result
            maker.origin = state.roots[0].origin if state.roots else outer
            run(state)
            if observe is not None:
                observe(name, state)
    finally:
        maker.origin = outer
    return state


def in_memory(node: UOp) -> bool:
    """Whether a node is a Bufferize that a kernel of its own fills, not one inside a kernel."""
    return node.op is Op.Bufferize and node.arg[1] is AddrSpace.GLOBAL


def stored(sink: UOp) -> Iterator[UOp]:
    """What the kernels of a rangeified graph fill, each after those that it reads."""
    return filter(in_memory, sink.toposort())
