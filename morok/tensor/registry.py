"""The tensors that are alive, and the memory behind every Buffer node. References to tensors are weak, nodes hold their memory.

When a node becomes a buffer, every live tensor whose graph holds the node sees the buffer from then on.
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
from morok.tensor.describing import current, descriptions

if TYPE_CHECKING:
    from morok.runtime.buffer import Buffer
    from morok.tensor.base import Lazy
    from morok.tensor.describing import Description


class Reference(weakref.ref[Any]):
    """A weak reference that is equal to itself alone."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


_tensors: Final[dict[Reference, Description | None]] = {}  # with the description that made a tensor
_forget: Final = _tensors.__delitem__  # no Python: an interrupt that arrived in it would be lost
_names: Final = itertools.count()
changes: Final = [0]  # how often a tensor has become another node: while it stays, every tensor that was there is what it was
_MEMORY: Final = object()  # under which a Buffer node keeps its memory


def register(tensor: Lazy) -> None:
    description = current()
    _tensors[Reference(tensor, _forget)] = description
    if description is not None:
        description.note(tensor)


def tensors() -> list[Lazy]:
    """The live tensors, without those of descriptions in other threads, which are never computed."""
    mine = current()
    return [t for r, made in list(_tensors.items()) if (made is None or made is mine) and (t := r()) is not None]


def new_buffer(dtype: DType, size: int, device: str, memory: Buffer | None = None) -> UOp:
    """A Buffer node that is no other, with its memory if it has any yet."""
    unique = UOp.new(Op.Unique, (), next(_names))
    node = UOp.new(Op.Buffer, (unique, UOp.new(Op.Device, (), device)), size, dtype)
    if memory is not None:
        remember(node, memory)
    return node


def remember(node: UOp, memory: Buffer) -> None:
    facts_of(node)[_MEMORY] = memory


def memory_of(node: UOp) -> Buffer | None:
    """The memory behind a Buffer node, once it has been computed."""
    found: Buffer | None = node.memo.get(_MEMORY)
    return found


def new_name() -> int:
    """A number that Buffer nodes made from now on exceed."""
    return next(_names)


def put(tensor: Lazy, uop: UOp) -> None:
    """Let a tensor be another node."""
    with TENSORS:
        tensor._uop = uop
        changes[0] += 1


def write(tensor: Lazy, uop: UOp) -> None:
    """Let a tensor become what the program writes to it: for a description alone, if it was there before."""
    description = current()
    if description is None or not description.write(tensor, uop):
        put(tensor, uop)


def replace(tensor: Lazy, old: UOp, new: UOp) -> None:
    """Put `new` in the place of `old`, unless another thread was here in the meantime, and knows better."""
    with TENSORS:
        if tensor._uop is old:
            tensor._uop = new
            changes[0] += 1


def become(mapping: Mapping[UOp, UOp]) -> None:
    """Replace nodes in the graphs of all live tensors."""
    alive = [(t, uop) for r in list(_tensors) if (t := r()) is not None and not _is_stored(uop := t._uop)]
    written = [(d, key, uop) for d in list(descriptions) for key, uop in list(d.now.items())]
    # tensors share their graphs, so one substitution over all of them touches each node once
    made = iter(substitute([*[uop for _, uop in alive], *[uop for _, _, uop in written]], mapping))
    for tensor, old in alive:
        replace(tensor, old, next(made))
    for description, key, old in written:
        new = next(made)
        with TENSORS:
            if description.now.get(key) is old:
                description.now[key] = new


def _is_stored(uop: UOp) -> bool:
    while uop.op is Op.Reshape:
        uop = uop.src[0]
    return uop.op is Op.Buffer or uop.op is Op.Const
