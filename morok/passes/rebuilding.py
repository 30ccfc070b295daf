"""Rebuilding a graph from its leaves, once over every node."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from morok.ir.graph import toposort
from morok.ir.maker import maker
from morok.ir.op import Op
from morok.ir.uop import UOp

Visit = Callable[[UOp, tuple[UOp, ...]], "UOp | None"]


def rebuild(root: UOp, visit: Visit) -> UOp:
    """`root` with every node replaced by `visit(node, its new operands)`; None keeps the node, over its new operands."""
    done: dict[UOp, UOp] = {}
    origin = maker.origin
    try:
        for node in toposort((root,)):
            maker.origin = node.origin  # whatever takes a node's place comes from where it came from
            src = tuple([done[s] for s in node.src])
            made = visit(node, src)
            done[node] = made if made is not None else node if src == node.src else node.replace(src)
    finally:
        maker.origin = origin
    return done[root]


def range_ids(nodes: Iterable[UOp]) -> list[int]:
    """The ids of all ranges among `nodes` and of the axes that Unroll and Contract name."""
    found = [n.arg[0] for n in nodes if n.op is Op.Range]
    for n in nodes:
        if n.op in (Op.Unroll, Op.Contract):
            found.extend(i for i, _ in n.arg)
    return found


def next_range_id(root: UOp) -> int:
    """An id above every range id in the graph: ids are never reused (two live ranges with one id would be one node)."""
    return max(range_ids(root.toposort()), default=-1) + 1
