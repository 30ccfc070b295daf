"""Binary search, scatter, and distinct elements.

Positions are i64; negative ones count from the end. A scatter of m positions into an axis of n compares every position with every
element, n * m comparisons: elements are then independent, and several writes of one element have a defined order.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Unpack

from morok.arguments import choice
from morok.caller import caller
from morok.errors import ShapeError
from morok.ir.dtype import dtypes, promote
from morok.tensor import creation
from morok.tensor.argument_checks import known
from morok.tensor.axis_reductions import positions_along
from morok.tensor.base import AnyTensor, iota, show
from morok.tensor.elementwise_operands import as_operand, converted
from morok.tensor.indexing import place_along, positions_of
from morok.tensor.keywords import Along, other_names
from morok.tensor.sorting import sort_keys
from morok.tensor.view_methods import axis_of, broadcast_shapes, expanded, reshaped


class UniqueAll(NamedTuple, Generic[AnyTensor]):
    """The distinct elements; for each, its first position in the flat tensor and its count; for every element, its rank."""

    values: AnyTensor
    indices: AnyTensor
    inverse_indices: AnyTensor
    counts: AnyTensor


class UniqueCounts(NamedTuple, Generic[AnyTensor]):
    """The distinct elements, and the count of each."""

    values: AnyTensor
    counts: AnyTensor


class UniqueInverse(NamedTuple, Generic[AnyTensor]):
    """The distinct elements, and for every element its rank among them."""

    values: AnyTensor
    inverse_indices: AnyTensor


def searchsorted(self: AnyTensor, values: Any, side: str = "left") -> AnyTensor:
    """The insertion point of each of `values` in this sorted vector, as i64: before equal elements, or after (side="right").

    By binary search: one step for each binary digit of the vector's size. ShapeError for more axes than one.

    >>> Tensor([1, 3, 5]).searchsorted([0, 3, 9]).tolist()
    [0, 1, 3]
    """
    if self.ndim != 1:
        raise ShapeError(f"searchsorted in shape {show(self.shape)}", place=caller(), expected="one axis")
    choice(side, "side", ("left", "right"))
    wanted = as_operand(self, values)
    d = promote(self.dtype, wanted.dtype)
    n = known(self, 0, "searchsorted")
    place = wanted.zeros_like(dtypes.i64)
    if n == 0 or 0 in wanted.shape:
        return place
    keys, goal = sort_keys(self.cast(d)).contiguous(), sort_keys(wanted.cast(d))
    step = 1 << (n.bit_length() - 1)
    while step:  # invariant: the first `place` elements are before the insertion point
        further = place + step
        here = keys.take((further - 1).minimum(n - 1), 0)
        before = here < goal if side == "left" else here <= goal
        place = ((further <= n) & before).where(further, place).contiguous()
        step //= 2
    return place


@other_names
def scatter(self: AnyTensor, axis: int, indices: Any, values: Any, **also: Unpack[Along]) -> AnyTensor:
    """self with out[.., indices[.., j, ..], ..] = values[.., j, ..] along `axis`.

    Of several values for one element the last counts. The other axes of all three broadcast; values for a position outside
    the axis are ignored. ShapeError unless all have the same number of axes.

    >>> Tensor([0, 0, 0]).scatter(0, [2, 0], [7, 8]).tolist()
    [8, 0, 7]
    """
    if 0 in self.shape:
        return self
    x, hit, given = _writes(self, axis, indices, values)
    if 0 in given.shape:
        return x.moveaxis(-1, axis_of(self, axis))
    order = positions_along(hit, hit.ndim - 1, dtypes.i32)
    last = hit.where(order, -1).max(-1)
    written = given.take_along_axis(last.maximum(0), -1)
    return (last >= 0).where(written, x).cast(self.dtype).moveaxis(-1, axis_of(self, axis))


@other_names
def scatter_add(self: AnyTensor, axis: int, indices: Any, values: Any, **also: Unpack[Along]) -> AnyTensor:
    """self with values[.., j, ..] added to out[.., indices[.., j, ..], ..] along `axis`, halves as f32 and rounded once.

    The other axes of all three broadcast; values for a position outside the axis are ignored. ShapeError unless all have
    the same number of axes.

    >>> Tensor([0, 0, 0]).scatter_add(0, [2, 2], [7, 8]).tolist()
    [0, 0, 15]
    """
    if 0 in self.shape:
        return self
    x, hit, given = _writes(self, axis, indices, values)
    total = hit.where(given.unsqueeze(-2), 0).sum(-1)
    return hit.any(-1).where(x + total, x).cast(self.dtype).moveaxis(-1, axis_of(self, axis))


def _writes(target: AnyTensor, axis: int, indices: Any, values: Any) -> tuple[AnyTensor, AnyTensor, AnyTensor]:
    """(target, hits, values) with `axis` last: hits [.., n, m] is True where position j writes element i; values have the
    target's dtype and shape [.., m]. ShapeError unless all have the same number of axes.
    """
    a = axis_of(target, axis)
    n = known(target, a, "a scatter")
    (at,) = positions_of(target, indices)
    place, good = place_along(target, at, a, n)
    given = target._like(converted(target, values))
    if place.ndim != target.ndim or given.ndim not in (0, target.ndim):
        raise ShapeError(
            f"a scatter of shapes {show(target.shape)}, {show(place.shape)} and {show(given.shape)}",
            place=caller(),
            expected="as many axes",
        )
    m = place.shape[a]
    others = broadcast_shapes(*[(*t.shape[:a], 1, *t.shape[a + 1 :]) for t in (target, place, given) if t.ndim])
    rows = (*others[:a], *others[a + 1 :])
    x = target.moveaxis(a, -1).expand((*rows, n))
    where = target._like(place.uop.cast(dtypes.i64)).moveaxis(a, -1).expand((*rows, m)).unsqueeze(-2)
    places = reshaped(iota(n, dtypes.i64), (*(1,) * len(rows), n, 1))
    hit = where == target._like(expanded(places, (*rows, n, 1)))
    if good is not None:
        hit = hit & good.moveaxis(a, -1).expand((*rows, m)).unsqueeze(-2)
    return x, hit, (given.moveaxis(a, -1) if given.ndim else given).expand((*rows, m))


def unique_all(self: AnyTensor) -> UniqueAll[AnyTensor]:
    """The distinct elements in order, the first position of each, for each element its rank among them, and the counts.

    Computed at once, since the shape depends on the elements. Every NaN is distinct.

    >>> found = Tensor([3, 1, 3]).unique_all()
    >>> found.values.tolist(), found.indices.tolist(), found.inverse_indices.tolist(), found.counts.tolist()
    ([1, 3], [1, 0], [1, 0, 1], [1, 2])
    """
    flat = self.flatten()
    n = known(flat, 0, "unique")
    ordered, order = flat.sort()
    if n == 0:
        none = flat.zeros_like(dtypes.i64)
        return UniqueAll(flat, none, none.reshape(self.shape), none)
    first = type(self).concat([self._like(creation.from_data([True], None, self.device)), ordered[1:] != ordered[:-1]])
    (starts,) = first.nonzero()
    rank = first.cast(dtypes.i64).cumsum(0) - 1
    ends = type(self).concat([starts[1:], self._like(creation.from_data([n], None, self.device))])
    inverse = rank.take(order.argsort(), 0)
    return UniqueAll(ordered.take(starts, 0), order.take(starts, 0), inverse.reshape(self.shape), ends - starts)


def unique_counts(self: AnyTensor) -> UniqueCounts[AnyTensor]:
    """The distinct elements in order, and the count of each, as i64. Computed at once.

    >>> Tensor([3, 1, 3]).unique_counts().counts.tolist()
    [1, 2]
    """
    found = self.unique_all()
    return UniqueCounts(found.values, found.counts)


def unique_inverse(self: AnyTensor) -> UniqueInverse[AnyTensor]:
    """The distinct elements in order, and for each element its rank among them, as i64. Computed at once.

    >>> Tensor([3, 1, 3]).unique_inverse().inverse_indices.tolist()
    [1, 0, 1]
    """
    found = self.unique_all()
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(self: AnyTensor) -> AnyTensor:
    """The distinct elements in order, in one axis; every NaN is distinct. Computed at once.

    >>> Tensor([3, 1, 3]).unique_values().tolist()
    [1, 3]
    """
    return self.unique_all().values
