"""From lazy tensors to kernels in order: normalise, rangeify, split, compile, plan.

A graph is normalised before it is scheduled: its buffers are numbered in the order in which they appear, and variables lose their
values. Nodes are hash-consed, so the normalised roots are the key under which a schedule is remembered: computing the same
expression on other data rewrites nothing.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from morok import config
from morok.errors import BindError, DeviceError
from morok.ir.dtype import DType, dtypes
from morok.ir.graph import substitute, toposort
from morok.ir.maker import caller, maker
from morok.ir.op import Op
from morok.ir.shape import Shape, shape_of
from morok.ir.uop import UOp
from morok.passes.appended import appended_key
from morok.passes.kernels import dependencies, split_kernels
from morok.passes.pieces import Chain, chains, variable
from morok.passes.pieces import Step as Link
from morok.passes.rangeify import rangeify
from morok.passes.rangeify.early import early_rewrites, uniform
from morok.passes.rangeify.state import State
from morok.tensor import registry
from morok.tensor.base import Lazy, prod
from morok.tensor.movement import reshaped

if TYPE_CHECKING:
    from morok.passes.pipeline import Observer, Program
    from morok.runtime.buffer import Buffer
    from morok.runtime.device import Device
    from morok.runtime.kernel import Kernel
    from morok.runtime.plan import ExecutionPlan, PreparedKernel

# What has memory of its own whatever it holds, or is no constant.
_STORED: Final = frozenset({Op.Contiguous, Op.Assign, Op.Buffer, Op.Iota, Op.Bind})
_REMEMBERED: Final = 1024  # schedules and kernels kept; the longest unused go first


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel of a schedule: the buffers by slot, as numbers; the steps that must have run before."""

    kernel: UOp
    buffers: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def ast(self) -> UOp:
        return self.kernel.src[0]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps for one normalised graph.

    roots    the graph
    inputs   how many buffers there were before; those above are made anew: `made` has their dtype and size
    outputs  for each root the number of its buffer, None for a constant
    groups   steps that may run at the same time, group after group
    inner    the other nodes that are stored on the way, with the numbers of their buffers
    """

    roots: tuple[UOp, ...]
    steps: tuple[Step, ...]
    inputs: int
    made: tuple[tuple[DType, int], ...]
    outputs: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    inner: tuple[tuple[UOp, int], ...]


@dataclass(frozen=True, slots=True)
class ScheduleItem:
    """One kernel ready to be compiled and run.

    kernel        the Kernel node
    ast           its Sink, what the 22 stages lower
    buffers       the memory by slot, outputs first
    dependencies  positions in the schedule of the kernels that must have run before
    fixedvars     the values of the variables bound in the graph
    """

    kernel: UOp
    ast: UOp
    buffers: list[Buffer]
    dependencies: list[int]
    fixedvars: dict[str, int]


@dataclass(frozen=True, slots=True)
class KernelCode:
    """One kernel as text, and the optimizations that stage 7 applied to it."""

    name: str
    backend: str
    code: str
    opts: tuple[str, ...] = ()


@dataclass(slots=True)
class Counters:
    """What has been done since the process began; tests and `prepare` promise that these stand still."""

    schedules: int = 0
    schedules_remembered: int = 0
    kernels_lowered: int = 0
    kernels_remembered: int = 0


COUNTERS: Final = Counters()


class _Memory:
    """A bounded dictionary, the longest unused entry leaves first; safe under threads."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Any) -> Any:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: Any, value: Any) -> None:
        with self._lock:
            self._entries[key] = value
            while len(self._entries) > _REMEMBERED:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


_schedules: Final = _Memory()
_kernels: Final = _Memory()


def forget_kernels() -> None:
    """Let every kernel be lowered anew: for who watches the stages."""
    _kernels.clear()


# What needs computing.


def stored_buffer(uop: UOp) -> UOp | None:
    """The Buffer node that holds a tensor's elements in order, from its beginning on, if one does."""
    root = _root(uop)
    return root if root.op is Op.Buffer else None


def constant(uop: UOp) -> UOp | None:
    """The constant that every element is, if the graph holds nothing but constants."""
    found = uniform(uop)
    if found is not None or not _is_constant(uop):
        return found
    state = State([uop], "")
    early_rewrites(state)
    return uniform(state.roots[0])


