"""Range assignment: every stored node has its loops, every demand its indices; and which nodes are stored.

Ranges are assigned from the results down: a node is asked for its value at an index vector by each of its consumers, and
passes on what it needs of its operands. Consumers come before their operands, so all demands on a node are known when it is
its turn, and whether it gets a buffer of its own can be decided by what computing it again would cost.
"""

from __future__ import annotations

from typing import Final

from morok.ir.graph import toposort
from morok.ir.maker import maker
from morok.ir.op import AxisType, Op
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.passes import movement
from morok.passes.movement import ZERO, Indices
from morok.passes.rangeify.rows import row_of
from morok.passes.rangeify.state import COSTLY, MOST_REPEATS, MOVEMENT, STORAGE, Demand, State, count, is_leaf, new_range, spreads

MOST_PLACES: Final = 4  # index vectors at which a node without a buffer may be computed


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
        if node.op in STORAGE or (not shape_of(node) and is_leaf(node)) or node.op in (Op.Unique, Op.Device):
            continue
        maker.origin = node.origin
        demands = state.demands.get(node, {})
        if node in forced or (demands and _keeps_buffer(state, node, list(demands.values()), node in heavy, node in costly)):
            shape = shape_of(node)
            indices = tuple(ZERO if d == 1 else new_range(d, AxisType.Loop) for d in shape)
            own = Demand(node, indices, (), node, count(shape), 0, False)
            state.stored[node] = own
            _descend(state, own, loops)
        elif state.nested and (row := row_of(state, node, list(demands.values()), node in costly)) is not None:
            state.rows[node] = row
            _descend(state, row, loops)
        else:
            for demand in demands.values():
                _descend(state, demand, loops)


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
        if op is Op.ReduceAxis or any(s in heavy and s not in stored and not spreads(s, node) for s in node.src):
            heavy.add(node)
        if op in COSTLY or any(s in costly and s not in stored for s in node.src):
            costly.add(node)
    return heavy, costly


def _keeps_buffer(state: State, node: UOp, demands: list[Demand], heavy: bool, costly: bool) -> bool:
    """Whether storing the node's value costs less than computing it wherever it is wanted."""
    if node.op in MOVEMENT or (state.nested and _once_a_row(state, node, demands)):
        return False
    size = max(count(shape_of(node)), 1)
    runs = sum(d.runs for d in demands)
    if heavy:
        return len(demands) > 1 or demands[0].repeated or 2 * runs >= 3 * size
    if len(demands) > MOST_PLACES:
        return node.op is not Op.Iota and not all(is_leaf(s) for s in node.src)
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
    demand.runs, demand.repeated = count(shape_of(node)), False
    return True


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
        times = count(tuple(shape[a] for a in axes))
        demand.sources = [_want(state, node.src[0], tuple(inner), demand.gates, demand, times=times, deeper=1)]
    elif op is Op.Assign:
        demand.sources = [None, _want(state, node.src[1], demand.indices, demand.gates, demand)]
    elif op is not Op.Iota:
        demand.sources = [
            _want(state, s, demand.indices if shape_of(s) else (), demand.gates, demand, repeated=spreads(s, node))
            for s in node.src
        ]


def _repeats(node: UOp) -> bool:
    return node.op is Op.Expand and count(shape_of(node)) > count(shape_of(node.src[0]))


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
    if not shape_of(node) and is_leaf(node):
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
