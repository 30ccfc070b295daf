"""The interpreter of tensor-level graphs: a value is a flat row-major list of elements and a shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from morok.errors import IRError, ShapeError
from morok.ir.interpret import lane_values as V
from morok.ir.interpret.concrete_views import VIEWS, places, shape_of_view, view_of
from morok.ir.interpret.iteration import Task
from morok.ir.interpret.lane_values import Poison, scalar_value, zero
from morok.ir.interpret.memory_places import Places, dimension
from morok.ir.interpret.step_limit import Steps
from morok.ir.interpret.storage import ALLOCATED, NAMED, element
from morok.ir.interpret.walk import operands, order
from morok.ir.op import Op
from morok.ir.ops.loop import identity
from morok.ir.uop import UOp
from morok.value_domains import INTEGERS, row_major
from morok.view_meanings import concat

Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """Elements in row-major order. A value on several devices has an Array for each of them."""

    flat: list[Any]
    shape: Index
    devices: tuple[Array, ...] = ()

    def at(self, index: Index) -> Any:
        return self.flat[row_major(0, index, self.shape)]


def take(shape: Index, steps: Steps) -> None:
    """Take a step for each element. IRError for more than _MOST elements."""
    if max([math.prod(shape), *shape]) > _MOST:
        raise IRError(f"a tensor of shape {shape} is interpreted", expected=f"at most {_MOST} elements")
    steps.take(math.prod(shape))


def indices(shape: Index, steps: Steps) -> Iterator[Index]:
    """The indices of a tensor in row-major order, a step each."""
    take(shape, steps)
    return itertools.product(*[range(n) for n in shape])


_MOST: Final = 1 << 26  # elements
_SAME: Final = frozenset({Op.Contiguous, Op.ContiguousBackward, Op.Detach, Op.Copy, Op.MSelect})
# Nodes with one scalar as value, which the interpreter of loops computes.
_SCALAR: Final = frozenset({Op.DefineVar, Op.Bind, Op.Range, Op.Special, Op.Index, Op.Load, Op.Reduce})


# Nodes that do not take the values of their operands as tensors.
_OPAQUE: Final = _SCALAR | NAMED | ALLOCATED | {Op.After, Op.Barrier, Op.Assign, Op.Bufferize, Op.Kernel}


def value_of(root: UOp, graph: Places) -> Task:
    """The value of a tensor-level node."""
    values: dict[UOp, Array | None] = {}
    for node in order([root], lambda n: () if n.op in _OPAQUE else operands(n)):
        values[node] = yield from _array(node, values, graph)
    found = values[root]
    if found is None:
        raise IRError(
            f"{root.op.name} has no elements", expected="a node with a value", hint="interpret.run runs statements"
        )
    return found


def _size(node: UOp, values: dict[UOp, Array | None]) -> int:
    found = values[node]
    if found is None or found.shape:
        raise IRError(f"{node.op.name} is no size of an axis", expected="a number, or an expression of one")
    return dimension(found.flat[0], node)


def _array(node: UOp, values: dict[UOp, Array | None], graph: Places) -> Task:
    op, src = node.op, node.src
    if op in NAMED or op in ALLOCATED:
        storage = graph.memory.storage_of(node, 0)
        if element(node.dtype).count != 1:
            raise IRError(f"the elements of {node.op.name} are vectors", expected="scalars: a tensor has no lanes")
        shape = tuple([d for d in node.shape if isinstance(d, int)]) or (len(storage.data),)
        return Array([storage.data[i] for i in range(math.prod(shape))], shape)
    if node.dtype.kind == "void":
        return None
    if op is Op.Const:
        return Array([node.arg], ())
    if op in _SCALAR:
        return Array([(yield graph.value(node))[0][0]], ())
    if op is Op.After or op is Op.Barrier or op is Op.Assign:
        yield graph.execute(node)
        return (yield value_of(src[0], graph))  # what is in memory now
    if op is Op.Bufferize:
        return (yield from _bufferize(node, graph))
    if op is Op.Iota:
        n = _size(src[0], values)
        if n < 0:
            raise ShapeError(f"an Iota of {n} numbers", expected="at least 0")
        return Array([i for (i,) in indices((n,), graph.steps)], (n,))
    below = values[src[0]] if src else None
    if below is None:
        if op in (Op.Multi, Op.MStack) and src:
            raise IRError(f"{op.name} of {src[0].op.name}, which has no elements", expected="a tensor for each device")
        raise IRError(f"{op.name} has no value as a tensor", expected="an op with elements")
    if op is Op.MSelect:
        return _on_device(below, node.arg)
    if op is Op.MStack or op is Op.Multi:
        parts = tuple([a for k, s in enumerate(src) if (a := _on_device(values[s], k)) is not None])
        return Array(parts[0].flat, parts[0].shape, parts) if op is Op.MStack else _joined(list(parts), node.arg)
    if op is Op.AllReduce and below.devices:
        return _all_reduce(node, below)
    widths = {len(a.devices) for s in src if (a := values[s]) is not None and a.devices}
    if len(widths) > 1:
        raise IRError(
            f"{op.name} of values on {' and '.join(map(str, sorted(widths)))} devices",
            expected="the same number of devices",
        )
    if widths:
        mapped = tuple(
            [_result(node, [_on_device(values[s], i) for s in src], values, graph.steps) for i in range(widths.pop())]
        )
        return Array(mapped[0].flat, mapped[0].shape, mapped)
    return _result(node, [values[s] for s in src], values, graph.steps)


def _on_device(a: Array | None, i: int) -> Array | None:
    """The value on a device; one that is on no device in particular is the same on each."""
    if a is None or not a.devices:
        return a
    if not 0 <= i < len(a.devices):
        raise IRError(
            f"there is no device {i} of a value on {len(a.devices)} devices",
            expected=f"a number below {len(a.devices)}",
        )
    return a.devices[i]


def _result(node: UOp, below: list[Array | None], values: dict[UOp, Array | None], steps: Steps) -> Array:
    op, src = node.op, node.src
    x = below[0]
    assert x is not None
    if op in _SAME:
        return x
    if op is Op.Reshape:
        shape = tuple([_size(s, values) for s in src[1:]])
        if math.prod(shape) != len(x.flat) or min(shape, default=0) < 0:
            raise ShapeError(f"Reshape of {x.shape} to {shape}", expected="as many elements in both")
        return Array(x.flat, shape)
    if op in VIEWS:
        return _viewed(node, x, tuple([_size(s, values) for s in src[1:]]), steps)
    if op is Op.ReduceAxis:
        return _reduced(steps, node, x)
    if op is Op.BufferView:
        offset, size = node.arg
        if offset + size > len(x.flat):
            raise IRError(
                f"a BufferView of elements {offset}..{offset + size} of a buffer of {len(x.flat)}",
                expected="elements of the buffer",
            )
        return Array(x.flat[offset : offset + size], (size,))
    if op is Op.AllReduce:
        return x
    if op is Op.Concat:
        return _joined([b for b in below if b is not None], node.arg)
    return _elementwise(steps, node, [b for b in below if b is not None])


def _viewed(node: UOp, x: Array, numbers: Index, steps: Steps) -> Array:
    """The result of a view: elements of `x`, and zeros around. ShapeError for sizes that do not fit."""
    view = view_of(node, x.shape, numbers)
    shape = shape_of_view(node, view, x.shape, numbers)
    take(shape, steps)
    fill = zero(node.dtype.scalar())
    return Array([fill if p is None else x.flat[p] for p in places(view, x.shape, shape)], shape)


def _reduced(steps: Steps, node: UOp, x: Array) -> Array:
    op, axes = node.arg
    d = node.dtype.scalar()
    shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
    totals: dict[Index, Any] = {}
    for at in indices(x.shape, steps):
        kept = tuple([i for k, i in enumerate(at) if k not in axes])
        v = x.at(at)
        totals[kept] = V.combine(op, d, totals[kept], v, node) if kept in totals else v
    nothing = None if totals else _nothing(op, node)
    return Array([totals.get(at, nothing) for at in indices(shape, steps)], shape)


def _nothing(op: Op, node: UOp) -> Any:
    d = node.dtype.scalar()
    return Poison("over no index", node) if d.is_index and op in (Op.Max, Op.Min) else identity(op, d)


def _elementwise(steps: Steps, node: UOp, operands: list[Array]) -> Array:
    """The elementwise value; operands have one shape, and an operand of shape () is broadcast."""
    if any(n.dtype.count != 1 or n.dtype.is_ptr for n in (node, *node.src)):
        raise IRError(
            f"the elements of {node.op.name}, or of an operand, are vectors or pointers",
            expected="scalars: a tensor has no lanes",
        )
    shape = next((a.shape for a in operands if a.shape), ())
    for a in operands:
        if a.shape and a.shape != shape:
            raise ShapeError(
                f"{node.op.name} of shapes {', '.join(str(a.shape) for a in operands)}",
                expected="one shape, or scalars beside it",
                hint="Expand repeats elements",
            )
    out = []
    steps.take(math.prod(shape))
    for i in range(math.prod(shape)):
        vs = [(a.flat[i if a.shape else 0],) for a in operands]
        out.append(scalar_value(node, vs)[0])
    return Array(out, shape)


def _joined(parts: list[Array], axis: int) -> Array:
    """The parts concatenated along `axis`; without an axis, the first part, which equals all others."""
    if axis is None:
        return parts[0]
    first = parts[0].shape
    for p in parts[1:]:
        if (p.shape[:axis], p.shape[axis + 1 :]) != (first[:axis], first[axis + 1 :]):
            raise ShapeError(
                f"tensors of shapes {', '.join(str(p.shape) for p in parts)} behind each other along axis {axis}",
                expected="one shape, but for that axis",
            )
    lengths = [p.shape[axis] for p in parts]

    def element(part: int, at: Callable[[int], int]) -> tuple[Array, int]:
        return parts[part], at(axis)

    along = [concat(INTEGERS, axis, lengths, partial(_always, i), element) for i in range(sum(lengths))]
    inner = math.prod(first[axis + 1 :])
    out: list[Any] = []
    for row in range(math.prod(first[:axis])):
        for part, i in along:
            begin = (row * part.shape[axis] + i) * inner
            out += part.flat[begin : begin + inner]
    return Array(out, (*first[:axis], len(along), *first[axis + 1 :]))


def _always(i: int, axis: int) -> int:
    return i


def _all_reduce(node: UOp, x: Array) -> Array:
    d = node.dtype.scalar()
    flat = list(x.devices[0].flat)
    for part in x.devices[1:]:
        flat = [V.combine(node.arg, d, a, b, node) for a, b in zip(flat, part.flat, strict=True)]
    whole = Array(flat, x.shape)
    return Array(flat, x.shape, tuple([whole] * len(x.devices)))


def _bufferize(node: UOp, graph: Places) -> Task:
    """A Bufferize as a tensor: one axis a range; a constant in place of a range is an axis of one element."""
    shape = []
    for r in node.src[1:]:
        shape.append(dimension((yield graph.value(r.src[0]))[0][0], r) if r.op is Op.Range else 1)
    out = []
    for at in indices(tuple(shape), graph.steps):
        place = (yield graph.locate(node, list(at), 0, node))[0]
        out.append(place if isinstance(place, Poison) else graph.memory.load(place, node, 0))
    return Array(out, tuple(shape))
