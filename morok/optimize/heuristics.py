"""The default optimizations of a kernel, without timing: heuristics on loop lengths and the strides of accesses."""

from __future__ import annotations

import contextlib

from morok import config
from morok.errors import OptError
from morok.ir.uop import UOp
from morok.optimize import cpu_heuristics, gpu_heuristics, thread_loops
from morok.optimize.loop_facts import apply
from morok.optimize.opts import OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.target import Target


def optimize(ast: UOp, target: Target) -> UOp:
    """The kernel `ast` with the optimizations chosen for `target`, up to the first that is illegal.

    The choice looks at the loops only; each optimization then checks the current kernel. If it is illegal, the kernel keeps the
    optimizations before it: that costs speed, never correctness.
    """
    scheduler = Scheduler(ast, target)
    choose = gpu_heuristics.choose if target.has_local else cpu_heuristics.choose if target.vector_bytes else None
    if choose is None:
        return scheduler.kernel()
    try:
        choose(scheduler)
    except OptError as error:
        refused(error)
    if not target.has_local and target.threads > 1 and thread_loops.cost_ns(ast) >= thread_loops.WORTH_NS:
        _thread(scheduler)
    return scheduler.kernel()


def refused(error: OptError) -> None:
    """Ignore an illegal choice of the heuristics; under MOROK_CHECK, as in the tests, raise the error."""
    if config.CHECK.value:
        raise error


def _thread(s: Scheduler) -> None:
    """Apply THREAD to one loop of each output, if legal."""
    as_nested = any(opt.op is OptOp.SWAP for opt in s.applied)
    for r in thread_loops.loops(s.ast, s.target.threads, as_nested):
        with contextlib.suppress(OptError):
            apply(s, OptOp.THREAD, r, 0)
