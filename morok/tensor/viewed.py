"""The tensors that a tensor is a view of: views alone made it of them, and neither has been written since.

This is kept by tensors, not read from their graphs: a view stays one whether its elements are computed or not, and a tensor with
an equal graph is none.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from morok.ir.op import Op
from morok.ir.shape import shape_of
from morok.ir.uop import UOp
from morok.passes.rangeify.state import MOVEMENT, beneath
from morok.tensor.describing import current, descriptions

if TYPE_CHECKING:
    from morok.tensor.base import Lazy

# A tensor, its mark when the view was taken, and how its elements are seen.
Viewed = tuple["weakref.ref[Lazy]", object, int]
SAME: Final = 0  # all of them, in the same order and shape
RESHAPED: Final = 1  # all of them in the same order
MOVED: Final = 2
_RESHAPES: Final = frozenset({Op.Reshape, Op.Contiguous})
VIEWS: Final = MOVEMENT | _RESHAPES


def viewed_by(base: Lazy, uop: UOp) -> tuple[Viewed, ...]:
    """The tensors that a new tensor with the node `uop`, made of the tensor `base`, is a view of; () if it is no view."""
    old = base.uop
    how = _step(uop, old)
    if how is None:
        return ()
    found: list[Viewed] = [(weakref.ref(base), _mark(base), how)]
    shape = shape_of(uop)
    for ref, mark, before in base._viewed:
        other = ref()
        if other is None or not _holds(other, mark):
            continue
        if how is not MOVED and before is not MOVED:
            both = SAME if shape == other.shape else RESHAPED
        elif uop.op is Op.Contiguous:  # elements in an order of their own, stored
            continue
        else:
            both = SAME if _step(uop, other.uop) is SAME else MOVED
        found.append((ref, mark, both))
    return tuple(found)


def is_view(x: Lazy, besides: Collection[int] = ()) -> bool:
    """True if `x` is a view of a live tensor, except a view of all elements in the same order and shape; tensors in `besides`
    (ids) do not count.
    """
    found = any(
        how is not SAME and (base := ref()) is not None and id(base) not in besides and _holds(base, mark)
        for ref, mark, how in of(x)
    )
    return found and not _is_of_constant(x)


def _is_of_constant(x: Lazy) -> bool:
    """True if a tensor is made by views alone of an argument that is a constant in a call: such a tensor is a view of nothing."""
    description = current()
    number = None if description is None else description.constants.get(beneath(x.uop, MOVEMENT))
    if description is None or number is None:
        return False
    description.without_memory.add(number)
    return True


def of(x: Lazy) -> tuple[Viewed, ...]:
    """The tensors that a tensor is a view of, as this thread or task sees it."""
    if descriptions and (description := current()) is not None and id(x) in description.now:
        return ()
    return x._viewed


def valid(x: Lazy) -> tuple[Viewed, ...]:
    """The part of `of` with live tensors that have not been written."""
    return tuple([v for v in of(x) if (base := v[0]()) is not None and _holds(base, v[1])])


def written(x: Lazy) -> None:
    """Note that a tensor has new elements: from now on it is no view, and no tensor is a view of it."""
    x._viewed, x._mark = (), None


def _mark(x: Lazy) -> object:
    """An object that a tensor has until it is written."""
    if descriptions and (description := current()) is not None and id(x) in description.now:
        return description.marks.setdefault(id(x), object())
    if x._mark is None:
        x._mark = object()
    return x._mark


def _holds(base: Lazy, mark: object) -> bool:
    """True if a tensor has the elements that it had with this mark."""
    if descriptions and (description := current()) is not None:
        if id(base) in description.now:
            return description.marks.get(id(base)) is mark
        if (stand := description.stands.get(id(base))) is not None:
            inner = stand[0]()
            return base._mark is mark and inner is not None and inner._mark is stand[1]
    return base._mark is mark


def _step(new: UOp, old: UOp) -> int | None:
    """The kind of view that one node is of another: SAME, RESHAPED or MOVED; None if it is no view."""
    if new is old:
        return SAME
    if new.op not in VIEWS and old.op not in VIEWS:
        return None
    root = beneath(new, MOVEMENT)
    if root.op is Op.Const:
        return None
    if beneath(new, _RESHAPES) is beneath(old, _RESHAPES):
        return SAME if shape_of(new) == shape_of(old) else RESHAPED
    return MOVED if root is beneath(old, MOVEMENT) else None
