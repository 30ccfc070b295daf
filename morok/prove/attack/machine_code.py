"""Graphs as machine code computes them, and where that is not what they mean."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from morok import handed
from morok.ir.dtype import dtypes
from morok.ir.op import TABLE, Op
from morok.ir.ops.transcendental import TOLERANCE
from morok.ir.uop import UOp
from morok.prove.trust import differential

MOST_NODES: Final = 60
WORLDS: Final = 8  # choices of values
TRIES: Final = 4 * WORLDS


class Machine(Protocol):
    """The compiler and its runtime, which stand above the prover and are handed in (morok.accuracy.machine_values)."""

    def values(self, graph: UOp, variables: Sequence[UOp], worlds: Sequence[Mapping[Any, Any]]) -> list[Any]:
        """The results of machine code for a graph, one for each choice of values of its variables."""

    def load(self) -> None:
        """Load what makes machine code."""


def machine() -> Machine:
    found: Machine = handed.part("machine")
    return found


def compilable(graph: UOp) -> bool:
    """True if a graph is one exact value, made of such: a machine computes these bits, and no others. An index, which is a
    mathematical integer, may be more than a register holds.
    """
    nodes = graph.toposort()
    return len(nodes) <= MOST_NODES and all(map(_plain, nodes))


def _plain(n: UOp) -> bool:
    d = n.dtype
    if d.count != 1 or d.is_ptr or d.is_index or d is dtypes.void:
        return False
    return n.op in (Op.Const, Op.DefineVar) or (TABLE.entries[n.op].pointwise and n.op not in TOLERANCE)


def difference(before: UOp, after: UOp, rng: random.Random) -> differential.Difference | None:
    """A choice of values at which machine code makes something else of either graph than the first one means."""
    worlds: list[tuple[differential.World, Any]] = []
    for _ in range(TRIES):
        at = differential.world(before, rng)
        expected = None if at is None else differential.value_in_time(before, at)
        if at is not None and expected is not None and len(worlds) < WORLDS:
            worlds.append((at, expected))
    variables = [n for n in before.toposort() if n.op is Op.DefineVar]
    if not worlds or not variables or not {n for n in after.toposort() if n.op is Op.DefineVar} <= set(variables):
        return None
    for graph in (after, before):
        got = machine().values(graph, variables, [at.variables for at, _ in worlds])
        for (at, expected), found in zip(worlds, got, strict=True):
            if not differential.alike(before, expected, found):
                return differential.Difference(
                    before, graph, at, expected, found, f"is {found} as machine code, at {at.text()}"
                )
    return None
