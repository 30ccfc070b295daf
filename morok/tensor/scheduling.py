"""From lazy tensors to ordered kernels: normalise, rangeify, split.

Normalisation replaces buffers by numbered placeholders, in the order in which they appear, and removes the values of variables.
Nodes are hash-consed, so the normalised roots are the key of the cache in `schedule`: the same expression on other data needs no
rewriting.
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
from morok.ir.places import passed
from morok.ir.uop import UOp
from morok.passes.assignments import OverwrittenTooEarly, with_copy
from morok.passes.kernels import dependencies, split_kernels
from morok.passes.rangeify import rangeify
from morok.passes.rangeify.state import MOVEMENT, Decision, beneath
from morok.passes.rebuilding import over, own_origins
from morok.runtime.abstract_device import Device
from morok.runtime.device import device as find_device
from morok.runtime.memory import parallel_groups
from morok.tensor.base import namesakes

if TYPE_CHECKING:
    from morok.runtime.buffer import Buffer


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel of a schedule: the numbers of its buffers by slot, and of the steps that must run before it."""

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
    inputs   the number of input buffers; later buffers are new
    made     (dtype, size in elements) of the new buffers
    outputs  for each root the number of its buffer
    groups   sets of steps that may run at the same time, in execution order
    inner    (node, number of its buffer) of each other stored node
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
    """Counts of schedules and kernels since the process began; tests check that a repeated computation does not raise them."""

    schedules: int = 0
    schedules_remembered: int = 0
    kernels_lowered: int = 0
    kernels_remembered: int = 0


COUNTERS: Final = Counters()


@dataclass(slots=True)
class Normal:
    """A normalised graph.

    roots    the graph
    buffers  the original Buffer nodes, by number
    values   the values of the variables, by name
    forms    original node -> node of this graph
    """

    roots: tuple[UOp, ...]
    buffers: list[UOp]
    values: dict[str, int]
    forms: dict[UOp, UOp]


def normalised(roots: Sequence[UOp], device: str) -> Normal:
    """The normalised graph under `roots`; BindError if it binds a variable to two values, as in variables()."""
    order = toposort(roots)
    mapping, values = variables(order)
    buffers = [node for node in order if node.op is Op.Buffer]
    mapping.update((node, placeholder(k, node.dtype, node.arg, device)) for k, node in enumerate(buffers))
    return Normal(rebuilt(roots, mapping), buffers, values, mapping)


def rebuilt(roots: Sequence[UOp], mapping: dict[UOp, UOp]) -> tuple[UOp, ...]:
    """`roots` with nodes replaced by `mapping`. New nodes keep the origin of the old ones, and are added to `mapping`."""
    with own_origins():
        for node in toposort(roots):
            if node not in mapping:
                maker.origin = node.origin
                mapping[node] = over(node, mapping)
    return tuple([mapping[r] for r in roots])


def placeholder(number: int, dtype: DType, size: int, device: str) -> UOp:
    """The Buffer node that represents buffer `number` in a schedule; its name is negative, names of real buffers are not."""
    return UOp.new(Op.Buffer, (UOp.new(Op.Unique, (), -1 - number), UOp.new(Op.Device, (), device)), size, dtype)


def decided(
    normal: Normal, device: str, cuts: Mapping[UOp, bool] = MappingProxyType({}), observed: bool = True
) -> tuple[Schedule, list[Decision]]:
    """(schedule, decisions about its cuts) of a normalised graph.

    cuts      decisions given in advance: State.overrides
    observed  True if MOROK_DEBUG=ir prints the stages
    """
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
    changed: dict[UOp, UOp] = {}  # nodes of the original graph -> their forms in `roots`
    while True:
        state = rangeify(roots, device, observe, most, find_device(device).target, cuts=cuts)
        assert state.sink is not None
        # a result that is a view of an input is copied: a later write to the input, for instance by NumPy, must not change it
        views = [
            stored
            for root, stored in zip(roots, state.sink.src, strict=True)
            if beneath(root, MOVEMENT).op is Op.Buffer
        ]
        try:
            split = split_kernels(state.sink, new_buffer, most, views, state.opts)
            break
        except OverwrittenTooEarly as early:
            roots, now = with_copy(roots, state, early.contents)
            # others are computed no more
            changed = {n: now[c] for n, c in changed.items() if c in now} if changed else now
    forms = {n: state.forms[c] for n, c in changed.items() if c in state.forms} if changed else state.forms
    before = dependencies(split.kernels)
    groups = parallel_groups(before)
    steps = tuple(
        Step(k, tuple(number_of(s) for s in k.src[1:]), tuple(b)) for k, b in zip(split.kernels, before, strict=True)
    )
    outputs = tuple(map(number_of, split.outputs))
    inner = tuple(
        (node, number)
        for node, now in forms.items()
        if (held := state.bufferizes.get(now)) in split.holders
        and held is not None
        and ((number := number_of(split.holders[held])) >= inputs or now.op is Op.Assign)
        and number not in outputs
    )
    return Schedule(
        normal.roots, steps, inputs, tuple(made), outputs, tuple(map(tuple, groups)), inner
    ), state.decisions


def most_buffers(device: str) -> int:
    """The most buffers that one kernel may use on this device; 0: any number."""
    chosen, possible = config.MAX_BUFFERS.value, find_device(device).target.buffers
    return min(chosen, possible) if chosen and possible else chosen or possible


def number_of(holder: UOp) -> int:
    """The number of a placeholder's buffer."""
    unique: int = passed(holder).src[0].arg
    return -1 - unique


@dataclass(slots=True)
class Prepared:
    """A schedule with its memory: `memory[n]` is buffer n; `nodes` the Buffer nodes of the inputs; `forms` is Normal.forms."""

    schedule: Schedule
    device: Device
    nodes: list[UOp]
    memory: list[Buffer]
    values: dict[str, int]
    forms: dict[UOp, UOp]


def variables(order: Sequence[UOp]) -> tuple[dict[UOp, UOp], dict[str, int]]:
    """(Bind node -> variable, variable name -> value) of the nodes of a graph.

    A graph without writes must bind each variable to one value, and have one variable of each name: else BindError. A graph with
    writes may bind a variable to several values, since each write keeps the values from the time when it was described: each
    further value gets a new variable. BindError also if a variable of several values occurs without one.
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
                    hint=namesakes((owners[name], variable)) or "realize() the tensors with the first one",
                )
            taken = taken or {n.arg[0] for n in order if n.op is Op.DefineVar}
            name = next(other for k in itertools.count(1) if (other := f"{variable.arg[0]}_{k}") not in taken)
            taken.add(name)
            values[name] = value
            variable = UOp.var(name, variable.dtype, *variable.arg[1:])
        chosen[node] = variable
    _refuse_free(order, {b.src[0] for b, v in chosen.items() if b.src[0] is not v})
    return chosen, values


def _refuse_free(order: Sequence[UOp], several: set[UOp]) -> None:
    """BindError if a variable among `several`, those with several values, occurs outside a Bind: it has none of the values."""
    free = several.intersection(s for n in order if n.op is not Op.Bind for s in n.src) if several else None
    for variable in free or ():
        raise BindError(
            f"the variable {variable.arg[0]} is bound to several values in one graph, and in a place to none",
            place=caller(),
            expected="a value in each place",
            hint=f"bind {variable.arg[0]} there, too",
        )
