"""The plan of a described function: its inputs, its computation, and the tensors of its results."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from morok.caller import caller
from morok.described.call_arguments import Arguments, Stands, is_without_memory, leaf_of
from morok.described.description import Described, built, is_same_array
from morok.described.overlaps import Spans
from morok.described.reach import Reach
from morok.described.turns import TURN
from morok.described.value_keys import is_a
from morok.errors import UsageError
from morok.ir.graph import substitute
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.rangeify.state import MOVEMENT
from morok.runtime.buffer import Buffer, converted
from morok.runtime.device import device as find_device
from morok.tensor import registry
from morok.tensor.base import Lazy
from morok.tensor.plans import planned
from morok.tensor.random import GENERATOR
from morok.tensor.realize import held, realize
from morok.tensor.schedule import refuse_others, refuse_overlaps, scheduled
from morok.tensor.scheduling import Prepared, Schedule, normalised
from morok.tensor.stored import constant, content, is_empty, leaves_of, memory_of, owner, release, stored_buffer, wanted
from morok.tensor.tensor import Tensor
from morok.tensor.view_methods import reshaped
from morok.tensor.viewed import written
from morok.tensor.writing import refuse_view

if TYPE_CHECKING:
    from morok.runtime.plan import ExecutionPlan

_RESHAPE: Final = Op.Reshape
_SLOTS: Final = 3  # memory blocks of one output kept for reuse
_references: Final = sys.getrefcount


_alive: Final[dict[registry.Reference, None]] = {}  # the live plans
_made: Final = [0]  # number of plans made so far


def _holders(node: UOp) -> int:
    """The number of references from plans to a node."""
    return sum(plan.held[node.serial] for r in list(_alive) if (plan := r()) is not None)


def _alone(tensor: Lazy, held: int, given: int) -> bool:
    """True if this tensor's node, and the Buffer node below it, have no references except the tensor's, `held` by plans and
    `given` by the call: then nothing else reads its memory. False decides nothing.
    """
    node = tensor.uop
    if node.op is Op.Buffer:
        return _references(node) <= 3 + held + given
    if node.op is not Op.Reshape or node.src[0].op is not Op.Buffer:
        return False
    return _references(node) <= 3 + held and _references(node.src[0]) <= 2 + given


class _Slot:
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
        self.slots: list[list[_Slot]] = [[] for _ in range(outputs)]
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

    def run(self, leaves: Leaves, keys: list[int], binds: list[int], shapes: list[list[Any]]) -> list[_Slot | None]:
        """The memory of each output after an execution, for the caller's use; None for an output that is an input's memory."""
        try:
            execution = self.idle.pop()
        except IndexError:  # other threads use all executions, or the plan has been released
            execution = self._made()
        plan = execution.plan
        buffers, use = plan.buffers, plan._use
        given = [leaves.serials[k] for _, k in self.leaves]
        if given != execution.given:
            changed = [(n, leaves.memory(k)) for (n, k), a, b in zip(self.leaves, given, execution.given, strict=True) if a != b]
            for n, memory in changed:
                use(n, memory)
            execution.given = given
            if self.written:
                self._refuse_overlaps(execution, changed)
        for memory, k in execution.keys:
            memory.copy_in(np.array([keys[k]], np.uint64))
        for n, array, dtype in self.arrays:
            buffers[n].copy_in(converted(array, dtype).view(buffers[n].numpy().dtype).reshape(-1))
        for n, template, filled in self.fresh:
            use(n, Buffer(self.target, template.dtype, template.size).allocate())
            if filled:
                buffers[n].copy_in(template.numpy())
        out: list[_Slot | None] = [None] * len(self.outputs)
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

    def _slot(self, slots: list[_Slot], bound: Buffer, shapes: list[Any]) -> _Slot:
        """A slot to which nothing else refers, reused or new; `bound` is the memory that the plan uses now."""
        for k, slot in enumerate(slots):
            now = slot.counts()
            if now[0] - (slot.memory is bound) <= slot.least[0] and now[1:] <= slot.least[1:]:
                slots.append(slots.pop(k))
                return slot
        slot = _Slot(bound, shapes, self.device)
        slot.least = slot.counts()
        slots.append(slot)
        if len(slots) > _SLOTS:
            del slots[0]
        return slot


class Plan:
    """The computation for one key, valid while the values that the function reaches are unchanged.

    used  the time of its last use, as a number that grows with each call
    """

    def __init__(self, made: Described, other: Described, stands: Stands, reach: Reach, call: Arguments) -> None:
        self.used = 0
        self.reach = reach
        self.pattern, self.binds = made.pattern, made.binds
        self.events = made.noted.events
        self._memory = list(made.noted.reads.values())
        # an array made in the function has another place in each description
        self._numbers = [found for place, found in made.noted.elements.items() if place in other.noted.elements]
        self._alive = call.roots  # kept alive, since the key has their ids
        self._objects = _reached(call, reach)
        given = list(call.tensors.values())
        self._kept = {k: t for k, t in enumerate(given) if id(t) in stands.kept}
        self._without_memory = sorted(made.noted.without_memory | other.noted.without_memory)
        self._given = [w.given for w in made.writes if w.given is not None]
        self._in_place = [(w.tensor, w.given) for w in made.writes if w.in_place]
        self._becomes = [(w.tensor, w.given, len(made.new) + k) for k, w in enumerate(w for w in made.writes if not w.in_place)]
        # results, and values written to tensors but not in place, are new tensors, each with memory of its own
        new = [_owning(n.kind, n.uop, n.device) for n in made.new]
        new += [_owning(Lazy, w.uop, w.device) for w in made.writes if not w.in_place]
        group = [*new, *[Lazy._make(w.uop, w.device) for w in made.writes if w.in_place]]
        devices = dict.fromkeys(t.device for t in group if not _is_formula(t))
        groups = [[t for t in group if t.device == d and not _is_formula(t)] for d in devices]
        roots = [wanted(g, g) for g in groups]
        self._parts = [Part(made, other, stands, r, d) for d, r in zip(devices, roots, strict=True)]
        self._order = _readers_first(self._parts)
        shapes: list[list[list[Any]]] = [[[] for _ in p.outputs] for p in self._parts]
        self._outputs = [_Output(t, list(devices), self._parts, shapes) for t in new]
        self._shapes = shapes
        for part in self._parts:
            part.place.clear()
        self._captured = frozenset(serial for part in self._parts for serial in part.captured)
        watched = self._captured | made.noted.reads.keys()
        reached = [t for t in reach.tensors if not (own := leaves_of(t.uop)) or any(leaf.serial in watched for leaf in own)]
        written = [t for t, _ in self._in_place if t is not None]
        self.tensors = list({id(t): t for t in (*reached, *written, *self._kept.values())}.values())
        known = {id(t): node for t, node in made.nodes}  # another thread may have written to them since
        self._nodes = [known.get(id(t), t.uop) for t in self.tensors]
        self._changes = -1  # registry.changes at the last check of the nodes
        self.held = Counter([node.serial for node in self._nodes])
        self._holders: tuple[tuple[int, int], list[int]] = ((0, 0), [])
        self._counted: Any = None  # reference counts in `_claim` at its last call without other readers
        _alive[registry.Reference(self, _alive.__delitem__)] = None
        _made[0] += 1
        self._arrays = [a for a in _arrays(made.pattern) if any(a is b for b in _arrays(other.pattern))]

    def fits(self, call: Arguments) -> bool:
        """True if this plan computes the call. False does not exclude it: an object may have been replaced by an equal one."""
        return self.fits_tensors(call) and self.reach.unchanged()

    def fits_tensors(self, call: Arguments) -> bool:
        """True if the tensors that the function reaches are unchanged, and shared with the call's arguments as described."""
        ids = self.reach.ids
        apart = ids.isdisjoint(call.tensors) and ids.isdisjoint(call.containers)
        if (not apart or self._objects) and _reached(call, self.reach) != self._objects:
            return False
        changes = registry.changes[0]
        if changes != self._changes:
            if [t.uop for t in self.tensors] != self._nodes:  # nodes are compared by identity
                return False
            self._changes = changes
        if self._without_memory:
            given = list(call.tensors.values())
            if not all(is_without_memory(given[k]) for k in self._without_memory):
                return False
        if self._kept:
            given = list(call.tensors.values())
            if any(given[k] is not t for k, t in self._kept.items()):
                return False
            own = {leaf.serial for t in self._kept.values() if (leaf := leaf_of(t.uop)) is not None}
            if any(leaf.serial in self._captured and leaf.serial not in own for leaf in call.leaves):
                return False
        elif not self._captured.isdisjoint(call.serials):
            return False
        if self._numbers and any(array.tobytes() != data for array, data in self._numbers):
            return False
        return not self._memory or all(memory.numpy().tobytes() == data for memory, data in self._memory)

    def compute(self) -> None:
        """None; tensors that the function reaches, and that have become lazy since, are computed."""
        changed = [t for t, node in zip(self.tensors, self._nodes, strict=True) if t.uop is not node]
        realize([t for t in changed if stored_buffer(t.uop) is None and constant(t.uop) is None], asked=False)

    def release(self) -> None:
        """None; the memory of this plan is given back. The next call gets other memory."""
        for part in self._parts:
            part.idle.clear()

    def run(self, call: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call."""
        if not self._in_place and not self._becomes:
            return self._run(call, args, kwargs)
        with TURN:
            return self._run(call, args, kwargs)

    def _run(self, call: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._given:
            self._refuse_views(call)
        copied = call.copied(self._given) if self._given else []
        keys = GENERATOR.replay(self.events) if self.events else []
        binds = [int(b.src[1].arg) for b in call.binds] if call.binds else []
        leaves = Leaves(call)
        after = self._claim(call, leaves) if self._in_place else []
        slots: list[list[_Slot | None]] = [[] for _ in self._parts]
        for k in self._order:
            slots[k] = self._parts[k].run(leaves, keys, binds, self._shapes[k])
        for tensor, node in after:
            registry.put(tensor, node)
        if self._in_place:
            given = list(call.tensors.values())
            for which, number in self._in_place:
                written(which if which is not None else given[number or 0])
        if self._becomes or copied or self.pattern != _SINGLE:
            return self._finished(slots, call, args, kwargs, copied)
        return self._outputs[0].made(slots, self.binds, call)

    def _refuse_views(self, call: Arguments) -> None:
        """UsageError if an argument that is written is a view of a live tensor that the description did not see."""
        given = list(call.tensors.values())
        views = [t for k in self._given if (t := given[k])._viewed]
        if views:
            seen = {*call.tensors, *[id(t) for t, _ in self._in_place], *[id(t) for t, _, _ in self._becomes]}
            for t in views:
                refuse_view(t, seen)

    def _claim(self, call: Arguments, leaves: Leaves) -> list[tuple[Lazy, UOp]]:
        """(tensor, new node) of tensors with other memory after this call; other readers of written memory are computed first."""
        given = list(call.tensors.values())
        tensors = [t if t is not None else given[number or 0] for t, number in self._in_place]
        for t in tensors:
            t._compiled = None
        if call.nodes:
            return self._released(call, leaves, given, tensors)
        nodes = [t.uop for t in tensors]
        below = [n.src[0] if n.op is _RESHAPE else n for n in nodes]
        counted = (len(_alive), _made[0], [*map(_references, nodes)], [*map(_references, below)], [n.op for n in nodes])
        if counted == self._counted:  # the common case: no new references to these nodes
            return []
        del nodes, below
        if all(map(_alone, tensors, self._held_by_plans(), [t is None for t, _ in self._in_place])):
            self._counted = counted
            return []
        return self._released(call, leaves, given, tensors)

    def _released(self, call: Arguments, leaves: Leaves, given: list[Lazy], tensors: list[Lazy]) -> list[tuple[Lazy, UOp]]:
        """The result of `_claim`, by the general way, tensor by tensor."""
        after: list[tuple[Lazy, UOp]] = []
        for t, (tensor, number), holders in zip(tensors, self._in_place, self._held_by_plans(), strict=True):
            own = call.nodes.get(id(t))
            if own is not None and number not in self._kept:  # a constant tensor, with new memory for this call
                after.append((t, own))
                continue
            if _alone(t, holders, tensor is None):
                continue
            leaf = content(t.uop)
            if tensor is not None or number in self._kept or owner(t.uop) is t:
                while others := release({leaf}, [t]):  # repeat: a computed tensor may turn out to be the whole memory in order
                    realize(others, asked=False)
                continue
            after.append((t, held(leaves.copied(leaf), t.shape)))
        return after

    def _held_by_plans(self) -> list[int]:
        """For each tensor written in place, the number of references from plans to its node."""
        now = (len(_alive), _made[0])
        if self._holders[0] != now:
            known = [tensor if tensor is not None else self._kept.get(number or 0) for tensor, number in self._in_place]
            self._holders = (now, [0 if t is None else _holders(t.uop) for t in known])
        return self._holders[1]

    def _finished(
        self,
        slots: list[list[_Slot | None]],
        call: Arguments,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        copied: list[tuple[np.ndarray[Any, Any], Tensor]],
    ) -> Any:
        """The result of a call by its pattern, after setting the nodes of the tensors that it writes not in place, and the
        elements of the `copied` arrays.
        """
        given = list(call.tensors.values())
        new: dict[int, Lazy] = {}

        def make(kind: str, what: Any) -> Any:
            if kind == "new":
                if what not in new:
                    new[what] = self._outputs[what].made(slots, self.binds, call)
                return new[what]
            if kind == "given":
                return call.spelled(given[what])
            if kind == "container":
                return [*call.containers.values()][what]
            if kind == "node":
                return substitute([what], dict(zip(self.binds, call.binds, strict=True)))[0]
            return what.copy() if is_a(what, np.ndarray) and not any(what is a for a in self._arrays) else what

        for tensor, number, k in self._becomes:
            t = tensor if tensor is not None else given[number or 0]
            t._compiled = None
            registry.put(t, make("new", k).uop)
            written(t)
        for array, t in copied:
            array[...] = t.numpy()
        return built(self.pattern, make)


_SINGLE: Final = ("new", 0)


class _Output:
    """The recipe for a new tensor: the memory of a part's output, or a formula, a node without memory."""

    __slots__ = ("kind", "device", "shape", "part", "output", "number", "formula")

    def __init__(self, t: Lazy, devices: list[str], parts: list[Part], shapes: list[list[list[Any]]]) -> None:
        self.kind, self.device, self.shape = type(t), t.device, t.shape
        self.formula: UOp | None = None
        self.part = self.output = self.number = 0
        if _is_formula(t):
            self.formula = t.uop
            if is_empty(t.shape):
                self.formula = reshaped(registry.new_buffer(t.dtype, 0, t.device), t.shape)
            return
        self.part = devices.index(t.device)
        self.output = parts[self.part].place[content(t.uop)]
        self.number = -1
        if all(isinstance(d, int) for d in t.shape):
            known = shapes[self.part][self.output]
            self.number = len(known)
            known.append(t.shape)

    def made(self, slots: list[list[_Slot | None]], binds: list[UOp], call: Arguments) -> Lazy:
        if self.formula is not None:
            node = self.formula
            return self.kind._make(self._bound(node, binds, call) if call.binds else node, self.device)
        slot = slots[self.part][self.output]
        assert slot is not None
        if self.number >= 0:
            return self.kind._make(slot.nodes[self.number], self.device)
        shape = tuple([self._bound(d, binds, call) if isinstance(d, UOp) else d for d in self.shape])
        return self.kind._make(held(slot.buffer, shape), self.device)

    @staticmethod
    def _bound(node: UOp, binds: list[UOp], call: Arguments) -> UOp:
        return substitute([node], dict(zip(binds, call.binds, strict=True)))[0]


def _readers_first(parts: list[Part]) -> list[int]:
    """The parts' positions in an order in which each runs before those that overwrite what it reads. UsageError if there is
    none.
    """
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


def _is_formula(t: Lazy) -> bool:
    """True if a tensor needs no memory: it is constant or empty."""
    return constant(t.uop) is not None or is_empty(t.shape)


def _owning(kind: type[Lazy], uop: UOp, device: str) -> Lazy:
    """A tensor with these elements that shares no memory with existing tensors."""
    node = content(uop)
    while node.op in MOVEMENT:
        node = content(node.src[0])
    if node.op in (Op.Buffer, Op.Assign):
        uop = UOp.new(Op.Copy, (uop, UOp.new(Op.Device, (), device)))
    return kind._make(uop, device)


def _allocated(leaf: UOp) -> Buffer:
    found = memory_of(leaf, leaf.src[1].arg)
    assert found is not None
    return found


def _arrays(pattern: Any) -> list[Any]:
    found: list[Any] = []
    built(pattern, lambda kind, what: found.append(what) if is_a(what, np.ndarray) else None)
    return found


def _reached(call: Arguments, reach: Reach) -> dict[int, int]:
    """The number and id of each tensor and container among the arguments that the function also reaches."""
    return {k: key for k, key in enumerate((*call.tensors, *call.containers)) if key in reach.ids}
