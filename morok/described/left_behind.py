"""Tensors that a failed description has left somewhere: in an attribute, a list, a frame of the exception.

They become what the function would have left without jit: tensors of the call's arguments and of random numbers. Only writes are
undone, as a failed call writes nothing. A tensor that stands for an argument has the argument's elements, as they are; one that
was made of elements which the function wrote has the values themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morok.described.call_arguments import Stands
from morok.ir.graph import toposort
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.rebuilding import over
from morok.tensor import creation, registry
from morok.tensor.describing import Description
from morok.tensor.random import GENERATOR
from morok.tensor.stored import memory


def settle(noted: Description, stands: Stands) -> None:
    """Put the live tensors of a failed description over the call's memory, as tensors of the program."""
    alive = [t for r in noted.made if (t := r()) is not None]
    nodes = [t.uop for t in alive]
    order = toposort(nodes)
    made = {**dict(zip(stands.leaves, stands.given.leaves, strict=True)), **{b: a for a, b in stands.binds.items()}}
    made.update(_keys(noted, order))
    outside = {*stands.leaves, *[memory(old) for _, old in noted.before.values()]}
    for node in order:
        if node in made:
            continue
        lost = node.op is Op.Assign and (node in noted.assigned or memory(node) in outside)
        made[node] = made[node.src[1]] if lost else over(node, made)
    given = {id(r()): stands.given.tensors[key] for key, (r, _) in noted.stands.items()}
    for t, node in zip(alive, nodes, strict=True):
        argument = given.get(id(t))
        registry.put(t, made[node] if argument is None else argument.uop)
    registry.adopt(noted)


def _keys(noted: Description, order: Sequence[UOp]) -> dict[UOp, UOp]:
    """The random keys that the call would have drawn, by the nodes that stand for them. A failed call draws none, as it writes
    nothing.
    """
    keys = set(noted.keys)
    if keys.isdisjoint(order):
        return {}
    foreseen = GENERATOR.foreseen(noted.events)
    return {
        node: creation.from_array(np.array([key], np.uint64), None, node.src[1].arg)
        for node, key in zip(noted.keys, foreseen, strict=False)
    }
