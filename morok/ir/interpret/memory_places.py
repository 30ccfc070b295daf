"""Places of the interpreter: from an index to memory, through views."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final

from morok.errors import IRError, ShapeError
from morok.ir.interpret.concrete_views import shape_of_view, view_of
from morok.ir.interpret.iteration import Frame, Loops, Task, binder
from morok.ir.interpret.lane_values import INVALID, Pointer, Poison, known
from morok.ir.interpret.storage import ALLOCATED, NAMED, Sources, element
from morok.ir.op import Op
from morok.ir.shape import has_shape
from morok.ir.uop import UOp
from morok.lane_roles import join, lane, opened, take
from morok.value_domains import index_at, row_major

THROUGH: Final = frozenset({Op.Contiguous, Op.ContiguousBackward, Op.Detach, Op.Copy})
_STORAGE: Final = NAMED | ALLOCATED
MOVEMENT: Final = frozenset({Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip})


class Places(Loops):
    """The places that nodes denote."""

    @abstractmethod
    def tensor(self, node: UOp) -> Task:
        """The value of a tensor-level node: its elements, `flat` in row-major order, and its `shape`."""

    @abstractmethod
    def sources(self, node: UOp) -> list[Sources]:
        """The reads that each lane of a value was computed from, for each thread."""

    @abstractmethod
    def took(self, node: UOp, get: Callable[[UOp], Task]) -> None:
        """Keep the reads that `node` depends on by the present iteration of its first operand, a value or a place."""

    def part(self, node: UOp) -> list[Any]:
        """The number of the lanes that an Unroll has at the present iteration of its axes, for each thread."""
        threads = len(self.threads)
        at = [self.iteration(("axis", axis), [n] * threads, node) for axis, n in node.arg]
        out = []
        for t in range(threads):
            index = [numbers[t] for numbers in at]
            bad = next((i for i in index if i.__class__ is Poison), None)
            out.append(row_major(0, index, [n for _, n in node.arg]) if bad is None else bad)
        return out

    def _lanes(self, node: UOp, get: Callable[[UOp], Task]) -> Task:
        """Unroll picks the lanes of the present iteration of its axes; Contract collects those of all iterations."""
        src = node.src[0]
        if node.op is Op.Unroll:
            count, at = node.dtype.count, self.part(node)
            whole = yield get(src)
            return [
                (k,) * count if isinstance(k, Poison) else opened(v, k, count) for k, v in zip(at, whole, strict=True)
            ]
        parts: list[list[Any]] = []

        def body(active: list[bool]) -> Task:
            parts.append((yield get(src)))
            self.took(node, get)

        yield self._nest({("axis", a): [n] for a, n in node.arg}, [True] * len(self.threads), body)
        return [join([part[t] for part in parts]) for t in range(len(self.threads))]

    def _place(self, node: UOp) -> Task:
        op, src = node.op, node.src
        if op is Op.Index:
            return (yield from self._index(node))
        if op in (Op.PtrCat, Op.Vectorize, Op.Cat):
            parts = []
            for s in src:
                parts.append((yield self.place(s)))
            return list(map(join, zip(*parts, strict=True)))
        if op is Op.Gep:
            return [take(lanes, node.arg) for lanes in (yield self.place(src[0]))]
        if op is Op.Unroll or op is Op.Contract:
            return (yield from self._lanes(node, self.place))
        if op is Op.After or op is Op.Barrier:
            yield self.execute(node)
            return (yield self.place(src[0]))
        if op is Op.Cast or op in THROUGH:
            return (yield self.place(src[0]))
        if op is Op.PointerIndex:
            base = yield self.place(src[0])
            steps = yield self.value(src[1])
            return [tuple([_moved(p, s[0]) for p in at]) for at, s in zip(base, steps, strict=True)]
        if op in NAMED or op in ALLOCATED:
            return [(Pointer(self.memory.storage_of(node, t), 0),) for t in range(len(self.threads))]
        raise IRError(
            f"{op.name} is no place in memory",
            expected="an Index, or a buffer",
            hint="Index(buffer, i) is the place of an element",
        )

    def _index(self, node: UOp) -> Task:
        indices = list(node.src[1:])
        gate = indices.pop() if node.arg else None
        at = []
        for i in indices:
            at.append(self.ready(i) or (yield self.value(i)))
        gates = (yield self.value(gate)) if gate is not None else None
        out = []
        for t in range(len(self.threads)):
            lanes = max([len(i[t]) for i in at], default=1)
            places: list[Any] = []
            count = element(node.src[0].dtype).count
            for n in range(lanes):
                vector = [lane(i[t], n) for i in at]
                open_ = True if gates is None else lane(gates[t], n)
                if open_.__class__ is Poison:
                    places += [open_] * count
                elif not open_:
                    places += [INVALID] * count
                elif node.src[0].op in _STORAGE and len(vector) == 1 and vector[0].__class__ is int:
                    storage = self.memory.storage_of(node.src[0], t)
                    places += [Pointer(storage, vector[0] * count + i) for i in range(count)]
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
            if INVALID in at and not _is_place(node):
                return [INVALID] * element(node.dtype).count
            if op is Op.After or op is Op.Barrier:
                yield self.execute(node)
                node = src[0]
            elif op in THROUGH or op is Op.Assign:
                if op is Op.Assign:
                    yield self.execute(node)
                node = src[0]
            elif op in MOVEMENT:
                at = yield from self._through(node, at)
                node = src[0]
            elif op is Op.Index:
                more = list(src[1:])
                if node.arg:
                    open_ = (yield self.value(more.pop()))[thread][0]
                    if open_.__class__ is Poison or not open_:
                        return [open_ or INVALID] * element(node.dtype).count
                outer = []
                for i in more:
                    outer.append((yield self.value(i))[thread][0])
                at, node = outer + at, src[0]
            elif op is Op.BufferView:
                at, node = [self._flat(at, [node.arg[1]], node) + node.arg[0]], src[0]
            elif op in NAMED or op in ALLOCATED:
                storage = self.memory.storage_of(node, thread)
                base = element(node.dtype)
                offset = self._flat(at, [len(storage.data) // base.count], node)
                return [Pointer(storage, offset * base.count + i) for i in range(base.count)]
            elif op is Op.Bufferize:
                return (yield from self._bufferized(node, at, thread))
            elif op is Op.If or node.dtype.kind == "void":
                raise IRError(
                    f"{reader.op.name} of {op.name}, which has no elements",
                    expected="a buffer, or an expression with a shape",
                )
            else:
                return (yield from self._computed(node, at))

    def _computed(self, node: UOp, at: list[Any]) -> Task:
        """An element of a tensor-level expression, held in storage of its own."""
        whole = yield self.tensor(node)
        shape = list(whole.shape)
        if len(at) != len(shape):
            raise IRError(f"{len(at)} indices into {node.op.name}", expected=f"one for each of its {len(shape)} axes")
        inside = all(0 <= i < n for i, n in zip(at, shape, strict=True))
        v = whole.flat[self._flat(at, shape, node)] if inside else Poison(f"index {at} of {shape}", node)
        return [Pointer(self.memory.temporary(node, (v,)), 0)]

    def _flat(self, at: list[Any], shape: list[int], node: UOp) -> int:
        """The row-major number of an index; IRError if it has several dimensions, and `shape` has not as many."""
        if len(at) == 1:
            return int(at[0])
        if len(at) != len(shape):
            raise IRError(f"{len(at)} indices into {node.op.name}", expected="one flat index")
        place: int = row_major(0, at, shape)
        return place

    def shape(self, node: UOp) -> Task:
        """The shape of a tensor-level node as numbers."""
        out = []
        for d in node.shape:
            out.append(dimension((yield self.value(d))[0][0], d) if isinstance(d, UOp) else d)
        return out

    def _through(self, node: UOp, at: list[Any]) -> Task:
        """The index into a view's operand of the element at index `at` of the view."""
        op = node.op
        _one_an_axis(at, node)
        below = yield self.shape(node.src[0])
        if op is Op.Reshape:
            shape = yield self.shape(node)
            if has_shape(node.src[0]) and math.prod(shape) != math.prod(below):
                raise ShapeError(f"Reshape of {tuple(below)} to {tuple(shape)}", expected="as many elements in both")
            outside = _outside(at, shape)
            if outside or min(below, default=1) < 1:
                return [Poison(outside or f"an element of shape {below}", node)]
            return index_at(row_major(0, at, shape), below, divmod)
        if len(at) != len(below):
            raise IRError(
                f"{len(at)} indices into {node.src[0].op.name}", expected=f"one for each of its {len(below)} axes"
            )
        numbers = []
        for s in node.src[1:]:
            numbers.append(dimension((self.ready(s) or (yield self.value(s)))[0][0], s))
        view = view_of(node, below, numbers)
        outside = _outside(at, shape_of_view(node, view, below, numbers))
        if outside:
            return [Poison(outside, node)]
        out = []
        for k in range(len(below)):
            i = at[view.follows(k)]
            out.append(INVALID if view.inside is not None and not view.inside(k, i) else view.place(k, i))
        return out

    def _bufferized(self, node: UOp, at: list[Any], thread: int) -> Task:
        """The element of a Bufferize: its source with the ranges bound to the index, held in storage of its own."""
        ranges = [r for r in node.src[1:] if r.op is Op.Range]
        if len(at) == len(node.src) - 1:
            at = [i for i, r in zip(at, node.src[1:], strict=True) if r.op is Op.Range]
        elif len(at) == 1:
            ends = []
            for r in ranges:
                ends.append(known((yield self.value(r.src[0]))[0][0]))
            at = index_at(at[0], ends, divmod)
        for r, i in zip(ranges, at, strict=True):
            frame = Frame(binder(r), self._frame(node).active)
            frame.at = i
            self.frames.append(frame)
        lanes = (yield self.value(node.src[0]))[thread]
        sources = self.sources(node.src[0])[thread]
        del self.frames[len(self.frames) - len(ranges) :]
        held = self.memory.temporary(node, lanes, sources)
        return [Pointer(held, i) for i in range(len(lanes))]


