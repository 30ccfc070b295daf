"""Kernel splitting: every stored value becomes a kernel of its own.

A Bufferize becomes a Store into a Buffer (phase 1), and the Store with its loops a Kernel (phase 2). In the kernel's Sink buffers
are DefineGlobals, outputs first, and ranges are numbered from 0. Readers of a Buffer that a kernel fills read
After(Buffer, Kernel). Elementwise results over the same ranges that read the same memory are stored by one kernel.

Assignments give a buffer several versions of its contents. The kernels that read a version run after the kernel that writes it,
and before the kernel that overwrites it (morok/passes/assignments.py): After edges express both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from morok.ir.dtype import AddrSpace, DType
from morok.ir.graph import reached
from morok.ir.maker import maker
from morok.ir.op import AxisType, Op
from morok.ir.places import passed
from morok.ir.shape import dim
from morok.ir.uop import UOp
from morok.passes import index_maps
from morok.passes.assignments import assigned, in_order
from morok.passes.rangeify import beside_memory, in_memory, reads_memory
from morok.passes.rebuilding import own_origins
from morok.passes.target import KernelInfo

NewBuffer = Callable[[DType, int], UOp]
Opts = tuple[object, ...]

NO_OPTS: Final[Mapping[UOp, Opts]] = MappingProxyType({})
_INVALID: Final = UOp.invalid_at()
# most buffers of a kernel that stores several values: the streams that a processor can follow at once
MOST_TOGETHER: Final = 8


@dataclass(slots=True)
class Split:
    """The kernels of a graph.

    kernels  Kernel nodes in an order in which they may run; `src` is the Sink, then the buffers by slot: Buffer, or
             After(Buffer, Kernel..) if kernels must run before
    outputs  for each root the Buffer that holds it in the end
    holders  for each Bufferize the Buffer that holds it, under After edges
    sink     Sink(After(Buffer, Kernel)..), one operand for each root
    bindings the Bind nodes in each kernel
    """

    kernels: list[UOp] = field(default_factory=list)
    outputs: list[UOp] = field(default_factory=list)
    holders: dict[UOp, UOp] = field(default_factory=dict)
    sink: UOp | None = None
    bindings: dict[UOp, list[UOp]] = field(default_factory=dict)


def split_kernels(
    sink: UOp,
    new_buffer: NewBuffer,
    most_buffers: int = 0,
    views: Collection[UOp] = (),
    opts: Mapping[UOp, Opts] = NO_OPTS,
) -> Split:
    """The kernels of a rangeified graph.

    new_buffer    makes the nodes of intermediate and output buffers: (dtype, elements) -> node
    most_buffers  results are stored by one kernel only while it has at most so many buffers; 0: no limit of the target
    views         roots that may share memory with another buffer of the same contents; any other root gets its own
    opts          by Bufferize: the optimizations of its kernel, which stores nothing else
    """
    out = Split()
    holders = out.holders
    readers: dict[UOp, list[UOp]] = {}  # Buffer, or After(Buffer, Kernel) -> the kernels that read this version
    contents: dict[UOp, UOp] = {}  # Buffer -> After(Buffer, Kernel), its last assignment
    order = in_order(sink)
    overwritten = {assigned(n) for n in order if n.src[0].op is Op.Assign}
    results = set(sink.src)
    values = results.difference(views)
    groups = {} if overwritten else _store_groups(order, results.difference(opts), most_buffers)
    inner: set[UOp] = set()  # the new buffers that hold no result yet
    with own_origins():
        for node in order:
            if node in holders:
                continue  # stored by an earlier kernel
            maker.origin = node.origin
            alias = _copied(node, holders)
            if (
                alias is not None
                and passed(alias) not in overwritten
                and (node not in values or passed(alias) in inner)
            ):
                holders[node] = alias
                if node in results:
                    inner.discard(passed(alias))
                continue
            nodes = groups.get(node, [node])
            kernel, targets = _kernel(nodes, holders, new_buffer, readers, contents, out, opts.get(node))
            out.kernels.append(kernel)
            for stored, target in zip(nodes, targets, strict=True):
                holders[stored] = UOp.new(Op.After, (target, kernel))
            if node.src[0].op is Op.Assign:
                contents[targets[0]] = holders[node]
            else:
                inner.update(t for n, t in zip(nodes, targets, strict=True) if n not in results)
    out.sink = UOp.sink(*[holders.get(root, root) for root in sink.src])
    out.outputs = [passed(root) for root in out.sink.src]
    return out


def _extent(node: UOp) -> int:
    """The most elements that a Bufferize holds."""
    size = 1
    for r in node.src[1:]:
        size *= int(r.src[0].vmax)
    return size


def _flat(ranges: Sequence[UOp], indices: Sequence[UOp]) -> UOp:
    """The row-major position of `indices` in a value stored over `ranges`."""
    return index_maps.flatten(list(indices), tuple(dim(r.src[0]) for r in ranges))


@dataclass(slots=True)
class _StoreGroup:
    """Values to store by one kernel, which runs at the position of the first, and the memory that they read."""

    members: list[UOp]
    reads: set[UOp]


def _store_groups(order: Sequence[UOp], results: Collection[UOp], most_buffers: int) -> dict[UOp, list[UOp]]:
    """Groups of results to store by one kernel each, keyed by their first member.

    Members are elementwise, over ranges of the same lengths, and read some memory in common; or one reads another, at exactly the
    element that it computes. All other memory that they read is written before the first member.
    """
    if len(results) < 2:
        return {}
    most = min(most_buffers or MOST_TOGETHER, MOST_TOGETHER)
    place = {node: k for k, node in enumerate(order)}
    found: dict[tuple[UOp, tuple[UOp, ...]], _StoreGroup] = {}  # by memory and lengths
    out: dict[UOp, list[UOp]] = {}
    for node in order:
        reads = _reads(node) if node in results else None
        lengths = tuple(r.src[0] for r in node.src[1:])
        if not reads or not lengths:
            continue
        group = next((s for m in reads if (s := found.get((m, lengths))) is not None), None)
        if group is None or not _can_join(group, reads, place, most):
            group = _StoreGroup([], set())
        group.members.append(node)
        group.reads.update(m for m in reads if m not in group.members)
        found[node, lengths] = group
        for memory in reads:
            found[memory, lengths] = group
        if len(group.members) > 1:
            out[group.members[0]] = group.members
    return out


def _can_join(group: _StoreGroup, reads: Mapping[UOp, bool], place: Mapping[UOp, int], most: int) -> bool:
    """True if the kernel of `group` can also store a value that reads the memory `reads`."""
    first = place[group.members[0]]
    others = [s for s in reads if not (s in group.members and reads[s])]
    return all(place.get(s, -1) < first for s in others) and len(group.reads.union(others)) + len(group.members) < most


def _reads(node: UOp) -> dict[UOp, bool] | None:
    """The memory that an elementwise value reads, in order; True for memory that it reads only at the indices that it stores to.

    None for a value with a reduction or a row buffer, and for an assignment, a copy or a constant.
    """
    value = node.src[0]
    if value.op in (Op.Assign, Op.Index, Op.Const):
        return None
    found: dict[UOp, bool] = {}
    for u in reached([value], beside_memory):
        if u.op in (Op.Reduce, Op.Bufferize):
            return None
        if reads_memory(u):
            found[u.src[0]] = found.get(u.src[0], True) and u.src[1:] == node.src[1:] and not u.arg
    return found


def _copied(node: UOp, holders: dict[UOp, UOp]) -> UOp | None:
    """The buffer of which a stored value is an exact copy, element by element: it needs no kernel. None for other values."""
    value, ranges = node.src[0], node.src[1:]
    if value.op is not Op.Index or value.arg:
        return None
    source = value.src[0]
    if in_memory(source):
        if _extent(source) != _extent(node) or _flat(source.src[1:], value.src[1 : len(source.src)]) is not _flat(
            ranges, ranges
        ):
            return None
        return holders[source]
    if source.op is Op.Buffer and source.arg == _extent(node) and value.src[1] is _flat(ranges, ranges):
        return source
    return None


def _kernel(
    nodes: Sequence[UOp],
    holders: dict[UOp, UOp],
    new_buffer: NewBuffer,
    readers: dict[UOp, list[UOp]],
    contents: dict[UOp, UOp],
    out: Split,
    opts: Opts | None = None,
) -> tuple[UOp, list[UOp]]:
    """(Kernel that computes the Bufferizes `nodes`, over ranges of the same lengths; the Buffers that it fills)"""
    node = nodes[0]
    assigns = node.src[0].op is Op.Assign
    if assigns:
        targets = [assigned(node)]
        stores: list[tuple[UOp, UOp]] = [(node.src[0].src[0].src[1], node.src[0].src[1])]
    else:
        targets = [new_buffer(n.dtype, _extent(n)) for n in nodes]
        stores = [(_flat(n.src[1:], n.src[1:]), n.src[0]) for n in nodes]
    body = _Body(nodes, holders, targets)
    body.compute([u for place, value in stores for u in (value, place)])
    maker.origin = node.origin
    done, slots, sources = body.done, body.slots, body.sources
    bodies = [
        slots[target].index(done[place]).store(done[value])
        for target, (place, value) in zip(targets, stores, strict=True)
    ]
    ends = (bodies[0] if len(bodies) == 1 else UOp.new(Op.Group, tuple(bodies))).end(*body.loops)
    name = _name("reduce" if body.folds else "map", list(body.numbered.values()))
    ast = UOp.sink(ends, info=KernelInfo(name, opts))
    inputs = sources[len(targets) :]
    if assigns:
        now = contents.get(targets[0], targets[0])
        sources[0] = now.after(*readers[now]) if now in readers else now
    kernel = UOp.new(Op.Kernel, (ast, *sources), name)
    for s in inputs:
        readers.setdefault(s, []).append(kernel)
    out.bindings[kernel] = body.binds
    return kernel, targets


class _Body:
    """The map from the graph's values to a kernel's, `done`: buffers are DefineGlobals, ranges are numbered from 0.

    nodes    the Bufferizes that the kernel stores, over ranges of the same lengths; `loops` are these ranges in the kernel
    holders  for each Bufferize of other kernels the Buffer that holds it
    slots    for each Buffer its DefineGlobal; `sources` are the Buffers by slot, under After edges
    binds    the Bind nodes in the kernel; `folds`: True if it has a reduction; `rows`: the number of its local buffers
    """

    def __init__(self, nodes: Sequence[UOp], holders: Mapping[UOp, UOp], targets: Sequence[UOp]) -> None:
        self.nodes = nodes
        self.holders = holders
        self.slots = {target: _global(k, target) for k, target in enumerate(targets)}
        self.sources = list(targets)
        ranges = enumerate(nodes[0].src[1:])
        self.numbered = {r: UOp.range(r.src[0], k, AxisType.Loop, renumbered=True) for k, r in ranges}
        self.loops = list(self.numbered.values())
        self.binds: list[UOp] = []
        self.folds = False
        self.rows = 0
        self.done = dict(self.numbered)
        for other in nodes[1:]:
            self.done.update(zip(other.src[1:], self.loops, strict=True))

    def slot(self, storage: UOp) -> UOp:
        """The DefineGlobal of the buffer that an Index reads."""
        holder = self.holders[storage] if storage.op is Op.Bufferize else storage
        buffer = passed(holder)
        if buffer not in self.slots:
            self.slots[buffer] = _global(len(self.slots), buffer)
            self.sources.append(holder)
        return self.slots[buffer]

    def compute(self, values: Sequence[UOp]) -> None:
        """Fill in `done` for these values and all their operands, in order."""
        done = self.done
        stack = list(reversed(values))
        while stack:
            u = stack[-1]
            if u in done:
                stack.pop()
                continue
            reads = reads_memory(u)
            if reads and u.src[0] in self.nodes:  # this kernel stores it as well
                if (value := u.src[0].src[0]) not in done:
                    stack.append(value)
                    continue
                done[u] = done[value]
                continue
            waiting = [s for s in (u.src[1:] if reads else u.src) if s not in done]
            if waiting:  # the ranges of a Reduce are numbered before those inside it, in the order of its axes
                stack.extend(waiting if u.op is not Op.Reduce else waiting[:1] + waiting[:0:-1])
                continue
            stack.pop()
            maker.origin = u.origin
            done[u] = _read(u, self.slot(u.src[0]), [done[s] for s in u.src[1:]]) if reads else self.over(u)

    def over(self, u: UOp) -> UOp:
        """The kernel's form of a node that reads no global memory, once its operands are in `done`."""
        src = tuple([self.done[s] for s in u.src])
        if u.op is Op.Range:
            self.numbered[u] = UOp.range(src[0], len(self.numbered), u.field("axis"), renumbered=True)
            return self.numbered[u]
        if u.op is Op.Bind:
            self.binds.append(u)
            return u.src[0]
        if u.op is Op.Bufferize:
            self.rows += 1
            return _row(u, list(src), self.rows - 1)
        if u.op is Op.Index and u.src[0].op is Op.Bufferize:
            return src[0].index(_place(u.src[0], list(src[1:])))
        self.folds = self.folds or u.op is Op.Reduce
        return u if src == u.src else u.replace(src)


