"""The least graph on which a rule is false, as far as it is found in a bounded number of tries.

What trials meet first may have 63 lanes where four would do. From there other graphs are made: as makers choose them anew, then
by less and less of what they chose, then by leaving out parts of the graph itself. A graph counts if the rule's own matcher and
the interpreter show the same kind of difference on it, and if it weighs less. The order is the same in every process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from morok.dsl.checked import CheckedRule
from morok.errors import MorokError
from morok.ir.dtype import DType, PtrType, dtypes
from morok.ir.interpret.memory_places import MOVEMENT
from morok.ir.op import Op
from morok.ir.uop import UOp, vconst
from morok.prove.trust.differential import Difference, Judged, graph_at
from morok.prove.trust.drawn import Drawn, less
from morok.prove.trust.graphs import MISMADE, Unmakeable

ANEW: Final = 150  # graphs that makers choose, and as many large ones
LESS: Final = 700  # graphs by less of what a maker chose
PARTS: Final = 1000  # graphs with less in them than another
JUDGED: Final = 400  # of these lighter ones, on which the rule is applied and both sides are evaluated
STEPS: Final = 1 << 10  # of the interpreter, for one of them: what takes more is not small
FREE: Final = 2  # the weight of bounds that a variable has of its own
HEAVY: Final = 64  # no number in a field weighs more than so many times its bits
DTYPED: Final = frozenset({Op.Cast, Op.Bitcast, Op.Load, Op.Reduce})  # ops whose dtype their operands do not say
UNKNOWN: Final = "v0"  # no maker counts from 0
Change = Callable[[UOp, tuple[UOp, ...]], UOp | None]  # another node over operands that may be new


def least_graph(rule: CheckedRule, found: Difference) -> Difference:
    """A difference of the same kind on the lightest graph that was found; this one itself where there is no lighter."""
    descent = _Descent(rule, found)
    try:
        descent.anew()
        descent.by_choices()
    except Unmakeable:
        pass
    descent.by_parts()
    return descent.best


def weight(graph: UOp) -> int:
    """The weight of a graph: its nodes, their operands and lanes, and the numbers in their fields."""
    return sum(1 + len(n.src) + n.dtype.count + _of_fields(n) for n in graph.toposort())


def _of_fields(n: UOp) -> int:
    if n.op is Op.DefineVar:
        return 0 if _unbounded(n) else FREE
    extent = min(max(n.dtype.size, 0), 1 << 20) if isinstance(n.dtype, PtrType) else 0
    return (1 if n.op is Op.Const else 0) + extent + _of_numbers(n.arg)


def _of_numbers(v: Any) -> int:
    if isinstance(v, tuple):
        return sum(1 + _of_numbers(i) for i in v)
    if isinstance(v, float):
        return len(repr(v)) if math.isfinite(v) else 9
    if not isinstance(v, int):
        return 0
    return min(2 * abs(v), HEAVY * v.bit_length()) + (v < 0)


def _unbounded(n: UOp) -> bool:
    d = n.dtype.scalar()
    return not d.is_integral or n.arg[1:] == (d.min, d.max)


def _kind(found: Difference) -> tuple[bool, ...]:
    return (found.after is None, found.at is None, bool(found.why), found.got is None)


class _Descent:
    """The lightest graph so far, and what is left to try."""

    def __init__(self, rule: CheckedRule, found: Difference) -> None:
        self.rule, self.best = rule, found
        self._weight = weight(found.before)
        self._judged = Judged(rule, STEPS)
        self._seen = {found.before}
        self._drawn: tuple[str, bool, tuple[float, ...]] | None = None
        self._left, self._tried = 0, 0

    def is_better(self, graph: UOp) -> bool:
        """True if a graph is the best so far: not tried before, of less weight, and the rule is false on it."""
        if graph in self._seen or self._tried == JUDGED:
            return False
        self._seen.add(graph)
        if (heavy := weight(graph)) >= self._weight:
            return False
        self._tried += 1
        try:
            found = self._judged(graph, self.best.instance)
        except (MorokError, *MISMADE):  # no graph that there can be, as where a size is a number below 0
            return False
        if found is None or _kind(found) != _kind(self.best):
            return False
        self.best, self._weight = found, heavy
        return True

    def goes_on(self) -> bool:
        """True if something is left to try; one is taken."""
        self._left -= 1
        return self._left >= 0 and self._tried < JUDGED

    def drawn(self, seed: str, large: bool, given: Sequence[float] = ()) -> bool:
        """True if the graph that a maker builds from the drawn numbers is the best so far."""
        if self.best.instance is None:
            return False
        rng = Drawn(seed)
        rng.given = given
        _, graph = graph_at(self.rule, rng, (self.best.instance,), large)
        better = graph is not None and self.is_better(graph)
        if better:
            self._drawn = (seed, large, tuple(rng.drawn))
        return better

    def anew(self) -> None:
        """Graphs as makers choose them."""
        self._left = 2 * ANEW
        for i in range(ANEW):
            for large in (False, True):
                if self.goes_on():
                    self.drawn(f"{self.rule.name} {i}", large)

    def by_choices(self) -> None:
        """Graphs by less of what the maker of the best one chose."""
        self._left = LESS
        better = True
        while better and self._drawn is not None:
            seed, large, given = self._drawn
            better = any(self.drawn(seed, large, other) for other in less(given) if self.goes_on())

    def by_parts(self) -> None:
        """Graphs with less in them than the best one."""
        self._left = PARTS
        better = True
        while better:
            better = any(self.is_better(graph) for graph in lighter(self.best.before) if self.goes_on())


def lighter(graph: UOp) -> Iterator[UOp]:
    """Graphs with parts left out, or with smaller ones in their places, the greatest parts first; not all of them are matched."""
    for change in (_narrowed, _thinned, _freed, _lessened):
        yield from change(graph)


def _remade(graph: UOp, change: Change) -> Iterator[UOp]:
    """The graph with what `change` gives for nodes over new operands; none where that is no graph: each node is checked anew."""
    made: dict[UOp, UOp] = {}
    try:
        for at in graph.toposort():
            src = tuple([made[s] for s in at.src])
            found = change(at, src)
            made[at] = found if found is not None else at if src == at.src else _over(at, src, at.dtype)
    except (MorokError, *MISMADE):
        return
    yield made[graph]


def _over(at: UOp, src: tuple[UOp, ...], d: DType) -> UOp:
    return UOp.new(at.op, src, at.arg, d if at.op in DTYPED or not src else None)


def _with(graph: UOp, old: UOp, make: Callable[[], UOp]) -> Iterator[UOp]:
    """The graph with another node in the place of one."""
    return _remade(graph, lambda at, _: make() if at is old else None)


def _narrowed(graph: UOp) -> Iterator[UOp]:
    """The graph with fewer lanes in all leaves that have as many, the first ones or the last."""
    for n in sorted({at.dtype.count for at in graph.toposort() if not at.src and at.dtype.count > 1}):
        for m in range(1, n):
            for last in (False, True):
                yield from _remade(graph, _of_lanes(n, m, last))


def _of_lanes(n: int, m: int, last: bool) -> Change:
    def change(at: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if at.op is Op.Gep:
            return src[0].gep(*[min(i, src[0].dtype.count - 1) for i in at.arg])
        if at.dtype.count != n or (at.src and at.op not in DTYPED):
            return None
        if at.op is Op.VConst:
            return vconst(at.dtype.scalar(), at.arg[n - m :] if last else at.arg[:m])
        return _over(at, src, at.dtype.scalar().vec(m))

    return change


def _thinned(graph: UOp) -> Iterator[UOp]:
    """The graph without some operands of a node, half of them first, or without some lanes that a Gep takes."""
    for at in reversed(graph.toposort()):
        many: Sequence[Any] = at.arg if at.op is Op.Gep else at.src
        size = len(many) // 2
        while size:
            for k in range(0, len(many), size):
                kept = (*many[:k], *many[k + size :])
                make = partial(at.src[0].gep, *kept) if at.op is Op.Gep else partial(_over, at, kept, at.dtype)
                yield from _with(graph, at, make)
            size //= 2


def _freed(graph: UOp) -> Iterator[UOp]:
    """The graph with one of its own operands, or a variable of any value, for what is computed, known or bounded."""
    nodes = graph.toposort()
    sizes = {below for at in nodes if at.op in MOVEMENT for s in at.src[1:] for below in s.toposort()}
    for at in reversed(nodes):
        if at is graph or at in sizes or at.dtype is dtypes.void or at.dtype.is_ptr:
            continue
        if at.op is not Op.DefineVar or not _unbounded(at):
            name = at.arg[0] if at.op is Op.DefineVar else UNKNOWN
            yield from _with(graph, at, partial(UOp.var, name, at.dtype))
        for s in at.src:
            if s.dtype is at.dtype:
                yield from _with(graph, at, partial(_itself, s))


def _itself(node: UOp) -> UOp:
    return node


def _lessened(graph: UOp) -> Iterator[UOp]:
    """The graph with smaller numbers: constants, lanes that a Gep takes, sizes of storage."""
    for at in graph.toposort():
        d = at.dtype
        if at.op in (Op.Const, Op.VConst) and d.scalar().is_integral and not d.is_bool:
            for lanes in _each_less(at.arg if at.op is Op.VConst else (at.arg,)):
                yield from _with(graph, at, partial(vconst, d.scalar(), lanes * (d.count // len(lanes))))
        elif at.op is Op.Gep:
            for lanes in _each_less(at.arg):
                yield from _with(graph, at, partial(at.src[0].gep, *lanes))
        elif isinstance(d, PtrType) and not at.src:
            for size in (n for n in dict.fromkeys((1, 2, d.size // 2, d.size - 1)) if 0 < n < d.size):
                yield from _with(graph, at, partial(UOp.new, at.op, (), at.arg, d.base.ptr(size, d.space)))


def _each_less(numbers: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The numbers with one of them less."""
    for k, v in enumerate(numbers):
        if isinstance(v, int):
            for smaller in dict.fromkeys((0, 1, v // 2, v - 1, abs(v))):
                if (abs(smaller), smaller < 0) < (abs(v), v < 0):
                    yield (*numbers[:k], smaller, *numbers[k + 1 :])
