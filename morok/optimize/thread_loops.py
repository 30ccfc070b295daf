"""THREAD: the loops that CPU threads divide among them, and the least work for which that pays.

Each thread runs the instructions of one alone: every result has the same bits for every number of threads. So these loops are
chosen last, among those that the other optimizations left, the outermost first.
"""

from __future__ import annotations

import math
from typing import Final

from morok.errors import OptError
from morok.ir.dtype import AddrSpace, PtrType
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.passes.affine import linear
from morok.passes.nesting import nesting
from morok.passes.node_order import nodes_of

WORTH_NS: Final = 50_000.0  # least estimated work: several times the wake-up time of sleeping threads
_BYTES_A_NS: Final = 16.0  # memory traffic of one core
_OPS_A_NS: Final = 20.0  # scalar operations of one core, in vectors
_HEAVY: Final = 10.0  # simple operations in a transcendental
_TRANSCENDENTAL: Final = frozenset(
    {Op.Exp2, Op.Exp, Op.Log2, Op.Log, Op.Sin, Op.Cos, Op.Tan, Op.Tanh, Op.Erf, Op.Pow, Op.Idiv, Op.Mod, Op.Threefry}
)


def _stores(ast: UOp) -> list[UOp]:
    """The stores to global buffers."""
    return [n for n in nodes_of(ast) if n.op is Op.Store and storage(n.src[0]).op is Op.DefineGlobal]


def check(ast: UOp, r: UOp) -> None:
    """OptError unless threads may divide the loop over `r` among them.

    It must be an outermost loop around some store, with different places in each iteration, and the kernel may read a buffer that
    it writes only at the places that it writes.
    """
    stores = _stores(ast)
    inside = [s for s in stores if r in s.ranges]
    if not inside:
        raise OptError("the loop over that axis stores no output", expected="an axis of an output")
    if any(n.op is Op.End and r in n.src[1:] and n.ranges for n in nodes_of(ast)):
        raise OptError("the loop over that axis was cut, and is inside another loop", expected="an outermost loop")
    if any(x.arg[1] is AxisType.Thread for s in inside for x in s.ranges):
        raise OptError("threads divide a loop around that axis already", expected="one THREAD axis around an output")
    places = {s.src[0] for s in stores}
    written = {storage(p) for p in places}
    if any(n.op is Op.Index and n not in places and storage(n) in written for n in nodes_of(ast)):
        raise OptError(
            "the kernel reads an output at places that another thread may write",
            expected="a kernel that reads an output only at the places that it writes",
        )
    if any(r not in place.ranges for place in (s.src[0] for s in inside)):
        raise OptError(
            "every iteration of that axis stores to the same place", expected="an axis in the index of the output"
        )


def _times(node: UOp) -> int:
    """The number of computations of a node, without ranges whose length depends on another: those are prefix scans."""
    return math.prod(int(r.vmax) + 1 for r in node.ranges if not r.src[0].ranges)


def cost_ns(ast: UOp) -> float:
    """An estimate of the kernel's time on one core, in ns: the greater of its arithmetic and its memory traffic."""
    nodes = nodes_of(ast)
    ops = 0.0
    for n in nodes:
        if n.op is Op.Reduce:
            ops += _times(n.src[0])
        elif TABLE.entries[n.op].pointwise and not n.dtype.is_index and n.op is not Op.Cast:
            ops += (_HEAVY if n.op in _TRANSCENDENTAL else 1.0) * _times(n)
    moved = 0
    for n in nodes:
        if n.op is Op.DefineGlobal and isinstance(n.dtype, PtrType) and n.dtype.space is AddrSpace.GLOBAL:
            moved += n.dtype.size * n.dtype.base.itemsize
    return max(ops / _OPS_A_NS, moved / _BYTES_A_NS)


def loops(ast: UOp, threads: int, as_nested: bool = False) -> list[UOp]:
    """For each output the loop that threads should divide: the outermost with an even share for every thread, or the longest.

    The outermost is the loop with the greatest stride in the output, so that each thread writes a contiguous part; but if the
    kernel has local buffers, or `as_nested` is set (the order was chosen, by SWAP), it is the outermost in nesting order.
    """
    copies = as_nested or any(n.op is Op.DefineLocal for n in nodes_of(ast))
    found: dict[UOp, None] = {}
    for store in _stores(ast):
        place = store.src[0]
        nest = sorted((r for r in place.ranges if r.arg[1] in (AxisType.Loop, AxisType.Outer)), key=nesting)
        if not copies and place.src[1].op is not Op.Where:
            steps = linear(place.src[1]).terms
            nest.sort(key=lambda r: -abs(steps.get(r, 0)))
        if nest:
            even = (r for r in nest if int(r.vmax) + 1 >= 4 * threads or (int(r.vmax) + 1) % threads == 0)
            found[next(even, max(nest, key=lambda r: int(r.vmax)))] = None
    return list(found)
