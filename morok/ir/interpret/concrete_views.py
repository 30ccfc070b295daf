"""Views of tensors of known shape: their meaning (morok/view_meanings.py) over integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from morok import view_meanings as meanings
from morok.errors import IRError, ShapeError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.value_domains import INTEGERS

_EDGED: Final = frozenset({Op.Pad, Op.Shrink})
VIEWS: Final = _EDGED | {Op.Expand, Op.Permute, Op.Flip}
_FITTING: Final = {
    Op.Expand: "axes of size 1 where the sizes differ",
    Op.Shrink: "0 <= begin <= end <= size for each axis",
    Op.Pad: "at least 0 elements on each side",
}

View = meanings.View[int, bool]


def view_of(node: UOp, size: Sequence[int], numbers: Sequence[int]) -> View:
    """The view that an op of `VIEWS` makes of a tensor of these sizes, with these values of the operands behind it. IRError for
    another number of axes.
    """
    op, rank = node.op, len(size)
    given: Sequence[Any] = node.arg if op in (Op.Permute, Op.Flip) else numbers
    if len(given) != (2 * rank if op in _EDGED else rank):
        raise IRError(
            f"{op.name} of a tensor of {rank} axes by {len(given)} numbers",
            expected="a begin and an end for each axis" if op in _EDGED else "one for each axis",
        )
    of = given.__getitem__
    if op is Op.Expand:
        return meanings.expand(INTEGERS, size.__getitem__, of)
    if op is Op.Flip:
        return meanings.flip(INTEGERS, size.__getitem__, of)
    if op is Op.Permute:
        return meanings.permute(size.__getitem__, of, node.arg.index)
    edged = meanings.pad if op is Op.Pad else meanings.shrink
    return edged(INTEGERS, size.__getitem__, of, numbers[rank:].__getitem__)


def shape_of_view(node: UOp, view: View, size: Sequence[int], numbers: Sequence[int]) -> tuple[int, ...]:
    """The shape of a view of a tensor of these sizes. ShapeError for numbers that do not fit them."""
    axes = range(len(size))
    shape = tuple(map(view.size, axes))
    if min(numbers, default=0) < 0 or not (view.fits is None or all(map(view.fits, axes))):
        raise ShapeError(
            f"{node.op.name} of {tuple(size)} by {tuple(numbers)}",
            expected=_FITTING[node.op],
            hint="Shrink removes elements" if node.op is Op.Pad else "",
        )
    return shape


def places(view: View, size: Sequence[int], shape: Sequence[int]) -> list[int | None]:
    """The row-major places in the operand of all elements of a view, in row-major order; None for an element that it has not."""
    # for each axis of the view: what an index along it adds to the place
    moved: list[list[int | None]] = [[]] * len(size)
    stride = 1
    for k in reversed(range(len(size))):
        axis = view.follows(k)
        moved[axis] = [
            view.place(k, i) * stride if view.inside is None or view.inside(k, i) else None for i in range(shape[axis])
        ]
        stride *= size[k]
    found: list[Any] = [0]
    for along in moved:
        if None in along or None in found:
            found = [None if p is None or m is None else p + m for p in found for m in along]
        else:
            found = [p + m for p in found for m in along]
    return found
