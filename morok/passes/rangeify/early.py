"""Before ranges: marks and views that change nothing go, constants are folded, large reductions and joins are split."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from morok.ir.graph import toposort
from morok.ir.op import Op, Undefined
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.passes.index_maps import number
from morok.passes.rangeify.devices import ON_DEVICES, on_one_device
from morok.passes.rangeify.state import MOVEMENT, STORAGE, State, otherwise

# Marks that Tensor methods leave for others and that mean nothing to a schedule.
TRANSPARENT: Final = frozenset({Op.Detach, Op.ContiguousBackward, Op.Precast})
SPLIT_RATIO: Final = 32768  # elements reduced to one from which a reduction is done in two steps
SPLIT_PARTS: Final = 256  # most partial results of the first step
SPLIT_LEAST: Final = 8
MOST_PARTS: Final = 16  # tensors that one kernel joins


def early_rewrites(state: State) -> None:
    """Drop marks and views that change nothing, and join views of views."""
    done: dict[UOp, UOp] = {}
    order = toposort(state.roots)
    if any(node.op in ON_DEVICES for node in order):
        on_one_device(state)
        order = toposort(state.roots)
    continued = _continued(order)
    for node in order:
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
        elif op is Op.Concat and node not in continued:
            new = _flat(new)
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


def _continued(order: Iterable[UOp]) -> set[UOp]:
    """The Concats that one along the same axis joins with others."""
    return {s for n in order if n.op is Op.Concat for s in n.src if s.op is Op.Concat and s.arg == n.arg}


def _flat(node: UOp) -> UOp:
    """A Concat of the parts of those along the same axis that it joins; its only part if there is one."""
    parts: list[UOp] = []
    stack = [node]
    while stack:
        at = stack.pop()
        if at.op is Op.Concat and at.arg == node.arg:
            stack += reversed(at.src)
        else:
            parts.append(at)
    return parts[0] if len(parts) == 1 else node.replace(tuple(parts))


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
    """True if a node is memory already, seen in row-major order, or on its way there."""
    while node.op is Op.Reshape:
        node = node.src[0]
    return node.op in STORAGE or node.op in (Op.Contiguous, Op.Assign)


def split_large(state: State) -> None:
    """A reduction of many elements to few becomes two, the partial results stored; many tensors are joined a few at a time."""
    done: dict[UOp, UOp] = {}
    for node in toposort(state.roots):
        src = tuple([done[s] for s in node.src])
        new = node if src == node.src else node.replace(src)
        if new.op is Op.ReduceAxis:
            new = otherwise(_split(new), new)
        elif new.op is Op.Concat:
            new = _balanced(new, min(MOST_PARTS, state.most - 1) if state.most else MOST_PARTS)
        done[node] = new
    state.rewritten(done)


def _balanced(node: UOp, most: int) -> UOp:
    """A Concat of at most `most` parts, which are stored Concats of as many if there are more."""
    while len(node.src) > most:
        count = -(-len(node.src) // most)
        edges = [len(node.src) * k // count for k in range(count + 1)]
        groups = [node.src[begin:end] for begin, end in pairwise(edges)]
        node = node.replace(tuple(UOp.new(Op.Contiguous, (node.replace(group),)) for group in groups))
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
    """True if a sum is the element at one position: `load_collapse.gather` makes it a read."""
    value = node.src[0]
    if value.op is not Op.Where or value.src[0].op is not Op.Eq or uniform(value.src[2]) is None:
        return False
    position = value.src[0].src[0]
    while position.op in MOVEMENT:
        position = position.src[0]
    return position.op is Op.Iota


def continues(node: UOp) -> bool:
    """True if elements are folded up to a position, as a scan does: the loop over positions continues each fold."""
    value = node.src[0]
    return value.op is Op.Where and value.src[0].op in (Op.Le, Op.Lt) and all(map(_is_position, value.src[0].src))


def _is_position(x: UOp) -> bool:
    while x.op in MOVEMENT or x.op is Op.Cast:
        x = x.src[0]
    return x.op is Op.Iota
