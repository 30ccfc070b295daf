"""Realization: tensors are scheduled, compiled and run, and their nodes replaced by buffers. Also their kernels as code."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from morok.arguments import device_name
from morok.caller import caller
from morok.codegen.machines import host
from morok.errors import DeviceError
from morok.interrupts import deferred
from morok.ir.dtype import DType
from morok.ir.graph import toposort
from morok.ir.op import Op
from morok.ir.shape import Shape, shape_of
from morok.ir.uop import UOp
from morok.locks import KERNELS
from morok.out_of_memory import needs_memory
from morok.runtime.buffer import Buffer
from morok.runtime.device import device as find_device
from morok.tensor import creation, registry
from morok.tensor.base import Lazy, element_count
from morok.tensor.describing import current
from morok.tensor.schedule import scheduled, with_memory
from morok.tensor.scheduling import Normal, Prepared, Schedule, normalised, number_of, placeholder, rebuilt
from morok.tensor.stored import (
    by_device,
    constant,
    content,
    is_empty,
    memory,
    memory_of,
    stored_buffer,
    waiting,
    wanted,
)
from morok.tensor.view_methods import held, reshaped

if TYPE_CHECKING:
    from morok.runtime.plan import ExecutionPlan

    Array = np.ndarray[Any, Any]

Watcher = Callable[["Prepared"], Callable[[Sequence["Buffer"]], None]]

_watcher: contextvars.ContextVar[Watcher | None] = contextvars.ContextVar("morok schedule watcher", default=None)


@contextlib.contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """A context in which `watcher` is called before the kernels of each realization run, in this thread or task. It returns a
    function that is called after them, with the memory of all buffers by number.
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@needs_memory("compute tensors")
def realize(tensors: Sequence[Lazy], asked: bool = True) -> None:
    """Compute these tensors. Their nodes are replaced by buffers in the graphs of all live tensors.

    Views with memory of their own then are tensors of their own, unless the program has not `asked` for it.
    """
    _admit(tensors)
    with deferred:  # a signal's handler must not run between a kernel's writes and the update of the graphs
        _load()
        for device, group in by_device(tensors).items():
            _realize(group, device)
    for t in tensors if asked else ():
        if t._viewed:
            t._viewed = tuple(
                [v for v in t._viewed if (base := v[0]()) is not None and memory(base.uop) is memory(t.uop)]
            )


def _admit(tensors: Sequence[Lazy]) -> None:
    """Note in the description of a function that these tensors are computed now, and of which elements: these must be the same in
    each call.
    """
    if (description := current()) is not None:
        description.admit(tensors)
        for t in tensors:
            if stored_buffer(t.uop) is None:
                description.read(t.uop, registry.memory_of)


@functools.cache
def _load() -> None:
    """Import the modules that compile and run kernels, once, under a lock: no child is forked meanwhile."""
    with KERNELS:
        import morok.tensor.plans  # noqa: F401 - lazy: making tensors needs none of them

        host()


def _realize(tensors: Sequence[Lazy], device: str) -> None:
    from morok.tensor import plans  # lazy: loads lowering and the runtime

    for t in tensors:
        if is_empty(t.shape) and stored_buffer(t.uop) is None:
            registry.put(t, reshaped(registry.new_buffer(t.dtype, 0, device), t.shape))
    graphs: list[UOp] = []
    # until stable: a signal's handler may compute parts of the graphs
    while graphs != (graphs := [t.uop for t in tensors]):
        roots = wanted(tensors)
        if not roots:
            return
        asked = [(t, content(t.uop), t.shape) for t in tensors]
        prepared = with_memory(roots, device)
        numbers = {**_shared(prepared, roots), **dict(zip(roots, prepared.schedule.outputs, strict=True))}
        plan = plans.planned(prepared, numbers.values())
    watcher = _watcher.get()
    done = None if watcher is None else watcher(prepared)
    if plan.kernels:
        plan.execute()
    if done is not None:
        done(plan.buffers)
    mapping: dict[UOp, UOp] = {}
    # one node for each memory: before a write, all tensors over it are found by it
    nodes = dict(enumerate(prepared.nodes[: prepared.schedule.inputs]))
    for node, number in numbers.items():
        if number not in nodes:
            nodes[number] = registry.new_buffer(node.dtype, prepared.memory[number].size, device, plan.buffers[number])
        mapping[node] = held(nodes[number], shape_of(node))
    for t, root, shape in asked:
        if root in mapping:
            t._compiled = prepared.schedule
            # not left to `become`: another thread may have replaced the node in the meantime
            registry.put(t, reshaped(mapping[root], shape))
    registry.become(mapping)


