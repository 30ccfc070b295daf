"""Views: the same elements in another order or shape, without copying.

The primitive ones are reshape, permute, expand, pad, shrink and flip; the other functions are built on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Unpack

from morok.arguments import index_or_none, shown
from morok.caller import caller
from morok.errors import ArgumentTypeError, PositionError, ShapeError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.shape import Shape, shape_of
from morok.ir.uop import UOp
from morok.passes.rangeify.state import RESHAPE, beneath
from morok.rewrite.simplify import simplify
from morok.tensor.argument_checks import axis_in, counted, fitting, shape_argument, whole
from morok.tensor.base import AnyTensor, dim_node, element_count, namesakes, show
from morok.tensor.describing import current
from morok.tensor.keywords import Along, AnyAxes, AsAxes, AsAxis, other_names
from morok.tensor.variable import Variable

Dim = int | UOp


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape to which all `shapes` broadcast, by NumPy's rules; ShapeError, with the shapes, if there is none."""
    if len(shapes) == 2 and (shapes[0] == shapes[1] or not shapes[1]):
        return shapes[0]
    ndim = max((len(s) for s in shapes), default=0)
    out: list[Dim] = []
    for i in range(ndim):
        dims = [s[len(s) - ndim + i] for s in shapes if len(s) - ndim + i >= 0]
        wide: list[Dim] = [d for d in dims if isinstance(d, UOp) or d != 1]
        if any(d != wide[0] for d in wide[1:]):
            raise ShapeError(
                f"shapes {' and '.join(show(s) for s in shapes)} do not broadcast",
                place=caller(),
                expected="from the right, equal dimensions or 1",
                hint=namesakes(dims) or "reshape or unsqueeze one of them",
            )
        out.append(wide[0] if wide else 1)
    return fitting(tuple(out))


def reshaped(uop: UOp, shape: Shape) -> UOp:
    """`uop` in another shape of the same size, which is not checked."""
    uop = beneath(uop, RESHAPE)
    if shape_of(uop) == shape:
        return uop
    return UOp.new(Op.Reshape, (uop, *map(dim_node, shape)))


def held(node: UOp, shape: Shape) -> UOp:
    """A Buffer node in `shape`; for symbolic sizes only its first elements, as many as the shape has."""
    size = element_count(shape)
    if not isinstance(size, UOp):
        return reshaped(node, shape)
    # the buffer has room for the greatest sizes; the elements in use are its first
    front = UOp.new(Op.Shrink, (node, UOp.const(0, dtypes.index), size))
    return UOp.new(Op.Reshape, (front, *map(dim_node, shape)))


def expanded(uop: UOp, shape: Shape) -> UOp:
    """`uop` broadcast to `shape`, which is not checked."""
    now = shape_of(uop)
    if now == shape:
        return uop
    if len(now) < len(shape):
        now = (1,) * (len(shape) - len(now)) + now
        uop = reshaped(uop, now)
    if now == shape:
        return uop
    if uop.op is Op.Expand:
        uop = uop.src[0]
    return UOp.new(Op.Expand, (uop, *map(dim_node, shape)))


def axis_of(x: AnyTensor, axis: int, extra: int = 0) -> int:
    """The axis as a number from 0 up; negative ones count from the end. AxisError outside the shape, with `extra` more axes."""
    shape = x.shape
    return axis_in(axis, shape, len(shape) + extra)


def axes_of(x: AnyTensor, axis: int | Sequence[int] | None) -> tuple[int, ...]:
    """The named axes as sorted numbers; all axes for None. ShapeError for an axis named twice, AxisError outside the shape."""
    if axis is None:
        return tuple(range(x.ndim))
    named: Sequence[Any] = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [axis_of(x, a) for a in named]
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axes {tuple(axes)} name an axis twice", place=caller(), expected="each axis once")
    return tuple(sorted(axes))


