"""A program compiled once and run many times: one foreign call an execution."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from morok.errors import DeviceError, DTypeError, ShapeError
from morok.ir.dtype import dtypes
from morok.runtime.buffer import Block, Buffer
from morok.runtime.cpu import CPUKernel, walk
from morok.runtime.kernel import Kernel, pack
from morok.runtime.memory import assign

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


@dataclass(frozen=True, slots=True)
class PreparedKernel:
    """One step: a kernel, the plan's buffers by slot, and values bound when the plan was made."""

    kernel: Kernel
    buffers: tuple[int, ...]
    fixedvars: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One kernel's time in a profiled execution; `start` counts from the execution's begin."""

    name: str
    start: float
    seconds: float


class ExecutionPlan:
    """Compiled kernels over buffers.

    kernels            the steps
    parallel_groups    indices of steps that may run at the same time, group after group
    buffers            every buffer that a step uses
    output_buffer_idx  which of them is the result
    threads            how many steps of a group run at once on the CPU

    One execution at a time: the buffers belong to the plan.
    """

    def __init__(
        self,
        kernels: Sequence[PreparedKernel],
        parallel_groups: Sequence[Sequence[int]],
        buffers: Sequence[Buffer],
        output_buffer_idx: int = 0,
        threads: int = 1,
    ) -> None:
        self.kernels = list(kernels)
        self.parallel_groups = [list(g) for g in parallel_groups]
        self.buffers = list(buffers)
        self.output_buffer_idx = output_buffer_idx
        self.threads = threads
        self._records = _Records(self) if all(isinstance(k.kernel, CPUKernel) for k in self.kernels) else None

    @property
    def output(self) -> Buffer:
        return self.buffers[self.output_buffer_idx]

    def rebind(self, buffer_idx: int, buffer: Buffer) -> None:
        """Use other memory for a buffer from now on; nothing is compiled. The new buffer must be like the old one."""
        old = self.buffers[buffer_idx]
        if buffer.size != old.size:
            raise ShapeError(f"buffer {buffer_idx} of the plan has {old.size} elements, not {buffer.size}")
        if buffer.dtype is not old.dtype:
            raise DTypeError(f"buffer {buffer_idx} of the plan holds {old.dtype}, not {buffer.dtype}")
        if buffer.device is not old.device:
            raise DeviceError(f"buffer {buffer_idx} of the plan is on {old.device.name}, not {buffer.device.name}")
        self.buffers[buffer_idx] = buffer
        if self._records is not None:
            self._records.bind(buffer_idx, buffer)

    def execute(self, inputs: Mapping[int, Buffer] | None = None, vars: Mapping[str, Any] | None = None) -> Buffer:
        """Run every kernel, in the order of the groups; returns the output buffer.

        `inputs` replaces buffers by index and `vars` run-time values, for this and later executions.
        """
        for index, buffer in (inputs or {}).items():
            self.rebind(index, buffer)
        if self._records is not None:
            self._records.set_vars(vars)
            self._records.run()
            return self.output
        self._run_one_by_one(vars or {})
        self.output.device.synchronize()
        return self.output

    def _run_one_by_one(self, values: Mapping[str, Any]) -> None:
        for group in self.parallel_groups:
            for i in group:
                step = self.kernels[i]
                step.kernel.launch([self.buffers[b] for b in step.buffers], {**step.fixedvars, **values})

    def profile(self, vars: Mapping[str, Any] | None = None) -> list[KernelTime]:
        """Run once and tell how long each kernel took, in seconds, in the order of `kernels`."""
        if self._records is not None:
            self._records.set_vars(vars)
        times: dict[int, KernelTime] = {}
        begin = time.perf_counter()

        def timed(i: int) -> None:
            step = self.kernels[i]
            start = time.perf_counter()
            if self._records is not None:
                self._records.run_one(i)
            else:
                step.kernel.launch([self.buffers[b] for b in step.buffers], {**step.fixedvars, **(vars or {})})
                self.buffers[step.buffers[0]].device.synchronize()
            times[i] = KernelTime(step.kernel.name, start - begin, time.perf_counter() - start)

        for group in self.parallel_groups:
            if self.threads > 1 and len(group) > 1 and self._records is not None:
                list(_workers(self.threads).map(timed, group))
            else:
                for i in group:
                    timed(i)
        return [times[i] for i in sorted(times)]


@cache
def _workers(threads: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, thread_name_prefix="morok")


class _Records:
    """A CPU plan in memory as the trampoline walks it: per step {kernel, args, vars}, steps in the order of the groups."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.order = [i for group in plan.parallel_groups for i in group]
        self.row = {step: row for row, step in enumerate(self.order)}
        steps = plan.kernels
        self.places: dict[int, list[int]] = {}  # buffer -> its entries in `args`
        self.scratch: list[Block] = []
        arguments: list[int] = []
        starts: list[int] = []
        for i in self.order:
            rendered = steps[i].kernel.rendered
            starts.append(len(arguments))
            for b in steps[i].buffers[: rendered.slots]:
                self.places.setdefault(b, []).append(len(arguments))
                arguments.append(plan.buffers[b].address)
            if rendered.scratch:
                self.scratch.append(Block(rendered.scratch))
                arguments.append(self.scratch[-1].address)
        variable_starts: list[int] = []
        at = 0
        for i in self.order:
            variable_starts.append(at)
            at += 8 * len(steps[i].kernel.rendered.vars)
        self.args = np.array([*arguments, 0], np.uint64)
        self.vars = np.zeros(at + 8, np.uint8)
        self.variable_starts = variable_starts
        args_at, vars_at = self.args.ctypes.data, self.vars.ctypes.data
        rows: list[tuple[int, int, int]] = []
        for row, i in enumerate(self.order):
            kernel = steps[i].kernel
            assert isinstance(kernel, CPUKernel)
            rows.append((kernel.address, args_at + 8 * starts[row], vars_at + variable_starts[row]))
        self.rows = np.array(rows, np.uint64).reshape(-1, 3)
        self.base: int = self.rows.ctypes.data
        self.bound = not any(s.kernel.rendered.vars for s in steps)
        self.runs = self._runs()

    def _runs(self) -> list[tuple[int, int, bool]]:
        """(first row, rows, at the same time?) in order; without threads everything is one run."""
        if self.plan.threads <= 1 or all(len(g) == 1 for g in self.plan.parallel_groups):
            return [(0, len(self.order), False)]
        runs: list[tuple[int, int, bool]] = []
        at = 0
        for group in self.plan.parallel_groups:
            parallel = len(group) > 1
            if runs and not parallel and not runs[-1][2]:
                runs[-1] = (runs[-1][0], runs[-1][1] + 1, False)
            else:
                runs.append((at, len(group), parallel))
            at += len(group)
        return runs

    def bind(self, buffer_idx: int, buffer: Buffer) -> None:
        for place in self.places.get(buffer_idx, ()):
            self.args[place] = buffer.address

    def set_vars(self, values: Mapping[str, Any] | None) -> None:
        if self.bound and not values:
            return
        for row, i in enumerate(self.order):
            step = self.plan.kernels[i]
            variables = step.kernel.rendered.vars
            if variables:
                slots = pack(step.kernel.name, variables, {**step.fixedvars, **(values or {})})
                start = self.variable_starts[row]
                self.vars[start : start + len(slots)] = np.frombuffer(slots, np.uint8)
        self.bound = True

    def run_one(self, step: int) -> None:
        walk(self.base + 24 * self.row[step], 1)

    def run(self) -> None:
        for first, n, parallel in self.runs:
            if parallel:
                list(_workers(self.plan.threads).map(lambda row: walk(self.base + 24 * row, 1), range(first, first + n)))
            else:
                walk(self.base + 24 * first, n)


