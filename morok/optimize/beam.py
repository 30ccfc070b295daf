"""Beam search: optimizations found by timing kernels, a few of the best at a time.

The search knows nothing of devices: it is handed a function that says how long each of some kernels takes. Of the kernels kept,
every legal action makes a candidate; equal kernels are one, however they came about. The choice of the heuristics is the first
candidate and is timed again, against the winner, at the end: a search never ends with something slower but for noise.
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
from morok.optimize.opts import Opt, OptOp, Scheduler
from morok.passes.range_stages import const_end
from morok.passes.target import KernelInfo, Target

AT_ONCE: Final = 16  # candidates measured together: time may run out between them
AGAIN: Final = 3  # times that the winner and the heuristics' choice are measured once more
BETTER: Final = 0.98  # of another kernel's time: what is no clearer than this is noise


def _each(op: OptOp, axes: int, amounts: Sequence[int]) -> Iterator[Opt]:
    return (Opt(op, axis, amount) for axis in range(axes) for amount in amounts)


# What the reference texts list: 162 actions; an amount of 0 is the whole axis.
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
THREADS: Final = tuple(_each(OptOp.THREAD, 3, (0,)))  # where a kernel may use several threads
VECTORS: Final = (*_each(OptOp.UPCAST, 4, (8, 16)), *_each(OptOp.UNROLL, 2, (8, 16, 32)))  # where registers hold vectors


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a search.

    width    kernels kept from one round to the next
    seconds  after which it makes no more candidates
    upcast   lanes of one kernel's vectorized axes together
    local    threads of one block
    outputs  whether axes of the output may be vectorized
    """

    width: int = 4
    seconds: float = 60.0
    upcast: int = 256
    local: int = 1024
    outputs: bool = True


@dataclass(slots=True)
class Progress:
    """The progress of a search: rounds done, candidates timed, the best time so far in seconds."""

    rounds: int = 0
    timed: int = 0
    best: float = math.inf


@dataclass(slots=True, eq=False)
class Candidate:
    """A kernel and how it was made."""

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
    """The kernel as it is compiled, without the way to it, so that equal kernels are one node."""
    info = s.ast.arg if isinstance(s.ast.arg, KernelInfo) else KernelInfo()
    kept = tuple([o for o in s.applied if o.op is OptOp.LANES])  # which is no part of the graph
    return UOp.new(Op.Sink, s.ast.src, replace(info, opts=kept))


def successors(ast: UOp, target: Target, kept: Sequence[Candidate], limits: Limits, seen: set[UOp]) -> list[Candidate]:
    """The kernels that one more action makes of those kept; kernels `seen` before are left out, and become seen."""
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
    """The optimizations for the kernel `ast`, as stage 7 meets it, that `measure` likes best.

    `measure(kernels, limit)` gives seconds for each, infinity for one that cannot be compiled or run; one that takes much longer
    than `limit` need not be timed well. `first` is what the heuristics choose.
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
    for seed in dict.fromkeys(
        (start[0], start[-1])
    ):  # from the heuristics' choice, which leads to little else, then from nothing
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
        for _ in range(AGAIN):  # in turn, so that a slow moment of the machine hits both
            timed(rivals)
            least = [min(t, c.seconds) for t, c in zip(least, rivals, strict=True)]
        if least[1] >= least[0] * BETTER:
            best = start[0]
    return best.opts
