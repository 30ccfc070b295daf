"""Indexing by tensors of positions and by masks.

A gather is a sum over an axis with all elements but one masked to 0. The rule `load_collapse.gather` turns the sum into one load
at that position, so its cost does not depend on the length of the axis.

Positions are integers; negative ones count from the end. Numbers, lists and arrays are checked at once. The elements of a tensor
are unknown until it runs: a position outside the axis in a tensor gives 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Unpack

import numpy as np

from morok.arguments import index_or_none, shown
from morok.caller import caller
from morok.errors import DTypeError, PositionError, ShapeError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.shape import Shape
from morok.ir.uop import UOp
from morok.out_of_memory import no_memory
from morok.tensor import creation
from morok.tensor.argument_checks import counted, known, whole
from morok.tensor.axis_reductions import reduce_axes
from morok.tensor.base import AnyTensor, Lazy, dim_node, iota, show
from morok.tensor.describing import read_array
from morok.tensor.elementwise_operands import as_operand
from morok.tensor.keywords import Along, AlongOrFlat, other_names
from morok.tensor.view_methods import (
    axis_of,
    basic_index,
    broadcast_shapes,
    check_position,
    expanded,
    full_index,
    reshaped,
    symbolic_position,
)

# Unsigned dtypes by width in bytes: sums of one element and zeros keep every bit in them, also of -0.0 and NaN.
_BITS: Final = {1: dtypes.u8, 2: dtypes.u16, 4: dtypes.u32, 8: dtypes.u64}


def getitem(self: AnyTensor, key: Any) -> AnyTensor:
    """NumPy's indexing: integers, slices, None, `...`; integer tensors, arrays and lists; masks of bools.

    A mask is computed at once, since the shape of the result depends on it.
    """
    parts = index_parts(key)
    if any(is_array(p) for p in parts):
        return _chosen_by_arrays(self, parts)
    chosen = basic_index(self, parts)
    return self._same() if chosen is self else chosen


def index_parts(key: Any) -> list[Any]:
    """The parts of an index, with another library's array as an ndarray. DTypeError if the library refuses."""
    parts = list(key) if isinstance(key, tuple) else [key]
    return [creation.foreign_array(p) if _is_foreign(p) else p for p in parts]


def _is_foreign(part: Any) -> bool:
    """True for an array with axes that is neither a tensor nor an ndarray itself."""
    if part is None or part is Ellipsis or isinstance(part, (int, slice, Lazy, list, UOp)) or type(part) is np.ndarray:
        return False
    return creation.is_array_of_a_library(part) and getattr(part, "ndim", 1) != 0


def _chosen_by_arrays(t: AnyTensor, parts: list[Any]) -> AnyTensor:
    """The elements chosen by an index with arrays: the other parts are applied first, then the arrays, broadcast together."""
    others, axes, at, first = split_index(t, parts)
    x = basic_index(t, others)
    chosen = _chosen(x, axes, at)
    wide = chosen.ndim - (x.ndim - len(axes))
    behind = list(range(wide, chosen.ndim))
    return chosen.permute(*behind[:first], *range(wide), *behind[first:])


def split_index(x: AnyTensor, parts: list[Any]) -> tuple[list[Any], list[int], list[Any], int]:
    """An index with arrays, split into two steps: (others, axes, positions, first).

    others     the index with a whole slice in place of each array
    axes       the axes of x[others] that the arrays index
    positions  the arrays, one for each of `axes`
    first      the axis of the result at which the arrays' axes begin: the first of `axes` if they are adjacent, else 0
    """
    parts = _without_masks(x, parts)
    # in an index with arrays, an integer counts as an array
    chooses = [p is not None and p is not Ellipsis and not isinstance(p, slice) for p in parts]
    others = [slice(None) if c else p for c, p in zip(chooses, parts, strict=True)]
    at = [k for k, c in enumerate(chooses) if c]
    dots = next((k for k, p in enumerate(parts) if p is Ellipsis), len(parts))
    ndim = len(full_index(x, others))
    axes = [k if k < dots else ndim - (len(parts) - k) for k in at]
    together = at == list(range(at[0], at[0] + len(at)))
    return others, axes, [parts[k] for k in at], axes[0] if together else 0


