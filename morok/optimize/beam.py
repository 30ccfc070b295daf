"""Beam search for optimizations, by timing kernels.

The search is independent of devices: a function parameter times kernels. In each round every legal action on every kept kernel
makes a candidate, without duplicates of kernels, and the fastest candidates are kept. The first candidate is the choice of the
heuristics, timed again against the winner at the end: but for noise, the result is never slower.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from morok.errors import OptError
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.range_stages import const_end
from morok.passes.target import KernelInfo, Target

AT_ONCE: Final = 16  # candidates timed in one call: the time limit is checked between calls
AGAIN: Final = 3  # final timings of the winner and of the heuristics' choice
BETTER: Final = 0.98  # the ratio of times below which a kernel is faster; above it the difference is noise


def _each(op: OptOp, axes: int, amounts: Sequence[int]) -> Iterator[Opt]:
    return (Opt(op, axis, amount) for axis in range(axes) for amount in amounts)


# The 162 actions of the reference texts; an amount of 0 is the whole axis.
ACTIONS: Final[tuple[Opt, ...]] = (
    *_each(OptOp.UPCAST, 8, (0, 2, 3, 4, 5, 7)),
    *_each(OptOp.UNROLL, 5, (0, 4, 7)),
    *_each(OptOp.LOCAL, 6, (2, 3, 4, 8, 13, 16, 29)),
    *_each(OptOp.GROUPTOP, 3, (13, 16, 28, 29, 32, 49, 64, 256)),
    *_each(OptOp.GROUP, 3, (0, 4, 8, 16)),
    *_each(OptOp.TC, 10, (0,)),
    *[Opt(OptOp.SWAP, a, b) for a, b in itertools.combinations(range(5), 2)],
    Opt(OptOp.NOLOCALS),
)
THREADS: Final = tuple(_each(OptOp.THREAD, 3, (0,)))  # for targets with several threads
# for targets with vector registers
VECTORS: Final = (*_each(OptOp.UPCAST, 4, (8, 16)), *_each(OptOp.UNROLL, 2, (8, 16, 32)))


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a search.

    width    kernels kept from one round to the next
    seconds  time after which no more candidates are made
    upcast   most lanes of a kernel: the product over its vectorized axes
    local    most threads of a block
    outputs  True if output axes may be vectorized
    """

    width: int = 4
    seconds: float = 60.0
    upcast: int = 256
    local: int = 1024
    outputs: bool = True


@dataclass(slots=True)
class Progress:
    """The progress of a search: finished rounds, timed candidates, the best time so far in seconds."""

    rounds: int = 0
    timed: int = 0
    best: float = math.inf


@dataclass(slots=True, eq=False)
class Candidate:
    """A kernel, the optimizations that made it, and its time in seconds."""

    opts: tuple[Opt, ...]
    ast: UOp
    seconds: float = math.inf


Measure = Callable[[Sequence[UOp], float], Sequence[float]]


def actions(target: Target) -> tuple[Opt, ...]:
    """The actions that may be legal on `target`."""
    vectors = VECTORS if target.vector_bytes else ()
    return (*ACTIONS, *vectors, *(THREADS if target.threads > 1 else ()))


def _made(ast: UOp, target: Target, opts: Sequence[Opt]) -> Scheduler:
    s = Scheduler(ast, target)
    for opt in opts:
        s.apply(opt)
    return s


def _within(s: Scheduler, limits: Limits) -> bool:
    lanes = threads = 1
    for r in s.ranges:
        n = const_end(r) or 1
        if r.arg[1] in (AxisType.Upcast, AxisType.Unroll):
            lanes *= n
        elif r.arg[1] in (AxisType.Local, AxisType.GroupReduce, AxisType.Warp):
            threads *= n
    return lanes <= limits.upcast and threads <= limits.local


def _kernel(s: Scheduler) -> UOp:
    """The kernel without the optimizations in its Sink, so that equal kernels are one node."""
    info = s.ast.arg if isinstance(s.ast.arg, KernelInfo) else KernelInfo()
    kept = tuple([o for o in s.applied if o.op is OptOp.LANES])  # not visible in the graph
    return UOp.new(Op.Sink, s.ast.src, replace(info, opts=kept))


def successors(ast: UOp, target: Target, kept: Sequence[Candidate], limits: Limits, seen: set[UOp]) -> list[Candidate]:
    """The candidates that one more action makes of those kept, without kernels in `seen`; they are added to `seen`."""
    out: list[Candidate] = []
    for candidate, action in itertools.product(kept, actions(target)):
        if action.op is OptOp.UPCAST and not limits.outputs:
            continue
        s = _made(ast, target, candidate.opts)
        try:
            s.apply(action)
        except OptError:
            continue
        kernel = _kernel(s)
        if kernel not in seen and _within(s, limits):
            seen.add(kernel)
            out.append(Candidate(tuple(s.applied), kernel))
    return out


def search(
    ast: UOp,
    target: Target,
    first: Sequence[Opt],
    measure: Measure,
    limits: Limits,
    report: Callable[[Progress], None] = lambda progress: None,
) -> tuple[Opt, ...]:
    """The fastest optimizations found for the kernel `ast`, the input of stage 7.

    first    the optimizations that the heuristics choose
    measure  (kernels, limit) -> seconds for each kernel, infinity if it cannot be compiled or run; the time of a kernel that is
             much slower than `limit` seconds need not be exact
    report   called after each batch of timings
    """
    end = time.monotonic() + limits.seconds
    progress = Progress()
    alone = tuple(o for o in first if o.op is not OptOp.THREAD)
    made = [Candidate(opts, _kernel(_made(ast, target, opts))) for opts in (tuple(first), alone, ())]
    start = list({c.ast: c for c in reversed(made)}.values())[::-1]
    seen = {c.ast for c in start}

    def timed(candidates: Sequence[Candidate]) -> None:
        for c, seconds in zip(candidates, measure([c.ast for c in candidates], progress.best), strict=True):
            c.seconds = seconds
        progress.timed += len(candidates)
        progress.best = min([progress.best, *[c.seconds for c in candidates]])
        report(progress)

    timed(start)
    best = min(start, key=lambda c: c.seconds)
    # from the heuristics' choice, which has few successors, then from the original kernel
    for seed in dict.fromkeys((start[0], start[-1])):
        kept, last = [seed], seed.seconds
        while time.monotonic() < end:
            candidates = successors(ast, target, kept, limits, seen)
            for at in range(0, len(candidates), AT_ONCE):
                if time.monotonic() < end:
                    timed(candidates[at : at + AT_ONCE])
            found = sorted(candidates, key=lambda c: c.seconds)[: limits.width]
            progress.rounds += 1
            if not found or found[0].seconds >= last * BETTER:
                break
            kept, last = found, found[0].seconds
            best = min(best, found[0], key=lambda c: c.seconds)
    if best is not start[0]:
        rivals, least = [start[0], best], [math.inf, math.inf]
        for _ in range(AGAIN):  # alternating, so that a slow phase of the machine affects both
            timed(rivals)
            least = [min(t, c.seconds) for t, c in zip(least, rivals, strict=True)]
        if least[1] >= least[0] * BETTER:
            best = start[0]
    return best.opts