def reshape(self: AnyTensor, *shape: Any) -> AnyTensor:
    """The same elements in row-major order, in another shape; one size may be -1, for the remaining size.

    ShapeError unless both shapes have the same number of elements, and for more than one -1.

    >>> Tensor.arange(6).reshape(2, -1).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    wanted = shape_argument(shape)
    unknown = [i for i, d in enumerate(wanted) if isinstance(d, int) and d == -1]
    total = self.size
    if len(unknown) > 1 or any(isinstance(d, int) and d < -1 for d in wanted):
        raise ShapeError(
            f"{show(self.shape)} cannot become {show(wanted)}",
            place=caller(),
            expected="sizes of at least 0, of which one may be -1: what remains",
        )
    if unknown:
        known = element_count(tuple(d for i, d in enumerate(wanted) if i != unknown[0]))
        rest = _divide(self.shape, total, known)
        if rest is None:
            raise ShapeError(
                f"shape {show(self.shape)} of {total} elements does not fit {show(wanted)}",
                place=caller(),
                expected=f"a size that {known} divides",
            )
        wanted = (*wanted[: unknown[0]], rest, *wanted[unknown[0] + 1 :])
    elif not _same_size(self.shape, wanted):
        raise ShapeError(
            f"shape {show(self.shape)} of {total} elements does not fit {show(wanted)} of {element_count(wanted)}",
            place=caller(),
            expected="the same number of elements",
            hint=namesakes((*self.shape, *wanted)),
        )
    return self._like(reshaped(self.uop, wanted))


def flatten(self: AnyTensor, start: int = 0, end: int = -1) -> AnyTensor:
    """The elements with the axes `start` to `end` (both included) merged into one.

    AxisError for an axis outside the shape.

    >>> Tensor.zeros(2, 3, 4).flatten(1).shape
    (2, 12)
    """
    if self.ndim == 0:
        return self.reshape(1)
    s, e = axis_of(self, start), axis_of(self, end)
    return self.reshape(*self.shape[:s], element_count(self.shape[s : e + 1]), *self.shape[e + 1 :])


def expand(self: AnyTensor, *shape: Any) -> AnyTensor:
    """The elements with axes of size 1 repeated, without copying; -1 keeps a size, new axes are added in front.

    ShapeError unless, from the right, sizes are equal or 1 in self.

    >>> Tensor([[1], [2]]).expand(2, 3).tolist()
    [[1, 1, 1], [2, 2, 2]]
    """
    wanted = shape_argument(shape)
    padded = (1,) * (len(wanted) - self.ndim) + self.shape
    full = tuple(
        p if isinstance(w, int) and w == -1 else w for p, w in zip(padded[-len(wanted) :], wanted, strict=False)
    )
    new = wanted[: max(0, len(wanted) - self.ndim)]  # added axes: -1 has no size to keep
    if (
        len(padded) != len(wanted)
        or any(isinstance(w, int) and w < 0 for w in (*new, *full))
        or any(p != w and p != 1 for p, w in zip(padded, full, strict=True))
    ):
        raise ShapeError(
            f"shape {show(self.shape)} cannot be expanded to {show(wanted)}",
            place=caller(),
            expected="from the right, equal dimensions or 1 in the tensor",
            hint=namesakes((*self.shape, *wanted)),
        )
    return self._like(expanded(self.uop, fitting(full)))


def broadcast_to(self: AnyTensor, shape: Sequence[Dim]) -> AnyTensor:
    """The elements broadcast to `shape`: expand() by NumPy's name. ShapeError if they do not broadcast.

    >>> Tensor([1, 2]).broadcast_to((2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return self.expand(shape)


def permute(self: AnyTensor, *axes: Any) -> AnyTensor:
    """The elements with the axes in another order. ShapeError unless `axes` names each axis once.

    >>> Tensor.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    order = shape_argument(axes)
    wanted = tuple(axis_of(self, a) for a in order if isinstance(a, int))
    if sorted(wanted) != list(range(self.ndim)):
        raise ShapeError(
            f"{show(order)} is not an order of the axes of shape {show(self.shape)}",
            place=caller(),
            expected=f"each of {', '.join(map(str, range(self.ndim))) or 'none'} once",
        )
    if wanted == tuple(range(self.ndim)):
        return self._same()
    uop = self.uop
    if uop.op is Op.Permute:
        below: tuple[int, ...] = uop.arg
        wanted = tuple(below[a] for a in wanted)
        uop = uop.src[0]
        if wanted == tuple(range(len(wanted))):
            return self._like(uop)
    return self._like(UOp.new(Op.Permute, (uop,), wanted))


def permute_dims(self: AnyTensor, axes: Sequence[int]) -> AnyTensor:
    """The elements with the axes in another order: permute() by the array API's name.

    ShapeError unless `axes` names each axis once.

    >>> Tensor.zeros(2, 3, 4).permute_dims((2, 0, 1)).shape
    (4, 2, 3)
    """
    return self.permute(axes)


def transpose(self: AnyTensor, dim0: int = 1, dim1: int = 0) -> AnyTensor:
    """The elements with two axes exchanged, the first two by default. AxisError for an axis outside the shape.

    >>> Tensor.zeros(2, 3, 4).transpose(0, 2).shape
    (4, 3, 2)
    """
    a, b = axis_of(self, dim0), axis_of(self, dim1)
    order = list(range(self.ndim))
    order[a], order[b] = order[b], order[a]
    return self.permute(*order)


def matrix_transpose(self: AnyTensor) -> AnyTensor:
    """The elements with the last two axes exchanged: `mT` as a method. AxisError for fewer than two axes.

    >>> Tensor.zeros(2, 3, 4).matrix_transpose().shape
    (2, 4, 3)
    """
    return self.mT


def moveaxis(self: AnyTensor, source: int, destination: int) -> AnyTensor:
    """The elements with one axis moved to another position, the others in their order. AxisError for an axis outside the shape.

    >>> Tensor.zeros(2, 3, 4).moveaxis(0, 2).shape
    (3, 4, 2)
    """
    s, d = axis_of(self, source), axis_of(self, destination)
    order = [a for a in range(self.ndim) if a != s]
    order.insert(d, s)
    return self.permute(*order)


@other_names
def flip(self: AnyTensor, *axes: Any, **also: Unpack[AnyAxes]) -> AnyTensor:
    """The elements in reverse order along these axes (all axes if none is named), in self's shape.

    AxisError for an axis outside the shape, ShapeError for an axis named twice.

    >>> Tensor([[1, 2], [3, 4]]).flip(1).tolist()
    [[2, 1], [4, 3]]
    """
    named = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))) else axes or None
    reversed_axes = axes_of(self, named)
    if not reversed_axes:
        return self._same()
    return self._like(UOp.new(Op.Flip, (self.uop,), tuple(a in reversed_axes for a in range(self.ndim))))


def shrink(self: AnyTensor, bounds: Sequence[tuple[Dim, Dim] | None]) -> AnyTensor:
    """The elements in begin..end of each axis, `end` excluded: one pair an axis, None for the whole axis.

    ShapeError unless 0 <= begin <= end <= size and for another number of pairs; ArgumentTypeError for anything but a list of
    pairs.

    >>> Tensor([[1, 2, 3], [4, 5, 6]]).shrink([None, (1, 3)]).tolist()
    [[2, 3], [5, 6]]
    """
    edges = _edges(self, bounds, "shrink")
    full = [(0, d) if e is None else e for e, d in zip(edges, self.shape, strict=True)]
    for (b, e), d in zip(full, self.shape, strict=True):
        known = isinstance(b, int) and isinstance(e, int)
        if (isinstance(b, int) and b < 0) or (known and b > e) or _may_be_greater(e, d):
            raise ShapeError(
                f"shape {show(self.shape)} cannot be shrunk to {shown(bounds)}",
                place=caller(),
                expected="0 <= begin <= end <= size",
            )
    return _shrunk(self, full)


def _shrunk(x: AnyTensor, bounds: Sequence[tuple[Dim, Dim]]) -> AnyTensor:
    """The elements in begin..end of each axis, where 0 <= begin <= end <= size."""
    if all(b == 0 and e == d for (b, e), d in zip(bounds, x.shape, strict=True)):
        return x._same()
    return x._like(UOp.new(Op.Shrink, (x.uop, *[dim_node(b) for b, _ in bounds], *[dim_node(e) for _, e in bounds])))


def pad_zero(x: AnyTensor, padding: Sequence[tuple[Dim, Dim] | None]) -> AnyTensor:
    """`x` padded with zeros: a pair of counts, before and after, for each axis; None for none. ShapeError for negative counts."""
    edges = _edges(x, padding, "pad")
    full = [(0, 0) if e is None else e for e in edges]
    if any(isinstance(n, int) and n < 0 for pair in full for n in pair):
        raise ShapeError(
            f"shape {show(x.shape)} cannot be padded by {shown(padding)}",
            place=caller(),
            expected="at least 0 elements on each side",
            hint="shrink() removes elements",
        )
    if all(b == 0 and e == 0 for b, e in full):
        return x._same()
    if 0 in x.shape:  # there are no elements: the result is constant
        wide = tuple(b + d + e for (b, e), d in zip(full, x.shape, strict=True))
        return x._like(expanded(UOp.const(0, x.dtype), wide))
    return x._like(UOp.new(Op.Pad, (x.uop, *[dim_node(b) for b, _ in full], *[dim_node(e) for _, e in full])))


def along(x: AnyTensor, axis: int, first: Dim, second: Dim) -> list[tuple[Dim, Dim] | None]:
    """The bounds or counts for shrink() and pad_zero() that concern one axis: this pair for it, None for all others."""
    return [(first, second) if a == axis else None for a in range(x.ndim)]


def _edges(x: AnyTensor, pairs: Sequence[tuple[Dim, Dim] | None], what: str) -> list[tuple[Dim, Dim] | None]:
    if not isinstance(pairs, (tuple, list)):
        raise ArgumentTypeError(
            f"{what} was given {shown(pairs)}", place=caller(), expected="a list of pairs, or None, one an axis"
        )
    wrong = [p for p in pairs if p is not None and not (isinstance(p, (tuple, list)) and len(p) == 2)]
    if wrong:
        raise ShapeError(f"{what} was given {shown(wrong[0])}", place=caller(), expected="pairs, or None, one an axis")
    if len(pairs) != x.ndim:
        raise ShapeError(
            f"{what} of shape {show(x.shape)} was given {len(pairs)} pairs", place=caller(), expected=f"{x.ndim} pairs"
        )
    return [None if p is None else (_edge(p[0], what), _edge(p[1], what)) for p in pairs]


@other_names
def squeeze(self: AnyTensor, dim: int | Sequence[int] | None = None, **also: Unpack[AsAxes]) -> AnyTensor:
    """The elements without axes of size 1: all of them, or those named. ShapeError for an axis of another size.

    >>> Tensor.zeros(1, 3, 1).squeeze().shape, Tensor.zeros(1, 3, 1).squeeze(0).shape
    ((3,), (3, 1))
    """
    axes = axes_of(self, dim)
    if dim is not None and any(self.shape[a] != 1 for a in axes):
        raise ShapeError(
            f"axis {dim} of shape {show(self.shape)} cannot be squeezed", place=caller(), expected="size 1"
        )
    return self.reshape(tuple(d for a, d in enumerate(self.shape) if a not in axes or d != 1))


@other_names
def unsqueeze(self: AnyTensor, dim: int, **also: Unpack[AsAxis]) -> AnyTensor:
    """The elements with an axis of size 1 inserted before axis `dim`. AxisError for an axis outside the shape.

    >>> Tensor.zeros(2, 3).unsqueeze(-1).shape
    (2, 3, 1)
    """
    a = axis_of(self, dim, extra=1)
    return self.reshape((*self.shape[:a], 1, *self.shape[a:]))


@other_names
def expand_dims(self: AnyTensor, axis: int = 0, **also: Unpack[Along]) -> AnyTensor:
    """The elements with an axis of size 1 inserted before `axis`: unsqueeze() by NumPy's name.

    AxisError for an axis outside the shape.

    >>> Tensor.zeros(2, 3).expand_dims(0).shape
    (1, 2, 3)
    """
    return self.unsqueeze(axis)


@other_names
def repeat_interleave(self: AnyTensor, repeats: int, axis: int, **also: Unpack[Along]) -> AnyTensor:
    """Every element repeated `repeats` times along `axis`: torch's repeat_interleave. AxisError for an axis outside the shape.

    >>> Tensor([1, 2]).repeat_interleave(2, 0).tolist()
    [1, 1, 2, 2]
    """
    a, count = axis_of(self, axis), whole(repeats, "repeats", 0)
    wide = self.unsqueeze(a + 1).expand((*self.shape[: a + 1], count, *self.shape[a + 1 :]))
    return wide.flatten(a, a + 1)


def _sliced(t: AnyTensor, axis: int, s: slice) -> AnyTensor:
    size = t.shape[axis]
    if s == slice(None):
        return t
    if is_symbolic(s, size):
        return _shrunk(t, [slice_ends(t, s, axis) if a == axis else (0, d) for a, d in enumerate(t.shape)])
    assert isinstance(size, int)
    begin, end, step = _indices(s, size)
    count = len(range(begin, end, step))
    if count == 0:
        return t.shrink(along(t, axis, 0, 0))
    lowest, highest = (begin, begin + (count - 1) * step) if step > 0 else (begin + (count - 1) * step, begin)
    x = t.shrink(along(t, axis, lowest, highest + 1))
    if step < 0:
        x = x.flip(axis)
    stride = abs(step)
    if stride == 1:
        return x
    # the first column of rows of `stride` elements
    x = pad_zero(x, along(x, axis, 0, count * stride - (highest + 1 - lowest)))
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    x = x.reshape((*before, count, stride, *after))
    x = x.shrink(along(x, axis + 1, 0, 1))
    return x.reshape((*before, count, *after))


def slice_ends(x: AnyTensor, s: slice, axis: int) -> tuple[Dim, Dim]:
    """(begin, end) of a slice with symbolic ends or of a symbolic axis: 0 <= begin <= end <= size. ShapeError for another step
    than 1.
    """
    if s.step is not None and index_or_none(s.step) != 1:
        what = f"{shown(s)} of shape {show(x.shape)} has a step, and its length is not known"
        raise ShapeError(
            what, place=caller(), expected="a step of 1 between symbolic ends", hint="flip reverses an axis"
        )
    size = x.shape[axis]
    begin = 0 if s.start is None else _inside(s.start, size)
    end = size if s.stop is None else _inside(s.stop, size)
    return begin, _greater(end, begin)


def full_index(x: AnyTensor, parts: list[Any]) -> list[Any]:
    """The parts of an index, with `...` and missing axes replaced by whole slices. PositionError for too many parts."""
    ellipses = [i for i, p in enumerate(parts) if isinstance(p, EllipsisType)]
    if len(ellipses) > 1:
        raise PositionError("an index has two ellipses", place=caller(), expected="at most one `...`")
    named = sum(1 for p in parts if p is not None and not isinstance(p, EllipsisType))
    if named > x.ndim:
        raise PositionError(
            f"an index of {named} parts is too long for shape {show(x.shape)}",
            place=caller(),
            expected=f"at most {x.ndim}",
        )
    at = ellipses[0] if ellipses else len(parts)
    return [*parts[:at], *[slice(None)] * (x.ndim - named), *parts[at + 1 :]]


def basic_index(t: AnyTensor, parts: list[Any]) -> AnyTensor:
    """The view of `t` for an index of integers, slices, None and `...`."""
    x, axis = t, 0
    for part in full_index(t, parts):
        if part is None:
            x = x.unsqueeze(axis)
            axis += 1
        elif isinstance(part, slice):
            x = _sliced(x, axis, part)
            axis += 1
        else:
            x = pick(x, axis, part)
    return x


def pick(t: AnyTensor, axis: int, part: Any) -> AnyTensor:
    """The elements at position `part` of `axis`, without that axis; PositionError outside the axis."""
    size = t.shape[axis]
    at = symbolic_position(part)
    if at is not None:
        check_position(t, at, axis)
        x = _shrunk(t, [(at, at + 1) if a == axis else (0, d) for a, d in enumerate(t.shape)])
        return x.reshape((*x.shape[:axis], *x.shape[axis + 1 :]))
    i = index_or_none(part)
    if i is None:
        raise PositionError(
            f"{shown(part)} is not an index",
            place=caller(),
            expected="an integer, a variable, a slice, None or `...`",
            hint="where() selects by a condition",
        )
    if isinstance(size, int):
        if not -size <= i < size:
            raise PositionError(
                f"index {i} is outside axis {axis} of shape {show(t.shape)}",
                place=caller(),
                expected=counted(size) if size else "an axis with elements",
            )
        i %= size
    x = t.shrink(along(t, axis, i, i + 1))
    return x.reshape((*x.shape[:axis], *x.shape[axis + 1 :]))


def check_position(x: AnyTensor, at: UOp, axis: int) -> None:
    """PositionError if a symbolic position may lie outside its axis."""
    every = _canonical(at)  # without the variables' values: a plan may run with others
    if every.vmin < 0 or _canonical(_difference(_difference(x.shape[axis], at), 1)).vmin < 0:
        what = f"{every.text()} may lie outside axis {axis} of shape {show(x.shape)}"
        hint = "give the Variable closer bounds"
        raise PositionError(what, place=caller(), expected="a position that is never outside", hint=hint)


def has_variable(key: Any) -> bool:
    """True if a part of an index depends on a variable."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(is_symbolic(p, 0) if isinstance(p, slice) else symbolic_position(p) is not None for p in parts)


def symbolic_position(part: Any) -> UOp | None:
    """The node of a symbolic position; None for any other part of an index."""
    if isinstance(part, Variable):
        return part.node
    return part if isinstance(part, UOp) and part.dtype is dtypes.index and not part.shape else None


def _edge(n: Any, what: str) -> Dim:
    """One count or bound of pad() or shrink(), or one end of a slice: an int, or a node of dtype index."""
    if n.__class__ is int:
        return int(n)
    (edge,) = shape_argument((n,)) if not isinstance(n, (tuple, list)) else (None,)
    if edge is None:
        raise ArgumentTypeError(f"{what} was given {shown(n)}", place=caller(), expected="whole numbers in pairs")
    if isinstance(edge, UOp) and at_all_values(edge).vmin < 0:
        raise ShapeError(
            f"{what} was given {shown(n)}, which may be less than 0",
            place=caller(),
            expected="numbers, or nodes that are never less than 0",
            hint="give the Variable closer bounds",
        )
    return edge


def is_symbolic(s: slice, size: Dim) -> bool:
    """True if a slice of an axis depends on a variable."""
    return any(isinstance(n, (UOp, Variable)) for n in (s.start, s.stop, s.step, size))


def _indices(s: slice, size: int) -> tuple[int, int, int]:
    try:
        return s.indices(size)
    except (TypeError, ValueError) as problem:
        kind = ArgumentTypeError if isinstance(problem, TypeError) else ShapeError
        raise kind(
            f"{shown(s)} is not a slice: {problem}", place=caller(), expected="whole numbers, a step that is not 0"
        ) from None


def _inside(n: Any, size: Dim) -> Dim:
    """An end of a slice, clamped to 0..=size; a negative int counts from the end. ShapeError for a node that may be negative."""
    at = _edge(n, "a slice")
    if isinstance(at, int) and at < 0:
        return _greater(_difference(size, -at), 0)
    return _lesser(at, size)


def _greater(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    by = _canonical(_difference(a, b))
    return a if by.vmin >= 0 else b if by.vmax <= 0 else dim_node(a).max(dim_node(b))


def _lesser(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    by = _canonical(_difference(a, b))
    return a if by.vmax <= 0 else b if by.vmin >= 0 else dim_node(a).min(dim_node(b))


def _difference(a: Dim, b: Dim) -> Dim:
    return a - b if isinstance(a, int) and isinstance(b, int) else dim_node(a) - dim_node(b)


def _same_size(a: Shape, b: Shape) -> bool:
    symbols = [d for d in a if isinstance(d, UOp)]
    if sorted(map(id, symbols)) == sorted(id(d) for d in b if isinstance(d, UOp)):
        return math.prod(d for d in a if isinstance(d, int)) == math.prod(d for d in b if isinstance(d, int))
    return _canonical(element_count(a)) is _canonical(element_count(b))


def _canonical(size: Dim) -> UOp:
    """The simplified node of a size, with variables in place of their values."""
    made: UOp = simplify(unbound(dim_node(size)))
    return made


def _may_be_greater(a: Dim, b: Dim) -> bool:
    """True if a size may be greater than another one."""
    if isinstance(a, int) and isinstance(b, int):
        return a > b
    return a is not b and at_all_values(dim_node(_difference(b, a))).vmin < 0


def at_all_values(size: UOp) -> UOp:
    """A size or a place with the values that it must be right for: while a function is described all values of its variables, for
    which its plan runs; else the bound ones.
    """
    return size if current() is None else _canonical(size)


def unbound(size: UOp) -> UOp:
    """A size with variables in place of their values: its bounds are those of all values."""
    made: UOp = size.substitute({b: b.src[0] for b in size.toposort() if b.op is Op.Bind})
    return made


def _divide(shape: Shape, total: Dim, known: Dim) -> Dim | None:
    """The size for -1 in reshape(): total / known; None if `known` does not divide it."""
    if isinstance(total, int) and isinstance(known, int):
        if known == 0:
            return 0 if total == 0 else None
        return total // known if total % known == 0 else None
    numbers = element_count(tuple(d for d in shape if isinstance(d, int)))
    symbols = [d for d in shape if isinstance(d, UOp)]
    if isinstance(known, int) and isinstance(numbers, int) and known and numbers % known == 0:
        return element_count((*symbols, numbers // known) if numbers != known else tuple(symbols))
    return None
