"""Stage 11, prefix scans: a reduction over the iterations that a sequential loop has run becomes a register that the loop
updates.

`Reduce(x(j), j)` over a range j of length k + 1, inside the loop over k, becomes a register that starts at the identity before
the loop, and to which iteration k adds x(k) (an inclusive scan). If j has length k, it is the register's value before that step
(an exclusive scan). morok/optimize/prefix_scan.py makes such reductions: loop k is sequential and directly around their
statement.
"""

from __future__ import annotations

from morok.ir.dtype import AddrSpace
from morok.ir.graph import substitute
from morok.ir.op import AxisType, Op
from morok.ir.ops.loop import identity
from morok.ir.ranges import replace_range
from morok.ir.uop import UOp
from morok.passes.accumulators import native_lanes
from morok.passes.affine import linear
from morok.passes.node_order import nodes_of
from morok.passes.rebuilding import rebuild
from morok.passes.target import Target


def reach(n: UOp) -> tuple[UOp, int] | None:
    """(loop k, d) for a Reduce over one range of length k + d, where d is 0 (exclusive) or 1 (inclusive); else None."""
    if n.op is not Op.Reduce or len(n.src) != 2 or n.src[1].op is not Op.Range or n.src[1].src[0].op is Op.Const:
        return None
    length = linear(n.src[1].src[0])
    k = next(iter(length.terms), n)
    if (
        length.terms != {k: 1}
        or length.constant not in (0, 1)
        or k.op is not Op.Range
        or k.arg[1] is not AxisType.Reduce
    ):
        return None
    return k, length.constant


def registers(root: UOp, target: Target) -> UOp:
    """`root` with prefix scans in registers, each no wider than a register of the target."""
    running = [(n, to) for n in nodes_of(root) if (to := reach(n)) is not None]
    if not running:
        return root
    number = max((n.arg for n in root.toposort() if n.op is Op.DefineReg), default=-1) + 1
    around = _around(root, {k for _, (k, _) in running})
    mapping: dict[UOp, UOp] = {}
    steps: dict[UOp, list[UOp]] = {}  # of exclusive scans
    for n, (k, more) in running:
        value = replace_range(n.src[0], n.src[1], k)
        most = native_lanes(target, n.dtype)
        parts: list[UOp] = []
        for first in range(0, n.dtype.count, most):
            lanes = range(first, min(first + most, n.dtype.count))
            x = value if len(lanes) == n.dtype.count else value.gep(*lanes)
            sofar, step, after = _register(number, x, n, k, around.get(k, frozenset()) | n.ranges - {k})
            parts.append(after if more else sofar)
            if not more:
                steps.setdefault(n, []).append(step)
            number += 1
        mapping[n] = parts[0] if len(parts) == 1 else UOp.new(Op.Cat, tuple(parts))
    behind = {store: _behind(store, steps) for store in root.toposort() if steps and store.op is Op.Store}
    root = substitute(substitute((root,), behind), mapping)[0]
    loops = {k for _, (k, _) in running}
    return rebuild(root, (Op.End,), lambda node, src: _innermost(src, loops))


def _around(root: UOp, loops: set[UOp]) -> dict[UOp, frozenset[UOp]]:
    """For each scan loop all loops around it, since the scan restarts in each of their iterations, even if its value depends on
    none.
    """
    ends = [n for n in root.toposort() if n.op is Op.End]
    return {k: frozenset().union(*[{*e.src[1:], *e.ranges} for e in ends if k in e.src[1:]]) - {k} for k in loops}


def _innermost(src: tuple[UOp, ...], loops: set[UOp]) -> UOp | None:
    """An End with its scan loops moved inside its other loops, in each of whose iterations the registers restart; None if it has
    no scan loop.
    """
    ordered = [r for r in src[1:] if r in loops]
    return UOp.new(Op.End, (src[0], *[r for r in src[1:] if r not in loops], *ordered)) if ordered else None


def _behind(store: UOp, steps: dict[UOp, list[UOp]]) -> UOp:
    """`store` after the steps of the exclusive scans that it reads: nothing else in the iteration depends on these steps."""
    made = [s for n in store.src[1].toposort() for s in steps.get(n, ())]
    place = store.src[0]
    return (
        store.replace((place.replace((place.src[0].after(*made), *place.src[1:])), *store.src[1:])) if made else store
    )


def _register(number: int, x: UOp, n: UOp, k: UOp, around: frozenset[UOp]) -> tuple[UOp, UOp, UOp]:
    """(value before the step, step, value after it) of a register for the scan `n` of the value `x` over k, which restarts in
    each iteration of the loops `around`.
    """
    register = UOp.new(Op.DefineReg, (), number, x.dtype.ptr(1, AddrSpace.REG))
    outer = sorted(around, key=lambda r: r.arg[0])
    acc = register.after(*outer) if outer else register
    start = acc.index(0).store(x.like(identity(n.arg, x.dtype.scalar())))
    sofar = acc.after(start, k).index(0)
    step = sofar.store(UOp.new(n.arg, (sofar, x)))
    return sofar, step, acc.after(start, step).index(0)
