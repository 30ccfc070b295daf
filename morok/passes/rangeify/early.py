"""Passes before range assignment: no-op marks and views are removed, constants folded, large reductions and Concats split."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from morok.ir.graph import flattened, toposort
from morok.ir.op import Op, Undefined
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.passes.index_maps import number
from morok.passes.rangeify.devices import ON_DEVICES, on_one_device
from morok.passes.rangeify.state import CASTS_AND_VIEWS, MOVEMENT, RESHAPE, STORAGE, UNPADDED, State, beneath, otherwise
from morok.passes.rebuilding import over

# Marks of Tensor methods without a meaning to the scheduler.
TRANSPARENT: Final = frozenset({Op.Detach, Op.ContiguousBackward, Op.Precast})
SPLIT_RATIO: Final = 32768  # least elements per result of a reduction in two steps
SPLIT_PARTS: Final = 256  # most partial results per result of the first step
SPLIT_LEAST: Final = 8  # the fewest of these
MOST_PARTS: Final = 16  # most tensors that one kernel concatenates


def early_rewrites(state: State) -> None:
    """Drop no-op marks and views; merge Reshapes, Concats and reductions with those below; fold pointwise ops of constants."""
    done: dict[UOp, UOp] = {}
    order = toposort(state.roots)
    if any(node.op in ON_DEVICES for node in order):
        on_one_device(state)
        order = toposort(state.roots)
    continued = _continued(order)
    for node in order:
        new = over(node, done)
        op = new.op
        if op in TRANSPARENT:
            new = new.src[0]
        elif op is Op.Reshape:
            below = new.src[0]
            if below.op is Op.Reshape:
                new = UOp.new(Op.Reshape, (below.src[0], *new.src[1:]))
            if shape_of(new) == shape_of(new.src[0]):
                new = new.src[0]
        elif (op is Op.Expand and shape_of(new) == shape_of(new.src[0])) or (
            op is Op.Contiguous and is_stored(new.src[0])
        ):
            new = new.src[0]
        elif op is Op.ReduceAxis:
            new = otherwise(_joined(new), new)
        elif op is Op.Concat and node not in continued:
            new = _flat(new)
        elif new.entry.pointwise:
            new = otherwise(_folded(new), new)
        done[node] = new
    state.replace_nodes(done)


def uniform(node: UOp) -> UOp | None:
    """The constant equal to every element of a node, if only views but Pad are above it; else None."""
    node = beneath(node, UNPADDED)
    return node if node.op is Op.Const else None


def _folded(node: UOp) -> UOp | None:
    """A pointwise op of constant tensors as a constant tensor; None if an operand is not constant, or the value undefined."""
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


def _continued(order: Iterable[UOp]) -> set[UOp]:
    """The Concats that are operands of a Concat along the same axis."""
    return {s for n in order if n.op is Op.Concat for s in n.src if s.op is Op.Concat and s.arg == n.arg}


def _flat(node: UOp) -> UOp:
    """A Concat with nested Concats along the same axis flattened; its only part if there is one."""
    parts = flattened(node, lambda n: n.op is Op.Concat and n.arg == node.arg)
    return parts[0] if len(parts) == 1 else node.replace(tuple(parts))


def _joined(node: UOp) -> UOp | None:
    """A reduction of a reduction by the same op as one, over the axes of both; None for any other."""
    below = node.src[0]
    if below.op is not Op.ReduceAxis or below.arg[0] is not node.arg[0]:
        return None
    inner = below.arg[1]
    left = [a for a in range(len(shape_of(below.src[0]))) if a not in inner]
    axes = tuple(sorted((*inner, *[left[a] for a in node.arg[1]])))
    return UOp.new(Op.ReduceAxis, below.src, (node.arg[0], axes))


def is_stored(node: UOp) -> bool:
    """True if a node, under Reshapes, is in memory or will be: a buffer, a Contiguous or an Assign."""
    node = beneath(node, RESHAPE)
    return node.op in STORAGE or node.op in (Op.Contiguous, Op.Assign)


def split_large(state: State) -> None:
    """Split reductions of many elements to few into two steps, with stored partial results, and Concats of many tensors."""
    done: dict[UOp, UOp] = {}
    for node in toposort(state.roots):
        new = over(node, done)
        if new.op is Op.ReduceAxis:
            new = otherwise(_split(new), new)
        elif new.op is Op.Concat:
            new = _balanced(new, min(MOST_PARTS, state.most_buffers - 1) if state.most_buffers else MOST_PARTS)
        done[node] = new
    state.replace_nodes(done)


def _balanced(node: UOp, most: int) -> UOp:
    """A Concat of at most `most` parts: if it has more, of stored Concats of as many and of one of those left, and so on: where
    parts are alike, so are these, and one kernel makes them all.
    """
    while len(node.src) > most:
        groups = [node.src[begin : begin + most] for begin in range(0, len(node.src), most)]
        node = node.replace(tuple(g[0] if len(g) == 1 else UOp.new(Op.Contiguous, (node.replace(g),)) for g in groups))
    return node


def _split(node: UOp) -> UOp | None:
    op, axes = node.arg
    shape = shape_of(node.src[0])
    sizes = [d for d in shape if isinstance(d, int)]
    if len(sizes) != len(shape):
        return None
    kept = math.prod(n for a, n in enumerate(sizes) if a not in axes)
    if math.prod(sizes) // max(kept, 1) < SPLIT_RATIO or picks_one(node) or continues(node):
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


def picks_one(node: UOp) -> bool:
    """True if a sum equals the element at one position, which `load_collapse.gather` makes a read."""
    value = node.src[0]
    if value.op is not Op.Where or value.src[0].op is not Op.Eq or uniform(value.src[2]) is None:
        return False
    return beneath(value.src[0].src[0], MOVEMENT).op is Op.Iota


def continues(node: UOp) -> bool:
    """True if a fold is over the elements up to a position (a scan): the loop over positions carries its value."""
    value = node.src[0]
    if value.op is not Op.Where:
        return False
    condition = beneath(value.src[0], CASTS_AND_VIEWS)  # of several axes it is repeated along the others
    return condition.op in (Op.Le, Op.Lt) and all(map(_is_position, condition.src))


def _is_position(x: UOp) -> bool:
    return beneath(x, CASTS_AND_VIEWS).op is Op.Iota
