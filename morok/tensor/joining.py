"""Tensors joined, split and repeated along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from morok.arguments import choice
from morok.caller import caller
from morok.errors import ShapeError
from morok.ir.dtype import promote
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.out_of_memory import needs_memory
from morok.tensor import creation
from morok.tensor.argument_checks import each, known, only_tensors, whole
from morok.tensor.base import AnyTensor, Lazy, namesakes, show
from morok.tensor.keywords import Along, AlongOrFlat, Over, other_names
from morok.tensor.view_methods import along, axis_of, pick


def concat(kind: type[AnyTensor], tensors: Sequence[AnyTensor], axis: int | None) -> AnyTensor:
    """The concatenation of tensors along `axis`, flattened first for None; dtypes promote. ShapeError, DeviceError as cat()."""
    parts = _several(tensors, "concat")
    if axis is None:
        parts, axis = [t.flatten() for t in parts], 0
    first = parts[0]
    a = axis_of(first, axis)
    for t in parts[1:]:
        if t.ndim != first.ndim or any(
            x != y for k, (x, y) in enumerate(zip(t.shape, first.shape, strict=True)) if k != a
        ):
            raise ShapeError(
                f"shapes {' and '.join(show(x.shape) for x in parts)} cannot be joined along axis {axis}",
                place=caller(),
                expected="equal dimensions, except along that axis",
            )
    device = creation.same_device([t.device for t in parts])
    d = promote(*[t.dtype for t in parts])
    nodes = [t.uop if t.dtype is d else t.cast(d).uop for t in parts if t.shape[a] != 0]
    if not nodes:
        return first.cast(d)
    if len(nodes) == 1:
        return next(t for t in parts if t.shape[a] != 0)._like(nodes[0])
    return kind._make(UOp.new(Op.Concat, tuple(nodes), a), device)


def stack(kind: type[AnyTensor], tensors: Sequence[AnyTensor], axis: int) -> AnyTensor:
    """Tensors of one shape joined along a new axis; ShapeError for other shapes."""
    parts = _several(tensors, "stack")
    if any(t.shape != parts[0].shape for t in parts):
        raise ShapeError(
            f"shapes {' and '.join(show(t.shape) for t in parts)} cannot be stacked",
            place=caller(),
            expected="one shape",
            hint=namesakes(d for t in parts for d in t.shape),
        )
    a = axis_of(parts[0], axis, extra=1)
    return kind.concat([t.unsqueeze(a) for t in parts], a)


def meshgrid(axes: Sequence[AnyTensor], indexing: str) -> tuple[AnyTensor, ...]:
    """Each of these vectors repeated over the axes of the others."""
    only_tensors(axes, "meshgrid")
    choice(indexing, "indexing", ("xy", "ij"), ShapeError)
    if any(t.ndim > 1 for t in axes):
        raise ShapeError(f"meshgrid of {' and '.join(show(t.shape) for t in axes)}", place=caller(), expected="vectors")
    order = list(range(len(axes)))
    if indexing == "xy" and len(axes) > 1:
        order[:2] = [1, 0]
    sizes = [t.size for t in axes]
    shape = tuple(sizes[k] for k in order)
    return tuple(
        t.reshape(tuple(t.size if k == mine else 1 for k in order)).expand(shape) for mine, t in enumerate(axes)
    )


@other_names
def cat(self: AnyTensor, *others: AnyTensor, axis: int = 0, **also: Unpack[Along]) -> AnyTensor:
    """self and `others` concatenated along `axis`; dtypes promote. ShapeError unless their other sizes are equal.

    >>> Tensor([1, 2]).cat(Tensor([3])).tolist()
    [1, 2, 3]
    """
    if not isinstance(self, Lazy):
        raise ShapeError(
            f"cat() of a {type(self).__name__}", place=caller(), expected="a tensor", hint="Tensor.concat takes a list"
        )
    return type(self).concat([self, *others], axis)


@other_names
def unstack(self: AnyTensor, axis: int = 0, **also: Unpack[Along]) -> tuple[AnyTensor, ...]:
    """The parts at each position of an axis, without that axis, as a tuple. AxisError for an axis outside the shape.

    >>> [part.tolist() for part in Tensor([[1, 2], [3, 4]]).unstack()]
    [[1, 2], [3, 4]]
    """
    a = axis_of(self, axis)
    return tuple(pick(self, a, i) for i in range(known(self, a, "unstack")))


@other_names
@needs_memory("split a tensor")
def split(self: AnyTensor, sizes: int | Sequence[int], axis: int = 0, **also: Unpack[Along]) -> tuple[AnyTensor, ...]:
    """Parts of the given sizes along `axis`, as a tuple; for a number, parts of that size, the last with the remainder.

    ShapeError for sizes that do not add up to the axis's, AxisError for an axis outside the shape.

    >>> [part.tolist() for part in Tensor([1, 2, 3]).split(2)]
    [[1, 2], [3]]
    """
    a = axis_of(self, axis)
    n = known(self, a, "split")
    if isinstance(sizes, (tuple, list)):
        parts = each(sizes, len(sizes), "a part", 0)
    else:
        one = whole(sizes, "the size of a part", 1)
        parts = tuple(min(one, n - begin) for begin in range(0, n, one)) or (0,)
    if sum(parts) != n:
        raise ShapeError(
            f"split of shape {show(self.shape)} along axis {axis} into {list(parts)}",
            place=caller(),
            expected=f"{n} together",
        )
    out: list[AnyTensor] = []
    begin = 0
    for size in parts:
        out.append(self.shrink(along(self, a, begin, begin + size)))
        begin += size
    return tuple(out)


@other_names
def chunk(self: AnyTensor, chunks: int, axis: int = 0, **also: Unpack[Along]) -> tuple[AnyTensor, ...]:
    """At most `chunks` parts of one size along `axis`, the last with the remainder, as a tuple.

    ShapeError for fewer than one part, AxisError for an axis outside the shape.

    >>> [part.tolist() for part in Tensor([1, 2, 3]).chunk(2)]
    [[1, 2], [3]]
    """
    n = known(self, axis_of(self, axis), "chunk")
    return self.split(max(1, -(-n // whole(chunks, "the number of chunks", 1))), axis)


def tile(self: AnyTensor, *repeats: Any) -> AnyTensor:
    """The whole tensor repeated along each axis, as NumPy's tile: missing counts are 1, missing axes are added in front.

    ShapeError for a negative count.

    >>> Tensor([1, 2]).tile(2).tolist()
    [1, 2, 1, 2]
    """
    given = repeats[0] if len(repeats) == 1 and isinstance(repeats[0], (tuple, list)) else repeats
    counts = each(tuple(given), len(given), "a repetition", 0)
    ndim = max(self.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - self.ndim) + self.shape
    x = self.reshape(tuple(n for d in shape for n in (1, d)))
    x = x.expand(tuple(n for c, d in zip(counts, shape, strict=True) for n in (c, d)))
    return x.reshape(tuple(c * d for c, d in zip(counts, shape, strict=True)))


@other_names
def repeat(self: AnyTensor, repeats: int, axis: int | None = None, **also: Unpack[AlongOrFlat]) -> AnyTensor:
    """Every element repeated `repeats` times along `axis`; of the flat tensor for None, as NumPy's repeat.

    ShapeError for a negative count, AxisError for an axis outside the shape.

    >>> Tensor([1, 2]).repeat(2).tolist()
    [1, 1, 2, 2]
    """
    return self.flatten().repeat_interleave(repeats, 0) if axis is None else self.repeat_interleave(repeats, axis)


@other_names
def roll(
    self: AnyTensor, shift: int | Sequence[int], axis: int | Sequence[int] | None = None, **also: Unpack[Over]
) -> AnyTensor:
    """The elements shifted cyclically by `shift` along `axis` (None: in the flat tensor), in self's shape.

    AxisError for an axis outside the shape.

    >>> Tensor([1, 2, 3]).roll(1).tolist()
    [3, 1, 2]
    """
    if axis is None:
        return self.flatten().roll(shift, 0).reshape(self.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    x = self._same()
    for step, named in zip(each(shift, len(axes), "shift", -(1 << 63)), axes, strict=True):
        a = axis_of(x, named)
        n = known(x, a, "roll")
        if n == 0 or (begin := -step % n) == 0:
            continue
        # n elements from `begin` on, of the axis repeated twice
        twice = x.unsqueeze(a).expand((*x.shape[:a], 2, *x.shape[a:])).flatten(a, a + 1)
        x = twice.shrink(along(x, a, begin, begin + n))
    return x


@other_names
def diff(self: AnyTensor, axis: int = -1, n: int = 1, **also: Unpack[Along]) -> AnyTensor:
    """The differences of adjacent elements along `axis`, taken `n` times; each time the axis loses one element.

    For bools True where they differ. ShapeError for a negative `n`, AxisError for an axis outside the shape.

    >>> Tensor([1, 4, 9]).diff().tolist()
    [3, 5]
    """
    a = axis_of(self, axis)
    x = self._same()
    for _ in range(min(whole(n, "n", 0), known(self, a, "diff"))):
        size = known(x, a, "diff")
        later, earlier = (x.shrink(along(x, a, begin, begin + size - 1)) for begin in (1, 0))
        x = later != earlier if x.dtype.is_bool else later - earlier
    return x


def _several(given: Sequence[AnyTensor], what: str) -> list[AnyTensor]:
    if isinstance(given, Lazy) or not isinstance(given, (tuple, list)) or not given:
        said = "nothing" if isinstance(given, (tuple, list)) else f"a {type(given).__name__}"
        raise ShapeError(f"{what} of {said}", place=caller(), expected="a list of at least one tensor")
    only_tensors(given, what)
    return list(given)
