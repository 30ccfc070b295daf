"""The state that the passes hand on: the demands on each node, and the decisions about it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from morok.ir.op import AxisType, Op
from morok.ir.shape import Shape, shape_of
from morok.ir.uop import UOp
from morok.passes.index_maps import Indices, number

MOVEMENT: Final = frozenset({Op.Reshape, Op.Permute, Op.Expand, Op.Pad, Op.Shrink, Op.Flip})
STORAGE: Final = frozenset({Op.Buffer, Op.BufferView})
# Functions that cost as much as a dozen additions.
COSTLY: Final = frozenset({Op.Exp, Op.Exp2, Op.Log, Op.Log2, Op.Sin, Op.Cos, Op.Tan, Op.Tanh, Op.Erf, Op.Pow})

_ids: Final = itertools.count()


@dataclass(slots=True, eq=False)
class Demand:
    """A consumer's wish: the value of `node` at `indices`, where all `gates` hold.

    kernel    the stored node that it is computed for
    runs      how often it is computed there, if nothing is hoisted
    depth     how many reductions surround it
    folds     how many of them are more than a choice of one element
    repeated  whether an Expand lies on the way: several runs ask for the same element
    around    the ranges at which the reductions right around it are computed
    shared    whether several kernels want it
    filling   whether it fills a buffer inside its kernel
    sources   the demands on its operands, None for operands that are values themselves
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
    sources: list[Demand | None] = field(default_factory=list)
    ranges: tuple[UOp, ...] = ()
    value: UOp | None = None


class Decision(NamedTuple):
    """The decision to store a node or not, with its reason.

    size    its elements
    runs    how often one of them is wanted, in all kernels, if nothing is hoisted
    merged  ns to compute it wherever it is wanted
    stored  ns to compute each element once, write it, and read it as often
    why     the rule, where these times did not decide
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
    """The state that the passes hand on.

    roots    the nodes to be stored, in the order of the outputs
    nested   whether the loops of a kernel lie one inside the other: what an outer one computes is there for the inner ones. On a
             GPU each output is a thread
    stored   for each node that gets a buffer the demand that fills it
    rows     likewise for each that gets one inside its kernel, filled anew in every iteration of the outer loops
    demands  for every node the demands on it, by indices and gates
    order    all nodes, operands first
    sink     from core on: Sink(Bufferize..), one a root
    held     from core on: the Bufferize that holds each stored node, as long as it holds all of it
    most     buffers that one kernel may use, its own included; 0: any number
    became   what the nodes of the graph as it came were rewritten to before ranges were assigned
    decisions  what was decided by cost where to cut, and why
    given    for some nodes whether they are stored where their times would decide, found in another way
    opts     from core on: for each Bufferize whose Contiguous says so the optimizations of its kernel
    """

    roots: list[UOp]
    device: str
    nested: bool = False
    stored: dict[UOp, Demand] = field(default_factory=dict)
    rows: dict[UOp, Demand] = field(default_factory=dict)
    demands: dict[UOp, dict[tuple[Indices, tuple[UOp, ...]], Demand]] = field(default_factory=dict)
    order: list[UOp] = field(default_factory=list)
    sink: UOp | None = None
    held: dict[UOp, UOp] = field(default_factory=dict)
    most: int = 0
    became: dict[UOp, UOp] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    given: Mapping[UOp, bool] = field(default_factory=dict)
    opts: dict[UOp, tuple[object, ...]] = field(default_factory=dict)

    def rewritten(self, done: Mapping[UOp, UOp]) -> None:
        """Go on with other nodes, before there is a sink."""
        self.roots = [done[r] for r in self.roots]
        self.became = {n: done[now] for n, now in self.became.items() if now in done} if self.became else dict(done)

    def replace(self, done: Mapping[UOp, UOp]) -> None:
        """Go on with other nodes."""
        assert self.sink is not None
        self.sink = done[self.sink]
        self.held = {n: made for n, b in self.held.items() if (made := done.get(b)) is not None and len(made.src) == len(b.src)}
        self.opts = {made: opts for b, opts in self.opts.items() if (made := done.get(b)) is not None}


def otherwise(made: UOp | None, node: UOp) -> UOp:
    """`made`, or `node` where there is none; `or` would ask a constant for its truth."""
    return node if made is None else made


def new_range(end: int | UOp, axis: AxisType) -> UOp:
    """A loop like no other; kernels number theirs from 0 later."""
    return UOp.range(number(end), next(_ids), axis)


def count(shape: Shape) -> int:
    n = 1
    for d in shape:
        n *= int(d.vmax) if isinstance(d, UOp) else d
    return n


def is_leaf(node: UOp) -> bool:
    return not node.src or node.op is Op.Bind


def spreads(scalar: UOp, node: UOp) -> bool:
    """True if an operand is a scalar that every element of `node` uses."""
    return not shape_of(scalar) and bool(shape_of(node))


def enlarges(node: UOp) -> bool:
    """True if a node is a view that shows elements several times."""
    return node.op is Op.Expand and count(shape_of(node)) > count(shape_of(node.src[0]))
