"""Simplification of graphs of Morok's own IR by the symbolic rules, with long sums sorted first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morok.out_of_memory import needs_memory
from morok.rewrite import engine
from morok.rewrite.library import symbolic
from morok.rewrite.ruleset import check_node

if TYPE_CHECKING:
    from morok.ir.uop import UOp


@needs_memory("simplify")
def simplify(graph: UOp) -> UOp:
    """The graph, rewritten with the symbolic rules until none fires.

    >>> x = UOp.var("x", dtypes.index, 0, 31)
    >>> morok.simplify((x * 4 + 3) // 4) is x
    True
    """
    rules = symbolic()
    check_node(rules.dialect, graph)
    found: UOp = engine.rewrite_all((graph,), rules)[0]
    return found
