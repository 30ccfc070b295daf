"""Indexed assignment: a tensor with some elements replaced.

Values are cast to the tensor's dtype, as in NumPy. A write computes the whole tensor, selecting the old or the new value for each
element: it costs a pass over the tensor. Integers in an index, and numbers written there, are data and not constants of the
kernel, so that a loop over positions compiles one kernel.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from morok.caller import caller
from morok.errors import ShapeError, UsageError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.ranges import remember, unknown
from morok.ir.shape import Shape
from morok.ir.uop import UOp
from morok.tensor import creation
from morok.tensor.argument_checks import known
from morok.tensor.base import AnyTensor, Lazy, dim_node, element_count, iota, show
from morok.tensor.elementwise_operands import as_operand, converted
from morok.tensor.indexing import (
    as_rows,
    check_mask,
    flat_places,
    index_parts,
    is_array,
    is_mask,
    known_place,
    positions_shape,
    split_index,
)
from morok.tensor.scalars import data
from morok.tensor.view_methods import (
    along,
    basic_index,
    expanded,
    full_index,
    has_variable,
    is_symbolic,
    pad_zero,
    slice_ends,
    symbolic_position,
)
from morok.tensor.viewed import is_view

_BOUND: Final = "bound"  # key in a node's memo: True if its graph binds a variable


def with_written(x: AnyTensor, key: Any, value: Any) -> AnyTensor:
    """`x` with `value` at the elements that `key` chooses; `x` itself if it chooses none."""
    parts = index_parts(key)
    given = _given_values(x, value, any(hasattr(p, "__index__") and not isinstance(p, Lazy) for p in parts))
    if len(parts) == 1 and is_mask(parts[0]) and given.ndim <= x.ndim - parts[0].ndim:
        return _where_masked(x, parts[0], given)
    if not any(is_array(p) for p in parts):
        return _with_part(x, full_index(x, parts), given)
    others, axes, at, first = split_index(x, parts)
    inner = basic_index(x, others)
    changed = _with_chosen(inner, axes, at, first, given)
    return x if changed is inner else _with_part(x, full_index(x, others), changed)


def _given_values(x: AnyTensor, value: Any, varies: bool) -> AnyTensor:
    """The written value, in x's dtype; `varies` makes a number data instead of a constant."""
    uop = converted(x, value)
    if varies and uop.op is Op.Const:
        uop = data(uop.arg, x.dtype, x.device)
    return x._like(uop)


def _fitted(t: AnyTensor, shape: Shape) -> AnyTensor:
    """The values broadcast to `shape`, that of the elements which they replace; surplus leading axes of size 1 are dropped.
    ShapeError if they do not broadcast.
    """
    x = t
    while x.ndim > len(shape) and x.shape[0] == 1:
        x = x.squeeze(0)
    padded = (1,) * (len(shape) - x.ndim) + x.shape
    if len(padded) != len(shape) or any(p != n and p != 1 for p, n in zip(padded, shape, strict=True)):
        raise ShapeError(
            f"values of shape {show(t.shape)} for elements of shape {show(shape)}",
            place=caller(),
            expected="from the right, equal dimensions or 1 in the values",
            hint="x[key].shape is the shape of the elements written",
        )
    return t._like(expanded(x.uop, shape))


def _where_masked(x: AnyTensor, mask: Any, given: AnyTensor) -> AnyTensor:
    """`x` with the values `given` where a mask over the first axes is True."""
    check_mask(x, mask, 0)
    condition = as_operand(x, mask)
    rest = x.shape[condition.ndim :]
    wide = condition.reshape((*condition.shape, *(1,) * len(rest)))
    return x if 0 in x.shape else wide.where(_fitted(given, rest), x).cast(x.dtype)


def _with_part(x: AnyTensor, parts: Sequence[Any], given: AnyTensor) -> AnyTensor:
    """`x` with the values `given` at a basic index, `parts`: integers, slices and None, one part for each axis."""
    region = basic_index(x, list(parts))
    given = _fitted(given, region.shape)
    if 0 in region.shape:
        return x
    sizes = iter(region.shape)
    counts: list[Any] = []  # for each axis of `x` the number of positions written
    for part in parts:
        if part is None:
            next(sizes)
        else:
            counts.append(next(sizes) if isinstance(part, slice) else 1)
    given = given.reshape(tuple(counts))
    written: AnyTensor | None = None
    for axis, part in enumerate(p for p in parts if p is not None):
        if isinstance(part, slice) and _is_whole(part, x.shape[axis]):
            continue
        hit, given = _hits(x, part, axis, counts[axis], given)
        here = hit.reshape(tuple(x.shape[axis] if a == axis else 1 for a in range(x.ndim)))
        written = here if written is None else written & here
    return given if written is None else written.where(given, x).cast(x.dtype)


def _hits(x: AnyTensor, part: Any, axis: int, count: Any, given: AnyTensor) -> tuple[AnyTensor, AnyTensor]:
    """(hits, values) for one part of an index: hits [n] is True at the positions of the axis that are written; values are `given`
    with the axis extended to size n, each value at its position.
    """
    n, at = x.shape[axis], symbolic_position(part)
    ones = x._like(expanded(UOp.const(True, dtypes.bool), (count,)))
    if isinstance(part, slice) and is_symbolic(part, n):
        begin, end = slice_ends(x, part, axis)
        after = dim_node(n) - end
        hit, given = pad_zero(ones, [(begin, after)]), pad_zero(given, along(x, axis, begin, after))
        return hit, given.reshape((*given.shape[:axis], n, *given.shape[axis + 1 :]))
    if at is not None:
        hit = x._like(UOp.new(Op.Eq, (iota(n), expanded(at, (n,)))))
    else:
        size = known(x, axis, "an index")
        if isinstance(part, slice):
            begin, _, step = part.indices(size)
            return _spread(ones, 0, begin, step, size), _spread(given, axis, begin, step, size)
        place = x._like(creation.from_data(known_place(x, part, axis, size).reshape(1), None, x.device))
        hit = x._like(iota(n, dtypes.i64)) == place
    return hit, given.expand((*given.shape[:axis], n, *given.shape[axis + 1 :]))


