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
from morok.ir.interpret.lane_values import INVALID, Lanes, known
from morok.ir.interpret.step_limit import Steps
from morok.ir.interpret.storage import Memory, Storage
from morok.ir.interpret.walk import operands, order
from morok.ir.op import Op
from morok.ir.ranges import CLOSES
from morok.ir.uop import UOp

Axis = tuple[str, int]  # an axis of Unroll and Contract, bound like a range
Binder = UOp | Axis
Task = Generator["Task", Any, Any]
PerThread = list[Lanes]


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

    folds           True for the loop of a Reduce
    entered, began  the times, by the memory's clock, when the loop and its present iteration began
    """

    __slots__ = ("active", "at", "began", "binder", "entered", "folds", "memo")

    def __init__(self, binder: Binder | None, active: list[bool], folds: bool = False, clock: int = 0) -> None:
        self.binder = binder
        self.at = 0
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
        self.spread: dict[UOp, list[tuple[Binder, int]]] = {}  # the open axes of statements, with their lengths
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
            first = CLOSES.get(node.op)
            if first is not None:
                merged -= {b for r in node.src[first:] for b in self._binders(r)}
            elif node.op is Op.Range:
                merged |= {node}
            elif node.op is Op.Unroll:
                merged |= {("axis", a) for a, _ in node.arg}
            elif node.op is Op.Contract:
                merged -= {("axis", a) for a, _ in node.arg}
            elif node.op is Op.Special:
                self.specials.append(node)
            axes = [b for b in merged if not isinstance(b, UOp)]
            if axes and node.dtype.kind == "void":
                self.spread[node] = self._lengths(node, axes)
                merged = merged.difference(axes)
            self.depends[node] = merged

    def _binders(self, closed: UOp) -> list[Binder]:
        """The ranges that a binder operand closes."""
        if closed.op is Op.Range:
            return [closed]
        return sorted(self.depends[closed], key=lambda b: (0, b.serial) if isinstance(b, UOp) else (1, b[1]))

    def _lengths(self, statement: UOp, axes: Sequence[Axis]) -> list[tuple[Binder, int]]:
        """Axes that are open in a statement, or that it opens, with their lengths."""
        lengths: dict[Axis, int] = {}
        inner = order(operands(statement), lambda n: [s for s in operands(n) if not self.depends[s].isdisjoint(axes)])
        for node in (statement, *inner):
            for a, n in node.arg if node.op is Op.Unroll else ():
                lengths["axis", a] = max(n, lengths.get(("axis", a), 0))
        return [(a, lengths[a]) for a in sorted(axes)]

    # Running.

    def workgroups(self) -> Iterable[None]:
        """Every workgroup in turn, with its threads; without a Special there is one, of one thread."""
        ends = []
        for s in self.specials:
            end = known(run_tasks(self.value(s.src[0]))[0][0])
            if end is INVALID:
                raise IRError(f"the end of {s.arg} is Invalid")
            ends.append(end)
        self.steps.take(math.prod(ends))
        local = [s.arg.startswith("lidx") for s in self.specials]
        outer = [(s, e) for s, e, inside in zip(self.specials, map(range, ends), local, strict=True) if not inside]
        inner = [(s, e) for s, e, inside in zip(self.specials, map(range, ends), local, strict=True) if inside]
        for at in itertools.product(*[e for _, e in outer]):
            group = {s: i for (s, _), i in zip(outer, at, strict=True)}
            self.threads = [
                {**group, **{s: i for (s, _), i in zip(inner, t, strict=True)}} for t in itertools.product(*[e for _, e in inner])
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

    def bound(self, binder: Binder) -> int:
        for frame in reversed(self.frames):
            if frame.binder == binder:
                return frame.at
        if binder in self.variables:
            return int(self.variables[binder])
        said = binder.text() if isinstance(binder, UOp) else f"axis {binder[1]} of Unroll"
        raise IRError(f"{said} has no value outside its loop")

    def carried(self, storage: Storage, offset: int) -> list[Frame]:
        """The loops that are running and have stored this lane in an earlier iteration."""
        writer = storage.writers.get(offset)
        if writer is None:
            return []
        time, loops = storage.stored[offset], self.depends[writer].union(*[self._binders(c) for c in writer.src[2:]])
        return [f for f in self.frames if f.entered <= time < f.began and f.binder in loops]

    def ready(self, node: UOp) -> PerThread | None:
        """The lanes of `node` if they need no task, else None."""
        if node.op is Op.Range:
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

    def _loop(self, closed: Sequence[UOp], active: list[bool], body: Callable[[list[bool]], Task], folds: bool = False) -> Task:
        """Run `body` for every iteration of the ranges that `closed` denotes, the first outermost."""
        binders: list[Binder] = []
        sizes: dict[Binder, int] = {}
        for c in closed:
            if c.op is Op.Unroll:
                sizes.update({("axis", a): n for a, n in c.arg})
            binders += [b for b in self._binders(c) if b not in binders]
        # a range whose end depends on another runs inside it
        waiting, binders = binders, []
        while waiting:
            ready = [b for b in waiting if not (isinstance(b, UOp) and (self.depends[b] - {b}) & set(waiting))]
            binders += ready
            waiting = [b for b in waiting if b not in ready]
        yield self._nest([(b, sizes.get(b, 0)) for b in binders], 0, active, body, folds)

    def _nest(
        self,
        binders: list[tuple[Binder, int]],
        depth: int,
        active: list[bool],
        body: Callable[[list[bool]], Task],
        folds: bool = False,
    ) -> Task:
        if depth == len(binders):
            yield body(active)
            return
        binder, size = binders[depth]
        ends = [size] * len(active)
        if isinstance(binder, UOp):
            ends = [e[0] for e in (yield self.value(binder.src[0]))]
        frame = Frame(binder, active, folds, self.memory.clock)
        self.frames.append(frame)
        for i in range(max([known(e) for e, a in zip(ends, active, strict=True) if a], default=0)):
            self.steps.take(1)
            frame.at = i
            frame.active = [a and i < e for a, e in zip(active, ends, strict=True)]
            frame.memo = {}
            frame.began = self.memory.clock
            yield self._nest(binders, depth + 1, frame.active, body, folds)
        self.frames.pop()
