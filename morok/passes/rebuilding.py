"""Rebuilding a graph from its leaves, once over every node."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from morok.ir.maker import maker
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.node_order import nodes_of

Visit = Callable[[UOp, tuple[UOp, ...]], "UOp | None"]


@contextlib.contextmanager
def own_origins() -> Iterator[None]:
    """A block that sets the origins of new nodes; after it they are set as before."""
    outer = maker.origin
    try:
        yield
    finally:
        maker.origin = outer


def over(node: UOp, done: Mapping[UOp, UOp]) -> UOp:
    """`node` over the new forms of its operands; `node` itself if these are the same."""
    src = tuple([done[s] for s in node.src])
    return node if src == node.src else node.replace(src)


def rebuild(root: UOp, ops: Container[Op], visit: Visit) -> UOp:
    """`root` with each node of these ops replaced by `visit(node, its new operands)`; if that is None, the node is kept, over its
    new operands. Other nodes are rebuilt only above changed nodes.
    """
    done: dict[UOp, UOp] = {}  # changed nodes only
    changed = done.keys()
    with own_origins():
        for node in nodes_of(root):
            old = node.src
            visited = node.op in ops
            if not visited and changed.isdisjoint(old):
                continue
            maker.origin = node.origin  # a replacement has the provenance of the node
            src = tuple([done.get(s, s) for s in old])
            made = visit(node, src) if visited else None
            if made is None:
                made = node if src == old else node.replace(src)
            if made is not node:
                done[node] = made
    return done.get(root, root)


def substituted(root: UOp, mapping: Mapping[UOp, UOp]) -> UOp:
    """`root.substitute(mapping)`, without rebuilding nodes that are not above a key of `mapping`."""
    return rebuild(root, {n.op for n in mapping}, lambda node, src: mapping.get(node))


def range_ids(nodes: Iterable[UOp]) -> list[int]:
    """The ids of all ranges among `nodes` and of the axes that Unroll and Contract name."""
    found = [n.arg[0] for n in nodes if n.op is Op.Range]
    for n in nodes:
        if n.op in (Op.Unroll, Op.Contract):
            found.extend(i for i, _ in n.arg)
    return found


def next_range_id(root: UOp) -> int:
    """The least id above all range ids in the graph: ids are never reused (two live ranges with one id would be one node)."""
    return max(range_ids(nodes_of(root)), default=-1) + 1
