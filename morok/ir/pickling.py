"""Graphs as flat tables, so that pickling is linear and never recurses."""

from __future__ import annotations

from typing import Any

from morok.errors import IRTypeError
from morok.ir.dtype import DType
from morok.ir.op import Op
from morok.ir.uop import UOp

Row = tuple[Op, DType, tuple[int, ...], Any]


def table(root: UOp) -> list[Row]:
    """One row a node, operands first, as (op, dtype, rows of the operands, arg); the root is last."""
    number: dict[UOp, int] = {}
    rows: list[Row] = []
    for node in root.toposort():
        number[node] = len(rows)
        rows.append((node.op, node.dtype, tuple([number[s] for s in node.src]), node.arg))
    return rows


def restore(rows: list[Row]) -> UOp:
    """The graph with these rows of `table`: the same object as before, if it is still alive. IRError for rows that make no graph:
    rules rely on types, and a pickle may be damaged, or written by hand.
    """
    nodes: list[UOp] = []
    for op, dtype, src, arg in rows:
        node = UOp.new(op, tuple([nodes[i] for i in src]), arg, dtype)
        if node.dtype != dtype or node.op is not op:
            raise IRTypeError(
                f"a pickled {op.name} of {dtype}", expected=f"one of {node.dtype}", hint="pickle the graph again"
            )
        nodes.append(node)
    return nodes[-1]
