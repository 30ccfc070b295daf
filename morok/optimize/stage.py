"""The optimizer that stage 7 applies to each kernel: optimizations that were asked for, else the heuristics."""

from __future__ import annotations

from dataclasses import replace

from morok import config
from morok.errors import OptError
from morok.ir.uop import UOp
from morok.optimize import heuristics
from morok.optimize.opts import Opt, OptOp, read
from morok.optimize.scheduler import Scheduler
from morok.passes.target import KernelInfo, Target


def optimized(ast: UOp, target: Target) -> UOp:
    """The kernel after the optimizations in its Sink, else those of MOROK_OPTS, else (without MOROK_NOOPT) the heuristics."""
    info = ast.arg if isinstance(ast.arg, KernelInfo) else KernelInfo()
    given = info.opts if info.opts is not None else read(config.OPTS.value) or None
    if given is None:
        return Scheduler(ast, target).kernel() if config.NOOPT.value else heuristics.optimize(ast, target)
    scheduler = Scheduler(ast, target)
    for opt in given:
        assert isinstance(opt, Opt)
        try:
            scheduler.apply(opt)
        except OptError as wrong:
            raise OptError(f"kernel {info.name}: {wrong.message}", expected=wrong.expected, hint=wrong.hint) from None
    return scheduler.kernel()


def vectors(ast: UOp, target: Target) -> Target:
    """The target, with vectors of as many 32-bit lanes as the optimization LANES of a kernel sets."""
    opts = (isinstance(ast.arg, KernelInfo) and ast.arg.opts) or ()
    lanes = [o.arg for o in opts if isinstance(o, Opt) and o.op is OptOp.LANES]
    return replace(target, vector_bytes=4 * lanes[0]) if lanes else target
