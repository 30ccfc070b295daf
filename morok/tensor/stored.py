"""The state of a tensor's elements: in memory, constant, or lazy; and the nodes to compute for lazy tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.ir.graph import reached, toposort
from morok.ir.op import Op
from morok.ir.shape import Shape
from morok.ir.uop import UOp
from morok.passes.rangeify.early import early_rewrites, uniform
from morok.passes.rangeify.state import RESHAPE, State, beneath
from morok.runtime.buffer import Buffer
from morok.runtime.device import device as find_device
from morok.tensor import registry
from morok.tensor.base import Lazy
from morok.tensor.describing import refuse, stands_for

# Ops with memory of their own, or without constant elements.
_STORED: Final = frozenset({Op.Contiguous, Op.Assign, Op.Buffer, Op.Iota, Op.Bind})


def stored_buffer(uop: UOp) -> UOp | None:
    """The Buffer node that holds a tensor's elements in row-major order from its beginning; None if there is none."""
    root = content(uop)
    return root if root.op is Op.Buffer else None


def constant(uop: UOp) -> UOp | None:
    """The Const node equal to every element, if the graph has no other leaves than constants; else None."""
    found = uniform(uop)
    if found is not None or not _is_constant(uop):
        return found
    state = State([uop], "")
    early_rewrites(state)
    return uniform(state.roots[0])


def _is_constant(uop: UOp) -> bool:
    return all(n.op not in _STORED and (n.src or n.op is Op.Const) for n in reached([uop]))


def content(uop: UOp) -> UOp:
    """The node to store for a tensor: its own, without views that keep the elements' places in memory.

    A Contiguous of memory or of an Assign is dropped too: stored separately, the assignment would be done twice.
    """
    while (
        uop.op is Op.Reshape
        or (uop.op is Op.Shrink and _is_front(uop))
        or (
            uop.op is Op.Contiguous
            and beneath(uop.src[0], RESHAPE).op in (Op.Assign, Op.Contiguous, Op.Copy, Op.Buffer)
        )
    ):
        uop = uop.src[0]
    return uop


def memory(uop: UOp) -> UOp:
    """The node of a tensor's memory, below all assignments to it: a Buffer if it has been computed."""
    node = content(uop)
    while node.op is Op.Assign:
        node = content(node.src[0])
    return node


def leaves_of(*roots: UOp) -> set[UOp]:
    """The Buffer nodes of graphs."""
    return {node for node in toposort(roots) if node.op is Op.Buffer}


def owner(uop: UOp) -> Lazy | None:
    """The tensor that owns the memory of `uop`: the oldest live tensor with the same memory(); None if there is none."""
    node = memory(uop)
    return next((t for t in registry.tensors() if memory(t.uop) is node), None)


def _is_front(uop: UOp) -> bool:
    """True if a Shrink selects the used first elements of a buffer that has room for a variable's greatest value."""
    return (
        uop.src[0].op is Op.Buffer
        and uop.src[1].op is Op.Const
        and uop.src[1].arg == 0
        and uop.src[2].op is not Op.Const
    )


def is_empty(shape: Shape) -> bool:
    return any(isinstance(d, int) and d == 0 for d in shape)


def memory_of(uop: UOp, device: str) -> Buffer | None:
    """The memory of a stored tensor, made now if its node has none; None for a lazy one. JitValueError for an unknown node."""
    node = stored_buffer(uop)
    if node is None:
        return None
    found = registry.memory_of(node)
    if found is None:
        if (what := stands_for(node)) is not None:
            raise refuse(what)
        found = Buffer(find_device(device), node.dtype, node.arg)
        registry.remember(node, found)
    return found


def wanted(tensors: Sequence[Lazy], among: Sequence[Lazy] | None = None) -> list[UOp]:
    """The nodes to compute for these tensors, without duplicates; none for tensors in memory, constant or empty. The nodes of the
    tensors in `waiting` come first; only tensors in `among` (by default all live ones) are considered for these.
    """
    others, asked = _gathered(tensors, among)
    return list(dict.fromkeys([*(content(t.uop) for t in others), *asked]))


def waiting(tensors: Sequence[Lazy]) -> list[Lazy]:
    """The live tensors to compute before these, because they read elements that computing these, or one of them, overwrites.

    A tensor is a value: another tensor with the overwritten elements becomes a copy of them.
    """
    return _gathered(tensors)[0]


def _gathered(tensors: Sequence[Lazy], among: Sequence[Lazy] | None = None) -> tuple[list[Lazy], dict[UOp, None]]:
    """(tensors to compute before these, as in waiting(); nodes to compute for these)."""
    found: dict[int, Lazy] = {}
    known: set[UOp] = set()
    assignments: set[UOp] = set()
    asked = _asked(tensors)
    new = list(asked)
    while True:
        assignments.update(n for n in toposort(new) if n.op is Op.Assign)
        overwritten = {content(n.src[0]) for n in assignments} - known
        if not overwritten:
            return list(found.values()), asked
        known |= overwritten
        alive = [t for t in (registry.tensors() if among is None else among) if not is_empty(t.shape)]
        for t in alive:
            _keep_elements(t, overwritten)
        asked = _asked(tensors)
        others = [t for t in alive if id(t) not in found and content(t.uop) not in asked]
        more = {id(t): t for t in others if _reads(content(t.uop), overwritten, assignments)}
        found = {**more, **found}
        new = [content(t.uop) for t in more.values()]


def release(buffers: set[UOp], tensors: Sequence[Lazy]) -> list[Lazy]:
    """The other live tensors that read these Buffer nodes, to compute before the nodes are overwritten for `tensors`. A tensor
    with their elements becomes a copy.
    """
    mine = {id(t) for t in tensors}
    others = [t for t in registry.tensors() if id(t) not in mine and not is_empty(t.shape)]
    for t in others:
        _keep_elements(t, buffers)
    return [t for t in others if _reads(content(t.uop), buffers, set())]


def _asked(tensors: Sequence[Lazy]) -> dict[UOp, None]:
    return dict.fromkeys(
        content(t.uop)
        for t in tensors
        if stored_buffer(t.uop) is None and constant(t.uop) is None and not is_empty(t.shape)
    )


def _keep_elements(t: Lazy, overwritten: set[UOp]) -> None:
    """Replace a tensor by a copy of its elements if these are in `overwritten`."""
    uop = t.uop
    if content(uop) in overwritten:
        registry.replace(t, uop, UOp.new(Op.Copy, (uop, UOp.new(Op.Device, (), t.device))))


def _reads(root: UOp, contents: set[UOp], assignments: set[UOp]) -> bool:
    """True if a lazy node reads one of `contents`: a buffer, or its contents after an assignment. Reads by `assignments` do not
    count: they are ordered with the writes.
    """
    if root.op is Op.Buffer:
        return False
    return any(node in contents for node in reached([root], lambda n: () if n in assignments else n.src))


def by_device(tensors: Sequence[Lazy]) -> dict[str, list[Lazy]]:
    out: dict[str, list[Lazy]] = {}
    for t in tensors:
        out.setdefault(t.device, []).append(t)
    return out
