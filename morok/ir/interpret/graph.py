"""The interpreter of graphs, at any stage: every node once for each assignment of the ranges that it depends on.

A range is bound in a frame while its loop runs; a node's value is kept in the innermost frame that binds one of its
ranges. Statements run when something that depends on them is wanted, each once an assignment too, so that AFTER edges
are the whole order. Threads of a workgroup run in step.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final

from morok.errors import IRError
from morok.ir.dtype import AddrSpace
from morok.ir.interpret import values as V
from morok.ir.interpret.storage import ALLOCATED, NAMED, Buffers, Memory, consecutive, element
from morok.ir.interpret.values import INVALID, Lanes, Pointer, Poison, known
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.ir.shape import edges
from morok.ir.uop import UOp

Axis = tuple[str, int]  # an axis of Unroll and Contract, bound like a range
Binder = UOp | Axis
Task = Generator["Task", Any, Any]
PerThread = list[Lanes]

_ORDERED: Final = frozenset({Op.Sink, Op.Group, Op.Noop})
_THROUGH: Final = frozenset({Op.Contiguous, Op.ContiguousBackward, Op.Detach, Op.Copy})
_MOVEMENT: Final = frozenset({Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip})
_CLOSES: Final = {Op.Bufferize: 1, Op.Reduce: 1, Op.Store: 2, Op.End: 1}


def run_tasks(task: Task) -> Any:
    """Run a task and those it waits for, on a stack of its own: depth is bounded by memory alone."""
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


class _Frame:
    """One loop that is running: its range, the iteration, which threads take part, what was computed in it."""

    __slots__ = ("active", "at", "binder", "memo")

    def __init__(self, binder: Binder | None, active: list[bool]) -> None:
        self.binder = binder
        self.at = 0
        self.active = active
        self.memo: dict[Any, Any] = {}


class Graph:
    """One run over a graph, for one workgroup at a time."""

    def __init__(self, roots: Sequence[UOp], memory: Memory, variables: Mapping[Any, Any]) -> None:
        self.memory = memory
        self.variables = variables
        self.depends: dict[UOp, frozenset[Binder]] = {}
        self.stores: dict[UOp, int] = {}
        self.bit: dict[UOp, int] = {}
        self.specials: list[UOp] = []
        self._survey(roots)
        self.threads: list[dict[UOp, int]] = [{}]
        self.frames: list[_Frame] = [_Frame(None, [True])]

    # What a node depends on.

    def _survey(self, roots: Iterable[UOp]) -> None:
        for node in order(roots, lambda n: () if n in self.depends else operands(n)):
            if node in self.depends:
                continue
            below = [self.depends[s] for s in operands(node)]
            merged: frozenset[Binder] = frozenset().union(*below)
            first = _CLOSES.get(node.op)
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
            self.depends[node] = merged
            mask = 0
            for s in operands(node):
                mask |= self.stores[s]
            if node.op is Op.Store:
                self.bit[node] = 1 << len(self.bit)
                mask |= self.bit[node]
            self.stores[node] = mask

    def _binders(self, closed: UOp) -> list[Binder]:
        """The ranges that a binder operand closes."""
        if closed.op is Op.Range:
            return [closed]
        return sorted(self.depends[closed], key=lambda b: (0, b.serial) if isinstance(b, UOp) else (1, b[1]))

    # Running.

    def workgroups(self) -> Iterable[None]:
        """Every workgroup in turn, with its threads; one of one thread where there is no Special."""
        ends = []
        for s in self.specials:
            end = known(run_tasks(self.value(s.src[0]))[0][0])
            ends.append(range(end))
        local = [s.arg.startswith("lidx") for s in self.specials]
        outer = [(s, e) for s, e, inside in zip(self.specials, ends, local, strict=True) if not inside]
        inner = [(s, e) for s, e, inside in zip(self.specials, ends, local, strict=True) if inside]
        for at in itertools.product(*[e for _, e in outer]):
            group = {s: i for (s, _), i in zip(outer, at, strict=True)}
            self.threads = [
                {**group, **{s: i for (s, _), i in zip(inner, t, strict=True)}} for t in itertools.product(*[e for _, e in inner])
            ]
            self.frames = [_Frame(None, [True] * len(self.threads))]
            self.memory.new_workgroup()
            yield

    def _frame(self, node: UOp) -> _Frame:
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

    def value(self, node: UOp) -> Task:
        """The lanes of `node`, for each thread."""
        return self._once(node, node, self._value)

    def place(self, node: UOp) -> Task:
        """The places that `node` stands for, one a lane, for each thread."""
        return self._once(node, (node, "place"), self._place)

    def execute(self, node: UOp) -> Task:
        """Do what `node` does, for its effect."""
        return self._once(node, (node, "effect"), self._execute)

    def _once(self, node: UOp, key: Any, compute: Callable[[UOp], Task]) -> Task:
        memo = self._frame(node).memo
        found = memo.get(key)
        if found is None:
            found = yield from compute(node)
            memo[key] = found
        return found

    def _loop(self, closed: Sequence[UOp], active: list[bool], body: Callable[[list[bool]], Task]) -> Task:
        """`body` for every iteration of the ranges that `closed` stands for, the first outermost."""
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
        yield self._nest([(b, sizes.get(b, 0)) for b in binders], 0, active, body)

    def _nest(
        self, binders: list[tuple[Binder, int]], depth: int, active: list[bool], body: Callable[[list[bool]], Task]
    ) -> Task:
        if depth == len(binders):
            yield body(active)
            return
        binder, size = binders[depth]
        ends = [size] * len(active)
        if isinstance(binder, UOp):
            for d in binder.src[1:]:
                yield self.execute(d)
            ends = [e[0] for e in (yield self.value(binder.src[0]))]
        frame = _Frame(binder, active)
        self.frames.append(frame)
        for i in range(max([known(e) for e, a in zip(ends, active, strict=True) if a], default=0)):
            frame.at = i
            frame.active = [a and i < e for a, e in zip(active, ends, strict=True)]
            frame.memo = {}
            yield self._nest(binders, depth + 1, frame.active, body)
        self.frames.pop()

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
            return [(self._variable(node),) * count] * len(each)
        if op is Op.Range:
            return [(self.bound(node),)] * len(each)
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
        if op in NAMED or op in ALLOCATED or op in _MOVEMENT or op is Op.Bufferize or op is Op.ReduceAxis:
            raise IRError(f"{op.name} is no scalar", hint="interpret.tensor gives the value of tensor-level graphs")
        vs: list[PerThread] = []
        for s in src:
            vs.append((yield self.value(s)))
        return [scalar_value(node, [v[t] for v in vs]) for t in each]

    def _variable(self, node: UOp) -> Any:
        name = node.arg[0]
        if node in self.variables:
            v = self.variables[node]
        elif name in self.variables:
            v = self.variables[name]
        else:
            raise IRError(f"variable {name} has no value")
        if not node.dtype.is_float and not node.vmin <= v <= node.vmax:
            raise IRError(f"variable {name} lies in {node.vmin}..={node.vmax}, not {v}")
        return v

    def _special(self, node: UOp, thread: int) -> int:
        found = self.threads[thread].get(node)
        return self.bound(node) if found is None else found

    def _read(self, node: UOp, places: PerThread, alt: PerThread | None) -> PerThread:
        out = []
        for t, at in enumerate(places):
            lanes = []
            for i, p in enumerate(consecutive(at, node.dtype.count)):
                if p is INVALID and alt is not None:
                    lanes.append(_lane(alt[t], i))
                elif isinstance(p, Pointer) and self._unordered(p, node):
                    lanes.append(Poison(f"element {p.offset} of {p.storage.node.op.name} is stored and read in no order", node))
                else:
                    lanes.append(self.memory.load(p, node, t))
            out.append(tuple(lanes))
        return out

    def _unordered(self, at: Pointer, node: UOp) -> bool:
        """Whether the last store to `at` is not ordered before `node`, which reads it."""
        if at.storage.space is not AddrSpace.GLOBAL:
            return False
        writer = at.storage.writers.get(at.offset)
        return writer is not None and not self.stores[node] & self.bit.get(writer, 0) and not _carried(node)

    def _reduce(self, node: UOp) -> Task:
        d = node.dtype.scalar()
        op = node.arg
        start = [(_identity(node),) * node.dtype.count] * len(self.threads)
        total = list(start)
        group = node.src[0].dtype.count // node.dtype.count

        def body(active: list[bool]) -> Task:
            part = yield self.value(node.src[0])
            for t, lanes in enumerate(part):
                if active[t]:
                    # lanes of one result lie side by side
                    total[t] = tuple([fold(op, d, a, lanes[i * group : (i + 1) * group], node) for i, a in enumerate(total[t])])

        yield self._loop(node.src[1:], self._frame(node).active, body)
        return [tuple([Poison("over no index", node) if v is _NOTHING else v for v in lanes]) for lanes in total]

    def _lanes(self, node: UOp, get: Callable[[UOp], Task]) -> Task:
        """Unroll picks the lanes of the present iteration of its axes; Contract collects those of all iterations."""
        src = node.src[0]
        if node.op is Op.Unroll:
            at = 0
            for axis, size in node.arg:
                at = at * size + self.bound(("axis", axis))
            count = node.dtype.count
            whole = yield get(src)
            return [lanes[at * count : (at + 1) * count] for lanes in whole]
        collected: list[list[Any]] = [[] for _ in self.threads]

        def body(active: list[bool]) -> Task:
            part = yield get(src)
            for t, lanes in enumerate(part):
                collected[t].extend(lanes)

        yield self._nest([(("axis", a), n) for a, n in node.arg], 0, [True] * len(self.threads), body)
        return [tuple(c) for c in collected]

    # Places.

    def _place(self, node: UOp) -> Task:
        op, src = node.op, node.src
        if op is Op.Index:
            return (yield from self._index(node))
        if op in (Op.PtrCat, Op.Vectorize, Op.Cat):
            out: list[list[Any]] = [[] for _ in self.threads]
            for s in src:
                for t, lanes in enumerate((yield self.place(s))):
                    out[t].extend(lanes)
            return [tuple(o) for o in out]
        if op is Op.Gep:
            return [tuple([lanes[i] for i in node.arg]) for lanes in (yield self.place(src[0]))]
        if op is Op.Unroll or op is Op.Contract:
            return (yield from self._lanes(node, self.place))
        if op is Op.After or op is Op.Barrier:
            yield self.execute(node)
            return (yield self.place(src[0]))
        if op is Op.Cast or op in _THROUGH:
            return (yield self.place(src[0]))
        if op is Op.PointerIndex:
            base = yield self.place(src[0])
            steps = yield self.value(src[1])
            return [tuple([_moved(p, s[0]) for p in at]) for at, s in zip(base, steps, strict=True)]
        if op in NAMED or op in ALLOCATED:
            return [(Pointer(self.memory.of(node, t), 0),) for t in range(len(self.threads))]
        raise IRError(f"{op.name} is no place")

    def _index(self, node: UOp) -> Task:
        indices = list(node.src[1:])
        gate = indices.pop() if node.arg else None
        at = []
        for i in indices:
            at.append((yield self.value(i)))
        gates = (yield self.value(gate)) if gate is not None else None
        out = []
        for t in range(len(self.threads)):
            lanes = max([len(i[t]) for i in at], default=1)
            places: list[Any] = []
            for n in range(lanes):
                vector = [_lane(i[t], n) for i in at]
                open_ = True if gates is None else _lane(gates[t], n)
                count = element(node.src[0].dtype).count
                if open_.__class__ is Poison:
                    places += [open_] * count
                elif not open_:
                    places += [INVALID] * count
                else:
                    places += yield self.locate(node.src[0], vector, t, node)
            out.append(tuple(places))
        return out

    def locate(self, node: UOp, at: list[Any], thread: int, reader: UOp) -> Task:
        """The place of the element `at` of `node`, following views down to storage; one a lane of the element."""
        while True:
            op, src = node.op, node.src
            bad = next((v for v in at if v.__class__ is Poison), None)
            if bad is not None:
                return [bad] * element(node.dtype).count
            if INVALID in at:
                return [INVALID] * element(node.dtype).count
            if op is Op.After or op is Op.Barrier:
                yield self.execute(node)
                node = src[0]
            elif op in _THROUGH or op is Op.Assign:
                if op is Op.Assign:
                    yield self.execute(node)
                node = src[0]
            elif op in _MOVEMENT:
                at = yield from self._through(node, at)
                node = src[0]
            elif op is Op.Index:
                more = list(src[1:])
                if node.arg:
                    gate = yield self.value(more.pop())
                    if not known(gate[thread][0]):
                        return [INVALID] * element(node.dtype).count
                outer = []
                for i in more:
                    outer.append((yield self.value(i))[thread][0])
                at, node = outer + at, src[0]
            elif op is Op.BufferView:
                at, node = [self._flat(at, [node.arg[1]], node) + node.arg[0]], src[0]
            elif op in NAMED or op in ALLOCATED:
                storage = self.memory.of(node, thread)
                base = element(node.dtype)
                offset = self._flat(at, [len(storage.data) // base.count], node)
                return [Pointer(storage, offset * base.count + i) for i in range(base.count)]
            elif op is Op.Bufferize:
                return (yield from self._bufferized(node, at, thread))
            elif op is Op.If or node.dtype.kind == "void":
                raise IRError(f"{reader.op.name} into {op.name}: not a place in memory")
            else:
                return (yield from self._computed(node, at))

    def _computed(self, node: UOp, at: list[Any]) -> Task:
        """An element of a tensor-level expression, held in storage of its own."""
        from morok.ir.interpret.tensors import value_of

        whole = yield value_of(node, self)
        shape = list(whole.shape)
        if len(at) == 1:
            shape = [len(whole.flat)]
        inside = all(0 <= i < n for i, n in zip(at, shape, strict=True))
        v = whole.flat[self._flat(at, shape, node)] if inside else Poison(f"index {at} of {shape}", node)
        return [Pointer(self.memory.temporary(node, (v,)), 0)]

    def _flat(self, at: list[Any], shape: list[int], node: UOp) -> int:
        """Row-major; a multi-dimensional index needs a shape to flatten by."""
        if len(at) == 1:
            return int(at[0])
        if len(at) != len(shape):
            raise IRError(f"{len(at)} indices into {node.op.name}, which has one dimension")
        flat = 0
        for i, n in zip(at, shape, strict=True):
            flat = flat * n + i
        return flat

    def shape(self, node: UOp) -> Task:
        """The shape of a tensor-level node as numbers."""
        out = []
        for d in node.shape:
            out.append(known((yield self.value(d))[0][0]) if isinstance(d, UOp) else d)
        return out

    def _through(self, node: UOp, at: list[Any]) -> Task:
        """The index into the operand of a view that `at` into the view reads."""
        op = node.op
        below = yield self.shape(node.src[0])
        if op is Op.Reshape:
            flat = 0
            for i, n in zip(at, (yield self.shape(node)), strict=True):
                if not 0 <= i < n:
                    return [Poison(f"index {i} of {n}", node)]
                flat = flat * n + i
            out = []
            for n in reversed(below):
                out.append(flat % n)
                flat //= n
            return out[::-1]
        if op is Op.Permute:
            return [at[node.arg.index(k)] for k in range(len(below))]
        if op is Op.Expand:
            return [0 if n == 1 else i for i, n in zip(at, below, strict=True)]
        if op is Op.Flip:
            return [n - 1 - i if turned else i for i, n, turned in zip(at, below, node.arg, strict=True)]
        out = []
        for i, n, (begin, _) in zip(at, below, edges(node), strict=True):
            b = known((yield self.value(begin))[0][0])
            moved = i - b if op is Op.Pad else i + b
            out.append(INVALID if op is Op.Pad and not 0 <= moved < n else moved)
        return out

    def _bufferized(self, node: UOp, at: list[Any], thread: int) -> Task:
        """The element of a Bufferize is its source with the ranges bound to the index; held in storage of its own."""
        ranges = [r for r in node.src[1:] if r.op is Op.Range]
        if len(at) == len(node.src) - 1:
            at = [i for i, r in zip(at, node.src[1:], strict=True) if r.op is Op.Range]
        elif len(at) == 1:
            ends = []
            for r in ranges:
                ends.append(known((yield self.value(r.src[0]))[0][0]))
            flat, at = at[0], []
            for n in reversed(ends):
                at.insert(0, flat % n)
                flat //= n
        for r, i in zip(ranges, at, strict=True):
            frame = _Frame(r, self._frame(node).active)
            frame.at = i
            self.frames.append(frame)
        lanes = (yield self.value(node.src[0]))[thread]
        del self.frames[len(self.frames) - len(ranges) :]
        held = self.memory.temporary(node, lanes)
        return [Pointer(held, i) for i in range(len(lanes))]

    # Statements.

    def _execute(self, node: UOp) -> Task:
        op, src = node.op, node.src
        active = self._frame(node).active
        if op is Op.End:
            yield self._loop(src[1:], active, lambda _: self.execute(src[0]))
        elif op is Op.Store:
            yield self._loop(src[2:], active, lambda on: self._store(node, on))
        elif op is Op.After:
            for s in src[1:]:
                yield self.execute(s)
            if src[0].dtype.kind == "void":
                yield self.execute(src[0])
        elif op is Op.Barrier:
            for s in src:
                yield self.execute(s)
            self.memory.epoch += 1
        elif op is Op.If:
            raise IRError("If stands in instruction lists only", hint="interpret.run_instructions")
        elif op is Op.Contract and node.dtype.kind == "void":
            yield self._nest([(("axis", a), n) for a, n in node.arg], 0, active, lambda _: self.execute(src[0]))
        elif op is Op.Kernel:
            yield from self._kernel(node)
        elif op is Op.Assign:
            yield from self._assign(node)
        elif op in _ORDERED or node.dtype.kind == "void":
            for s in src:
                yield self.execute(s)
        elif op not in NAMED and op not in ALLOCATED and op not in _MOVEMENT and op not in (Op.Range, Op.Special, Op.Bufferize):
            yield self.value(node)
        return True

    def _store(self, node: UOp, active: list[bool]) -> Task:
        at = yield self.place(node.src[0])
        value = yield self.value(node.src[1])
        for t, on in enumerate(active):
            if on:
                lanes = value[t]
                places = consecutive(at[t], len(lanes))
                for i, p in enumerate(places):
                    self.memory.store(p, lanes[i] if len(lanes) > 1 else lanes[0], node, t)
        return True

    def _kernel(self, node: UOp) -> Task:
        """Run a kernel's program on the storage of its sources, slot by slot; bound variables get their values."""
        inside: Buffers = {}
        variables: dict[Any, Any] = dict(self.variables)
        for s in node.src[1:]:
            if s.op is Op.Bind:
                variables[s.src[0].arg[0]] = s.src[1].arg
            elif s.op is Op.DefineVar:
                variables[s.arg[0]] = self._variable(s)
            else:
                at = yield self.locate(s, [0], 0, node)
                pointer = known(at[0])
                assert isinstance(pointer, Pointer)
                inside[len(inside)] = pointer.storage.data if pointer.offset == 0 else View(pointer.storage.data, pointer.offset)
        execute_graph(node.src[0], inside, variables)

    def _assign(self, node: UOp) -> Task:
        from morok.ir.interpret.tensors import value_of

        shape = yield self.shape(node.src[0])
        new = (yield value_of(node.src[1], self)).flat
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


