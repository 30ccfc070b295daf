"""`simplify`: the symbolic rules on graphs of Morok's own IR, with long sums put in order first."""

from __future__ import annotations

from collections.abc import Sequence

from morok.ir.graph import substitute
from morok.ir.sums import long_sums
from morok.ir.uop import UOp
from morok.rewrite import engine
from morok.rewrite.library import groups, symbolic
from morok.rewrite.ruleset import check_node


def simplify(graph: UOp) -> UOp:
    """`graph` rewritten with the symbolic rules."""
    rules = symbolic()
    check_node(rules.dialect, graph)
    found: UOp = engine.rewrite_all((in_order(graph),), rules)[0]
    return found


def simplify_all(graphs: Sequence[UOp]) -> list[UOp]:
    """Several graphs, with what they share rewritten once."""
    return engine.rewrite_all([in_order(g) for g in graphs], symbolic())


def in_order(graph: UOp) -> UOp:
    """`graph` with the long sums at its root or next to it in order: term by term that would take the square of their length."""
    sums = long_sums(graph)
    if not sums:
        return graph
    rules = groups("long_sums")
    hits = {node: rules.rewrite_node(node) for node in sums}
    return substitute([graph], {node: hit[0] for node, hit in hits.items() if hit is not None})[0]
