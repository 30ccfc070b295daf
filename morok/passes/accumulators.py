"""Helpers of rules/loops/accumulate.rules: the lanes of a register, and registers that nothing uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from morok.ir.dtype import AddrSpace, DType
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.marks import helper
from morok.passes.node_order import nodes_of
from morok.passes.target import Target

MAX_ACCUMULATORS: Final = 8  # vectors that one scalar result may be spread over: enough to hide an add's latency
MAX_SPREAD: Final = 24  # vectors that several results together may be spread over

SMALL: Final = Target("", vector_bytes=16)  # where no machine is named


@dataclass(slots=True)
class Accumulators:
    """The target's registers, and a number for the next accumulator, from one that no register of the graph has."""

    target: Target
    next: int

    @classmethod
    def of(cls, root: UOp, target: Target = SMALL) -> Accumulators:
        """For a graph."""
        return cls(target, max((n.arg for n in nodes_of(root) if n.op is Op.DefineReg), default=-1) + 1)


def native_lanes(target: Target, d: DType) -> int:
    """Lanes of an accumulator: a register of the target; narrow types count as 32 bits, which their arithmetic widens to."""
    return max(1, target.vector_bytes // max(4, d.scalar().itemsize))


@helper
def partial_results(n: UOp, s: UOp, found: Accumulators) -> int:
    """The number of partial results that each lane of a Reduce `n` of `s` has: a divisor of the lanes that it folds."""
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
    """The number of lanes of this dtype that a register holds."""
    return native_lanes(found.target, n.dtype)


@helper
def results_at_once(n: UOp, s: UOp, found: Accumulators) -> int:
    """The number of results of a Reduce `n` of `s` that one accumulator holds. Where an iteration adds to each of them once, all:
    stage 19 cuts it, with what is added to it, into the target's registers.
    """
    whole = found.target.vector_bytes > 0 and s.dtype.count == n.dtype.count
    return n.dtype.count if whole else native_lanes(found.target, n.dtype)


@helper
def accumulator(n: UOp, s: UOp, found: Accumulators) -> UOp:
    """A register for values like `n`, one in each iteration of the loops that n stands in."""
    found.next += 1
    d = n.dtype
    element = d.scalar() if d.count == 1 else d.scalar().vec(d.count)
    register = UOp.new(Op.DefineReg, (), found.next - 1, element.ptr(1, AddrSpace.REG))
    outer = sorted(n.ranges, key=lambda r: r.arg[0])
    return UOp.new(Op.After, (register, *outer)) if outer else register