_NOTHING: Final = object()  # a fold that has seen no value and has no identity


def _identity(node: UOp) -> Any:
    d = node.dtype.scalar()
    return _NOTHING if d.is_index and node.arg in (Op.Max, Op.Min) else identity(node.arg, d)


def fold(op: Op, d: Any, start: Any, lanes: Sequence[Any], node: UOp) -> Any:
    for v in lanes:
        start = v if start is _NOTHING else V.combine(op, d, start, v, node)
    return start


def _lane(lanes: Lanes, i: int) -> Any:
    return lanes[i] if len(lanes) > 1 else lanes[0]


def _moved(at: Any, step: Any) -> Any:
    if at.__class__ is Poison or at is INVALID:
        return at
    if step.__class__ is Poison or step is INVALID:
        return step
    return Pointer(at.storage, at.offset + step)


def _carried(node: UOp) -> bool:
    """Whether `node` reads what an earlier iteration left: its place comes after a range."""
    place = node.src[0] if node.op is Op.Load else node
    base = place.src[0] if place.src else place
    return base.op is Op.After and any(d.op is Op.Range for d in base.src[1:])


def operands(node: UOp) -> tuple[UOp, ...]:
    """The operands in the same program: a kernel's own program is another."""
    return node.src[1:] if node.op is Op.Kernel else node.src


