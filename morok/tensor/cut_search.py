"""Search, by timing, for the cuts of a program into kernels.

The search starts from the decisions of the cost model, and reverses one after the other of those whose costs are closest. A
reversal is kept if the whole program is clearly faster. The result is stored on disk, as for beam search.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from morok import config
from morok.errors import MorokError
from morok.interrupts import check
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.locks import KERNELS
from morok.passes.rangeify.state import Decision
from morok.runtime.abstract_device import Device
from morok.runtime.buffer import NUMPY, Buffer
from morok.runtime.device import device as find_device
from morok.runtime.plan import ExecutionPlan
from morok.runtime.tuned import key, store_for
from morok.tensor import registry
from morok.tensor.plans import planned
from morok.tensor.scheduling import Normal, Prepared, Schedule, decided

BETTER: Final = 0.95  # the ratio of times below which a program is faster; above it the difference is noise
AGAIN: Final = 1  # further timings of a program that seems faster
ROUNDS: Final = 40  # turns of each program; the fastest counts
TURN: Final = 4e-4  # seconds of a turn, at least one execution: short, so that some turns are undisturbed


@dataclass(slots=True)
class Counters:
    """Counts since the process began: searches, results found on disk, pairs of programs timed."""

    searches: int = 0
    remembered: int = 0
    timed: int = 0


COUNTERS: Final = Counters()


def found_cuts(normal: Normal, device: str) -> Mapping[UOp, bool]:
    """The cuts that differ from the cost model's, by node, from a search or from its result on disk; {} if none differ."""
    target = find_device(device)
    with KERNELS:
        schedule, decisions = decided(normal, device, observed=False)
    asked = closest(decisions, config.SEARCH_CUTS.value)
    if not asked:
        return {}
    store = store_for(target.target)
    figures = tuple([(d.node.op.name, d.size, d.runs, d.merged, d.stored, d.cut) for d in asked])
    roots = UOp.new(Op.Sink, normal.roots)
    name = key(
        roots, "cuts", figures, device, target.identity, target.target, config.code_key(), config.MAX_BUFFERS.value
    )
    turned = (
        None
        if store is None or config.IGNORE_BEAM_CACHE.value
        else store.look_up(name, lambda text: _read(text, len(asked)))
    )
    if turned is not None:
        COUNTERS.remembered += 1
    else:
        turned = _search(normal, target, schedule, asked)
        if store is not None:
            store.keep(name, json.dumps(turned))
    return {asked[k].node: not asked[k].cut for k in turned}


def _read(text: str, count: int) -> list[int]:
    """The numbers of decisions, below `count`, in JSON text; ValueError for other text."""
    numbers = json.loads(text)
    if not isinstance(numbers, list) or not all(type(k) is int and 0 <= k < count for k in numbers):
        raise ValueError(text)
    return numbers


def closest(decisions: Sequence[Decision], most: int) -> list[Decision]:
    """Up to `most` decisions of the cost model, in order of the ratio of their two estimated times, the closest to 1 first."""
    by_cost = {d.node: d for d in decisions if not d.why and d.merged > 0.0 and d.stored > 0.0}
    return sorted(by_cost.values(), key=lambda d: abs(math.log(d.merged / d.stored)))[:most]


def _search(normal: Normal, device: Device, schedule: Schedule, asked: Sequence[Decision]) -> list[int]:
    """The numbers of the decisions in `asked` whose reversal makes the program faster."""
    COUNTERS.searches += 1
    turned: list[int] = []
    best = _Program(normal, device, schedule)
    for k in range(len(asked)):
        check()
        cuts = {asked[i].node: not asked[i].cut for i in (*turned, k)}
        try:
            with KERNELS:
                other, _ = decided(normal, device.name, cuts, observed=False)
            if other.steps == best.schedule.steps:
                continue  # the reversal has no effect on the kernels
            rival = _Program(normal, device, other)
        except MorokError:
            continue  # an impossible schedule: with this cut, assignments may depend on each other
        if _is_faster(rival, best):
            best = rival
            turned.append(k)
    return turned


def _is_faster(rival: _Program, best: _Program) -> bool:
    """True if `rival` is clearly faster than `best` in each of 1 + AGAIN timings."""
    for _ in range(1 + AGAIN):
        COUNTERS.timed += 1
        ours, theirs = seconds([rival.plan, best.plan])
        if ours >= theirs * BETTER:
            return False
    return True


def seconds(plans: Sequence[ExecutionPlan]) -> list[float]:
    """The least time of one execution of each plan, in seconds. Plans alternate: a slow phase of the machine affects them all."""
    times: list[int] = []
    for plan in plans:
        plan.execute()
        start = time.perf_counter()
        plan.execute()
        times.append(max(1, int(TURN / max(time.perf_counter() - start, 1e-7))))
    least = [math.inf] * len(plans)
    for _ in range(ROUNDS):
        for k, plan in enumerate(plans):
            check()
            plan.execute()  # warm-up: caches hold what this plan leaves in them
            start = time.perf_counter()
            for _ in range(times[k]):
                plan.execute()
            least[k] = min(least[k], (time.perf_counter() - start) / times[k])
    return least


class _Program:
    """A compiled schedule, over memory that it may overwrite, with its variables at their upper bounds."""

    def __init__(self, normal: Normal, device: Device, schedule: Schedule) -> None:
        self.schedule = schedule
        written = {s.buffers[0] for s in schedule.steps}
        memory = [_input(node, device, k in written) for k, node in enumerate(normal.buffers)]
        memory += [Buffer(device, d, n) for d, n in schedule.made]
        bounds = {n.arg[0]: int(n.vmax) for s in schedule.steps for n in s.ast.toposort() if n.op is Op.DefineVar}
        self.plan = planned(Prepared(schedule, device, [], memory, {**normal.values, **bounds}, {}))


def _input(node: UOp, device: Device, written: bool) -> Buffer:
    """The memory of an input: a copy if the program writes to it, zeros if it has no memory yet."""
    memory = registry.memory_of(node)
    if memory is not None and not memory.is_allocated:
        memory = None
    if memory is not None and memory.device is device and not written:
        return memory
    copy = Buffer(device, node.dtype, node.arg)
    copy.copy_in(np.zeros(node.arg, NUMPY[node.dtype]) if memory is None else memory.numpy())
    return copy
