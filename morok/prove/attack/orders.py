"""The possible values of folds of floats: a Reduce folds its items in an order that nothing states.

Said here apart from the prover and from the check of firings, which are what is attacked: a graph is evaluated again and again,
each time with its folds done along other trees.
"""

from __future__ import annotations

import math
import random
from typing import Any, Final

from morok.errors import IRError, StepLimitError
from morok.ir.dtype import FLOAT_FORMAT, dtypes
from morok.ir.interpret.graph_interpreter import Graph
from morok.ir.interpret.iteration import Task, run_tasks
from morok.ir.interpret.lane_values import NOTHING, combine, known
from morok.ir.interpret.step_limit import Steps
from morok.ir.interpret.storage import Memory
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.trust import differential

TIMES: Final = 300
STEPS: Final = 1 << 20  # of the interpreter, for all evaluations together
FEW: Final = 5  # items of which so many evaluations try all trees, but for a chance that is none


class AnyOrder(Graph):
    """A run in which every fold is done along a random tree."""

    rng: random.Random
    most = 0  # items that one fold had

    def _reduce(self, node: UOp) -> Task:
        op, d, count = node.arg, node.dtype.scalar(), node.dtype.count
        group = node.src[0].dtype.count // count
        items: list[list[list[Any]]] = [[[] for _ in range(count)] for _ in self.threads]

        def body(active: list[bool]) -> Task:
            part = self.ready(node.src[0]) or (yield self.value(node.src[0]))
            for t, lanes in enumerate(part):
                for i in range(count if active[t] else 0):
                    items[t][i] += lanes[i * group : (i + 1) * group]

        yield self._loop(node, self._frame(node).active, body, folds=True)
        if any(not lane for lanes in items for lane in lanes):  # a fold of nothing is in no order
            return (yield from super()._reduce(node))
        return [tuple([self.folded(op, d, lane, node) for lane in lanes]) for lanes in items]

    def folded(self, op: Op, d: Any, items: list[Any], node: UOp) -> Any:
        self.most = max(self.most, len(items))
        left = list(items)
        while len(left) > 1:
            a = left.pop(self.rng.randrange(len(left)))
            b = left.pop(self.rng.randrange(len(left)))
            left.append(b if a is NOTHING else combine(op, d, a, b, node))
        return left[0]


def free(graph: UOp) -> bool:
    """True if a graph is a value with a fold of floats in it, of which the order matters."""
    nodes = graph.toposort()
    return graph.dtype is not dtypes.void and any(
        n.op is Op.Reduce and n.dtype.scalar().is_float and n.arg in (Op.Add, Op.Mul) for n in nodes
    )


def permitted(before: UOp, at: differential.World, got: Any, rng: random.Random) -> bool:
    """True if `got` may be the value of a graph, in one order of its folds or another; True, too, where that is not known."""
    seen: dict[str, Any] = {}
    most = 0
    steps = Steps(STEPS)
    for _ in range(TIMES):
        run = AnyOrder([before], Memory({k: list(v) for k, v in at.buffers.items()}), at.variables, steps)
        run.rng = rng
        try:
            lanes = tuple([known(v) for v in run_tasks(run.value(before))[0]])
        except (IRError, StepLimitError):
            return True
        found = lanes[0] if before.dtype.count == 1 else lanes
        if differential.alike(before, found, got):
            return True
        seen[repr(found)] = found
        most = max(most, run.most)
        if len(seen) > 1 and most > FEW:
            return True
    return False


def coarse(at: differential.World, rng: random.Random) -> differential.World:
    """Values of float variables of which some orders make the same and others do not: of two magnitudes, the lesser lost in sums
    with the greater; or such that those of two variables, lane by lane, add up to one.
    """
    found = dict(at.variables)
    floats = [n for n in at.variables if isinstance(n, UOp) and n.dtype.scalar().is_float]
    paired = rng.random() < 0.5
    last: UOp | None = None
    for n in floats:
        d = n.dtype.scalar()
        precision = FLOAT_FORMAT[d][0]
        if paired and last is not None and last.dtype is n.dtype:
            kept = found[last]
            lanes = [1.0 - v for v in (kept if isinstance(kept, tuple) else (kept,))]
            last = None
        else:
            great = math.ldexp(1.0, precision - 1 if paired else precision + 1)
            sizes = (great,) if paired or rng.random() < 0.4 else (1.0,) if rng.random() < 0.7 else (great, 1.0)
            lanes = [rng.choice((1.0, -1.0)) * rng.choice(sizes) for _ in range(n.dtype.count)]
            last = n
        found[n] = tuple(lanes) if n.dtype.count > 1 else lanes[0]
    return differential.World(found, at.buffers)