def _without_masks(x: AnyTensor, parts: list[Any]) -> list[Any]:
    """The parts of an index, with each mask replaced by the positions of its True elements, and a symbolic position by a tensor.
    PositionError unless masks have the shape of their axes.
    """
    covered = [p.ndim if is_mask(p) else 0 if p is None or p is Ellipsis else 1 for p in parts]
    out: list[Any] = []
    axis = 0
    for part, count in zip(parts, covered, strict=True):
        if is_mask(part):
            check_mask(x, part, axis)
        axis += x.ndim - sum(covered) if part is Ellipsis else count
        at = symbolic_position(part)
        out += positions_of(x, part) if is_array(part) else [part if at is None else _tensor_at(x, at, axis - 1)]
    return out


def _tensor_at(x: AnyTensor, at: UOp, axis: int) -> AnyTensor:
    """A symbolic position as a tensor of i64; PositionError if it may lie outside the axis."""
    check_position(x, at, axis)
    return x._like(at.cast(dtypes.i64))


def check_mask(x: AnyTensor, mask: Any, axis: int) -> None:
    """PositionError unless a mask has the shape of the axes from `axis` on."""
    if mask.shape != x.shape[axis : axis + mask.ndim]:
        raise PositionError(
            f"a mask of shape {show(mask.shape)} for the axes from {axis} on of shape {show(x.shape)}",
            place=caller(),
            expected=f"the shape {show(x.shape[axis : axis + mask.ndim])}",
        )


def positions_of(x: AnyTensor, part: Any) -> list[Any]:
    """The positions in an array, list, tensor or mask: one tensor or ndarray of integers; for a mask one ndarray for each axis.
    PositionError for other dtypes.
    """
    if isinstance(part, Lazy) and part.dtype.is_int:
        return [part]
    array = np.asarray(part) if isinstance(part, Lazy) else _array_of(part)
    if array.size == 0 and isinstance(part, list):
        array = array.astype(np.int64)
    if array.dtype.kind == "b":
        if array.ndim == 0:
            raise _no_index("one bool")
        return list(np.nonzero(array))
    if array.dtype.kind not in "iu":
        raise _no_index(str(array.dtype))
    return [array]


def _chosen(x: AnyTensor, axes: Sequence[int], at: Sequence[Any]) -> AnyTensor:
    """The elements at positions `at` in `axes`, in the shape [positions.., the other axes..]; positions broadcast together."""
    flat, inside = flat_places(x, axes, at)
    shape = flat.shape
    rows = as_rows(x, axes)
    lead, rest = (1,) * len(shape), rows.shape[1:]
    full = (*shape, rows.shape[0], *rest)
    wide = reshaped(flat.uop, (*shape, 1, *(1,) * len(rest)))
    chosen = _selected(rows.reshape((*lead, *rows.shape)), wide, len(shape), full)
    for good in inside:
        chosen = _zero_unless(chosen, good.reshape((*(1,) * (len(shape) - good.ndim), *good.shape, *(1,) * len(rest))))
    return chosen


def flat_places(x: AnyTensor, axes: Sequence[int], at: Sequence[Any]) -> tuple[AnyTensor, list[AnyTensor]]:
    """(flat positions, conditions): positions in several axes, broadcast together, as positions in these axes flattened, clipped
    to their range; and for each tensor of positions a bool tensor that is True where the position was in range.
    """
    sizes = [known(x, a, "an index") for a in axes]
    places: list[AnyTensor] = []
    inside: list[AnyTensor] = []
    for position, axis, n in zip(at, axes, sizes, strict=True):
        place, good = place_along(x, position, axis, n)
        places.append(place)
        inside += [] if good is None else [good]
    shape = positions_shape(*[p.shape for p in places])
    flat = expanded(places[0].uop, shape)
    for place, n in zip(places[1:], sizes[1:], strict=True):
        flat = flat * dim_node(n) + expanded(place.uop, shape)
    return x._like(flat), inside