def order(roots: Iterable[UOp], below: Callable[[UOp], Sequence[UOp]] = operands) -> list[UOp]:
    """Every node of the program below `roots`, operands first."""
    seen: set[UOp] = set()
    out: list[UOp] = []
    stack = [(r, False) for r in roots]
    while stack:
        node, ready = stack.pop()
        if ready:
            out.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend([(s, False) for s in below(node) if s not in seen])
    return out


def scalar_value(node: UOp, vs: list[Lanes]) -> Lanes:
    """The value of a node that only its operands' values determine."""
    op = node.op
    if node.entry.pointwise:
        return V.pointwise(node, vs)
    if op is Op.Vectorize or op is Op.Cat:
        return tuple([v for lanes in vs for v in lanes])
    if op is Op.Gep:
        return tuple([vs[0][i] for i in node.arg])
    if op is Op.Bitcast or (op is Op.Precast and node.dtype is not node.src[0].dtype):
        return V.bitcast(node, vs[0])
    if op in _THROUGH or op is Op.Precast or op is Op.Noop:
        return vs[0]
    if op is Op.Wmma:
        return node.arg.multiply(vs[0], vs[1], vs[2])  # type: ignore[no-any-return]
    raise IRError(f"{op.name} has no value that can be interpreted")


def execute_graph(root: UOp, buffers: Buffers, variables: Mapping[Any, Any]) -> None:
    memory = Memory(buffers)
    graph = Graph([root], memory, variables)
    for _ in graph.workgroups():
        run_tasks(graph.execute(root))
    memory.check()