def _spread(t: AnyTensor, axis: int, begin: int, step: int, n: int) -> AnyTensor:
    """`t` with `axis` extended to size `n`: its elements at begin, begin + step, .., and zeros elsewhere."""
    count, stride = known(t, axis, "a slice"), abs(step)
    x = t.flip(axis) if step < 0 else t
    if stride > 1:
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        x = x.reshape((*before, count, 1, *after))
        x = pad_zero(x, along(x, axis + 1, 0, stride - 1)).reshape((*before, count * stride, *after))
        x = x.shrink(along(x, axis, 0, (count - 1) * stride + 1))
    first = begin if step > 0 else begin + (count - 1) * step
    return pad_zero(x, along(x, axis, first, n - first - ((count - 1) * stride + 1)))


def _with_chosen(x: AnyTensor, axes: Sequence[int], at: Sequence[Any], first: int, given: AnyTensor) -> AnyTensor:
    """`x` with the values `given` at positions in `axes`; their axes begin at axis `first` of `given`. Of several values for one
    element the last counts; a tensor's positions outside the axes are ignored.
    """
    others = [a for a in range(x.ndim) if a not in axes]
    rest = [x.shape[a] for a in others]
    last, positions = _last_writers(x, axes, at)
    single = given.size == 1
    given = _fitted(given, (*rest[:first], *positions, *rest[first:]))
    if last is None:
        return x
    if single:  # one value for all positions needs no gather
        given = given.flatten()[0]
    else:
        wide = len(positions)
        given = given.permute(*range(first, first + wide), *range(first), *range(first + wide, given.ndim))
        given = given.reshape((element_count(positions), *rest)).take(last.maximum(0), 0)
    rows = as_rows(x, axes)
    changed = (last >= 0).reshape((rows.shape[0], *(1,) * len(rest))).where(given, rows).cast(x.dtype)
    changed = changed.reshape((*[x.shape[a] for a in axes], *rest))
    order = [*axes, *others]
    return changed.permute(*[order.index(a) for a in range(x.ndim)])


def _last_writers(x: AnyTensor, axes: Sequence[int], at: Sequence[Any]) -> tuple[AnyTensor | None, Shape]:
    """(writers, shape of the positions): for each element of these axes, flattened, the row-major number of the last position
    that writes it, or -1, as i64 [n]; None if there are no elements or no positions.

    A tensor's m positions are compared with every element: n * m comparisons.
    """
    sizes = [known(x, a, "an index") for a in axes]
    n = math.prod(sizes)
    if not any(isinstance(p, Lazy) for p in at):
        places = [known_place(x, p, a, m) for p, a, m in zip(at, axes, sizes, strict=True)]
        shape = positions_shape(*[p.shape for p in places])
        if 0 in x.shape or 0 in shape:
            return None, shape
        flat = np.ravel_multi_index(np.broadcast_arrays(*places), sizes).reshape(-1)
        writers = np.full(n, -1, np.int64)
        writers[flat] = np.arange(flat.size)  # for repeated indices NumPy keeps the last value (its manual, "Indexing")
        return x._like(creation.from_data(writers, None, x.device)), shape
    where, inside = flat_places(x, axes, at)
    shape = where.shape
    if 0 in x.shape or 0 in shape:
        return None, shape
    m = element_count(shape)
    hit = x._like(iota(n)).reshape((n, 1)) == where.reshape((1, m))
    for good in inside:
        hit = hit & good.expand(shape).reshape((1, m))
    order = x._like(iota(m, dtypes.i64)).reshape((1, m))
    return hit.where(order, -1).max(-1), shape


def _is_whole(part: slice, size: int | UOp) -> bool:
    """True if a slice selects a whole axis in order."""
    return part == slice(None) or (
        isinstance(size, int) and not is_symbolic(part, size) and range(*part.indices(size)) == range(size)
    )


def refuse_view(x: Lazy, besides: Collection[int] = ()) -> None:
    """UsageError if `x` is a view of a live tensor; tensors in `besides` (ids) do not count."""
    if is_view(x, besides):
        raise UsageError(
            f"{show(x.shape)} is a view of another tensor, which would not see the write",
            place=caller(),
            expected="a tensor with elements of its own",
            hint="write to that tensor, x[1:3, 0] = .. in place of x[1:3][:, 0] = .., or take a copy: .clone()",
        )


def on_variable(key: Any, value: Any) -> bool:
    """True if a write of `value` at `key` depends on a variable: which elements it chooses, or what it writes there.

    Such a write keeps the values that its variables are bound to, whatever a later step binds them to.
    """
    parts = key if isinstance(key, tuple) else (key,)
    nodes = [p.uop if isinstance(p, Lazy) else p for p in (*parts, value) if isinstance(p, (Lazy, UOp))]
    return has_variable(key) or any(is_bound(n) for n in nodes)


def is_bound(root: UOp) -> bool:
    """True if a graph binds a variable."""
    for node in unknown(root, _BOUND):
        remember(node, _BOUND, node.op is Op.Bind or any(s.memo[_BOUND] for s in node.src))
    found: bool = root.memo[_BOUND]
    return found
