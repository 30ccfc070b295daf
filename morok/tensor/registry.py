"""Who is alive: every tensor, and the memory behind every Buffer node. All references are weak.

When a node becomes a buffer, every live tensor whose graph holds the node sees the buffer from then on.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from morok.ir.dtype import DType
from morok.ir.graph import substitute
from morok.ir.op import Op
from morok.ir.uop import UOp

if TYPE_CHECKING:
    from morok.runtime.buffer import Buffer
    from morok.tensor.base import Lazy

# Reentrant: a garbage collection inside these functions may run a callback in the same thread.
_lock: Final = threading.RLock()
_tensors: Final[dict[int, weakref.ref[Lazy]]] = {}
_buffers: Final[weakref.WeakKeyDictionary[UOp, Buffer]] = weakref.WeakKeyDictionary()
_names: Final = itertools.count()


def register(tensor: Lazy) -> None:
    key = id(tensor)

    def forget(dead: weakref.ref[Lazy]) -> None:
        with _lock:
            # an id is reused once its owner is dead: only the entry that died may go
            if _tensors.get(key) is dead:
                del _tensors[key]

    with _lock:
        _tensors[key] = weakref.ref(tensor, forget)


def tensors() -> list[Lazy]:
    """The live tensors."""
    with _lock:
        return [t for r in list(_tensors.values()) if (t := r()) is not None]


def new_buffer(dtype: DType, size: int, device: str, memory: Buffer | None = None) -> UOp:
    """A Buffer node that is no other, with its memory if it has any yet."""
    unique = UOp.new(Op.Unique, (), next(_names))
    node = UOp.new(Op.Buffer, (unique, UOp.new(Op.Device, (), device)), size, dtype)
    if memory is not None:
        remember(node, memory)
    return node


def remember(node: UOp, memory: Buffer) -> None:
    with _lock:
        _buffers[node] = memory


def memory_of(node: UOp) -> Buffer | None:
    """The memory behind a Buffer node, once it has been computed."""
    with _lock:
        return _buffers.get(node)


def put(tensor: Lazy, uop: UOp) -> None:
    with _lock:
        tensor.uop = uop


def replace(tensor: Lazy, old: UOp, new: UOp) -> None:
    """Put `new` in the place of `old`, unless another thread was here in the meantime, and knows better."""
    with _lock:
        if tensor.uop is old:
            tensor.uop = new


def become(mapping: Mapping[UOp, UOp]) -> None:
    """Replace nodes in the graphs of all live tensors."""
    alive = [(t, uop) for t in tensors() if not _is_stored(uop := t.uop)]
    # tensors share their graphs, so one substitution over all of them touches each node once
    for (tensor, old), new in zip(alive, substitute([uop for _, uop in alive], mapping), strict=True):
        replace(tensor, old, new)


def _is_stored(uop: UOp) -> bool:
    while uop.op is Op.Reshape:
        uop = uop.src[0]
    return uop.op is Op.Buffer or uop.op is Op.Const
