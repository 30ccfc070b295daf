"""Cuts found by time: whole programs are run as decided by cost, and with the closest decisions made the other way.

One decision after the other is turned around, and stays so if the program is clearly faster. What is found is remembered on
disk, as what beam search finds.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from morok import config
from morok.errors import MorokError
from morok.interrupts import check
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.locks import KERNELS
from morok.passes.appended import appended_key
from morok.passes.rangeify.state import Decision
from morok.runtime.buffer import NUMPY, Buffer
from morok.runtime.device import device as find_device
from morok.runtime.tuned import found_here, key
from morok.tensor import registry
from morok.tensor.plans import planned
from morok.tensor.scheduling import Normal, Prepared, Schedule, decided

if TYPE_CHECKING:
    from morok.runtime.abstract_device import Device
    from morok.runtime.buffer import Buffer
    from morok.runtime.plan import ExecutionPlan

BETTER: Final = 0.95  # of another program's time: what is no clearer than this is noise
AGAIN: Final = 1  # times that what seems faster is timed once more
ROUNDS: Final = 40  # turns of each program, the best of which counts
TURN: Final = 4e-4  # seconds of a turn, or one execution: short ones, of which some are not disturbed


@dataclass(slots=True)
class Counters:
    """The searches since the process began."""

    searches: int = 0
    remembered: int = 0
    timed: int = 0


COUNTERS: Final = Counters()


def found_cuts(normal: Normal, device: str) -> Mapping[UOp, bool]:
    """The decisions to be made otherwise than by cost, that a search finds, or once has found."""
    target = find_device(device)
    with KERNELS:
        schedule, decisions = decided(normal, device, observed=False)
    asked = closest(decisions, config.SEARCH_CUTS.value)
    if not asked:
        return {}
    unnamed = appended_key() or target.target.own_rules  # rules that a program adds have no name on disk
    store = None if unnamed else found_here()
    figures = tuple([(d.node.op.name, d.size, d.runs, d.merged, d.stored, d.cut) for d in asked])
    roots = UOp.new(Op.Sink, normal.roots)
    name = key(roots, "cuts", figures, device, target.identity, target.target, config.code_key(), config.MAX_BUFFERS.value)
    turned = (
        None if store is None or config.IGNORE_BEAM_CACHE.value else store.look_up(name, lambda text: _read(text, len(asked)))
    )
    if turned is not None:
        COUNTERS.remembered += 1
    else:
        turned = _search(normal, target, schedule, asked)
        if store is not None:
            store.keep(name, json.dumps(turned))
    return {asked[k].node: not asked[k].cut for k in turned}


def _read(text: str, count: int) -> list[int]:
    """Numbers of decisions; ValueError for other text."""
    numbers = json.loads(text)
    if not isinstance(numbers, list) or not all(type(k) is int and 0 <= k < count for k in numbers):
        raise ValueError(text)
    return numbers


def closest(decisions: Sequence[Decision], most: int) -> list[Decision]:
    """The decisions made by cost whose two times differ least, by their ratio."""
    by_cost = {d.node: d for d in decisions if not d.why and d.merged > 0.0 and d.stored > 0.0}
    return sorted(by_cost.values(), key=lambda d: abs(math.log(d.merged / d.stored)))[:most]


def _search(normal: Normal, device: Device, schedule: Schedule, asked: Sequence[Decision]) -> list[int]:
    """The numbers of the decisions that are better turned around."""
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
                continue  # another decision takes its place
            rival = _Program(normal, device, other)
        except MorokError:
            continue  # one that cannot be: cut so, assignments may wait for each other
        if _is_faster(rival, best):
            best = rival
            turned.append(k)
    return turned


def _is_faster(rival: _Program, best: _Program) -> bool:
    """True if a program is clearly faster than another, however often that is asked."""
    for _ in range(1 + AGAIN):
        COUNTERS.timed += 1
        ours, theirs = seconds([rival.plan, best.plan])
        if ours >= theirs * BETTER:
            return False
    return True


def seconds(plans: Sequence[ExecutionPlan]) -> list[float]:
    """The least time of an execution of each plan. They take turns, so that a slow moment of the machine hits all."""
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
            plan.execute()  # caches are as the plan itself leaves them
            start = time.perf_counter()
            for _ in range(times[k]):
                plan.execute()
            least[k] = min(least[k], (time.perf_counter() - start) / times[k])
    return least


class _Program:
    """A schedule, compiled, over memory that may be written to, with its variables at their upper bounds."""

    def __init__(self, normal: Normal, device: Device, schedule: Schedule) -> None:
        self.schedule = schedule
        written = {s.buffers[0] for s in schedule.steps}
        memory = [_input(node, device, k in written) for k, node in enumerate(normal.buffers)]
        memory += [Buffer(device, d, n) for d, n in schedule.made]
        bounds = {n.arg[0]: int(n.vmax) for s in schedule.steps for n in s.ast.toposort() if n.op is Op.DefineVar}
        self.plan = planned(Prepared(schedule, device, [], memory, {**normal.values, **bounds}, {}))


def _input(node: UOp, device: Device, written: bool) -> Buffer:
    """The memory of an input, a copy of it where it is `written`; zeros where there is none yet."""
    memory = registry.memory_of(node)
    if memory is not None and not memory.is_allocated:
        memory = None
    if memory is not None and memory.device is device and not written:
        return memory
    copy = Buffer(device, node.dtype, node.arg)
    copy.copy_in(np.zeros(node.arg, NUMPY[node.dtype]) if memory is None else memory.numpy())
    return copy