def _is_constant(uop: UOp) -> bool:
    seen: set[UOp] = set()
    stack = [uop]
    while stack:
        node = stack.pop()
        if node.op in _STORED or (not node.src and node.op is not Op.Const):
            return False
        stack.extend(s for s in node.src if s not in seen)
        seen.update(node.src)
    return True


def _root(uop: UOp) -> UOp:
    """What has to be stored for a tensor: its node without the views that leave the elements where they are."""
    while uop.op is Op.Reshape or (uop.op is Op.Shrink and _is_front(uop)):
        uop = uop.src[0]
    return uop


def _is_front(uop: UOp) -> bool:
    """Whether a Shrink is the part in use of memory for a variable's largest value."""
    return uop.src[0].op is Op.Buffer and uop.src[1].op is Op.Const and uop.src[1].arg == 0 and uop.src[2].op is not Op.Const


def _is_empty(shape: Shape) -> bool:
    return any(isinstance(d, int) and d == 0 for d in shape)


@dataclass(slots=True)
class _Normal:
    """A graph without its particulars."""

    roots: tuple[UOp, ...]
    buffers: list[UOp]
    values: dict[str, int]


def _normalise(roots: Sequence[UOp], device: str) -> _Normal:
    mapping: dict[UOp, UOp] = {}
    buffers: list[UOp] = []
    values: dict[str, int] = {}
    for node in toposort(roots):
        if node.op is Op.Buffer:
            mapping[node] = _placeholder(len(buffers), node.dtype, node.arg, device)
            buffers.append(node)
        elif node.op is Op.Bind:
            name, value = node.src[0].arg[0], int(node.src[1].arg)
            if values.setdefault(name, value) != value:
                raise BindError(f"the variable {name} is bound to {values[name]} and to {value} in one graph", place=caller())
            mapping[node] = node.src[0]
    return _Normal(_rebuilt(roots, mapping), buffers, values)


def _rebuilt(roots: Sequence[UOp], mapping: dict[UOp, UOp]) -> tuple[UOp, ...]:
    """`roots` with the leaves in `mapping` replaced; what is made anew comes from where the old node came from."""
    outer = maker.origin
    try:
        for node in toposort(roots):
            if node not in mapping:
                src = tuple([mapping[s] for s in node.src])
                maker.origin = node.origin
                mapping[node] = node if src == node.src else node.replace(src)
    finally:
        maker.origin = outer
    return tuple([mapping[r] for r in roots])


def _placeholder(number: int, dtype: DType, size: int, device: str) -> UOp:
    """The Buffer node that stands for buffer `number`; real ones have names from 0 up."""
    return UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), -1 - number), UOp.new(Op.Device, (), device)), size, dtype)


def _schedule(normal: _Normal, device: str) -> Schedule:
    most_buffers = _most_buffers(device)
    key = (normal.roots, device, most_buffers)
    found: Schedule | None = _schedules.get(key)
    if found is not None:
        COUNTERS.schedules_remembered += 1
        return found
    from morok.runtime.device import device as find_device
    from morok.runtime.memory import parallel_groups

    COUNTERS.schedules += 1
    inputs = len(normal.buffers)
    made: list[tuple[DType, int]] = []

    def new_buffer(dtype: DType, size: int) -> UOp:
        made.append((dtype, size))
        return _placeholder(inputs + len(made) - 1, dtype, size, device)

    observe = None
    if config.DEBUG.value == "ir":
        from morok.passes.sections import printed

        observe = printed()
    state = rangeify(normal.roots, device, observe, most_buffers, nested=not find_device(device).target.has_local)
    assert state.sink is not None
    split = split_kernels(state.sink, new_buffer, most_buffers)
    before = dependencies(split.kernels)
    groups = parallel_groups(before)
    steps = tuple(Step(k, tuple(_number(s) for s in k.src[1:]), tuple(b)) for k, b in zip(split.kernels, before, strict=True))
    outputs = tuple(map(_number, split.outputs))
    inner = tuple(
        (node, number)
        for node, now in state.became.items()
        if (held := state.held.get(now)) in split.holders
        and held is not None
        and ((number := _number(split.holders[held])) >= inputs or now.op is Op.Assign)
        and number not in outputs
    )
    schedule = Schedule(normal.roots, steps, inputs, tuple(made), outputs, tuple(map(tuple, groups)), inner)
    _schedules.put(key, schedule)
    return schedule