def as_rows(x: AnyTensor, axes: Sequence[int]) -> AnyTensor:
    """`x` with `axes` moved to the front and flattened to one axis."""
    others = [a for a in range(x.ndim) if a not in axes]
    return x.permute(*axes, *others).flatten(0, len(axes) - 1) if len(axes) > 1 else x.moveaxis(axes[0], 0)


def place_along(x: AnyTensor, position: Any, axis: int, n: int) -> tuple[AnyTensor, AnyTensor | None]:
    """(index, condition): a position clipped to [0, n), and for a tensor a bool tensor, True where it was in range; else None.
    PositionError for a number outside the axis.
    """
    good: AnyTensor | None = None
    if isinstance(position, Lazy):
        at = as_operand(x, position).cast(dtypes.i64)
        at = (at < 0).where(at + n, at)
        good = (at >= 0) & (at < n)
    else:
        at = x._like(creation.from_data(known_place(x, position, axis, n), None, x.device))
    return x._like(at.clip(0, max(n - 1, 0)).uop.cast(dtypes.index)), good


def known_place(x: AnyTensor, position: Any, axis: int, n: int) -> Any:
    """Positions in numbers as an ndarray of i64 in [0, n); PositionError for one outside the axis."""
    array = np.asarray(position if isinstance(position, np.ndarray) else _integer(position))
    wrong = array[(array < -n) | (array >= n)]
    if wrong.size:
        raise PositionError(
            f"index {wrong[0]} is outside axis {axis} of shape {show(x.shape)}",
            place=caller(),
            expected=counted(n) if n else "an axis with elements",
        )
    return array.astype(np.int64) % max(n, 1)


def _selected(t: AnyTensor, place: UOp, axis: int, full: Shape) -> AnyTensor:
    """The elements of `t` at `place` along `axis`; both broadcast to `full`, the result's shape with `axis`, of size n, added."""
    n = full[axis]
    out = (*full[:axis], *full[axis + 1 :])
    if 0 in full:
        return t._like(expanded(UOp.const(0, t.dtype), out))
    bits = _BITS[t.dtype.itemsize]
    x = t.cast(bits) if t.dtype.is_bool else t.bitcast(bits)
    places = reshaped(iota(n), tuple(n if a == axis else 1 for a in range(len(full))))
    hit = t._like(expanded(places, full).eq(expanded(place, full)))
    only = reduce_axes(hit.where(x.expand(full), 0), Op.Add, axis, keepdim=False)
    return only.cast(dtypes.bool) if t.dtype.is_bool else only.bitcast(t.dtype)


def _zero_unless(x: AnyTensor, condition: AnyTensor) -> AnyTensor:
    return x._like(condition.where(x, x._like(UOp.const(0, x.dtype))).uop)


@other_names
def take(self: AnyTensor, indices: Any, axis: int | None = None, **also: Unpack[AlongOrFlat]) -> AnyTensor:
    """The elements at `indices` along `axis`, which the axes of `indices` replace; of the flat tensor for None.

    PositionError for a number outside the axis; a tensor's positions outside it give 0.

    >>> Tensor([10, 20, 30]).take([2, 0, -1]).tolist()
    [30, 10, 30]
    """
    if axis is None and self.ndim != 1:
        return self.flatten().take(indices, 0)
    a = axis_of(self, 0 if axis is None else axis)
    (at,) = positions_of(self, indices)
    chosen = _chosen(self, [a], [at])
    wide = chosen.ndim - self.ndim + 1
    behind = list(range(wide, chosen.ndim))
    return chosen.permute(*behind[:a], *range(wide), *behind[a:])


