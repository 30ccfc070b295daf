"""Cached schedules of graphs, cut into kernels by the cost model or by timing, and their memory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from morok import config
from morok.caller import caller
from morok.errors import DeviceError, UsageError
from morok.interrupts import check, deferred
from morok.ir.graph import toposort
from morok.ir.uop import UOp
from morok.locks import KERNELS
from morok.remembered import NODE, Remembered
from morok.runtime.abstract_device import Device
from morok.runtime.buffer import Buffer
from morok.runtime.device import device as find_device
from morok.tensor.base import Lazy
from morok.tensor.scheduling import COUNTERS, Normal, Prepared, Schedule, decided, most_buffers, normalised
from morok.tensor.stored import by_device, memory_of, wanted

_schedules: Final[Remembered[Schedule]] = Remembered()


@dataclass(frozen=True, slots=True)
class ScheduleItem:
    """One kernel ready to be compiled and run.

    kernel        the Kernel node
    ast           its Sink, the input of the 22 stages
    buffers       the memory by slot, outputs first
    dependencies  positions in the schedule of the kernels that must run before it
    fixedvars     the values of the variables bound in the graph
    """

    kernel: UOp
    ast: UOp
    buffers: list[Buffer]
    dependencies: list[int]
    fixedvars: dict[str, int]


def scheduled(normal: Normal, device: str) -> Schedule:
    key = (normal.roots, device, most_buffers(device), _search(device))
    found = _schedules.get(key)
    if found is not None:
        COUNTERS.schedules_remembered += 1
        return found
    check()
    cuts: Mapping[UOp, bool] = {}
    if key[-1]:
        from morok.tensor.cut_search import found_cuts  # lazy: few programs search

        cuts = found_cuts(normal, device)
    with KERNELS:
        schedule = decided(normal, device, cuts)[0]
        _schedules.put(key, schedule, NODE * len(toposort([*schedule.roots, *[s.kernel for s in schedule.steps]])))
        return schedule


def _search(device: str) -> tuple[Hashable, ...]:
    """The part of a cache key for the search for cuts; () without a search."""
    if not config.SEARCH_CUTS.value or config.CPU_BACKEND.value != "LLVM":
        return ()
    return (config.SEARCH_CUTS.value, config.code_key()) if find_device(device).measures else ()


def with_memory(roots: Sequence[UOp], device: str) -> Prepared:
    normal = normalised(roots, device)
    schedule = scheduled(normal, device)
    target = find_device(device)
    memory = [found for node in normal.buffers if (found := memory_of(node, device)) is not None]
    refuse_others(memory, target)
    refuse_overlaps(memory, {s.buffers[0] for s in schedule.steps if s.buffers[0] < schedule.inputs})
    memory += [Buffer(target, d, n) for d, n in schedule.made]
    return Prepared(schedule, target, normal.buffers, memory, normal.values, normal.forms)


def refuse_others(memory: Sequence[Buffer], target: Device) -> None:
    """DeviceError if the device `target` cannot access one of these buffers."""
    for m in memory:
        if m.device.name != target.name and not (m.device.shares_host_memory and target.shares_host_memory):
            raise DeviceError(
                f"a kernel on {target.name} cannot read memory of {m.device.name}",
                place=caller(),
                expected="tensors on one device",
                hint="use .to()",
            )


def refuse_overlaps(memory: Sequence[Buffer], written: set[int]) -> None:
    """UsageError if a buffer in `written` (numbers) overlaps another buffer, as two tensors over one array do: nothing would
    order the reads of one and the writes of the other.
    """
    places = [(m.address, m.address + m.nbytes) for m in memory] if written else []
    for k in written:
        begin, end = places[k]
        if any(b < end and begin < e for other, (b, e) in enumerate(places) if other != k):
            raise UsageError(
                "a tensor is written while another tensor over the same array is read",
                place=caller(),
                expected="one tensor over an array that is written to",
                hint="Tensor(array.copy())",
            )


def create_schedule(tensors: Sequence[Lazy]) -> list[ScheduleItem]:
    """The kernels that compute these tensors, in execution order, with their memory."""
    out: list[ScheduleItem] = []
    for device, group in by_device(tensors).items():
        if roots := wanted(group):
            with deferred:
                prepared, first = with_memory(roots, device), len(out)
            for s in prepared.schedule.steps:
                buffers, before = [prepared.memory[b] for b in s.buffers], [first + k for k in s.before]
                out.append(ScheduleItem(s.kernel, s.ast, buffers, before, dict(prepared.values)))
    return out
