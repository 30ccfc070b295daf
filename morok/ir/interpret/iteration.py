"""Loops of the interpreter: every node is computed once for each assignment of the ranges that it depends on.

A range is bound in a frame while its loop runs; a node's value is kept in the innermost frame that binds one of its
ranges.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any

from morok.errors import IRError
from morok.ir.interpret.lane_values import INVALID, Lanes, Poison, known
from morok.ir.interpret.step_limit import Steps
from morok.ir.interpret.storage import Memory, Storage
from morok.ir.interpret.walk import operands, order
from morok.ir.op import Op
from morok.ir.ranges import CLOSES, closed_by, is_spread, vector_axis
from morok.ir.uop import UOp

Axis = tuple[str, int]  # an axis of Unroll and Contract, bound like a range
Binder = UOp | Axis
Lengths = dict[Binder, list["UOp | int"]]  # of a range its end, of an axis all that something says of its length
Task = Generator["Task", Any, Any]
PerThread = list[Lanes]


def binder(r: UOp) -> Binder:
    """The binder of a range's loop: the range, or the axis that it is."""
    axis = vector_axis(r)
    return r if axis is None else ("axis", axis)


def closed(node: UOp) -> frozenset[Binder]:
    """The ranges and axes that a node closes."""
    ranges, axes = closed_by(node)
    return ranges.union([("axis", a) for a in axes])


def lengths(node: UOp) -> list[tuple[Binder, UOp | int]]:
    """(binder, length) of each loop or axis that a Range or an Unroll names; [] for any other node."""
    if node.op is Op.Range:
        return [(binder(node), node.src[0])]
    return [(("axis", a), n) for a, n in node.arg] if node.op is Op.Unroll else []


def run_tasks(task: Task) -> Any:
    """The result of a task, run with the tasks that it waits for on an explicit stack: memory alone limits their depth."""
    stack = [task]
    value: Any = None
    while stack:
        try:
            wanted = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
        else:
            stack.append(wanted)
            value = None
    return value


class Frame:
    """One loop that is running: its range, the iteration, the threads that take part, the values computed in it.

    ends            the number of iterations, for each thread; None where one is looked at alone
    folds           True for the loop of a Reduce
    entered, began  the times, by the memory's clock, when the loop and its present iteration began
    """

    __slots__ = ("active", "at", "began", "binder", "ends", "entered", "folds", "memo")

    def __init__(self, binder: Binder | None, active: list[bool], folds: bool = False, clock: int = 0) -> None:
        self.binder = binder
        self.at = 0
        self.ends: list[int] | None = None
        self.folds = folds
        self.entered = self.began = clock
        self.active = active
        self.memo: dict[Any, Any] = {}


