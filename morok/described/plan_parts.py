"""The parts of a described function's plan: each runs on one device, over memory that is reused from call to call."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from morok.caller import caller
from morok.described.call_arguments import Arguments, Stands
from morok.described.description import Described, is_same_array
from morok.described.overlaps import Spans
from morok.errors import UsageError
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer, cast_array
from morok.runtime.device import device as find_device
from morok.runtime.plan import ExecutionPlan
from morok.tensor import registry
from morok.tensor.plans import planned
from morok.tensor.schedule import refuse_others, refuse_overlaps, scheduled
from morok.tensor.scheduling import Prepared, Schedule, normalised
from morok.tensor.stored import memory_of
from morok.tensor.view_methods import reshaped

_SLOTS: Final = 3  # memory blocks of one output kept for reuse
_references: Final = sys.getrefcount


class Slot:
    """Memory for one output, and the nodes over it, reused when nothing else refers to them: `least` are the counts then."""

    __slots__ = ("memory", "buffer", "nodes", "least")

    def __init__(self, like: Buffer, shapes: Iterable[Any], device: str) -> None:
        self.memory = Buffer(like.device, like.dtype, like.size).allocate()
        self.buffer = registry.new_buffer(like.dtype, like.size, device, self.memory)
        self.nodes = [reshaped(self.buffer, shape) for shape in shapes]
        self.least: tuple[int, ...] = ()

    def counts(self) -> tuple[int, ...]:
        return (
            _references(self.memory),
            _references(self.memory._memory),
            _references(self.buffer),
            *map(_references, self.nodes),
        )


class _Execution:
    """One execution plan and its buffers, for one call at a time.

    given    the serial numbers of its current leaves
    written  the address ranges of its written buffers, after the check for overlaps; None before
    """

    __slots__ = ("plan", "keys", "slots", "values", "given", "written")

    def __init__(self, plan: ExecutionPlan, keys: list[tuple[int, int]], leaves: int, outputs: int) -> None:
        self.plan = plan
        self.keys = [(plan.buffers[n], k) for n, k in keys]
        self.slots: list[list[Slot]] = [[] for _ in range(outputs)]
        self.given = [0] * leaves  # 0 is no serial number
        self.written: Spans | None = None
        self.values: dict[str, int] = {}


class Leaves:
    """The memory of a call's arguments, by number of leaf.

    serials  the serial number of the node of each leaf's memory
    """

    __slots__ = ("serials", "_nodes", "_copies")

    def __init__(self, call: Arguments) -> None:
        self.serials = call.serials
        self._nodes = call.leaves
        self._copies: dict[int, UOp] = {}

    def memory(self, number: int) -> Buffer:
        node = self._copies[number] if number in self._copies else [*self._nodes][number]
        return registry.memory_of(node) or _allocated(node)

    def copied(self, leaf: UOp) -> UOp:
        """A Buffer node with a copy of a leaf's memory, which replaces that memory in this call."""
        number = self._nodes[leaf]
        found = self.memory(number)
        memory = Buffer(found.device, found.dtype, found.size)
        memory.copy_in(found.numpy())
        self._copies[number] = node = registry.new_buffer(leaf.dtype, leaf.arg, leaf.src[1].arg, memory)
        self.serials[number] = node.serial
        return node


