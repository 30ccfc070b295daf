"""The interpreter of graphs, at any stage.

Statements run on demand of a node that depends on them, each once for each assignment of its open ranges. After edges around
storage are the whole order of accesses (access_order.py); a graph in which more would be needed has no value. Threads of a
workgroup run in step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from morok.arguments import real_or_none, shown
from morok.errors import IRError
from morok.ir.dtype import AddrSpace
from morok.ir.interpret.access_order import AccessOrder
from morok.ir.interpret.iteration import PerThread, Task, closed, run_tasks
from morok.ir.interpret.lane_values import INVALID, NOTHING, Lanes, Pointer, Poison, fold, known, scalar_value
from morok.ir.interpret.memory_places import MOVEMENT, Places
from morok.ir.interpret.read_sources import NONE, Reads
from morok.ir.interpret.step_limit import Steps
from morok.ir.interpret.storage import ALLOCATED, NAMED, Buffers, Memory, Read, Sources, Storage, consecutive, element
from morok.ir.interpret.tensor_interpreter import value_of
from morok.ir.interpret.walk import order
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.ir.ranges import CLOSES
from morok.ir.uop import UOp
from morok.lane_roles import groups, lane

_ORDERED: Final = frozenset({Op.Sink, Op.Group, Op.Noop})


class Graph(Places):
    """One run over a graph, for one workgroup at a time."""

    def __init__(self, roots: Sequence[UOp], memory: Memory, variables: Mapping[Any, Any], steps: Steps) -> None:
        super().__init__(roots, memory, variables, steps)
        self.order = AccessOrder(roots, self.depends)
        self.reads = Reads(self, self.order.fed)

    def tensor(self, node: UOp) -> Task:
        return value_of(node, self)

    def value(self, node: UOp) -> Task:
        return self._once(node, node, self._value_with_reads if node in self.order.fed else self._value)

    def place(self, node: UOp) -> Task:
        return self._once(node, (node, "place"), self._place_with_reads if node in self.order.fed else self._place)

    def sources(self, node: UOp) -> list[Sources]:
        return self.reads.of_value(node)

    def took(self, node: UOp, get: Callable[[UOp], Task]) -> None:
        self.reads.take(node, places=get == self.place)

    def _value_with_reads(self, node: UOp) -> Task:
        lanes = yield from self._value(node)
        self.reads.keep_value(node)
        return lanes

    def _place_with_reads(self, node: UOp) -> Task:
        places = yield from self._place(node)
        self.reads.keep_place(node, places)
        return places

    # Values.

    def _value(self, node: UOp) -> Task:
        op, src, count = node.op, node.src, node.dtype.count
        each = range(len(self.threads))
        if op is Op.Const:
            return [(node.arg,) * count] * len(each)
        if op is Op.VConst:
            return [node.arg] * len(each)
        if op is Op.Invalid:
            return [(INVALID,) * count] * len(each)
        if op is Op.DefineVar:
            return [self._variable(node)] * len(each)
        if op is Op.Range:
            return self.ready(node) or (yield from self._counter(node))
        if op is Op.Special:
            return [(self._special(node, t),) for t in each]
        if op is Op.Bind:
            return (yield self.value(src[1]))
        if op is Op.Index:
            return self._read(node, (yield self.place(node)), None)
        if op is Op.Load:
            at = yield self.place(src[0])
            return self._read(node, at, (yield self.value(src[1])) if len(src) > 1 else None)
        if op is Op.Reduce:
            return (yield from self._reduce(node))
        if op is Op.After or op is Op.Barrier:
            yield self.execute(node)
            return (yield self.value(src[0]))
        if op is Op.Unroll or op is Op.Contract:
            return (yield from self._lanes(node, self.value))
        if op in NAMED or op in ALLOCATED or op in MOVEMENT or op is Op.Bufferize or op is Op.ReduceAxis:
            raise IRError(f"{op.name} is no scalar", hint="interpret.tensor gives the value of tensor-level graphs")
        vs: list[PerThread] = []
        for s in src:
            vs.append(self.ready(s) or (yield self.value(s)))
        return [scalar_value(node, [v[t] for v in vs]) for t in each]

    def _variable(self, node: UOp) -> Lanes:
        name, count = node.arg[0], node.dtype.count
        if node in self.variables:
            v = self.variables[node]
        elif name in self.variables:
            v = self.variables[name]
        else:
            raise IRError(
                f"variable {name} has no value",
                expected=f"a value for {name} among the variables",
                hint="give each variable of the graph a value",
            )
        lanes = tuple(v) if isinstance(v, (tuple, list)) else (v,) * count
        if len(lanes) != count:
            raise IRError(
                f"variable {name} was given {len(lanes)} lanes", expected=f"{count} lanes, or one number for all"
            )
        for x in lanes:
            if real_or_none(x) is None:
                raise IRError(f"variable {name} was given {shown(x)}", expected="a number")
            if not node.dtype.is_float and not node.vmin <= x <= node.vmax:
                raise IRError(
                    f"variable {name} was given {x}", expected=f"a value in its bounds {node.vmin}..={node.vmax}"
                )
        return lanes

    def _special(self, node: UOp, thread: int) -> int:
        found = self.threads[thread].get(node)
        return self.bound(node) if found is None else found

    def _read(self, node: UOp, places: PerThread, alt: PerThread | None) -> PerThread:
        out = []
        reads: list[list[frozenset[Read]]] = []
        for t, at in enumerate(places):
            lanes = []
            reads.append([])
            for i, p in enumerate(consecutive(at, node.dtype.count)):
                early = (
                    isinstance(p, Pointer)
                    and p.storage.space is AddrSpace.GLOBAL
                    and self._read_too_early(p, node, i, t)
                )
                reads[-1].append(self._noted(p, early))
                if p is INVALID and alt is not None:
                    lanes.append(lane(alt[t], i))
                elif early:
                    lanes.append(
                        Poison(f"element {p.offset} of {p.storage.node.op.name} is stored and read in no order", node)
                    )
                elif isinstance(p, Pointer) and any(f.folds for f in self.carried(p.storage, p.offset)):
                    what = f"element {p.offset} of {p.storage.node.op.name} is of an earlier iteration of a fold"
                    lanes.append(Poison(what, node))
                else:
                    lanes.append(self.memory.load(p, node, t))
            out.append(tuple(lanes))
        if node in self.order.fed:
            self.reads.read_from(node, reads, places)
        return out

    def _noted(self, at: Any, early: bool) -> frozenset[Read]:
        """The read of a place now, or before all stores if it is too `early`; for an element that is computed when it is read,
        the reads that it is computed from.
        """
        if not isinstance(at, Pointer):
            return NONE
        storage, offset = at.storage, at.offset
        if storage.space is AddrSpace.GLOBAL and storage.node in self.order.stored:
            return frozenset([(storage, offset, -1 if early else self.memory.tick())])
        return storage.sources[offset] if 0 <= offset < len(storage.sources) else NONE

    def _behind(self, *places: UOp) -> int:
        """The ranges that these places waited for, and the stores with an effect, as bits."""
        return self._effects(n for place in places for n in self.order.waiting(place))

    def _effects(self, nodes: Iterable[UOp]) -> int:
        mask = 0
        for n in nodes:
            mask |= self._frame(n).memo.get((n, "effect"), 0)
        return mask

    def _behind_lane(self, place: UOp, lane: int, thread: int) -> int:
        """The result of `_behind` for one lane of a place: other lanes may be in storage that waits for other nodes."""
        if not self.order.joined(place):
            return self._behind(place)
        lane = lane if place.dtype.count > 1 else 0  # else the lanes of an access lie behind the one place
        return self._effects(self.order.waiting_of_lane(place, lane, lambda n: int(known(self.part(n)[thread]))))

    def _read_too_early(self, at: Pointer, node: UOp, lane: int, thread: int) -> bool:
        """True if the last store to `at` is not ordered before `node`, which reads it, in this lane."""
        storage, offset = at.storage, at.offset
        writer = storage.writers.get(offset)
        if writer is None:
            return False
        behind = self._behind_lane(node.src[0], lane, thread)
        return not behind & self.order.bit(writer) and not self._awaited(storage.stored[offset], behind)

    def _stored_too_early(self, at: Pointer, node: UOp, by: tuple[int, int], behind: int, began: int) -> bool:
        """True if another store to `at`, or a use of what was read there, is not ordered before `node`, which stores there by
        this thread and lane.
        """
        storage, offset = at.storage, at.offset
        writer = storage.writers.get(offset)
        if writer is not None and writer is not node and not behind & self.order.bit(writer):
            return not self._awaited(storage.stored[offset], behind)
        for user, at_lane, time in storage.uses.get(offset, ()):
            before = user & behind or (time >= began and at_lane == by)
            if not self._awaited(time, behind) and (not before or self._of_another_iteration(time, node, behind)):
                return True
        return False

    def _replaced_in_fold(self, at: Pointer, store: UOp) -> bool:
        """True if a store in the loops of a fold replaces an element that the fold has used: a later use reads the new one."""
        uses = at.storage.uses.get(at.offset, ())
        loops = self.order.loops(store) if uses else ()
        fold = next((f for f in self.frames if f.folds and f.binder in loops), None)
        return fold is not None and any(time >= fold.entered for _, _, time in uses)

    def _use(self, reads: frozenset[Read], node: UOp, by: tuple[int, int]) -> None:
        """Note that these reads are used by this thread and lane of a statement. UndefinedError if a store came in between."""
        for storage, offset, time in reads:
            if storage.stored.get(offset, -1) > time:
                raise _unordered(storage, offset, node).error()
            storage.uses.setdefault(offset, []).append((self.order.bit(node), by, self.memory.tick()))

    def _awaited(self, time: int, behind: int) -> bool:
        """True if `time` was in an earlier iteration of a loop whose iterations are among those in `behind`."""
        return any(f.entered <= time < f.began and self.order.bit(f.binder) & behind for f in self.frames)

    def _of_another_iteration(self, time: int, store: UOp, behind: int) -> bool:
        """True if `time` was in an earlier iteration of a loop around `store` that its storage does not wait for."""
        if time >= self.frames[-1].began:
            return False
        loops = self.order.loops(store)
        earlier = [f.binder for f in self.frames if f.entered <= time < f.began and f.binder in loops]
        return not all(self.order.bit(b) & behind for b in earlier)

    def _reduce(self, node: UOp) -> Task:
        d = node.dtype.scalar()
        op = node.arg
        start = [(_identity(node),) * node.dtype.count] * len(self.threads)
        total = list(start)

        def body(active: list[bool]) -> Task:
            part = self.ready(node.src[0]) or (yield self.value(node.src[0]))
            self.took(node, self.value)
            for t, lanes in enumerate(part):
                if active[t]:
                    each = groups(lanes, len(total[t]))
                    total[t] = tuple([fold(op, d, a, own, node) for a, own in zip(total[t], each, strict=True)])

        yield self._loop(node, self._frame(node).active, body, folds=True)
        return [tuple([Poison("over no index", node) if v is NOTHING else v for v in lanes]) for lanes in total]

    def result(self, node: UOp) -> Task:
        """The lanes of a value, for each thread. UndefinedError if an element that it was read from has been stored over."""
        found = yield self.value(node)
        self._use_all(node, node)
        return found

    # Statements.

    def _execute(self, node: UOp) -> Task:
        """The effect of `node`; a statement runs at every iteration of the axes that are open in it. The result: the stores with
        an effect, and the nodes that their storage waits for, as bits.
        """
        done = 0

        def body(_: list[bool]) -> Task:
            nonlocal done
            done |= yield self._done(node)

        if node in self.spread:
            yield self._nest(self.spread[node], self._frame(node).active, body)
        else:
            yield body([])
        for b in closed(node) if done else ():
            done &= ~self.order.bit(b)  # a loop that has ended is no one's any more
        return done

    def _done(self, node: UOp) -> Task:
        """The effect of `node` at the present iteration of its axes; the result as of `_execute`."""
        op, src = node.op, node.src
        if op is Op.End or op is Op.Store:
            return (yield from self._looped(node))
        if op is Op.Range:
            return self.order.bit(node)
        if op is Op.If or op is Op.EndIf:
            raise IRError(
                "a branch is a part of a Group, or of a list of instructions", hint="interpret.run_instructions"
            )
        if op is Op.Group and any(s.op is Op.If for s in src):
            return (yield from self._branches(src))
        if op is Op.Kernel:
            yield from self._kernel(node)
            return self._behind(*src[1:])
        if op is Op.Assign:
            yield from self._assign(node)
            return self.order.bit(node) | self._behind(src[0])
        if op is Op.After:
            also = src[:1] if src[0].dtype.kind == "void" or src[0].op in (Op.After, Op.Barrier) else ()
            return (yield from self._all(src[1:] + also))
        if op is Op.Barrier:
            done = yield from self._all(src)
            self.memory.epoch += 1
            return done
        if op in _ORDERED or node.dtype.kind == "void":
            return (yield from self._all(src))
        if op not in NAMED and op not in ALLOCATED and op not in MOVEMENT and op not in (Op.Special, Op.Bufferize):
            yield self.value(node)
        return 0

    def _looped(self, node: UOp) -> Task:
        """The effect of an End, or of a Store, at every iteration of the loops that it closes."""
        done = 0

        def body(on: list[bool]) -> Task:
            nonlocal done
            done |= yield self.execute(node.src[0]) if node.op is Op.End else self._store(node, on)

        yield self._loop(node, self._frame(node).active, body)
        for r in node.src[CLOSES[node.op] :]:
            self._use_all(r, node)
        return done

    def _use_all(self, value: UOp, node: UOp) -> None:
        """Note that a statement goes by a value: of how often, or whether, others are done."""
        for lanes in self.sources(value):
            for reads in lanes:
                self._use(reads, node, (-1, -1))

    def _all(self, statements: Sequence[UOp]) -> Task:
        """The effects of statements in turn."""
        done = 0
        for s in statements:
            done |= yield self.execute(s)
        return done

    def _branches(self, statements: Sequence[UOp]) -> Task:
        """Run statements in turn; those between an If and its EndIf by the threads for which its condition holds."""
        was = [f.active for f in self.frames]
        open_: list[UOp] = []
        done = 0
        for s in statements:
            if s.op is Op.If:
                holds = [known(c[0]) for c in (yield self.value(s.src[0]))]
                self._use_all(s.src[0], s)
                open_.append(s)
                for f in self.frames:
                    f.active = [a and bool(h) for a, h in zip(f.active, holds, strict=True)]
            elif s.op is Op.EndIf:
                if not open_ or open_.pop() is not s.src[0] or open_:
                    raise IRError(
                        "an EndIf does not close what was opened last", hint="branches of a Group do not nest"
                    )
                for f, active in zip(self.frames, was, strict=True):
                    f.active = active
            elif s.dtype.kind != "void":
                continue  # an address is computed by the statements that use it
            else:
                done |= yield self.execute(s)
        if open_:
            raise IRError("an If is never closed", expected="an EndIf for each If, behind it in its Group")
        return done

    def _store(self, node: UOp, active: list[bool]) -> Task:
        at = yield self.place(node.src[0])
        value = self.ready(node.src[1]) or (yield self.value(node.src[1]))
        began, done = self.memory.clock, 0
        reads = [self.reads.of_place(node.src[0]), self.sources(node.src[1])] if node in self.order.fed else []
        for t, on in enumerate(active):
            if on:
                lanes = value[t]
                places = consecutive(at[t], len(lanes))
                for i, p in enumerate(places):
                    if p is INVALID:
                        continue
                    for found in reads:
                        self._use(lane(found[t], i), node, (t, i))
                    behind = self._behind_lane(node.src[0], i, t)
                    if isinstance(p, Pointer) and p.storage.space is AddrSpace.GLOBAL:
                        if self._stored_too_early(p, node, (t, i), behind, began):
                            raise _unordered(p.storage, p.offset, node).error()
                        if self._replaced_in_fold(p, node):
                            what = f"element {p.offset} of {p.storage.node.op.name} is stored to by a fold that has used it"
                            raise Poison(what, node).error()
                    self.memory.store(p, lane(lanes, i), node, t)
                    done |= self.order.bit(node) | behind
        return done

    def _kernel(self, node: UOp) -> Task:
        """Run a kernel's program on the storage of its sources, slot by slot; bound variables get their values."""
        inside: Buffers = {}
        variables: dict[Any, Any] = dict(self.variables)
        parameters = {n.arg: n for n in order(node.src[:1]) if n.op in (Op.Param, Op.DefineGlobal)}
        for s in node.src[1:]:
            if s.op is Op.Bind:
                variables[s.src[0].arg[0]] = s.src[1].arg
            elif s.op is Op.DefineVar:
                variables[s.arg[0]] = self._variable(s)
            else:
                at = yield self.locate(s, [0], 0, node)
                pointer = known(at[0])
                assert isinstance(pointer, Pointer)
                wanted = parameters.get(len(inside), s)
                if element(wanted.dtype).scalar() is not element(s.dtype).scalar():
                    raise IRError(
                        f"operand {len(inside)} of a kernel has the dtype {s.dtype}",
                        expected=f"that of its parameter, {wanted.dtype}",
                    )
                inside[len(inside)] = (
                    pointer.storage.data if pointer.offset == 0 else View(pointer.storage.data, pointer.offset)
                )
        execute_graph(node.src[0], inside, variables, self.steps)

    def _assign(self, node: UOp) -> Task:
        shape = yield self.shape(node.src[0])
        new = (yield self.tensor(node.src[1])).flat
        if math.prod(shape) != len(new):
            raise IRError(
                f"an Assign of {len(new)} elements to a target of {math.prod(shape)}",
                expected="as many elements as the target has",
                hint="Expand repeats elements, Shrink chooses some",
            )
        for at, v in zip(itertools.product(*[range(n) for n in shape]), new, strict=True):
            for p in (yield self.locate(node.src[0], list(at), 0, node)):
                self.memory.store(p, v, node, 0)


class View(list[Any]):
    """A list that is a part of another, from an offset on."""

    def __init__(self, base: list[Any], offset: int) -> None:
        super().__init__()
        self.base, self.offset = base, offset

    def __len__(self) -> int:
        return len(self.base) - self.offset

    def __getitem__(self, i: Any) -> Any:
        return self.base[i + self.offset]

    def __setitem__(self, i: Any, v: Any) -> None:
        self.base[i + self.offset] = v


def _unordered(storage: Storage, offset: int, node: UOp) -> Poison:
    return Poison(f"element {offset} of {storage.node.op.name} is accessed in no order", node)


def _identity(node: UOp) -> Any:
    d = node.dtype.scalar()
    return NOTHING if d.is_index and node.arg in (Op.Max, Op.Min) else identity(node.arg, d)


def execute_graph(root: UOp, buffers: Mapping[Any, list[Any]], variables: Mapping[Any, Any], steps: Steps) -> None:
    memory = Memory(buffers)
    graph = Graph([root], memory, variables, steps)
    for _ in graph.workgroups():
        run_tasks(graph.execute(root))
    memory.check()
