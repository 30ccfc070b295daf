"""Buffers inside a kernel: rows that its inner loops read again and again, filled anew in every iteration of the outer ones."""

from __future__ import annotations

from typing import Final

from morok.ir.op import AxisType, Op
from morok.ir.shape import dim, shape_of
from morok.ir.uop import UOp
from morok.passes.index_maps import ZERO
from morok.passes.rangeify.cost import CALLS, GATED
from morok.passes.rangeify.state import MOVEMENT, Demand, State, count, new_range

PADDED_BYTES: Final = 1 << 20  # of a padded operand inside a kernel: half of a usual second cache
PADDED_RUNS: Final = 1.5  # how often, at least, such an operand is read again
ROW_BYTES: Final = 1 << 18  # of a buffer inside a kernel: what stays in a cache near the processor


def row_of(state: State, node: UOp, demands: list[Demand], flags: int) -> Demand | None:
    """The demand that fills a buffer that a kernel keeps for itself, for a node of these flags (morok/passes/rangeify/cost.py);
    None where it is not worth it, or the places do not have the form.
    """
    if node.op in MOVEMENT and node.op is not Op.Pad:
        return None
    if flags & GATED and (row := _padded(state, node, demands)) is not None:
        return row
    return _costly_row(state, node, demands) if flags & CALLS else None


def _padded(state: State, node: UOp, demands: list[Demand]) -> Demand | None:
    """For what is padded, and read again and again by a reduction, as by a convolution: behind the padding no read has a gate."""
    shape = shape_of(node)
    if len(demands) != 1 or demands[0].gates or demands[0].shared or not all(isinstance(n, int) for n in shape):
        return None
    (demand,) = demands
    if not demand.depth or demand.runs < PADDED_RUNS * count(shape):
        return None
    own = (i for i in state.stored[demand.kernel].indices if i is not ZERO)
    outer = 0
    while outer < len(shape) and (demand.indices[outer] is ZERO or demand.indices[outer] is next(own, None)):
        outer += 1
    elements = count(shape[outer:])
    if elements < 2 or elements * node.dtype.itemsize > PADDED_BYTES:
        return None
    loops = set(state.stored[demand.kernel].indices)
    if all(loops.isdisjoint(i.ranges) for i in demand.indices[outer:]):
        return None  # a row of a matrix product, whose rows share what they read of the other factor
    inner = tuple(new_range(n, AxisType.Loop) for n in shape[outer:])
    return Demand(node, (*demand.indices[:outer], *inner), (), demand.kernel, count(shape), demand.depth, False, filling=True)


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
    if not all(isinstance(n, int) for n in sizes) or count(tuple(sizes)) * node.dtype.itemsize > ROW_BYTES:
        return None
    indices = tuple(
        i if outer else new_range(n, AxisType.Loop) for i, n, outer in zip(demands[0].indices, shape, same, strict=True)
    )
    return Demand(node, indices, (), demands[0].kernel, count(shape), max(d.depth for d in demands), False, filling=True)