class Loops(ABC):
    """The state of a run: the ranges that are bound, the threads that take part, the values computed."""

    def __init__(self, roots: Sequence[UOp], memory: Memory, variables: Mapping[Any, Any], steps: Steps) -> None:
        self.memory = memory
        self.steps = steps
        self.variables = variables
        self.depends: dict[UOp, frozenset[Binder]] = {}
        self.spread: dict[UOp, Lengths] = {}  # the open axes of statements, with their lengths
        self.specials: list[UOp] = []
        self._survey(roots)
        self.threads: list[dict[UOp, int]] = [{}]
        self.frames: list[Frame] = [Frame(None, [True])]

    # What a node depends on.

    def _survey(self, roots: Iterable[UOp]) -> None:
        for node in order(roots, lambda n: () if n in self.depends else operands(n)):
            if node in self.depends:
                continue
            below = [self.depends[s] for s in operands(node)]
            merged: frozenset[Binder] = frozenset().union(*below)
            if merged:
                merged -= closed(node)
            if node.op is Op.Range:
                merged |= {binder(node)}
            elif node.op is Op.Unroll:
                merged |= {("axis", a) for a, _ in node.arg}
            elif node.op is Op.Special:
                self.specials.append(node)
            axes = [b for b in merged if not isinstance(b, UOp)]
            if axes and is_spread(node):
                self.spread[node] = self._open(node, axes)
                merged = merged.difference(axes)
            self.depends[node] = merged

    def _open(self, statement: UOp, axes: Sequence[Axis]) -> Lengths:
        """Axes that are open in a statement, or that it opens, with their lengths."""
        found: Lengths = {a: [] for a in sorted(axes)}
        inner = order(operands(statement), lambda n: [s for s in operands(n) if not self.depends[s].isdisjoint(axes)])
        for node in (statement, *inner):
            for b, n in lengths(node):
                if b in found and n not in found[b]:
                    found[b].append(n)
        return found

    # Running.

    def workgroups(self) -> Iterable[None]:
        """Every workgroup in turn, with its threads; without a Special there is one, of one thread."""
        ends = []
        for s in self.specials:
            end = known(run_tasks(self.value(s.src[0]))[0][0])
            if end is INVALID:
                raise IRError(f"the end of {s.arg} is Invalid", expected="a number of threads or blocks")
            ends.append(end)
        self.steps.take(math.prod(ends))
        local = [s.arg.startswith("lidx") for s in self.specials]
        outer = [(s, e) for s, e, inside in zip(self.specials, map(range, ends), local, strict=True) if not inside]
        inner = [(s, e) for s, e, inside in zip(self.specials, map(range, ends), local, strict=True) if inside]
        for at in itertools.product(*[e for _, e in outer]):
            group = {s: i for (s, _), i in zip(outer, at, strict=True)}
            self.threads = [
                {**group, **{s: i for (s, _), i in zip(inner, t, strict=True)}}
                for t in itertools.product(*[e for _, e in inner])
            ]
            self.frames = [Frame(None, [True] * len(self.threads))]
            self.memory.new_workgroup()
            yield

    def _frame(self, node: UOp) -> Frame:
        """The innermost frame that binds a range of `node`."""
        if node not in self.depends:  # a dimension, computed from others
            self._survey([node])
        depends = self.depends[node]
        if depends:
            for frame in reversed(self.frames):
                if frame.binder in depends:
                    return frame
        return self.frames[0]

    def bound(self, name: Binder) -> int:
        """The iteration that a loop is in, or the value that the caller gives."""
        at = binder(name) if isinstance(name, UOp) else name
        frame = self._running(at)
        if frame is not None:
            return frame.at
        for given in (at, name):
            if given in self.variables:
                return int(self.variables[given])
        loop = name.text() if isinstance(name, UOp) else f"axis {name[1]} of Unroll"
        raise IRError(
            f"{loop} has no value outside its loop",
            expected="uses inside the loop that an End, Reduce or Store closes",
            hint="give the range a value among the variables",
        )

    def _running(self, at: Binder) -> Frame | None:
        """The innermost loop that binds a range or an axis."""
        return next((f for f in reversed(self.frames) if f.binder == at), None)

    def iteration(self, axis: Axis, ends: Sequence[int], node: UOp) -> list[int | Poison]:
        """The current iteration of an axis that `node` opens with these lengths, for each thread; Poison if its length is too
        small for that iteration, or exceeds the loop's.
        """
        at, frame = self.bound(axis), self._running(axis)
        most = ends if frame is None or frame.ends is None else frame.ends
        said = f"iteration {at} of axis {axis[1]}, which has {{}} here"
        return [at if at < n <= m else Poison(said.format(n), node) for n, m in zip(ends, most, strict=True)]

    def _counter(self, r: UOp) -> Task:
        """The number of a range that is an axis, for each thread."""
        axis = binder(r)
        assert not isinstance(axis, UOp)
        if self._running(axis) is None:
            return [(self.bound(r),)] * len(self.threads)
        ends = yield self.value(r.src[0])
        return [(i,) for i in self.iteration(axis, [size(e[0], r) for e in ends], r)]

    def carried(self, storage: Storage, offset: int) -> list[Frame]:
        """The loops that are running and have stored this lane in an earlier iteration."""
        writer = storage.writers.get(offset)
        if writer is None:
            return []
        time, loops = storage.stored[offset], self.depends[writer] | closed(writer)
        return [f for f in self.frames if f.entered <= time < f.began and f.binder in loops]

    def memo(self, node: UOp) -> dict[Any, Any]:
        """The values, places and effects of a node at the present iteration of the loops that it depends on."""
        return self._frame(node).memo

    def ready(self, node: UOp) -> PerThread | None:
        """The lanes of `node` if they need no task, else None."""
        if node.op is Op.Range and vector_axis(node) is None:
            return [(self.bound(node),)] * len(self.threads)
        found: PerThread | None = self._frame(node).memo.get(node)
        return found

    def value(self, node: UOp) -> Task:
        """The lanes of `node`, for each thread."""
        return self._once(node, node, self._value)

    def place(self, node: UOp) -> Task:
        """The places that `node` denotes, one a lane, for each thread."""
        return self._once(node, (node, "place"), self._place)

    def execute(self, node: UOp) -> Task:
        """The effect of `node`, done once for each assignment of its ranges."""
        return self._once(node, (node, "effect"), self._execute)

    @abstractmethod
    def _value(self, node: UOp) -> Task:
        """The lanes of `node`, for each thread, computed."""

    @abstractmethod
    def _place(self, node: UOp) -> Task:
        """The places that `node` denotes, computed."""

    @abstractmethod
    def _execute(self, node: UOp) -> Task:
        """The effect of `node`, once."""

    def _once(self, node: UOp, key: Any, compute: Callable[[UOp], Task]) -> Task:
        memo = self._frame(node).memo
        found = memo.get(key)
        if found is None:
            self.steps.take(node.dtype.count * len(self.threads))
            found = yield from compute(node)
            memo[key] = found
        return found

    def _loop(self, node: UOp, active: list[bool], body: Callable[[list[bool]], Task], folds: bool = False) -> Task:
        """Run `body` for every iteration of the ranges and axes that `node` closes, the first outermost. No iteration has a value
        where the lengths that `node` says of one axis differ.
        """
        found: Lengths = {}
        for r in node.src[CLOSES[node.op] :]:
            for b, n in lengths(r):
                found.setdefault(b, []).append(n)
        several = [said for said in found.values() if len(set(said)) > 1]

        def of_one_length(on: list[bool]) -> Task:
            for first, *others in several:
                for n in others:
                    ends = zip((yield self._length(first)), (yield self._length(n)), on, strict=True)
                    if any(a and size(x[0], node) != size(y[0], node) for x, y, a in ends):
                        known(Poison("closes loops that say different lengths of one axis", node))
            yield body(on)

        yield self._nest(found, active, of_one_length if several else body, folds)

    def _length(self, said: UOp | int) -> Task:
        """The number of iterations of a loop, for each thread, from its length as a node or a number."""
        return (yield self.value(said)) if isinstance(said, UOp) else [(said,)] * len(self.threads)

    def _nest(
        self, loops: Lengths, active: list[bool], body: Callable[[list[bool]], Task], folds: bool = False
    ) -> Task:
        """Run `body` for every iteration of these loops, the first outermost; one whose end depends on another runs inside it."""
        waiting, binders = list(loops), []
        while waiting:
            below = {b: frozenset().union(*[self.depends[n] for n in loops[b] if isinstance(n, UOp)]) for b in waiting}
            ready = [b for b in waiting if below[b].isdisjoint(waiting)]
            if not ready:
                raise IRError(
                    "the lengths of several loops depend on each other",
                    expected="a loop whose length depends on none of the others",
                )
            binders += ready
            waiting = [b for b in waiting if b not in ready]
        yield self._run([(b, loops[b]) for b in binders], 0, active, body, folds)

    def _run(
        self,
        loops: list[tuple[Binder, list[UOp | int]]],
        depth: int,
        active: list[bool],
        body: Callable[[list[bool]], Task],
        folds: bool,
    ) -> Task:
        if depth == len(loops):
            yield body(active)
            return
        name, said = loops[depth]
        ends = [0] * len(active)
        for n in said:
            found = yield self._length(n)
            ends = [
                max(e, size(f[0], n)) if a or f[0].__class__ is int else e
                for e, f, a in zip(ends, found, active, strict=True)
            ]
        frame = Frame(name, active, folds, self.memory.clock)
        frame.ends = ends
        self.frames.append(frame)
        for i in range(max([e for e, a in zip(ends, active, strict=True) if a], default=0)):
            self.steps.take(1)
            frame.at = i
            frame.active = [a and i < e for a, e in zip(active, ends, strict=True)]
            frame.memo = {}
            frame.began = self.memory.clock
            yield self._run(loops, depth + 1, frame.active, body, folds)
        self.frames.pop()


def size(end: Any, of: Any) -> int:
    """The number of iterations of a loop; UndefinedError where its end has no value, or is Invalid."""
    return int(known(Poison("the end of a loop is Invalid", of) if end is INVALID else end))
