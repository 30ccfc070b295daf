"""The plan of a described function: its inputs, its computation, and the tensors of its results."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from morok.described.call_arguments import Arguments, Stands, is_without_memory, leaf_of
from morok.described.description import Described, built
from morok.described.plan_parts import Leaves, Part, Slot, readers_first
from morok.described.reach import Reach
from morok.described.turns import TURN
from morok.described.value_keys import is_a
from morok.ir.graph import substitute
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.rangeify.state import MOVEMENT
from morok.tensor import registry
from morok.tensor.base import Lazy
from morok.tensor.random import GENERATOR
from morok.tensor.realize import realize
from morok.tensor.stored import constant, content, is_empty, leaves_of, owner, release, stored_buffer, wanted
from morok.tensor.tensor import Tensor
from morok.tensor.view_methods import held, reshaped
from morok.tensor.viewed import written
from morok.tensor.writing import refuse_view

# A tensor that calls write: one that the function reaches; or None, and the number of an argument.
Target = tuple[Lazy | None, int | None]

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


class Plan:
    """The computation for one key, valid while the values that the function reaches are unchanged.

    used  the time of its last use, as a number that grows with each call
    """

    def __init__(self, made: Described, other: Described, stands: Stands, reach: Reach, call: Arguments) -> None:
        self.used = 0
        self.reach = reach
        self.pattern, self.binds = made.pattern, made.binds
        self.events = made.noted.events
        self._alive = call.roots  # kept alive, since the key has their ids
        self._arrays = [a for a in _arrays(made.pattern) if any(a is b for b in _arrays(other.pattern))]
        self._given = [w.given for w in made.writes if w.given is not None]
        self._in_place = [(w.tensor, w.given) for w in made.writes if w.in_place]
        self._becomes = [(w.tensor, w.given) for w in made.writes if not w.in_place]
        self._results = len(made.new)  # the first of the outputs that tensors become
        self._make_parts(made, other, stands)
        self._take_conditions(made, other, stands, call)
        self._take_nodes(made)
        self._holders: tuple[tuple[int, int], list[int]] = ((0, 0), [])
        self._counted: Any = None  # reference counts in `_claim` at its last call without other readers
        _alive[registry.Reference(self, _alive.__delitem__)] = None
        _made[0] += 1

    def _make_parts(self, made: Described, other: Described, stands: Stands) -> None:
        """Set the parts on devices, their order, and the outputs. Results, and values that tensors become, are new tensors, each
        with memory of its own.
        """
        new = [_owning(n.kind, n.uop, n.device) for n in made.new]
        new += [_owning(Lazy, w.uop, w.device) for w in made.writes if not w.in_place]
        group = [*new, *[Lazy._make(w.uop, w.device) for w in made.writes if w.in_place]]
        devices = dict.fromkeys(t.device for t in group if not _is_formula(t))
        groups = [[t for t in group if t.device == d and not _is_formula(t)] for d in devices]
        roots = [wanted(g, g) for g in groups]
        self._parts = [Part(made, other, stands, r, d) for d, r in zip(devices, roots, strict=True)]
        self._order = readers_first(self._parts)
        self._shapes: list[list[list[Any]]] = [[[] for _ in p.outputs] for p in self._parts]
        self._outputs = [_Output(t, list(devices), self._parts, self._shapes) for t in new]
        for part in self._parts:
            part.place.clear()

    def _take_conditions(self, made: Described, other: Described, stands: Stands, call: Arguments) -> None:
        """Set the facts that another call must share, for `fits_tensors`."""
        self._memory = list(made.noted.reads.values())
        # an array made in the function has another place in each description
        self._numbers = [found for place, found in made.noted.elements.items() if place in other.noted.elements]
        self._objects = _reached(call, self.reach)
        self._kept = {k: t for k, t in enumerate(call.numbered) if id(t) in stands.kept}
        self._without_memory = sorted(made.noted.without_memory | other.noted.without_memory)
        self._captured = frozenset(serial for part in self._parts for serial in part.captured)

    def _take_nodes(self, made: Described) -> None:
        """Set the tensors whose nodes must stay the same, and these nodes."""
        watched = self._captured | made.noted.reads.keys()
        reached = [
            t
            for t in self.reach.tensors
            if not (own := leaves_of(t.uop)) or any(leaf.serial in watched for leaf in own)
        ]
        written = [t for t, _ in self._in_place if t is not None]
        self.tensors = list({id(t): t for t in (*reached, *written, *self._kept.values())}.values())
        known = {id(t): node for t, node in made.nodes}  # another thread may have written to them since
        self._nodes = [known.get(id(t), t.uop) for t in self.tensors]
        self._changes = -1  # registry.changes at the last check of the nodes
        self.held = Counter([node.serial for node in self._nodes])

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
            given = call.numbered
            if not all(is_without_memory(given[k]) for k in self._without_memory):
                return False
        if self._kept:
            given = call.numbered
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
        """Compute the tensors that the function reaches and that have become lazy since."""
        changed = [t for t, node in zip(self.tensors, self._nodes, strict=True) if t.uop is not node]
        realize([t for t in changed if stored_buffer(t.uop) is None and constant(t.uop) is None], asked=False)

    def release(self) -> None:
        """Give the memory of this plan back. The next call gets other memory."""
        for part in self._parts:
            part.idle.clear()

    def run(self, call: Arguments) -> Any:
        """The result of a call."""
        if not self._in_place and not self._becomes:
            return self._run(call)
        with TURN:
            return self._run(call)

    def _run(self, call: Arguments) -> Any:
        if self._given:
            self._refuse_views(call)
        copied = call.copied(self._given) if self._given else []
        keys = GENERATOR.replay(self.events) if self.events else []
        binds = [int(b.src[1].arg) for b in call.binds] if call.binds else []
        leaves = Leaves(call)
        after = self._claim(call, leaves) if self._in_place else []
        slots: list[list[Slot | None]] = [[] for _ in self._parts]
        for k in self._order:
            slots[k] = self._parts[k].run(leaves, keys, binds, self._shapes[k])
        for tensor, node in after:
            registry.put(tensor, node)
        if self._in_place:
            for t in _chosen(self._in_place, call.numbered):
                written(t)
        if self._becomes or copied or self.pattern != _SINGLE:
            return self._finished(slots, call, copied)
        return self._outputs[0].made(slots, self.binds, call)

    def _refuse_views(self, call: Arguments) -> None:
        """UsageError if an argument that is written is a view of a live tensor that the description did not see."""
        given = call.numbered
        views = [t for k in self._given if (t := given[k])._viewed]
        if views:
            seen = {*call.tensors, *[id(t) for t, _ in self._in_place], *[id(t) for t, _ in self._becomes]}
            for t in views:
                refuse_view(t, seen)

    def _claim(self, call: Arguments, leaves: Leaves) -> list[tuple[Lazy, UOp]]:
        """(tensor, new node) of tensors with other memory after this call; other readers of written memory are computed first."""
        tensors = _chosen(self._in_place, call.numbered)
        for t in tensors:
            t._compiled = None
        if call.nodes:
            return self._released(call, leaves, tensors)
        nodes = [t.uop for t in tensors]
        below = [n.src[0] if n.op is Op.Reshape else n for n in nodes]
        counted = (len(_alive), _made[0], [*map(_references, nodes)], [*map(_references, below)], [n.op for n in nodes])
        if counted == self._counted:  # the common case: no new references to these nodes
            return []
        del nodes, below
        if all(map(_alone, tensors, self._held_by_plans(), [t is None for t, _ in self._in_place])):
            self._counted = counted
            return []
        return self._released(call, leaves, tensors)

    def _released(self, call: Arguments, leaves: Leaves, tensors: list[Lazy]) -> list[tuple[Lazy, UOp]]:
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
                # repeat: a computed tensor may turn out to be the whole memory in order
                while others := release({leaf}, [t]):
                    realize(others, asked=False)
                continue
            after.append((t, held(leaves.copied(leaf), t.shape)))
        return after

    def _held_by_plans(self) -> list[int]:
        """For each tensor written in place, the number of references from plans to its node."""
        now = (len(_alive), _made[0])
        if self._holders[0] != now:
            known = [tensor if number is None else self._kept.get(number) for tensor, number in self._in_place]
            self._holders = (now, [0 if t is None else _holders(t.uop) for t in known])
        return self._holders[1]

    def _finished(
        self,
        slots: list[list[Slot | None]],
        call: Arguments,
        copied: list[tuple[np.ndarray[Any, Any], Tensor]],
    ) -> Any:
        """The result of a call by its pattern, after setting the nodes of the tensors that it writes not in place, and the
        elements of the `copied` arrays.
        """
        given = call.numbered
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

        for k, t in enumerate(_chosen(self._becomes, given), self._results):
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

    def made(self, slots: list[list[Slot | None]], binds: list[UOp], call: Arguments) -> Lazy:
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


def _chosen(targets: Sequence[Target], given: Sequence[Lazy]) -> list[Lazy]:
    """The tensors that a call with the arguments `given` writes."""
    return [tensor if tensor is not None else given[number or 0] for tensor, number in targets]


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


def _arrays(pattern: Any) -> list[Any]:
    found: list[Any] = []
    built(pattern, lambda kind, what: found.append(what) if is_a(what, np.ndarray) else None)
    return found


def _reached(call: Arguments, reach: Reach) -> dict[int, int]:
    """The number and id of each tensor and container among the arguments that the function also reaches."""
    return {k: key for k, key in enumerate((*call.tensors, *call.containers)) if key in reach.ids}
