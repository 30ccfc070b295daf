"""Row buffers: local buffers of a kernel that its inner loops read repeatedly, refilled in every iteration of the outer loops."""

from __future__ import annotations

from typing import Final

from morok.ir.op import AxisType, Op
from morok.ir.shape import dim, shape_of
from morok.ir.uop import UOp
from morok.passes.index_maps import ZERO
from morok.passes.rangeify.cost import CALLS, GATED
from morok.passes.rangeify.state import MOVEMENT, Demand, State, count, new_range

PADDED_BYTES: Final = 1 << 20  # most bytes of a padded row buffer: half of a common L2 cache
PADDED_RUNS: Final = 1.5  # least reads per element of such a buffer
ROW_BYTES: Final = 1 << 18  # most bytes of any other row buffer: it stays in L2


def row_of(state: State, node: UOp, demands: list[Demand], flags: int) -> Demand | None:
    """The demand that fills a row buffer with the value of a node with these flags (morok/passes/rangeify/cost.py); None if that
    does not pay, or the demands do not share their outer loops.
    """
    if node.op in MOVEMENT and node.op is not Op.Pad:
        return None
    if flags & GATED and (row := _padded(state, node, demands)) is not None:
        return row
    return _costly_row(state, node, demands) if flags & CALLS else None


def _padded(state: State, node: UOp, demands: list[Demand]) -> Demand | None:
    """The row buffer of a padded value that a reduction reads repeatedly, as in a convolution: its reads need no gates."""
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
        return None  # a factor of a matrix product, which all rows of the result share
    if demand.product is not None and all(i.op is Op.Range for i in demand.indices if i is not ZERO):
        return None  # the factor with columns: tiles copy parts of it, unless it is a buffer of their own kernel
    inner = tuple(new_range(n, AxisType.Loop) for n in shape[outer:])
    return Demand(
        node, (*demand.indices[:outer], *inner), (), demand.kernel, count(shape), demand.depth, False, filling=True
    )


def _costly_row(state: State, node: UOp, demands: list[Demand]) -> Demand | None:
    """The row buffer of a costly node with several demands inside the same outer loops of one kernel, such as the exponentials of
    a softmax's row, for their sum and for the result.
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
    return Demand(
        node, indices, (), demands[0].kernel, count(shape), max(d.depth for d in demands), False, filling=True
    )
