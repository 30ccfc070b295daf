"""The topological order of a program, cached at its root: stages and optimizations traverse the same graph many times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from morok.ir.graph import toposort
from morok.ir.ranges import remember
from morok.ir.uop import UOp

_memo: Final = "order"


def nodes_of(root: UOp) -> list[UOp]:
    """A new list equal to `root.toposort()`, from a cache that lives as long as `root`."""
    below: tuple[UOp, ...] | None = root.memo.get(_memo)
    if below is None:
        nodes = toposort((root,))
        keep_order(nodes)
        return nodes
    return [*below, root]


def keep_order(nodes: Sequence[UOp]) -> None:
    """Cache the topological order of a program at its root, the last of `nodes`."""
    remember(nodes[-1], _memo, tuple(nodes[:-1]))  # without the root: a reference to itself would keep it alive
