"""From lazy tensors to kernels in order: normalise, rangeify, split.

A graph is normalised before it is scheduled: its buffers are numbered in the order in which they appear, and variables lose their
values. Nodes are hash-consed, so the normalised roots are the key under which `schedule` remembers a schedule: computing the
same expression on other data rewrites nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from morok import config
from morok.caller import caller
from morok.errors import BindError
from morok.ir.dtype import DType
from morok.ir.graph import toposort
from morok.ir.maker import maker
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.assignments import OverwrittenTooEarly, with_copy
from morok.passes.kernels import dependencies, split_kernels
from morok.passes.rangeify import rangeify
from morok.passes.rangeify.state import MOVEMENT, Decision
from morok.runtime.device import device as find_device
from morok.tensor.base import namesakes

if TYPE_CHECKING:
    from morok.runtime.abstract_device import Device
    from morok.runtime.buffer import Buffer


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


@dataclass(slots=True)
class Counters:
    """The schedules and kernels since the process began; tests and `prepare` promise that these stand still."""

    schedules: int = 0
    schedules_remembered: int = 0
    kernels_lowered: int = 0
    kernels_remembered: int = 0


COUNTERS: Final = Counters()


@dataclass(slots=True)
class Normal:
    """A graph without its particulars.

    roots    the graph
    buffers  the Buffer nodes that were there, by number
    values   of the variables
    became   each node of the graph as it was: what it is in this one
    """

    roots: tuple[UOp, ...]
    buffers: list[UOp]
    values: dict[str, int]
    became: dict[UOp, UOp]


def normalised(roots: Sequence[UOp], device: str) -> Normal:
    """BindError where one value needs two values of a variable."""
    order = toposort(roots)
    mapping, values = variables(order)
    buffers = [node for node in order if node.op is Op.Buffer]
    mapping.update((node, placeholder(k, node.dtype, node.arg, device)) for k, node in enumerate(buffers))
    return Normal(rebuilt(roots, mapping), buffers, values, mapping)


def rebuilt(roots: Sequence[UOp], mapping: dict[UOp, UOp]) -> tuple[UOp, ...]:
    """`roots` with the leaves in `mapping` replaced; what is made anew comes from where the old node came from, and is added to
    `mapping`.
    """
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


def placeholder(number: int, dtype: DType, size: int, device: str) -> UOp:
    """The Buffer node that stands for buffer `number`; real ones have names from 0 up."""
    return UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), -1 - number), UOp.new(Op.Device, (), device)), size, dtype)


def decided(
    normal: Normal, device: str, cuts: Mapping[UOp, bool] = MappingProxyType({}), observed: bool = True
) -> tuple[Schedule, list[Decision]]:
    """A schedule, and the decisions where it is cut; `cuts` are State.given. Printed where that is asked for, and it is
    `observed`.
    """
    from morok.runtime.memory import parallel_groups  # lazy: loaded with what runs kernels

    COUNTERS.schedules += 1
    most = most_buffers(device)
    inputs = len(normal.buffers)
    made: list[tuple[DType, int]] = []

    def new_buffer(dtype: DType, size: int) -> UOp:
        made.append((dtype, size))
        return placeholder(inputs + len(made) - 1, dtype, size, device)

    observe = None
    if observed and config.DEBUG.value == "ir":
        from morok.passes.stage_printer import printed  # lazy: for MOROK_DEBUG alone

        observe = printed()
    roots: Sequence[UOp] = normal.roots
    changed: dict[UOp, UOp] = {}  # nodes of the graph as it came -> what they are now
    while True:
        state = rangeify(roots, device, observe, most, nested=not find_device(device).target.has_local, cuts=cuts)
        assert state.sink is not None
        # what is computed is a value of its own, which writing to an input's memory must not change in NumPy's hands
        views = [stored for root, stored in zip(roots, state.sink.src, strict=True) if _is_view(root)]
        try:
            split = split_kernels(state.sink, new_buffer, most, views, state.opts)
            break
        except OverwrittenTooEarly as early:
            roots, now = with_copy(roots, state, early.contents)
            changed = {n: now[c] for n, c in changed.items()} if changed else now
    became = {n: state.became[c] for n, c in changed.items() if c in state.became} if changed else state.became
    before = dependencies(split.kernels)
    groups = parallel_groups(before)
    steps = tuple(Step(k, tuple(number_of(s) for s in k.src[1:]), tuple(b)) for k, b in zip(split.kernels, before, strict=True))
    outputs = tuple(map(number_of, split.outputs))
    inner = tuple(
        (node, number)
        for node, now in became.items()
        if (held := state.held.get(now)) in split.holders
        and held is not None
        and ((number := number_of(split.holders[held])) >= inputs or now.op is Op.Assign)
        and number not in outputs
    )
    return Schedule(normal.roots, steps, inputs, tuple(made), outputs, tuple(map(tuple, groups)), inner), state.decisions


def _is_view(root: UOp) -> bool:
    """True if a node does nothing but show a buffer's elements in other places."""
    while root.op in MOVEMENT:
        root = root.src[0]
    return root.op is Op.Buffer


def most_buffers(device: str) -> int:
    """The most buffers that one kernel may use on this device; 0: any number."""
    chosen, possible = config.MAX_BUFFERS.value, find_device(device).target.buffers
    return min(chosen, possible) if chosen and possible else chosen or possible


def number_of(holder: UOp) -> int:
    """The number of the buffer that a placeholder stands for."""
    while holder.op is Op.After:
        holder = holder.src[0]
    unique: int = holder.src[0].arg
    return -1 - unique


@dataclass(slots=True)
class Prepared:
    """A schedule with its memory: `memory[n]` is buffer n; `nodes` the Buffer nodes of the inputs; `became` is Normal.became."""

    schedule: Schedule
    device: Device
    nodes: list[UOp]
    memory: list[Buffer]
    values: dict[str, int]
    became: dict[UOp, UOp]


def variables(order: Sequence[UOp]) -> tuple[dict[UOp, UOp], dict[str, int]]:
    """For each Bind among the nodes of a graph its variable, and the values of the variables by name.

    A graph without writes is one step: BindError where it binds a variable to two values, or has two variables of one name.
    What writes store is computed with the variables as they were when the write was described, whenever it runs. So a graph with
    writes may hold several steps and bind a variable to several values: each gets a variable of its own.
    """
    chosen: dict[UOp, UOp] = {}
    values: dict[str, int] = {}
    owners: dict[str, UOp] = {}
    taken: set[str] = set()
    for node in order:
        if node.op is not Op.Bind:
            continue
        variable, value = node.src[0], int(node.src[1].arg)
        name: str = variable.arg[0]
        alone = owners.setdefault(name, variable) is variable
        if values.setdefault(name, value) != value or not alone:
            if not any(n.op is Op.Assign for n in order):
                what = f"the variable {name} is" if alone else f"different variables are called {name}, and"
                raise BindError(
                    f"{what} bound to {values[name]} and to {value} in one graph",
                    place=caller(),
                    expected="one value of a variable" if alone else "one variable of a name",
                    hint=namesakes((owners[name], variable)) or "realize() what needs the first one",
                )
            taken = taken or {n.arg[0] for n in order if n.op is Op.DefineVar}
            name = next(other for k in itertools.count(1) if (other := f"{variable.arg[0]}_{k}") not in taken)
            taken.add(name)
            values[name] = value
            variable = UOp.var(name, variable.dtype, *variable.arg[1:])
        chosen[node] = variable
    return chosen, values
