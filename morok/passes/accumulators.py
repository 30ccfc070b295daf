"""Helpers of rules/loops/accumulate.rules: the lanes of an accumulator, and new registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from morok.ir.dtype import AddrSpace, DType
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.marks import helper
from morok.passes.node_order import nodes_of
from morok.passes.target import Target

MAX_ACCUMULATORS: Final = 8  # most vectors of partial results of one scalar result: enough to hide an add's latency
MAX_SPREAD: Final = 24  # most vectors of partial results of several results together

SMALL: Final = Target("", vector_bytes=16)  # the default target


@dataclass(slots=True)
class Accumulators:
    """The target, and the number of the next accumulator, above the numbers of all registers of the graph."""

    target: Target
    next: int

    @classmethod
    def of(cls, root: UOp, target: Target = SMALL) -> Accumulators:
        """The accumulators of the graph under `root`."""
        return cls(target, max((n.arg for n in nodes_of(root) if n.op is Op.DefineReg), default=-1) + 1)


def native_lanes(target: Target, d: DType) -> int:
    """The lanes of one register of the target, at least 1; types below 32 bits count as 32, which arithmetic widens them to."""
    return max(1, target.vector_bytes // max(4, d.scalar().itemsize))


@helper
def partial_results(n: UOp, s: UOp, found: Accumulators) -> int:
    """The partial results per lane of a Reduce `n` of `s`: a divisor of the number of lanes that it folds into one."""
    native = native_lanes(found.target, n.dtype)
    results = n.dtype.count
    folded = s.dtype.count // results
    if native > 1 and folded % native == 0 and results * folded <= MAX_SPREAD * native:
        return folded
    if results >= native:
        return 1
    limit = MAX_ACCUMULATORS * native // results
    return max(k for k in range(1, folded + 1) if folded % k == 0 and k <= limit)


@helper
def register_lanes(n: UOp, found: Accumulators) -> int:
    """The lanes of `n`'s dtype in one register of the target."""
    return native_lanes(found.target, n.dtype)


@helper
def results_at_once(n: UOp, s: UOp, found: Accumulators) -> int:
    """The results of a Reduce `n` of `s` that one accumulator holds: all if `s` has one lane for each, since stage 19 splits the
    accumulator and its addend into the target's registers; else as many as one register holds.
    """
    whole = found.target.vector_bytes > 0 and s.dtype.count == n.dtype.count
    return n.dtype.count if whole else native_lanes(found.target, n.dtype)


@helper
def accumulator(n: UOp, s: UOp, found: Accumulators) -> UOp:
    """A new register of `n`'s dtype, one for each iteration of the loops around `n`."""
    found.next += 1
    d = n.dtype
    element = d.scalar() if d.count == 1 else d.scalar().vec(d.count)
    register = UOp.new(Op.DefineReg, (), found.next - 1, element.ptr(1, AddrSpace.REG))
    outer = sorted(n.ranges, key=lambda r: r.arg[0])
    return UOp.new(Op.After, (register, *outer)) if outer else register
