"""From schedules to machine code: kernels, each lowered and compiled once, and execution plans."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from morok import config
from morok.interrupts import check
from morok.ir.graph import toposort
from morok.ir.uop import UOp
from morok.locks import KERNELS
from morok.passes.appended import appended_key
from morok.passes.depth_first_tiling import Chain, chains, variable
from morok.passes.depth_first_tiling import Step as Link
from morok.passes.pipeline import APPLY_OPTS, Observer, Program, lower
from morok.remembered import NODE, Remembered
from morok.runtime.abstract_device import Device
from morok.runtime.buffer import Buffer
from morok.runtime.kernel import Kernel, PreparedKernel
from morok.runtime.memory import in_place
from morok.runtime.plan import ExecutionPlan, share_memory
from morok.runtime.progress_bar import shown
from morok.tensor.scheduling import COUNTERS, Prepared, Schedule

_kernels: Final[Remembered[Kernel]] = Remembered()


def forget_kernels() -> None:
    """Clear the cache of kernels, so that an observer of the stages sees every kernel lowered."""
    _kernels.clear()


def compiled(asts: Sequence[UOp], device: Device) -> list[Kernel]:
    """The kernels of these ASTs, from the cache or lowered and compiled; kernels compiled without MOROK_CHECK are compiled again
    under it. While one kernel is compiled, the next is lowered and rendered.
    """
    check()
    settings = (device.name, config.code_key(), config.CHECK.value, appended_key())
    kernels: dict[UOp, Kernel] = {}
    pending: tuple[UOp, Callable[[], Kernel]] | None = None

    def keep(ast: UOp, kernel: Kernel) -> None:
        kernels[ast] = kernel
        _kernels.put((ast, *settings), kernel, kernel.nbytes + NODE * len(toposort([ast])))

    def finish() -> None:
        nonlocal pending
        if pending is not None:
            ast, kernel = pending
            pending = None
            keep(ast, kernel())

    for i, ast in enumerate(shown(asts, "compiling kernels")):
        known = _kernels.get((ast, *settings))
        if known is not None or ast in kernels or (pending is not None and ast is pending[0]):
            COUNTERS.kernels_remembered += 1
            if known is not None:
                kernels[ast] = known
            continue
        check()
        instructions = lowered(ast, device)
        if i == len(asts) - 1:  # no other kernel to lower meanwhile
            finish()
            keep(ast, device.compile(instructions, ast.arg.name))
        else:
            pending = ast, device.begin(instructions, ast.arg.name, finish)
    finish()
    return [kernels[ast] for ast in asts]


def lowered(ast: UOp, device: Device, observer: Observer | None = None) -> list[UOp]:
    COUNTERS.kernels_lowered += 1
    if config.BEAM.value:
        from morok.runtime.tune import tuned  # lazy: few programs search

        ast = tuned(ast, device)
    with KERNELS:
        return lower(ast, device.target, observer)


def lowered_with_opts(ast: UOp, device: Device) -> tuple[list[UOp], tuple[str, ...]]:
    """(instructions, optimizations that stage 7 applied) of a kernel."""
    opts: list[str] = []

    def look(number: int, name: str, before: Program, after: Program) -> None:
        if number == APPLY_OPTS and isinstance(after, UOp):
            opts.extend(map(str, after.arg.opts or ()))

    return lowered(ast, device, look), tuple(opts)


def of_memory(memory: Sequence[Buffer]) -> ExecutionPlan:
    """A plan without kernels, for buffers that have their values already."""
    return ExecutionPlan([], [], list(memory))


def planned(prepared: Prepared, kept: Collection[int] = ()) -> ExecutionPlan:
    """The compiled plan of a schedule; intermediate buffers share memory, except outputs and those in `kept`."""
    schedule = prepared.schedule
    found = chains_of(schedule, prepared.device, kept)
    memory = list(prepared.memory)
    for number, size in ((b, n) for chain in found for b, n in chain.sizes.items()):
        memory[number] = Buffer(prepared.device, memory[number].dtype, size)
    own = {k: ast for chain in found for k, ast in zip(chain.steps, chain.asts, strict=True)}
    ready = compiled([own.get(k, s.ast) for k, s in enumerate(schedule.steps)], prepared.device)
    inner = set(range(schedule.inputs, len(memory))) - set(schedule.outputs) - set(kept)
    users, possible = [s.buffers for s in schedule.steps], [k.rendered.overwritable for k in ready]
    over = in_place(schedule.groups, users, possible, {b: memory[b].nbytes for b in inner})
    lying = [tuple([over.get(b, b) for b in own]) for own in users]
    steps = [PreparedKernel(k, own, prepared.values) for k, own in zip(ready, lying, strict=True)]
    kernels, groups = _in_order(steps, schedule.groups, found)
    memory = share_memory(kernels, groups, memory, inner)
    for result, source in over.items():
        memory[result] = memory[source]
    return ExecutionPlan(kernels, groups, memory, schedule.outputs[0] if schedule.outputs else 0, config.THREADS.value)


def chains_of(schedule: Schedule, device: Device, kept: Collection[int] = ()) -> list[Chain]:
    """The chains of steps that run tile by tile (depth-first tiling), since no buffer between them is an output or in `kept`."""
    if device.target.has_local or config.OPTS.value:
        return []
    # optimizations for whole kernels
    given = {b for s in schedule.steps if s.ast.arg.opts is not None for b in s.buffers}
    inner = (
        set(range(schedule.inputs, schedule.inputs + len(schedule.made))) - set(schedule.outputs) - set(kept) - given
    )
    return chains([Link(s.ast, s.buffers) for s in schedule.steps], schedule.groups, inner, device.target.threads)


def _in_order(
    steps: Sequence[PreparedKernel], groups: Sequence[Sequence[int]], found: Sequence[Chain]
) -> tuple[list[PreparedKernel], list[list[int]]]:
    """(steps in execution order, groups of their numbers that may run at the same time); a chain's steps once for each tile."""
    firsts = {chain.steps[0]: chain for chain in found}
    others = {k for chain in found for k in chain.steps[1:]}
    order: list[PreparedKernel] = []
    together: list[list[int]] = []
    for group in groups:
        chain = firsts.get(group[0])
        if chain is not None:
            for piece in itertools.product(*map(range, chain.lengths)):
                values = {variable(k): at for k, at in enumerate(piece)}
                for k in chain.steps:
                    together.append([len(order)])
                    order.append(replace(steps[k], fixedvars={**steps[k].fixedvars, **values}))
        elif group[0] not in others:
            together.append(list(range(len(order), len(order) + len(group))))
            order += [steps[k] for k in group]
    return order, together