def _is_place(storage: UOp) -> bool:
    """True if storage is a place itself: its own indices and gate are looked at, also where an index into it is Invalid."""
    while storage.op in THROUGH or storage.op in (Op.After, Op.Barrier, Op.Assign):
        storage = storage.src[0]
    return storage.op is Op.Index


def dimension(value: Any, node: UOp) -> int:
    """The value of a node as a size; IRError if it is Invalid, UndefinedError if it has none."""
    size = known(value)
    if size is INVALID:
        raise IRError(f"a size, {node.op.name}, is Invalid", expected="a number")
    return int(size)


def _outside(at: list[Any], shape: Sequence[int]) -> str:
    """The index that is not inside of a shape, in words; nothing if all are."""
    return next((f"index {i} of {n}" for i, n in zip(at, shape, strict=True) if not 0 <= i < n), "")


def _one_an_axis(at: list[Any], node: UOp) -> None:
    if len(at) != len(node.shape):
        raise IRError(f"{len(at)} indices into {node.op.name}", expected=f"one for each of its {len(node.shape)} axes")


def _moved(at: Any, step: Any) -> Any:
    if at.__class__ is Poison or at is INVALID:
        return at
    if step.__class__ is Poison or step is INVALID:
        return step
    return Pointer(at.storage, at.offset + step)
