"""Execution plans: programs compiled once and run many times, on the CPU by one foreign call for each execution."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from morok.arguments import instance, mapping, whole
from morok.errors import DeviceError, DTypeError, ShapeError
from morok.ir.dtype import dtypes
from morok.runtime.buffer import Buffer
from morok.runtime.cpu import CPUKernel
from morok.runtime.kernel import PreparedKernel
from morok.runtime.memory import assign
from morok.runtime.records import Records


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One kernel's time in a profiled execution, in seconds; `start` counts from the beginning of the execution."""

    name: str
    start: float
    seconds: float


class ExecutionPlan:
    """Compiled kernels over buffers.

    kernels            the steps
    parallel_groups    groups of indices of steps that may run at the same time, in execution order
    buffers            every buffer that a step uses
    output_buffer_idx  the index of the result among them
    threads            the number of threads that share a kernel, or the steps of a group, on the CPU

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
        is_on_cpu = all(isinstance(k.kernel, CPUKernel) for k in self.kernels)
        self._records = Records(self.kernels, self.parallel_groups, self.buffers, threads) if is_on_cpu else None

    @property
    def output(self) -> Buffer:
        return self.buffers[self.output_buffer_idx]

    def rebind(self, buffer_idx: int, buffer: Buffer) -> None:
        """Replace a buffer, for all later executions, without compiling. ShapeError, DTypeError, DeviceError unless the new one
        has the old one's size, dtype and device.
        """
        buffer_idx = whole(buffer_idx, "the index of a plan's buffer", 0, len(self.buffers) - 1)
        instance(buffer, Buffer, "a buffer of a plan", "a Buffer: tensor.buffer is one")
        old = self.buffers[buffer_idx]
        if buffer.size != old.size:
            raise ShapeError(
                f"buffer {buffer_idx} of the plan was given {buffer.size} elements", expected=f"{old.size} elements"
            )
        if buffer.dtype is not old.dtype:
            raise DTypeError(
                f"buffer {buffer_idx} of the plan was given the dtype {buffer.dtype}", expected=str(old.dtype)
            )
        if buffer.device is not old.device:
            raise DeviceError(
                f"buffer {buffer_idx} of the plan was given a buffer on {buffer.device.name}",
                expected=f"one on {old.device.name}",
            )
        self._use(buffer_idx, buffer)

    def _use(self, buffer_idx: int, buffer: Buffer) -> None:
        """Replace a buffer, without checks."""
        self.buffers[buffer_idx] = buffer
        if self._records is not None:
            self._records.bind(buffer_idx, buffer)

    def execute(self, inputs: Mapping[int, Buffer] | None = None, vars: Mapping[str, Any] | None = None) -> Buffer:
        """The output buffer, after running every kernel, in the order of the groups.

        `inputs` replaces buffers by index, and `vars` run-time values, for this and later executions.
        """
        given = {} if inputs is None else mapping(inputs, "inputs", "buffers by their indices")
        for index, buffer in given.items():
            self.rebind(index, buffer)
        self._run(_values(vars))
        return self.output

    def _run(self, values: Mapping[str, Any], as_before: bool = False) -> None:
        """Run with checked values; `as_before` says that they equal those of the last execution."""
        if self._records is not None:
            self._records.set_vars({} if as_before else values)
            self._records.run()
        else:
            self._run_one_by_one(values)
            self.output.device.synchronize()

    def _run_one_by_one(self, values: Mapping[str, Any]) -> None:
        for group in self.parallel_groups:
            for i in group:
                step = self.kernels[i]
                step.kernel.launch([self.buffers[b] for b in step.buffers], {**step.fixedvars, **values})

    def profile(self, vars: Mapping[str, Any] | None = None) -> list[KernelTime]:
        """The times of each kernel in one execution, in the order of `kernels`."""
        vars = _values(vars)
        if self._records is not None:
            self._records.set_vars(vars)
            return [
                KernelTime(k.kernel.name, *found)
                for k, found in zip(self.kernels, self._records.profile(), strict=True)
            ]
        times: dict[int, KernelTime] = {}
        begin = time.perf_counter()
        for i in [i for group in self.parallel_groups for i in group]:
            step = self.kernels[i]
            start = time.perf_counter()
            step.kernel.launch([self.buffers[b] for b in step.buffers], {**step.fixedvars, **vars})
            self.buffers[step.buffers[0]].device.synchronize()
            times[i] = KernelTime(step.kernel.name, start - begin, time.perf_counter() - start)
        return [times[i] for i in sorted(times)]


def _values(vars: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The argument `vars` of an execution as a mapping, checked."""
    return {} if vars is None else mapping(vars, "vars", "values by the names of variables")


def share_memory(
    kernels: Sequence[PreparedKernel],
    parallel_groups: Sequence[Sequence[int]],
    buffers: Sequence[Buffer],
    intermediate: Collection[int],
) -> list[Buffer]:
    """`buffers` with those at `intermediate` indices replaced by views of shared memory, by lifetime: see memory.assign().

    Buffers that have memory already, views, and buffers with views are kept.
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