class Part:
    """The part of a plan on one device.

    outputs   the distinct numbers of the output buffers
    place     computed node -> its position in `outputs`; only while the plan is made
    nodes     the serial numbers of its Buffer nodes, by number
    captured  the serial numbers of outer Buffer nodes that the function reaches (not the nodes, which would stay alive)
    fresh     (number, initial memory, True if that has elements) of buffers that each call makes anew, since it writes to them
    """

    def __init__(self, made: Described, other: Described, stands: Stands, roots: list[UOp], device: str) -> None:
        self.device, self.target = device, find_device(device)
        normal = normalised(roots, device)
        self.schedule: Schedule = scheduled(normal, device)
        self.values = normal.values
        self.names = [(k, normal.forms[b].arg[0]) for k, b in enumerate(made.binds) if b in normal.forms]
        self.outputs = list(dict.fromkeys(self.schedule.outputs))
        self.place = dict(zip(roots, map(self.outputs.index, self.schedule.outputs), strict=True))
        self.memory: list[Buffer | None] = []
        self.leaves: list[tuple[int, int]] = []
        self.keys: list[tuple[int, int]] = []
        self.fresh: list[tuple[int, Buffer, bool]] = []
        self.arrays: list[tuple[int, np.ndarray[Any, Any], np.dtype[Any]]] = []
        self.captured: list[int] = []
        own_leaves = {leaf: k for k, leaf in enumerate(stands.leaves)}
        keys = {node: k for k, node in enumerate(made.noted.keys)}
        twins = dict(zip(made.buffers, other.buffers, strict=True))
        written = {s.buffers[0] for s in self.schedule.steps if s.buffers[0] < self.schedule.inputs}
        for n, node in enumerate(normal.buffers):
            memory: Buffer | None = None
            if node in own_leaves:
                self.leaves.append((n, own_leaves[node]))
            elif node in keys:
                self.keys.append((n, keys[node]))
            elif is_same_array(node, twins[node], made.noted, other.noted):
                array, dtype, copied = made.noted.arrays[node]
                memory = memory_of(node, device)
                if copied:
                    self.arrays.append((n, array, dtype))
            else:
                memory = memory_of(node, device)
                assert memory is not None
                if node.src[0].arg < made.noted.born:
                    self.captured.append(node.serial)
                elif n in written:
                    self.fresh.append((n, memory, registry.memory_of(node) is not None))
            self.memory.append(memory)
        there = [m for m in self.memory if m is not None]
        refuse_others(there, self.target)
        refuse_overlaps(there, {k for k, m in enumerate(there) for w in written if m is self.memory[w]})
        self.written = written
        self.nodes = [node.serial for node in normal.buffers]
        self.sizes = [(node.dtype, node.arg) for node in normal.buffers]
        self.fresh_outputs = [(k, n) for k, n in enumerate(self.outputs) if n >= self.schedule.inputs]
        self.idle: list[_Execution] = [self._made()]

    def _made(self) -> _Execution:
        memory = [Buffer(self.target, *self.sizes[n]) if m is None else m for n, m in enumerate(self.memory)]
        memory += [Buffer(self.target, d, n) for d, n in self.schedule.made]
        plan = planned(Prepared(self.schedule, self.target, [], memory, self.values, {}), self.outputs)
        return _Execution(plan, self.keys, len(self.leaves), len(self.outputs))

    def run(self, leaves: Leaves, keys: list[int], binds: list[int], shapes: list[list[Any]]) -> list[Slot | None]:
        """The memory of each output after an execution, for the caller's use; None for an output that is an input's memory."""
        try:
            execution = self.idle.pop()
        except IndexError:  # other threads use all executions, or the plan has been released
            execution = self._made()
        plan = execution.plan
        buffers, use = plan.buffers, plan._use
        given = [leaves.serials[k] for _, k in self.leaves]
        if given != execution.given:
            changed = [
                (n, leaves.memory(k))
                for (n, k), a, b in zip(self.leaves, given, execution.given, strict=True)
                if a != b
            ]
            for n, memory in changed:
                use(n, memory)
            execution.given = given
            if self.written:
                self._refuse_overlaps(execution, changed)
        for memory, k in execution.keys:
            memory.copy_in(np.array([keys[k]], np.uint64))
        for n, array, dtype in self.arrays:
            buffers[n].copy_in(cast_array(array, dtype).view(buffers[n].numpy().dtype).reshape(-1))
        for n, template, filled in self.fresh:
            use(n, Buffer(self.target, template.dtype, template.size).allocate())
            if filled:
                buffers[n].copy_in(template.numpy())
        out: list[Slot | None] = [None] * len(self.outputs)
        for k, n in self.fresh_outputs:
            out[k] = slot = self._slot(execution.slots[k], buffers[n], shapes[k])
            if slot.memory is not buffers[n]:
                use(n, slot.memory)
        values = {name: binds[k] for k, name in self.names}
        plan._run(values, values == execution.values)
        execution.values = values
        self.idle.append(execution)
        return out

    def _refuse_overlaps(self, execution: _Execution, changed: list[tuple[int, Buffer]]) -> None:
        """UsageError if written memory overlaps other memory of the plan; `changed` buffers are new since the last check."""
        spans, written = execution.written, self.written
        for n, memory in changed:
            if n in written or (spans is not None and spans.overlap(begin := memory.address, begin + memory.nbytes)):
                spans = None
        if spans is None:
            buffers = execution.plan.buffers[: self.schedule.inputs]
            execution.written = None  # in case the next line raises
            refuse_overlaps(buffers, written)
            execution.written = Spans([buffers[n] for n in written])

    def _slot(self, slots: list[Slot], bound: Buffer, shapes: list[Any]) -> Slot:
        """A slot to which nothing else refers, reused or new; `bound` is the memory that the plan uses now."""
        for k, slot in enumerate(slots):
            now = slot.counts()
            if now[0] - (slot.memory is bound) <= slot.least[0] and now[1:] <= slot.least[1:]:
                slots.append(slots.pop(k))
                return slot
        slot = Slot(bound, shapes, self.device)
        slot.least = slot.counts()
        slots.append(slot)
        if len(slots) > _SLOTS:
            del slots[0]
        return slot


def readers_first(parts: list[Part]) -> list[int]:
    """The positions of the parts in execution order: each before those that overwrite its inputs. UsageError for a cycle."""
    left, order = list(range(len(parts))), list[int]()
    written = [{part.nodes[n] for n in part.written} for part in parts]
    while left:
        first = next((k for k in left if all(written[k].isdisjoint(parts[j].nodes) for j in left if j != k)), None)
        if first is None:
            raise UsageError(
                "a jitted function writes tensors of two devices, each with elements of the other",
                place=caller(),
                expected="parts on devices, each before those that overwrite what it reads",
                hint="take a copy in a function of its own",
            )
        left.remove(first)
        order.append(first)
    return order


def _allocated(leaf: UOp) -> Buffer:
    found = memory_of(leaf, leaf.src[1].arg)
    assert found is not None
    return found