def _most_buffers(device: str) -> int:
    """How many buffers one kernel may use on this device; 0: any number."""
    from morok.runtime.device import device as find_device

    chosen, possible = config.MAX_BUFFERS.value, find_device(device).target.buffers
    return min(chosen, possible) if chosen and possible else chosen or possible


def _number(holder: UOp) -> int:
    """The number of the buffer that a placeholder stands for."""
    while holder.op is Op.After:
        holder = holder.src[0]
    unique: int = holder.src[0].arg
    return -1 - unique


# From a schedule to memory and machine code.


@dataclass(slots=True)
class Prepared:
    """A schedule with its memory: `memory[n]` is buffer n; `nodes` the Buffer nodes of the inputs."""

    schedule: Schedule
    device: Device
    nodes: list[UOp]
    memory: list[Buffer]
    values: dict[str, int]


def _prepare(roots: Sequence[UOp], device: str) -> Prepared:
    from morok.runtime.buffer import Buffer
    from morok.runtime.device import device as find_device

    normal = _normalise(roots, device)
    schedule = _schedule(normal, device)
    target = find_device(device)
    memory = [found for node in normal.buffers if (found := memory_of(node, device)) is not None]
    memory += [Buffer(target, d, n) for d, n in schedule.made]
    return Prepared(schedule, target, normal.buffers, memory, normal.values)


def compiled(asts: Sequence[UOp], device: Device) -> list[Kernel]:
    """The kernels of these ASTs, each lowered and compiled once; under MOROK_CHECK once more, if it was not checked then. While
    one is compiled, the next is lowered.
    """
    from morok.runtime.compiling import Compiling
    from morok.runtime.progress import shown

    settings = (device.name, config.code_key(), config.CHECK.value, appended_key())
    kernels: dict[UOp, Kernel] = {}
    pending: tuple[UOp, Compiling] | None = None

    def keep(ast: UOp, kernel: Kernel) -> None:
        kernels[ast] = kernel
        _kernels.put((ast, *settings), kernel)

    for i, ast in enumerate(shown(asts, "compiling kernels")):
        known: Kernel | None = _kernels.get((ast, *settings))
        if known is not None or ast in kernels or (pending is not None and ast is pending[0]):
            COUNTERS.kernels_remembered += 1
            if known is not None:
                kernels[ast] = known
            continue
        instructions = _lower(ast, device)
        if pending is not None:
            keep(pending[0], pending[1].result())
            pending = None
        if i == len(asts) - 1:  # nothing is left to do meanwhile
            keep(ast, device.compile(instructions, ast.arg.name))
        else:
            pending = ast, Compiling(device, instructions, ast.arg.name)
    if pending is not None:
        keep(pending[0], pending[1].result())
    return [kernels[ast] for ast in asts]


def _lower(ast: UOp, device: Device, observer: Observer | None = None) -> list[UOp]:
    from morok.passes.pipeline import lower

    COUNTERS.kernels_lowered += 1
    if config.BEAM.value:
        from morok.runtime.tune import tuned

        ast = tuned(ast, device)
    return lower(ast, device.target, observer)


def _plan(prepared: Prepared, kept: Collection[int] = ()) -> ExecutionPlan:
    """The compiled steps; intermediate buffers share memory, but for the outputs and those to be `kept`."""
    from morok.runtime.buffer import Buffer
    from morok.runtime.memory import in_place
    from morok.runtime.plan import ExecutionPlan, PreparedKernel, share_memory

    schedule = prepared.schedule
    found = _chains(schedule, prepared.device, kept)
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


def _chains(schedule: Schedule, device: Device, kept: Collection[int] = ()) -> list[Chain]:
    """The steps that run a piece at a time, where the buffers between them are not to be `kept`."""
    if device.target.has_local:
        return []
    inner = set(range(schedule.inputs, schedule.inputs + len(schedule.made))) - set(schedule.outputs) - set(kept)
    return chains([Link(s.ast, s.buffers) for s in schedule.steps], schedule.groups, inner, device.target.threads)


def _in_order(
    steps: Sequence[PreparedKernel], groups: Sequence[Sequence[int]], found: Sequence[Chain]
) -> tuple[list[PreparedKernel], list[list[int]]]:
    """What a plan runs: the steps, those of a chain once for each piece, and the groups that may run at the same time."""
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


