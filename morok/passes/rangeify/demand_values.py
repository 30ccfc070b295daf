"""Core rangeify: the graph without views, from the values of all demands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from morok.errors import IRTypeError
from morok.ir.conjunctions import conjunction
from morok.ir.dtype import AddrSpace
from morok.ir.graph import substitute
from morok.ir.maker import maker
from morok.ir.op import AxisType, Op
from morok.ir.places import passed
from morok.ir.shape import dim, shape_of
from morok.ir.uop import UOp
from morok.passes import index_maps
from morok.passes.index_maps import ZERO
from morok.passes.rangeify.state import MOVEMENT, STORAGE, Demand, State, new_range


def core(state: State) -> None:
    """Set `value` of every demand from the values of its operands' demands, and `sink`: the graph without views."""
    values: dict[UOp, UOp] = {}
    for node in state.order:
        maker.origin = node.origin
        own = state.stored.get(node)
        if own is not None:
            value = _value(own, values)
            ranges = [i for i in own.indices if i.op is Op.Range]
            values[node] = UOp.new(Op.Bufferize, (value, *ranges), (state.device, AddrSpace.GLOBAL))
            if node.op is Op.Contiguous and node.arg is not None:
                state.opts[values[node]] = node.arg
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
    # a root may be memory already
    state.sink = UOp.sink(*[values.get(r, r) for r in state.roots])
    state.bufferizes = values


def read(storage: UOp, indices: Sequence[UOp], gates: Sequence[UOp]) -> UOp:
    """The element of a buffer at these indices; 0 if a gate is false."""
    return storage.index(*indices or (ZERO,), gate=conjunction(list(gates)) if gates else None)


def _value(demand: Demand, held: Mapping[UOp, UOp]) -> UOp:
    node = demand.node
    op = node.op
    if op in STORAGE:
        return read(node, demand.indices, demand.gates)
    if op is Op.Iota:
        return demand.indices[0]
    if op is Op.Concat:
        return _chosen(demand)
    below = [node.src[k] if d is None else d.value for k, d in enumerate(demand.sources)]
    src = tuple([v for v in below if v is not None])
    assert len(src) == len(below)
    if op is Op.Pad:
        inner = demand.sources[0]
        own = (
            inner.gates[len(demand.gates) :]
            if inner is not None
            else tuple(index_maps.through(node, demand.indices)[1])
        )
        # a gated read is 0 by itself
        if not own or (inner is not None and src[0].op is Op.Index and inner.gates):
            return src[0]
        return conjunction(list(own)).where(src[0], UOp.const(0, node.dtype))
    if op in MOVEMENT or op in (Op.Contiguous, Op.Copy):
        return src[0]
    if op is Op.ReduceAxis:
        return src[0].reduce(node.arg[0], *demand.ranges) if demand.ranges else src[0]
    if op is Op.Assign:
        return _assignment(node, demand, src[1], held)
    if op is Op.Cast and node.dtype.is_index and src[0].op is Op.Index:
        return _bounded(node.replace(src), node)
    return node.replace(src)


def _bounded(position: UOp, node: UOp) -> UOp:
    """A position read from memory, clamped to the bounds of the node that computed it; 0 behind a gate."""
    low, high = min(node.vmin, 0), max(node.vmax, 0)
    if position.vmin < low:
        position = UOp.new(Op.Max, (position, UOp.const(low, position.dtype)))
    if position.vmax > high:
        position = UOp.new(Op.Min, (position, UOp.const(high, position.dtype)))
    return position


def _chosen(demand: Demand) -> UOp:
    """The element of a Concat at the demand's indices: a select among its parts."""
    found: UOp | None = None
    for part, source in zip(
        reversed(index_maps.parts(demand.node, demand.indices)), reversed(demand.sources), strict=True
    ):
        assert source is not None
        assert source.value is not None
        here = demand.indices[demand.node.arg].lt(part.end)
        found = source.value if found is None else here.where(source.value, found)
    return UOp.const(0, demand.node.dtype) if found is None else found


def _inside(value: UOp) -> Iterator[UOp]:
    """The nodes of the kernel that computes a value, down to the Bufferizes of other kernels, included."""
    seen, stack = {value}, [value]
    while stack:
        node = stack.pop()
        yield node
        if node.op is Op.Bufferize and node.arg[1] is AddrSpace.GLOBAL:
            continue
        below = [s for s in node.src if s not in seen]
        seen.update(below)
        stack += below


def _elsewhere(node: UOp, target: UOp, flat: UOp, ranges: Sequence[UOp]) -> bool:
    """True if a node reads `target`, or the result of an assignment to it, at another index than `flat`, that of the loops."""
    if node.op is not Op.Index:
        return False
    source = node.src[0]
    if source is target:
        return node.src[1] is not flat
    if not (source.op is Op.Bufferize and source.src[0].op is Op.Assign):
        return False
    written = passed(source.src[0].src[0].src[0])
    same = [r.src[0] for r in source.src[1:]] == [r.src[0] for r in ranges] and list(node.src[1:]) == list(ranges)
    return written is target and not same


def _assignment(node: UOp, demand: Demand, value: UOp, held: Mapping[UOp, UOp]) -> UOp:
    """The Assign of a value to a buffer's elements; through a temporary if the value reads the buffer at other indices.

    If the target is an earlier assignment to the buffer, that one (in `held`) runs before: Index(After(buffer, ..), flat).
    IRTypeError for a target that is no buffer.
    """
    target = node.src[0]
    earlier: list[UOp] = []
    while target.op in (Op.Reshape, Op.Assign):
        if target.op is Op.Assign and not earlier:
            earlier.append(held[target])
        target = target.src[0]
    if target.op not in STORAGE:
        raise IRTypeError(
            f"the target of an Assign is a {target.op.name}, which is not a buffer",
            expected="a buffer, or a reshaped buffer",
        )
    flat = index_maps.flatten(demand.indices, shape_of(node))
    ranges = [i for i in demand.indices if i.op is Op.Range]
    if any(_elsewhere(n, target, flat, ranges) for n in _inside(value)):
        fresh = {r: new_range(dim(r.src[0]), AxisType.Loop) for r in ranges}
        moved = substitute((value,), fresh)[0]
        temporary = UOp.new(Op.Bufferize, (moved, *fresh.values()), (target.src[1].arg, AddrSpace.GLOBAL))
        value = read(temporary, ranges, ())
    return UOp.new(Op.Assign, (target.after(*earlier).index(flat), value))