@other_names
def take_along_axis(self: AnyTensor, indices: Any, axis: int = -1, **also: Unpack[Along]) -> AnyTensor:
    """out[.., j, ..] = self[.., indices[.., j, ..], ..] along `axis`; the other axes of both broadcast.

    ShapeError unless both have the same number of axes, PositionError for a number outside the axis.

    >>> Tensor([[1, 2], [3, 4]]).take_along_axis(Tensor([[1], [0]])).tolist()
    [[2], [3]]
    """
    a = axis_of(self, axis)
    (at,) = positions_of(self, indices)
    n = known(self, a, "take_along_axis")
    place, good = place_along(self, at, a, n)
    if place.ndim != self.ndim:
        raise ShapeError(
            f"take_along_axis of shapes {show(self.shape)} and {show(place.shape)}",
            place=caller(),
            expected="as many axes",
        )
    m = place.shape[a]
    others = broadcast_shapes((*self.shape[:a], 1, *self.shape[a + 1 :]), (*place.shape[:a], 1, *place.shape[a + 1 :]))
    full = (*others[:a], m, n, *others[a + 1 :])
    chosen = _selected(self.unsqueeze(a), place.unsqueeze(a + 1).uop, a + 1, full)
    return chosen if good is None else _zero_unless(chosen, good)


def one_hot(self: AnyTensor, num_classes: int) -> AnyTensor:
    """The one-hot code of integers [..] as i64 [.., num_classes]: 1 at the position given by each element, 0 elsewhere.

    DTypeError for floats, ShapeError for a negative `num_classes`.

    >>> Tensor([1, 0]).one_hot(2).tolist()
    [[0, 1], [1, 0]]
    """
    if not self.dtype.is_int:
        raise DTypeError(f"one_hot() of dtype {self.dtype}", place=caller(), expected="integers")
    wide = self.unsqueeze(-1)
    count = whole(num_classes, "num_classes", 0)
    classes = self._like(iota(count, dtypes.i64)) if count else self._like(expanded(UOp.const(0, dtypes.i64), (0,)))
    return (wide.cast(dtypes.i64) == classes).cast(dtypes.i64)


def nonzero(self: AnyTensor) -> tuple[AnyTensor, ...]:
    """The positions of the elements that are not 0, as one i64 tensor for each axis.

    Computed at once, since the shape depends on the elements. ShapeError for a scalar.

    >>> [t.tolist() for t in Tensor([[0, 5], [6, 0]]).nonzero()]
    [[0, 1], [1, 0]]
    """
    if self.ndim == 0:
        raise ShapeError("nonzero of a scalar", place=caller(), expected="at least one axis")
    return tuple(
        self._like(creation.from_array(np.ascontiguousarray(p), None, self.device))
        for p in np.nonzero(np.asarray(self))
    )


def positions_shape(*shapes: Shape) -> Shape:
    """The shape that positions broadcast to; PositionError if there is none."""
    try:
        return broadcast_shapes(*shapes)
    except ShapeError:
        raise PositionError(
            f"positions of shapes {' and '.join(map(show, shapes))} do not broadcast",
            place=caller(),
            expected="from the right, equal dimensions or 1",
        ) from None


def is_array(part: Any) -> bool:
    return isinstance(part, (Lazy, list)) or type(part).__name__ == "ndarray"


def is_mask(part: Any) -> bool:
    return is_array(part) and not isinstance(part, list) and part.ndim > 0 and str(part.dtype) == "bool"


def _array_of(part: Any) -> Any:
    """A list, number or array of positions or bools as an ndarray; PositionError if NumPy cannot convert it."""
    try:
        return np.asarray(read_array(part))
    except (TypeError, ValueError, OverflowError):  # ragged lists, or other objects
        raise _no_index(shown(part)) from None
    except MemoryError:
        raise no_memory("read positions") from None


def _integer(part: Any) -> int:
    i = index_or_none(part)
    if i is None:
        raise _no_index(shown(part))
    return i


def _no_index(what: str) -> PositionError:
    return PositionError(
        f"{what} is not an index",
        place=caller(),
        expected="an integer, a slice, None, `...`, or a tensor, array or list of integers or bools",
        hint="where() selects by a condition",
    )