# What Tensor asks for.


def _wanted(tensors: Sequence[Lazy]) -> list[UOp]:
    """The nodes to be computed for these tensors, each once; nothing for what is memory, constant or empty."""
    roots = dict.fromkeys(
        _root(t.uop) for t in tensors if stored_buffer(t.uop) is None and constant(t.uop) is None and not _is_empty(t.shape)
    )
    overwritten = {_root(n.src[0]) for n in toposort(roots) if n.op is Op.Assign}
    if not overwritten:
        return list(roots)
    # whoever still has to read what an assignment overwrites is computed with it, and reads it first
    readers = dict.fromkeys(
        root
        for t in registry.tensors()
        if (root := _root(t.uop)) not in roots and not _is_empty(t.shape) and _reads(root, overwritten)
    )
    return [*readers, *roots]


def _reads(root: UOp, contents: set[UOp]) -> bool:
    """Whether a lazy node reads one of these: a buffer as it is now, or as one assignment leaves it."""
    if root.op is Op.Buffer:
        return False
    seen: set[UOp] = {root}
    stack = [root]
    while stack:
        node = stack.pop()
        if node in contents:
            return True
        # an assignment that nothing overwrites: what it reads is read in time
        below = [s for s in node.src if s not in seen] if node.op is not Op.Assign else []
        stack.extend(below)
        seen.update(below)
    return False


def by_device(tensors: Sequence[Lazy]) -> dict[str, list[Lazy]]:
    out: dict[str, list[Lazy]] = {}
    for t in tensors:
        out.setdefault(t.device, []).append(t)
    return out


def create_schedule(tensors: Sequence[Lazy]) -> list[ScheduleItem]:
    """The kernels that compute these tensors, in an order in which they may run, with their memory."""
    out: list[ScheduleItem] = []
    for device, group in by_device(tensors).items():
        if roots := _wanted(group):
            prepared, first = _prepare(roots, device), len(out)
            for s in prepared.schedule.steps:
                buffers, before = [prepared.memory[b] for b in s.buffers], [first + k for k in s.before]
                out.append(ScheduleItem(s.kernel, s.ast, buffers, before, dict(prepared.values)))
    return out


Watcher = Callable[["Prepared"], Callable[[Sequence["Buffer"]], None]]
_watcher: contextvars.ContextVar[Watcher | None] = contextvars.ContextVar("morok schedule watcher", default=None)