def share_memory(
    kernels: Sequence[PreparedKernel],
    parallel_groups: Sequence[Sequence[int]],
    buffers: Sequence[Buffer],
    intermediate: Collection[int],
) -> list[Buffer]:
    """`buffers` with those at `intermediate` indices replaced by views of as little memory as their lifetimes allow.

    Buffers that have memory already, and views, stay as they are.
    """
    planned = {i: buffers[i].nbytes for i in intermediate if not buffers[i].is_allocated and buffers[i].base is None}
    bases = {id(b.base) for b in buffers if b.base is not None}
    planned = {i: n for i, n in planned.items() if id(buffers[i]) not in bases}
    steps = [[b for i in group for b in kernels[i].buffers] for group in parallel_groups]
    by_device: dict[int, list[int]] = {}
    for i in planned:
        by_device.setdefault(id(buffers[i].device), []).append(i)
    out = list(buffers)
    for members in by_device.values():
        chosen = {i: planned[i] for i in members}
        assignment = assign(steps, chosen)
        device = buffers[members[0]].device
        slots = [Buffer(device, dtypes.u8, n) for n in assignment.nbytes]
        for i in members:
            if i in assignment.slots:
                out[i] = Buffer(device, buffers[i].dtype, buffers[i].size, slots[assignment.slots[i]], 0)
    return out
