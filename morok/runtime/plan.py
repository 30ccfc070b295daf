"""Execution plans: programs compiled once and run many times, on the CPU by one foreign call for each execution."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from morok.arguments import instance, mapping, whole
from morok.codegen.rendered import WHOLE, Variable
from morok.errors import DeviceError, DTypeError, ShapeError
from morok.ir.dtype import dtypes
from morok.runtime.buffer import Block, Buffer
from morok.runtime.cpu import CPUKernel
from morok.runtime.kernel import Kernel, pack
from morok.runtime.memory import assign
from morok.runtime.shared_kernels import RECORD_WORDS
from morok.runtime.thread_pool import Job

SIDE_BY_SIDE: Final = 20_000  # least instructions of a kernel worth a thread of its own: several times the cost of waking one


@dataclass(frozen=True, slots=True)
class PreparedKernel:
    """One step: a kernel, the numbers of the plan's buffers by slot, and values bound when the plan was made."""

    kernel: Kernel
    buffers: tuple[int, ...]
    fixedvars: Mapping[str, Any] = field(default_factory=dict)


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
        self._records = _Records(self) if all(isinstance(k.kernel, CPUKernel) for k in self.kernels) else None

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
            raise ShapeError(f"buffer {buffer_idx} of the plan was given {buffer.size} elements", expected=f"{old.size} elements")
        if buffer.dtype is not old.dtype:
            raise DTypeError(f"buffer {buffer_idx} of the plan was given the dtype {buffer.dtype}", expected=str(old.dtype))
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
            return self._records.profile()
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


class _Records:
    """A CPU plan in the memory layout of `shared_kernels`: a record for each step, in the order of the groups. With threads, a
    group begins with the kernels that threads share, then those too small for a thread of their own, then those that run side by
    side.

    It has no reference to the plan: a reference cycle would keep the buffers until Python's cycle collector runs.
    """

    def __init__(self, plan: ExecutionPlan) -> None:
        self.kernels, self.threads = plan.kernels, plan.threads
        groups = [self._arranged(g) for g in plan.parallel_groups]
        self.order = [i for group, _ in groups for i in group]
        steps = self.kernels
        self.places: dict[int, list[int]] = {}  # buffer -> its entries in `args`
        self.scratch: list[Block] = []
        alone = {i for group in plan.parallel_groups if len(group) == 1 for i in group}
        shared: Block | None = None  # working memory of all steps that run alone, one after the other
        if most := max([self._scratch_bytes(i) for i in alone], default=0):
            shared = Block(most)
            self.scratch.append(shared)
        arguments: list[int] = []
        starts: list[int] = []
        for i in self.order:
            rendered = steps[i].kernel.rendered
            starts.append(len(arguments))
            for b in steps[i].buffers[: rendered.slots]:
                self.places.setdefault(b, []).append(len(arguments))
                arguments.append(plan.buffers[b].address)
            if rendered.scratch:
                if i not in alone or shared is None:
                    self.scratch.append(Block(self._scratch_bytes(i)))
                arguments.append((shared if i in alone and shared is not None else self.scratch[-1]).address)
            if rendered.parts:
                arguments.append(WHOLE)
        blocks: dict[tuple[tuple[Variable, Any], ...], int] = {}  # a step's variables -> their first word in `vars`
        slots: dict[tuple[Variable, Any], tuple[str, list[int]]] = {}  # (variable, fixed value) -> (a kernel's name, its words)
        variable_starts: list[int] = []
        at = 0
        for i in self.order:
            own = tuple([(v, steps[i].fixedvars.get(v.name)) for v in steps[i].kernel.rendered.vars])
            if own not in blocks:
                blocks[own] = at
                for pair in own:
                    slots.setdefault(pair, (steps[i].kernel.name, []))[1].append(at)
                    at += 1
            variable_starts.append(8 * blocks[own])
        args, vars = np.array([*arguments, 0], np.uint64), np.zeros(at + 1, np.uint64)
        self.args, self.vars = args.data, vars.data  # storing a number in a memoryview takes a quarter of an array's time
        self.variables = [
            (variable, (1 << variable.dtype.bits) - 1 if variable.dtype.is_int else 0, kernel, fixed, where)
            for (variable, fixed), (kernel, where) in slots.items()
        ]
        args_at, vars_at = args.ctypes.data, vars.ctypes.data
        beside = [n for group, side in groups for n in [*[1] * (len(group) - len(side)), *side]]
        rows: list[tuple[int, ...]] = []
        for row, i in enumerate(self.order):
            kernel = steps[i].kernel
            assert isinstance(kernel, CPUKernel)
            r = kernel.rendered
            words, parts = (r.words, r.parts * self.threads) if r.parts and self.threads > 1 else (0, beside[row])
            rows.append((kernel.address, args_at + 8 * starts[row], vars_at + variable_starts[row], words, r.scratch, parts))
        self.rows = np.array(rows, np.uint64).reshape(-1, RECORD_WORDS)
        self.bound = not any(s.kernel.rendered.vars for s in steps)
        self.job = Job(self.rows, self.threads)
        self.run = self.job.run

    def _scratch_bytes(self, step: int) -> int:
        """The bytes of a step's working memory, for all threads that share it."""
        rendered = self.kernels[step].kernel.rendered
        return rendered.scratch * (self.threads if rendered.parts else 1)

    def _arranged(self, group: Sequence[int]) -> tuple[list[int], list[int]]:
        """(steps of a group in the order of their records, `parts` of the records at the end that run side by side): of these the
        first has their number, the others 1.
        """
        if self.threads <= 1 or len(group) == 1:
            return list(group), []
        rendered = {i: self.kernels[i].kernel.rendered for i in group}
        divided = [i for i in group if rendered[i].parts]
        small = [i for i in group if i not in divided and rendered[i].work < SIDE_BY_SIDE]
        side = [i for i in group if i not in divided and i not in small]
        return [*divided, *small, *side], [len(side), *[1] * (len(side) - 1)] if side else []

    def bind(self, buffer_idx: int, buffer: Buffer) -> None:
        for place in self.places.get(buffer_idx, ()):
            self.args[place] = buffer.address

    def set_vars(self, values: Mapping[str, Any]) -> None:
        if self.bound and not values:
            return
        words: list[int] = []  # all values are checked before one is written, so that an error leaves the plan unchanged
        for variable, mask, kernel, fixed, _ in self.variables:
            value = values.get(variable.name, fixed)
            if value.__class__ is int and mask and variable.least <= value <= variable.most:  # the common case
                words.append(value & mask)
            else:
                given = {} if value is None and variable.name not in values else {variable.name: value}
                words.append(int.from_bytes(pack(kernel, (variable,), given), "little"))
        for word, (_, _, _, _, where) in zip(words, self.variables, strict=True):
            for place in where:
                self.vars[place] = word
        self.bound = True

    def profile(self) -> list[KernelTime]:
        times = np.zeros((len(self.order), 2), np.int64)
        begin = time.monotonic_ns()
        Job(self.rows, self.threads, times).run()
        found = {
            i: KernelTime(self.kernels[i].kernel.name, (int(start) - begin) / 1e9, int(end - start) / 1e9)
            for i, (start, end) in zip(self.order, times, strict=True)
        }
        return [found[i] for i in sorted(found)]


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