@contextlib.contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` before the kernels of each realization inside the `with` block run, in this thread or task; and what it
    returns afterwards, with the memory of all buffers by number.
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def realize(tensors: Sequence[Lazy]) -> None:
    """Compute these tensors. Every live tensor whose graph holds one of them uses its memory from then on."""
    for device, group in by_device(tensors).items():
        _realize(group, device)


def _realize(tensors: Sequence[Lazy], device: str) -> None:
    for t in tensors:
        if _is_empty(t.shape) and stored_buffer(t.uop) is None:
            t.uop = reshaped(registry.new_buffer(t.dtype, 0, device), t.shape)
    asked = [(t, _root(t.uop), t.shape) for t in tensors]
    roots = _wanted(tensors)
    if not roots:
        return
    prepared = _prepare(roots, device)
    numbers = {**_shared(prepared, roots), **dict(zip(roots, prepared.schedule.outputs, strict=True))}
    plan = _plan(prepared, numbers.values())
    watcher = _watcher.get()
    done = None if watcher is None else watcher(prepared)
    if plan.kernels:
        plan.execute()
    if done is not None:
        done(plan.buffers)
    mapping: dict[UOp, UOp] = {}
    for node, number in numbers.items():
        if number < prepared.schedule.inputs:
            buffer = prepared.nodes[number]
        else:
            buffer = registry.new_buffer(node.dtype, prepared.memory[number].size, device, plan.buffers[number])
        mapping[node] = _held(buffer, shape_of(node))
    for t, root, shape in asked:
        if root in mapping:
            t._compiled = prepared.schedule
            # said here and not left to `become`: another thread may have replaced the node in the meantime
            registry.put(t, reshaped(mapping[root], shape))
    registry.become(mapping)


def memory_of(uop: UOp, device: str) -> Buffer | None:
    """The memory of a stored tensor; None for a lazy one."""
    node = stored_buffer(uop)
    if node is None:
        return None
    found = registry.memory_of(node)
    if found is None:
        from morok.runtime.buffer import Buffer
        from morok.runtime.device import device as find_device

        found = Buffer(find_device(device), node.dtype, node.arg)
        registry.remember(node, found)
    return found


def _shared(prepared: Prepared, roots: Sequence[UOp]) -> dict[UOp, int]:
    """The nodes stored on the way that other live tensors hold too: their memory is worth keeping."""
    inner = prepared.schedule.inner
    if not inner:
        return {}
    others = [u for t in registry.tensors() if stored_buffer(u := t.uop) is None and _root(u) not in roots]
    if not others:
        return {}
    real = {_placeholder(k, b.dtype, b.arg, prepared.device.name): b for k, b in enumerate(prepared.nodes)}
    nodes = substitute([node for node, _ in inner], real)
    alive = set(toposort(others))
    return {node: number for node, (_, number) in zip(nodes, inner, strict=True) if node in alive}


def _held(node: UOp, shape: Shape) -> UOp:
    if any(isinstance(d, UOp) for d in shape):
        # memory for the largest size; the elements in use stand at its beginning
        front = UOp.new(Op.Shrink, (node, UOp.const(0, dtypes.index), _extent(shape)))
        return UOp.new(Op.Reshape, (front, *[d if isinstance(d, UOp) else UOp.const(d, dtypes.index) for d in shape]))
    return reshaped(node, shape)


def _extent(shape: Shape) -> UOp:
    total = prod(shape)
    return total if isinstance(total, UOp) else UOp.const(total, dtypes.index)


def prepare(tensors: Sequence[Lazy]) -> ExecutionPlan:
    """The plan that computes these tensors, compiled; executing it reads the inputs anew each time. DeviceError unless they are
    on one device."""
    from morok.runtime.plan import ExecutionPlan

    devices = list(by_device(tensors))
    if len(devices) > 1:
        raise DeviceError(
            f"one plan for {' and '.join(devices)}", place=caller(), expected="tensors on one device", hint="use .to()"
        )
    roots = _wanted(tensors)
    if roots:
        return _plan(_prepare(roots, devices[0]))
    realize(tensors)
    return ExecutionPlan([], [], [m for t in tensors if (m := memory_of(t.uop, t.device)) is not None])


def kernels(tensor: Lazy, device: str | None = None) -> list[KernelCode]:
    """The kernels that compute a tensor, or have computed it, as code for `device`; needs no such hardware."""
    from morok.passes.pipeline import APPLY_OPTS
    from morok.runtime.device import device as find_device

    where = device or tensor.device
    schedule: Schedule | None = tensor._compiled
    if schedule is None:
        roots = _wanted([tensor])
        if not roots:
            return []
        schedule = _schedule(_normalise(roots, where), where)
    elif where != tensor.device:
        schedule = _scheduled_for(schedule, where)
    target = find_device(where)
    out: list[KernelCode] = []
    own = {k: ast for chain in _chains(schedule, target) for k, ast in zip(chain.steps, chain.asts, strict=True)}
    for k, step in enumerate(schedule.steps):
        opts: list[str] = []

        def look(number: int, name: str, before: Program, after: Program, opts: list[str] = opts) -> None:
            if number == APPLY_OPTS and isinstance(after, UOp):
                opts += map(str, after.arg.opts or ())

        rendered = target.render(_lower(own.get(k, step.ast), target, look), step.ast.arg.name)
        out.append(KernelCode(rendered.name, target.target.name, rendered.text, tuple(opts)))
    return out


def _scheduled_for(schedule: Schedule, other: str) -> Schedule:
    """What the graph of a schedule becomes on another device."""
    leaves = {n for root in schedule.roots for n in root.toposort() if n.op is Op.Buffer}
    moved = {n: _placeholder(_number(n), n.dtype, n.arg, other) for n in leaves}
    by_number = sorted(moved.values(), key=_number)
    return _schedule(_Normal(_rebuilt(schedule.roots, moved), by_number, {}), other)


def values_of(uop: UOp) -> Mapping[str, int]:
    """The values of the variables bound in a graph."""
    return {n.src[0].arg[0]: int(n.src[1].arg) for n in toposort((uop,)) if n.op is Op.Bind}
