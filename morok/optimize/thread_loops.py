"""THREAD: which loops the threads of a CPU divide among them, and when a kernel is worth it.

Threads compute what one would, in the same instructions: every result is the same bits for every number of threads. So the
loops are chosen last, among what the other optimizations left, outermost first.
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

WORTH_NS: Final = 50_000.0  # of estimated work: what sleeping threads take to wake, several times over
_BYTES_A_NS: Final = 16.0  # what one core reads and writes of memory
_OPS_A_NS: Final = 20.0  # scalar operations of one core, in vectors
_HEAVY: Final = 10.0  # of a transcendental, in simple operations
_TRANSCENDENTAL: Final = frozenset(
    {Op.Exp2, Op.Exp, Op.Log2, Op.Log, Op.Sin, Op.Cos, Op.Tan, Op.Tanh, Op.Erf, Op.Pow, Op.Idiv, Op.Mod, Op.Threefry}
)


def _stores(ast: UOp) -> list[UOp]:
    """The stores to buffers, not those to local copies."""
    return [n for n in nodes_of(ast) if n.op is Op.Store and storage(n.src[0]).op is Op.DefineGlobal]


def check(ast: UOp, r: UOp, what: str) -> None:
    """OptError, called `what`, unless threads may divide the loop over `r` among them.

    Every output is stored inside it, so that no two threads store one, and what the kernel reads of a buffer that it writes, it
    reads where it writes.
    """
    stores = _stores(ast)
    inside = [s for s in stores if r in s.ranges]
    if not inside:
        raise OptError(f"{what}: no output is stored in that loop", expected="an axis of an output")
    if any(n.op is Op.End and r in n.src[1:] and n.ranges for n in nodes_of(ast)):
        raise OptError(f"{what}: what a cut left over runs beside that loop, inside another", expected="an outermost loop")
    if any(x.arg[1] is AxisType.Thread for s in inside for x in s.ranges):
        raise OptError(f"{what}: threads share a loop around it already", expected="one THREAD axis around an output")
    places = {s.src[0] for s in stores}
    written = {storage(p) for p in places}
    if any(n.op is Op.Index and n not in places and storage(n) in written for n in nodes_of(ast)):
        raise OptError(
            f"{what}: the kernel reads what another thread may write", expected="a kernel that reads no output elsewhere"
        )
    if any(r not in place.ranges for place in (s.src[0] for s in inside)):
        raise OptError(f"{what}: every iteration stores to the same place", expected="an axis that outputs run along")


def _times(node: UOp) -> int:
    """The number of times that a node is computed; a range as long as another loop has run belongs to a fold that continues."""
    return math.prod(int(r.vmax) + 1 for r in node.ranges if not r.src[0].ranges)


def cost_ns(ast: UOp) -> float:
    """About how long the kernel takes one core: the time of its arithmetic, or of its memory, whichever is longer."""
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
    """The loop around each output that threads should divide: the outermost that has work for all of them, or the longest.

    Outermost is what steps furthest through the output, so that a thread writes one piece of it; but the order of loops around a
    local copy is as it is for the copy's sake, and so it is, `as_nested`, where it was chosen.
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
