"""The eight rangeify passes as MOROK_DEBUG=ir prints them: one titled section each."""

from __future__ import annotations

from collections.abc import Callable

from morok.ir.graph import toposort
from morok.ir.uop import UOp
from morok.passes.rangeify import PASSES
from morok.passes.rangeify.state import State
from morok.passes.shown import show


def printed() -> Callable[[str, State], None]:
    """An observer of `rangeify` that prints what each pass did."""
    names = [name for name, _ in PASSES]
    shown = [""]

    def observe(name: str, state: State) -> None:
        text = _text(state)
        title = f"--- schedule: pass {names.index(name) + 1}: {name}"
        show(f"{title} (no change)" if text == shown[0] else f"{title}\n{text}")
        shown[0] = text

    return observe


def _text(state: State) -> str:
    """The graph; between range assignment and the graph that has the ranges in it, which node is asked for where."""
    if state.sink is not None:
        return state.sink.tree()
    graph = UOp.sink(*state.roots).tree()
    if not state.order:
        return graph
    number = {n: i for i, n in enumerate(toposort(state.roots))}
    lines = [graph, "", "node, its operands, whether it is stored, and the indices at which it is asked for:"]
    for node in state.order:
        asked = [_indices(d.indices) for d in state.demands.get(node, {}).values()]
        own = state.stored.get(node)
        if asked or own is not None:
            operands = ", ".join(f"%{number[s]}" for s in node.src)
            kept = f" stored over {_indices(own.indices)}" if own is not None else ""
            lines.append(f"%{number[node]} = {node.op.name}({operands}){kept}" + "".join(f" at {a}" for a in asked))
    return "\n".join(lines)


def _indices(indices: tuple[UOp, ...]) -> str:
    return "[" + ", ".join(i.text() for i in indices) + "]"
