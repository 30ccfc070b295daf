"""Range assignment: the nodes to store, the loops of each, and the indices of each demand.

Ranges are assigned from the roots down: each consumer of a node demands its value at an index vector, and the node translates
this to demands on its operands. Consumers are visited before their operands. So all demands on a node are complete when it is
visited, and the cost of recomputing it for each of them decides whether it is stored.
"""

from __future__ import annotations

from morok.ir.graph import toposort
from morok.ir.maker import maker
from morok.ir.op import AxisType, Op
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.passes import index_maps
from morok.passes.index_maps import ZERO, Indices
from morok.passes.rangeify.cost import CALLS, GATED, HEAVY, Weights, machine_of
from morok.passes.rangeify.cuts import Cuts
from morok.passes.rangeify.early import continues, picks_one
from morok.passes.rangeify.row_buffers import row_of
from morok.passes.rangeify.state import MOVEMENT, STORAGE, Demand, State, count, enlarges, is_leaf, new_range, spreads


def assign_ranges(state: State) -> None:
    """Choose the nodes to store (tinygrad's realize map), the loops of each, and the indices of every demand."""
    order = state.order = toposort(state.roots)
    forced = set(state.roots) | {n for n in order if n.op in (Op.Contiguous, Op.Assign, Op.Copy)}
    weights = Weights(order, forced, machine_of(state.target))
    cuts = _assign(state, forced, weights)
    # consumers of a stored reduction or function contain none any more: a node stored for that alone is asked about once more
    chosen = set(state.stored)
    before = {n: weights.costly(n) for n in chosen - forced - cuts.moved}
    weights.weigh(chosen)
    needed = {n for n in chosen if not before.get(n, 0) & ~weights.costly(n)}
    decided = cuts.decisions
    if needed != chosen:
        cuts = _assign(state, needed, weights)
        decided = [*(d for d in decided if d.cut and d.node in needed), *cuts.decisions]
    while state.most_buffers and (more := _beyond_limit(state)):
        cuts = _assign(state, {*state.stored, *more}, weights)
    state.decisions = decided


def _beyond_limit(state: State) -> set[UOp]:
    """Further nodes to store, so that no kernel uses more than `state.most` buffers: first the operand that reads the most. No
    memory has elements of dtype index: in place of a position, its operands are stored.
    """
    reads: dict[UOp, frozenset[UOp]] = {}
    parts: dict[UOp, tuple[UOp, ...]] = {}  # a node itself, of a position the nodes nearest below it that may be stored
    more: set[UOp] = set()
    for node in state.order:
        if node.op in STORAGE:
            reads[node], parts[node] = frozenset({node}), (node,)
            continue
        below = {p: reads[p] for s in node.src for p in parts[s]}
        parts[node] = tuple(below) if node.dtype.is_index else (node,)
        together = frozenset().union(*below.values())
        while (
            len(together) >= state.most_buffers
            and (most := max(below, key=lambda s: len(below[s]), default=node)) is not node
        ):
            if len(below[most]) <= 1:
                break  # every operand reads one buffer: no further node can be stored
            more.add(most)
            below[most] = reads[most] = frozenset({most})
            together = frozenset().union(*below.values())
        reads[node] = frozenset({node}) if node in state.stored else together
    return more


def _assign(state: State, forced: set[UOp], weights: Weights) -> Cuts:
    """The cuts of one traversal from the roots down, which stores the `forced` nodes and those that pay; fills in `state`."""
    state.stored, state.rows, state.demands = {}, {}, {}
    cuts = Cuts(weights, state.nested, state.overrides)
    behind: dict[UOp, int] = {}  # for a node how many reductions of its kernel wait for its value, one behind the other
    loops: dict[tuple[UOp, int, int, int | UOp], UOp] = {}
    for node in reversed(state.order):
        if node.op in STORAGE or (not shape_of(node) and is_leaf(node)) or node.op in (Op.Unique, Op.Device):
            continue
        maker.origin = node.origin
        demands = list(state.demands.get(node, {}).values())
        if not demands and node not in forced:
            continue
        if node in forced or (node.op not in MOVEMENT and cuts.ends(node, demands, behind.get(node, 0))):
            _store(state, node, cuts, loops)
        elif node.op in MOVEMENT and node.op is not Op.Pad:
            if cuts.worth_copying(node, demands):
                _store(state, node, cuts, loops)
            else:
                for demand in demands:
                    _descend(state, demand, cuts, loops)
        elif state.nested and _once_a_row(state, node, demands):
            _descend(state, demands[0], cuts, loops)
        elif state.nested and (row := _row(state, node, demands, weights)) is not None:
            state.rows[node] = row
            _descend(state, row, cuts, loops)
        elif cuts.worth_storing(node, demands):
            _store(state, node, cuts, loops)
        else:
            for demand in demands:
                _descend(state, demand, cuts, loops)
        waiting = (0 if node in state.stored else behind.get(node, 0)) + (node.op is Op.ReduceAxis)
        for operand in node.src:
            behind[operand] = max(behind.get(operand, 0), waiting)
    return cuts


