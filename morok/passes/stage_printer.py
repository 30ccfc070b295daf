"""The listing of the eight rangeify passes under MOROK_DEBUG=ir: one titled section each."""

from __future__ import annotations

from collections.abc import Callable

from morok.ir.graph import toposort
from morok.ir.uop import UOp
from morok.passes.listing_stream import show
from morok.passes.rangeify import PASSES
from morok.passes.rangeify.state import Decision, State


def printed() -> Callable[[str, State], None]:
    """An observer of `rangeify` that prints the result of each pass."""
    names = [name for name, _ in PASSES]
    shown = [""]

    def observe(name: str, state: State) -> None:
        text = _text(state)
        title = f"--- schedule: pass {names.index(name) + 1}: {name}"
        show(f"{title} (no change)" if text == shown[0] else f"{title}\n{text}")
        shown[0] = text

    return observe


def _text(state: State) -> str:
    """The graph as text; after range assignment, until the graph has ranges, also the demands on each node and the cuts."""
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
    decided = [_decision(number[d.node], d) for d in state.decisions]
    return "\n".join([*lines, "", "where to cut, and the time that decided it:", *decided] if decided else lines)


def _decision(number: int, d: Decision) -> str:
    """A decision as a line: %5 = Mul, 16384 elements computed 1048576 times: stored, for 30.1 us against 286.4 us."""
    what = (
        f"%{number} = {d.node.op.name}, {d.size} elements computed {d.runs} times: {'stored' if d.cut else 'merged'}, "
    )
    if d.why:
        return what + d.why
    taken, other = (d.stored, d.merged) if d.cut else (d.merged, d.stored)
    return f"{what}for {taken / 1e3:.1f} us against {other / 1e3:.1f} us"


def _indices(indices: tuple[UOp, ...]) -> str:
    return "[" + ", ".join(i.text() for i in indices) + "]"