def _row(node: UOp, operands: list[UOp], number: int) -> UOp:
    """The local buffer `number`, after a loop has filled it with the values of a Bufferize inside the kernel."""
    value, *ranges = operands
    buffer = UOp.new(Op.DefineLocal, (), number, node.dtype.ptr(_extent(node), AddrSpace.LOCAL))
    filled = buffer.index(_flat(ranges, ranges)).store(value).end(*ranges)
    return buffer.after(UOp.new(Op.Barrier, (filled,)))


def _global(slot: int, buffer: UOp) -> UOp:
    size = buffer.arg if buffer.op is Op.Buffer else buffer.arg[1]
    return UOp.new(Op.DefineGlobal, (), slot, buffer.dtype.ptr(size))


def _read(u: UOp, memory: UOp, operands: list[UOp]) -> UOp:
    """An Index of one dimension into a kernel's buffer."""
    gate = operands.pop() if u.arg else None
    flat = _place(u.src[0], operands)
    return memory.index(flat if gate is None else gate.where(flat, _INVALID))


def _place(storage: UOp, indices: list[UOp]) -> UOp:
    """The flat position of an Index into memory, or into a Bufferize (a Bufferize of a single value has no ranges: index 0)."""
    return _flat(storage.src[1:], indices) if storage.op is Op.Bufferize and storage.src[1:] else indices[0]


def _name(kind: str, ranges: list[UOp]) -> str:
    """The name of a kernel: its kind and the lengths of its loops, as in reduce_64x128."""
    sizes = [str(r.src[0].arg) if r.src[0].op is Op.Const else "n" for r in ranges]
    return "_".join([kind, "x".join(sizes)] if sizes else [kind])


def dependencies(kernels: Sequence[UOp]) -> list[list[int]]:
    """For each kernel the positions of the kernels that must run before it."""
    position = {k: i for i, k in enumerate(kernels)}
    out: list[list[int]] = []
    for kernel in kernels:
        before: set[int] = set()
        stack = list(kernel.src[1:])
        while stack:
            s = stack.pop()
            if s.op is Op.After:
                before.update(position[k] for k in s.src[1:])
                stack.append(s.src[0])
        out.append(sorted(before))
    return out
