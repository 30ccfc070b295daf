"""What rules/vector/expand.rules asks of the graph: in which order axes become lanes, and where their iterations are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from morok.errors import LoweringError
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.passes.affine import unit_stride_ids

Axes = tuple[tuple[int, int], ...]

VECTOR_AXES: Final = frozenset({AxisType.Upcast, AxisType.Unroll})


@dataclass(frozen=True, slots=True)
class AxisOrder:
    """The order of axes in a vector, the fastest last: those along which memory is contiguous, so that their lanes are one load.

    fast   the ids of those
    known  what `union` has found already
    """

    fast: frozenset[int]
    known: dict[tuple[Axes, ...], Axes]

    @classmethod
    def of(cls, root: UOp) -> AxisOrder:
        """Of a graph. LoweringError for a range that is vectorized and has no constant length."""
        nodes = root.toposort()
        for n in nodes:
            if n.op is Op.Range and n.arg[1] in VECTOR_AXES and n.src[0].op is not Op.Const:
                raise LoweringError(f"a vectorized range needs a constant length, not {n.src[0]}")
        return cls(unit_stride_ids(nodes), {})


def union(parts: Sequence[Axes], order: AxisOrder) -> Axes:
    """The axes of all, each once, in their order."""
    key = tuple(parts)
    known = order.known.get(key)
    if known is None:
        found = {axis for part in key for axis in part}
        if len({i for i, _ in found}) != len(found):
            raise LoweringError(f"one axis has two lengths: {sorted(found)}")
        known = order.known[key] = tuple(sorted(found, key=lambda axis: (axis[0] in order.fast, axis[0])))
    return known


def swizzle(target: Sequence[tuple[int, int]], source: Sequence[tuple[int, int]], own: int, order: AxisOrder) -> tuple[int, ...]:
    """For every lane of a vector over `target` the lane of the same values over `source`; axes that `source` lacks repeat."""
    return _swizzle(tuple(target), tuple(source), own)


@lru_cache(maxsize=1024)
def _swizzle(target: Axes, source: Axes, own: int) -> tuple[int, ...]:
    strides: dict[int, int] = {}
    step = own
    for axis, n in reversed(source):
        strides[axis] = step
        step *= n
    lanes = [0]
    for axis, n in target:
        stride = strides.get(axis, 0)
        lanes = [base + i * stride for base in lanes for i in range(n)]
    if own == 1:
        return tuple(lanes)
    return tuple([base + i for base in lanes for i in range(own)])


def refuse_unrolled(root: UOp) -> None:
    """LoweringError where lanes met an op that has none, and an Unroll or a Contract is left."""
    for node in root.toposort():
        for s in node.src:
            if s.op is Op.Unroll or s.op is Op.Contract:
                raise LoweringError(f"{node.op.name} cannot be vectorized: {node}")


__all__ = ["Axes", "AxisOrder", "refuse_unrolled", "swizzle", "union"]