def _shared(prepared: Prepared, roots: Sequence[UOp]) -> dict[UOp, int]:
    """The intermediate stored nodes that other live tensors use too, with the numbers of their buffers, which are kept."""
    inner = dict(prepared.schedule.inner)
    if not inner:
        return {}
    others = [u for t in registry.tensors() if stored_buffer(u := t.uop) is None and content(u) not in roots]
    alive = (node for node in toposort(others) if node in prepared.forms)
    return {node: number for node in alive if (number := inner.get(prepared.forms[node])) is not None}


def is_watched() -> bool:
    """True inside a `watching` block."""
    return _watcher.get() is not None


def with_elements(values: Array, shape: Shape, dtype: DType, device: str) -> UOp:
    """The node of a tensor with these elements, in a shape whose variables are bound to their number."""
    total = element_count(shape)
    if not isinstance(total, UOp):
        return creation.from_data(values, dtype, device)
    room = np.empty(int(total.vmax), values.dtype)
    room[: values.size] = values.reshape(-1)
    return held(creation.from_data(room, dtype, device), shape)


@needs_memory("compile a plan")
def prepare(tensors: Sequence[Lazy]) -> ExecutionPlan:
    """The compiled plan that computes these tensors; each execution reads the inputs anew. Other tensors that still need elements
    which the plan overwrites are computed now. DeviceError unless all are on one device.
    """
    _admit(tensors)
    with deferred:
        _load()
        return _prepared(tensors)


def _prepared(tensors: Sequence[Lazy]) -> ExecutionPlan:
    from morok.tensor import plans  # lazy: loads lowering and the runtime

    devices = list(by_device(tensors))
    if len(devices) > 1:
        raise DeviceError(
            f"one plan cannot run on {' and '.join(devices)}",
            place=caller(),
            expected="tensors on one device",
            hint="use .to()",
        )
    tensors = [t if constant(t.uop) is None else t._like(UOp.new(Op.Contiguous, (t.uop,))) for t in tensors]
    while others := waiting(tensors):
        realize(others)
    roots = wanted(tensors)
    if roots:
        return _that_returns(tensors[0], plans.planned(with_memory(roots, devices[0])))
    realize(tensors)
    return plans.of_memory([m for t in tensors if (m := memory_of(t.uop, t.device)) is not None])


def _that_returns(first: Lazy, plan: ExecutionPlan) -> ExecutionPlan:
    """`plan`, with the memory of `first` as its output if that is stored already."""
    if is_empty(first.shape):
        realize([first])
    memory = memory_of(first.uop, first.device)
    if memory is not None:
        number = next((k for k, b in enumerate(plan.buffers) if b is memory), len(plan.buffers))
        if number == len(plan.buffers):
            plan.buffers.append(memory)
        plan.output_buffer_idx = number
    return plan


@dataclass(frozen=True, slots=True)
class KernelCode:
    """One kernel as text, with its name, backend, and the optimizations that stage 7 applied."""

    name: str
    backend: str
    code: str
    opts: tuple[str, ...] = ()


@needs_memory("lower kernels")
def kernels(tensor: Lazy, device: str | None = None) -> list[KernelCode]:
    """The kernels that compute a tensor, or have computed it, as code for `device`, which need not be present."""
    with deferred:
        return _kernels_of(tensor, device)


def _kernels_of(tensor: Lazy, device: str | None) -> list[KernelCode]:
    from morok.tensor import plans  # lazy: loads lowering and the runtime

    where = tensor.device if device is None else device_name(device)
    schedule: Schedule | None = tensor._compiled
    if schedule is None:
        roots = wanted([tensor])
        if not roots:
            return []
        schedule = scheduled(normalised(roots, where), where)
    elif where != tensor.device:
        schedule = _scheduled_for(schedule, where)
    target = find_device(where)
    out: list[KernelCode] = []
    own = {
        k: ast for chain in plans.chains_of(schedule, target) for k, ast in zip(chain.steps, chain.asts, strict=True)
    }
    for k, step in enumerate(schedule.steps):
        instructions, opts = plans.lowered_with_opts(own.get(k, step.ast), target)
        rendered = target.render(instructions, step.ast.arg.name)
        out.append(KernelCode(rendered.name, target.target.name, rendered.text, opts))
    return out


def _scheduled_for(schedule: Schedule, other: str) -> Schedule:
    """The schedule of the same graph on another device."""
    leaves = {n for root in schedule.roots for n in root.toposort() if n.op is Op.Buffer}
    moved = {n: placeholder(number_of(n), n.dtype, n.arg, other) for n in leaves}
    by_number = sorted(moved.values(), key=number_of)
    return scheduled(Normal(rebuilt(schedule.roots, moved), by_number, {}, {}), other)
