"""The nodes of a program in order, kept with its root: stages and optimizations look through the same graph many times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.ir.graph import toposort
from morok.ir.ranges import remember
from morok.ir.uop import UOp

_memo: Final = "order"


def nodes_of(root: UOp) -> list[UOp]:
    """`root.toposort()`, as a list of the caller's own. It is found once a root, and goes with it."""
    below: tuple[UOp, ...] | None = root.memo.get(_memo)
    if below is None:
        nodes = toposort((root,))
        keep_order(nodes)
        return nodes
    return [*below, root]


def keep_order(nodes: Sequence[UOp]) -> None:
    """Keep the nodes of a program in order, the root last, as whoever made them all found it."""
    remember(nodes[-1], _memo, tuple(nodes[:-1]))  # without the root, which nothing of its own is to keep alive