def _row(state: State, node: UOp, demands: list[Demand], weights: Weights) -> Demand | None:
    """The demand that fills a row buffer with the node's value; None if none pays, and for a reduction."""
    flags = weights.of[node][2]
    return None if flags & HEAVY or not flags & (GATED | CALLS) else row_of(state, node, demands, flags)


def _store(state: State, node: UOp, cuts: Cuts, loops: dict[tuple[UOp, int, int, int | UOp], UOp]) -> None:
    shape = shape_of(node)
    indices = tuple(ZERO if d == 1 else new_range(d, AxisType.Loop) for d in shape)
    own = Demand(node, indices, (), node, count(shape), 0, False)
    state.stored[node] = own
    cuts.loops[node] = [i for i in indices if i is not ZERO]
    _descend(state, own, cuts, loops)


def _once_a_row(state: State, node: UOp, demands: list[Demand]) -> bool:
    """True if the only demand on a node varies with just the outer loops of its kernel, which then compute each element once.

    For example the maximum and the sum of a softmax's row: nothing is stored, and the row is still in L1 when it is read again.
    False if a reduction inside further loops uses the node: such loops are interchanged when they become tiles.
    """
    if node.op in MOVEMENT or len(demands) != 1 or demands[0].gates or demands[0].shared:
        return False
    (demand,) = demands
    own = [i for i in state.stored[demand.kernel].indices if i.op is Op.Range]
    rows = [i for i in demand.indices if i is not ZERO]
    if len(rows) == len(own) or set(rows) != set(own[: len(rows)]) or not demand.around <= set(rows):
        return False
    demand.runs, demand.repeated = count(shape_of(node)), False
    return True


def _descend(state: State, demand: Demand, cuts: Cuts, loops: dict[tuple[UOp, int, int, int | UOp], UOp]) -> None:
    """Translate a demand on a node to demands on its operands."""
    node = demand.node
    op = node.op
    if op in MOVEMENT:
        indices, gates = index_maps.through(node, demand.indices)
        demand.sources = [
            _demand_on(state, node.src[0], indices, (*demand.gates, *gates), demand, repeated=enlarges(node))
        ]
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
                # independent reductions of one kernel share their loops, nested ones do not
                key = (demand.kernel, demand.depth, axes.index(axis), size)
                if key not in loops:
                    loops[key] = new_range(size, AxisType.Reduce)
                inner.append(loops[key])
        demand.ranges = tuple(inner[a] for a in axes if inner[a] is not ZERO)
        picks = picks_one(node)
        times = 1 if picks else count(tuple(shape[a] for a in axes))
        source = _demand_on(
            state,
            node.src[0],
            tuple(inner),
            demand.gates,
            demand,
            runs=demand.runs * times,
            deeper=1,
            folds=int(not picks),
        )
        if source is not None and not picks:
            source.product = source if node in cuts.weights.tiles else None
            source.scanned = continues(node)
        demand.sources = [source]
    elif op is Op.Concat:
        # outside of reductions a loop is cut at the ends of parts, and computes of each part its own elements alone
        is_cut = state.nested and not (demand.depth or demand.filling or demand.gates)
        size = cuts.weights.size(node)
        demand.sources = [
            _demand_on(
                state,
                part.operand,
                part.indices,
                (*demand.gates, *part.gates),
                demand,
                runs=demand.runs * count(shape_of(part.operand)) // size if is_cut else demand.runs,
            )
            for part in index_maps.parts(node, demand.indices)
        ]
    elif op is Op.Assign:
        demand.sources = [None, _demand_on(state, node.src[1], demand.indices, demand.gates, demand)]
    elif op is not Op.Iota:
        demand.sources = [
            _demand_on(state, s, demand.indices if shape_of(s) else (), demand.gates, demand, repeated=spreads(s, node))
            for s in node.src
        ]


def _demand_on(
    state: State,
    node: UOp,
    indices: Indices,
    gates: tuple[UOp, ...],
    by: Demand,
    repeated: bool = False,
    runs: int | None = None,
    deeper: int = 0,
    folds: int = 0,
) -> Demand | None:
    """The demand on `node` at these indices and gates, new or merged with an equal one; None for a leaf without a shape."""
    if not shape_of(node) and is_leaf(node):
        return None
    gates = tuple(dict.fromkeys(gates))
    table = state.demands.setdefault(node, {})
    found = table.get((indices, gates))
    runs = by.runs if runs is None else runs
    depth, folds, repeated = by.depth + deeper, by.folds + folds, by.repeated or repeated
    around = frozenset(r for i in by.indices for r in i.ranges) if deeper else by.around
    if found is None:
        found = Demand(
            node,
            indices,
            gates,
            by.kernel,
            runs,
            depth,
            repeated,
            around,
            by.shared,
            by.filling,
            folds,
            by.product,
            by.scanned,
        )
        table[indices, gates] = found
        return found
    found.filling = found.filling and by.filling
    found.shared = found.shared or by.shared or found.kernel is not by.kernel
    found.runs = found.runs + runs if found.shared else max(found.runs, runs)
    found.depth, found.folds = max(found.depth, depth), max(found.folds, folds)
    found.repeated = found.repeated or repeated or found.shared
    found.around |= around
    return found
