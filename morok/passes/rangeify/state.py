"""The state of rangeify: the demands on each node, and the decisions about it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from morok.ir.op import AxisType, Op
from morok.ir.shape import Shape, shape_of
from morok.ir.uop import UOp
from morok.passes.index_maps import Indices, number
from morok.passes.target import Target

MOVEMENT: Final = frozenset({Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip})
RESHAPE: Final = frozenset({Op.Reshape})
CAST: Final = frozenset({Op.Cast})
UNPADDED: Final = MOVEMENT - {Op.Pad}
CASTS_AND_VIEWS: Final = MOVEMENT | {Op.Cast}
STORAGE: Final = frozenset({Op.Buffer, Op.BufferView})
# Functions that cost 8 to 140 additions: WORK in cost.py.
COSTLY: Final = frozenset({Op.Exp, Op.Exp2, Op.Log, Op.Log2, Op.Sin, Op.Cos, Op.Tan, Op.Tanh, Op.Erf, Op.Pow})

THREADS: Final = Target("", has_local=True)  # any machine on which each output is a thread

_ids: Final = itertools.count()


@dataclass(slots=True, eq=False)
class Demand:
    """A consumer's demand for the value of `node` at `indices`, where all `gates` hold.

    kernel    the stored node whose kernel computes it
    runs      the number of computations in that kernel, if nothing is hoisted
    depth     the number of reductions around it
    folds     how many of these do more than pick one element
    product   the demand on the operand of the nearest of these if it is a sum of products in tiles
    scanned   True if the nearest of these is a scan
    repeated  True if an Expand is above it: several runs demand the same element
    around    the ranges in the indices of the reductions directly around it
    shared    True if several kernels demand it
    filling   True if it fills a row buffer
    sources   the demands on its operands; None for leaves without a shape
    ranges    the loops of a ReduceAxis
    """

    node: UOp
    indices: Indices
    gates: tuple[UOp, ...]
    kernel: UOp
    runs: int
    depth: int
    repeated: bool
    around: frozenset[UOp] = frozenset()
    shared: bool = False
    filling: bool = False
    folds: int = 0
    product: Demand | None = None
    scanned: bool = False
    sources: list[Demand | None] = field(default_factory=list)
    ranges: tuple[UOp, ...] = ()
    value: UOp | None = None


class Decision(NamedTuple):
    """The decision to store a node or not, with its reason.

    size    the number of its elements
    runs    the number of demanded elements, in all kernels, if nothing is hoisted
    merged  ns to compute it for each demand
    stored  ns to compute each element once, write it, and read it for each demand
    cut     True if it is stored
    why     the reason, if these times did not decide
    """

    node: UOp
    size: int
    runs: int
    merged: float
    stored: float
    cut: bool
    why: str = ""


@dataclass(slots=True)
class State:
    """The state between passes.

    roots    the nodes to store, in the order of the outputs
    target   the machine that kernels are optimized for
    stored   for each node with a buffer the demand that fills it
    rows     likewise for each node with a row buffer, refilled in every iteration of the outer loops
    demands  for every node the demands on it, by indices and gates
    order    all nodes, operands first
    sink     from core on: Sink(Bufferize..), one operand for each root
    bufferizes  from core on: the Bufferize of each stored node, as long as it has all axes of the node
    most_buffers  most buffers of one kernel, outputs included; 0: no limit
    forms    for each node of the original graph its form before range assignment
    decisions  the cuts decided by cost, with reasons
    overrides  decisions that override the cost model: True for nodes to store
    opts     from core on: the optimizations of the kernels of Bufferizes, from Contiguous nodes
    """

    roots: list[UOp]
    device: str
    target: Target = THREADS
    stored: dict[UOp, Demand] = field(default_factory=dict)
    rows: dict[UOp, Demand] = field(default_factory=dict)
    demands: dict[UOp, dict[tuple[Indices, tuple[UOp, ...]], Demand]] = field(default_factory=dict)
    order: list[UOp] = field(default_factory=list)
    sink: UOp | None = None
    bufferizes: dict[UOp, UOp] = field(default_factory=dict)
    most_buffers: int = 0
    forms: dict[UOp, UOp] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    overrides: Mapping[UOp, bool] = field(default_factory=dict)
    opts: dict[UOp, tuple[object, ...]] = field(default_factory=dict)

    @property
    def nested(self) -> bool:
        """True if the loops of a kernel are nested, so that inner loops reuse values of outer ones; False on a GPU, where each
        output is a thread.
        """
        return not self.target.has_local

    def replace_nodes(self, done: Mapping[UOp, UOp]) -> None:
        """Replace all nodes by their new forms, before there is a sink."""
        self.roots = [done[r] for r in self.roots]
        self.forms = {n: done[now] for n, now in self.forms.items() if now in done} if self.forms else dict(done)

    def replace_in_sink(self, done: Mapping[UOp, UOp]) -> None:
        """Replace all nodes by their new forms, once there is a sink."""
        assert self.sink is not None
        self.sink = done[self.sink]
        self.bufferizes = {
            n: made
            for n, b in self.bufferizes.items()
            if (made := done.get(b)) is not None and len(made.src) == len(b.src)
        }
        self.opts = {made: opts for b, opts in self.opts.items() if (made := done.get(b)) is not None}


def otherwise(made: UOp | None, node: UOp) -> UOp:
    """`made`, or `node` if it is None; `or` would evaluate the truth of a constant."""
    return node if made is None else made


def new_range(end: int | UOp, axis: AxisType) -> UOp:
    """A new range with an id unique in the process; kernels renumber theirs from 0 later."""
    return UOp.range(number(end), next(_ids), axis)


def count(shape: Shape) -> int:
    """The number of elements of a shape; of symbolic sizes the most."""
    return math.prod([int(d.vmax) if isinstance(d, UOp) else d for d in shape])


def beneath(node: UOp, ops: Container[Op]) -> UOp:
    """The node below all ops of these kinds at the top of `node`, through their first operands; `node` if it is of another."""
    while node.op in ops:
        node = node.src[0]
    return node


def is_leaf(node: UOp) -> bool:
    return not node.src or node.op is Op.Bind


def spreads(scalar: UOp, node: UOp) -> bool:
    """True if `scalar` has no shape and `node` has one: every element of `node` uses it."""
    return not shape_of(scalar) and bool(shape_of(node))


def enlarges(node: UOp) -> bool:
    """True if a node is an Expand that repeats elements."""
    return node.op is Op.Expand and count(shape_of(node)) > count(shape_of(node.src[0]))
