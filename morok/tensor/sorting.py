"""Stable sorting in NumPy's order: NaN is the greatest, -0.0 equals 0.0.

Positions are i64. The functions sort unsigned keys with the order of the elements. On short axes the rank of a key is the count
of lesser keys. Long axes are sorted by Batcher's bitonic network (1968), on words that contain a key and its position, which
makes them distinct.
"""

from __future__ import annotations

from typing import Final, Unpack

from morok.arguments import flag
from morok.caller import caller
from morok.errors import ShapeError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor.argument_checks import known, whole
from morok.tensor.axis_reductions import positions_along, reduce_axes
from morok.tensor.base import AnyTensor, show
from morok.tensor.keywords import Along, other_names
from morok.tensor.view_methods import axis_of

_BY_COUNTING: Final = 1024  # most elements of an axis for which n * n comparisons cost less than the network's kernels
_LAST: Final = (1 << 64) - 1


@other_names
def argsort(
    self: AnyTensor, axis: int = -1, descending: bool = False, stable: bool = True, **also: Unpack[Along]
) -> AnyTensor:
    """The positions that sort the tensor along `axis`, as i64 in self's shape; equal elements keep their order.

    NaN is the greatest; `stable` has no effect. AxisError for an axis outside the shape.

    >>> Tensor([3, 1, 2]).argsort().tolist()
    [1, 2, 0]
    """
    a, descending = axis_of(self, axis), flag(descending, "descending")
    flag(stable, "stable")
    n = known(self, a, "a sort")
    if n < 2 or 0 in self.shape:
        return self.zeros_like(dtypes.i64)
    keys = sort_keys(self.moveaxis(a, -1))
    keys = ~keys if descending else keys
    if n <= _BY_COUNTING:
        order = _order_by_counting(keys)
    elif keys.dtype.bits <= 32:
        order = _order_by_network(keys)
    else:
        # a stable sort by the low half of the key, then by the high half
        low = _order_by_network(keys & 0xFFFFFFFF)
        order = low.take_along_axis(_order_by_network((keys >> 32).take_along_axis(low)))
    return order.moveaxis(-1, a)


@other_names
def sort(
    self: AnyTensor, axis: int = -1, descending: bool = False, stable: bool = True, **also: Unpack[Along]
) -> tuple[AnyTensor, AnyTensor]:
    """The sorted elements along `axis`, and their original positions (i64); equal elements keep their order.

    NaN is the greatest; `stable` has no effect. AxisError for an axis outside the shape.

    >>> values, places = Tensor([3, 1, 2]).sort(descending=True)
    >>> values.tolist(), places.tolist()
    ([3, 2, 1], [0, 2, 1])
    """
    order = self.argsort(axis, descending, stable).contiguous()
    return self.take_along_axis(order, axis), order


@other_names
def topk(
    self: AnyTensor, k: int, axis: int = -1, largest: bool = True, **also: Unpack[Along]
) -> tuple[AnyTensor, AnyTensor]:
    """The `k` greatest elements along `axis` (the least, if not `largest`), the greatest first, and their positions (i64).

    ShapeError for a `k` above the axis's size, AxisError for an axis outside the shape.

    >>> values, places = Tensor([3, 1, 2]).topk(2)
    >>> values.tolist(), places.tolist()
    ([3, 2], [0, 2])
    """
    a, k, largest = axis_of(self, axis), whole(k, "k", 0), flag(largest, "largest")
    if k > known(self, a, "topk"):
        raise ShapeError(f"topk({k}) of shape {show(self.shape)}", place=caller(), expected=f"at most {self.shape[a]}")
    order = (
        self.argsort(a, descending=largest).shrink([(0, k) if d == a else None for d in range(self.ndim)]).contiguous()
    )
    return self.take_along_axis(order, a), order


def sort_keys(t: AnyTensor) -> AnyTensor:
    """Unsigned keys of 32 or 64 bits with the order of the elements."""
    d = t.dtype
    if d.is_float:
        x = (t.cast(dtypes.f32) if d.bits <= 16 else t) + 0.0  # -0.0 becomes 0.0
        bits, top = (dtypes.u32, 1 << 31) if x.dtype.bits == 32 else (dtypes.u64, 1 << 63)
        word = x.bitcast(bits)
        ordered = (word >= top).where(~word, word | top)
        return x._like(x.isnan().where(x._like(UOp.const(int(bits.max), bits)), ordered).uop)
    if d.bits == 64:
        return t if d.is_unsigned else t.bitcast(dtypes.u64) ^ (1 << 63)
    return (t.cast(dtypes.i64) - int(d.min)).cast(dtypes.u32)


def _order_by_counting(x: AnyTensor) -> AnyTensor:
    """The positions that sort keys along the last axis, by counting lesser keys."""
    keys = x.contiguous()
    mine, theirs = keys.unsqueeze(-1), keys.unsqueeze(-2)
    place, other = (
        positions_along(mine, mine.ndim - 2, dtypes.i32),
        positions_along(theirs, theirs.ndim - 1, dtypes.i32),
    )
    less = (theirs < mine) | ((theirs == mine) & (other < place))
    rank = reduce_axes(less.cast(dtypes.i32), Op.Add, -1, keepdim=False)
    # for each rank r the position of the key of that rank
    hit = rank.unsqueeze(-2) == positions_along(rank.unsqueeze(-1), rank.ndim - 1, dtypes.i32)
    return reduce_axes(hit.where(positions_along(hit, rank.ndim, dtypes.i64), 0), Op.Add, -1, keepdim=False)


def _order_by_network(x: AnyTensor) -> AnyTensor:
    """The positions that sort keys below 2^32 along the last axis, by a bitonic network."""
    lead, n = x.shape[:-1], known(x, -1, "a sort")
    size = 1 << (n - 1).bit_length()
    words = (x.cast(dtypes.u64) << 32) | positions_along(x, x.ndim - 1, dtypes.u64)
    words = words.pad([*[None] * len(lead), (0, size - n)], _LAST).contiguous()
    block = 2
    while block <= size:
        stride = block // 2
        while stride:
            pairs = words.reshape((*lead, size // (2 * stride), 2, stride))
            # both halves of a block are sorted: the first step compares with the reversed second half, later steps do not reverse
            partner = pairs.flip(-2, -1) if 2 * stride == block else pairs.flip(-2)
            first = positions_along(pairs, pairs.ndim - 2, dtypes.i32) < 1
            words = first.where(pairs.minimum(partner), pairs.maximum(partner)).reshape((*lead, size)).contiguous()
            stride //= 2
        block *= 2
    return (words.shrink([*[None] * len(lead), (0, n)]) & 0xFFFFFFFF).cast(dtypes.i64)
