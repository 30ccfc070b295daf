"""The registry of live tensors (weak references), and the memory of Buffer nodes, which the nodes own.

When a node is replaced by a buffer, it is replaced in the graphs of all live tensors.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from morok.ir.cell import facts_of
from morok.ir.dtype import DType
from morok.ir.graph import substitute
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.locks import TENSORS
from morok.passes.rangeify.state import RESHAPE, beneath
from morok.tensor.describing import Description, current, descriptions, refuse_elsewhere
from morok.tensor.viewed import written

if TYPE_CHECKING:
    from morok.runtime.buffer import Buffer
    from morok.tensor.base import Lazy


class Reference(weakref.ref[Any]):
    """A weak reference compared by identity."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


_tensors: Final[dict[Reference, Description | None]] = {}  # with the description that made a tensor
# written in C: Python code in a finalizer would lose an interrupt that arrives in it
_forget: Final = _tensors.__delitem__
_names: Final = itertools.count()
# the number of times that a tensor got another node: while it is unchanged, so are all older tensors
changes: Final = [0]
_MEMORY: Final = object()  # key in a Buffer node's memo: its memory


def register(tensor: Lazy) -> None:
    description = current()
    _tensors[Reference(tensor, _forget)] = description
    if description is not None:
        description.note(tensor)
    elif descriptions:
        refuse_elsewhere(tensor._uop)


def tensors() -> list[Lazy]:
    """The live tensors; without tensors of descriptions in other threads, which are never computed."""
    mine = current()
    # a list of keys makes no pairs, so that no garbage collection removes entries meanwhile
    return [t for r in list(_tensors) if _tensors.get(r) in (None, mine) and (t := r()) is not None]


def adopt(description: Description) -> None:
    """Make the live tensors of a description tensors of the program."""
    for r in list(_tensors):
        if _tensors.get(r) is description and r() is not None:
            _tensors[r] = None


def new_buffer(dtype: DType, size: int, device: str, memory: Buffer | None = None) -> UOp:
    """A new Buffer node of a unique name, with `memory` if given; `size` in elements."""
    unique = UOp.new(Op.Unique, (), next(_names))
    node = UOp.new(Op.Buffer, (unique, UOp.new(Op.Device, (), device)), size, dtype)
    if memory is not None:
        remember(node, memory)
    return node


def remember(node: UOp, memory: Buffer) -> None:
    facts_of(node)[_MEMORY] = memory


def memory_of(node: UOp) -> Buffer | None:
    """The memory of a Buffer node; None if it has none yet."""
    found: Buffer | None = node.memo.get(_MEMORY)
    return found


def new_name() -> int:
    """A number that is less than the names of all later Buffer nodes."""
    return next(_names)


def put(tensor: Lazy, uop: UOp) -> None:
    """Set a tensor's node."""
    with TENSORS:
        tensor._uop = uop
        changes[0] += 1


def write(tensor: Lazy, uop: UOp) -> None:
    """Set a tensor's node after a write by the program: a description keeps it to itself if the tensor is outer."""
    description = current()
    if description is None and descriptions:
        refuse_elsewhere(uop)
    if description is None or not description.write(tensor, uop):
        put(tensor, uop)
        written(tensor)


def replace(tensor: Lazy, old: UOp, new: UOp) -> None:
    """Set a tensor's node to `new` if it still is `old`: another thread may have replaced it in the meantime."""
    with TENSORS:
        if tensor._uop is old:
            tensor._uop = new
            changes[0] += 1


def become(mapping: Mapping[UOp, UOp]) -> None:
    """Replace nodes, by `mapping`, in the graphs of all live tensors."""
    alive = [(t, uop) for r in list(_tensors) if (t := r()) is not None and not _is_stored(uop := t._uop)]
    written = [(d, key, uop) for d in list(descriptions) for key in list(d.now) if (uop := d.now.get(key)) is not None]
    # tensors share subgraphs: one substitution over all of them visits each node once
    made = iter(substitute([*[uop for _, uop in alive], *[uop for _, _, uop in written]], mapping))
    for tensor, old in alive:
        replace(tensor, old, next(made))
    for description, key, old in written:
        new = next(made)
        with TENSORS:
            if description.now.get(key) is old:
                description.now[key] = new


def _is_stored(uop: UOp) -> bool:
    uop = beneath(uop, RESHAPE)
    return uop.op is Op.Buffer or uop.op is Op.Const
