"""The kernels of a tensor as code, for any device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from morok.arguments import device_name
from morok.interrupts import deferred
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.memory import needs_memory
from morok.tensor.base import Lazy
from morok.tensor.plans import chains_of, lowered
from morok.tensor.schedule import scheduled
from morok.tensor.scheduling import Normal, Schedule, normalised, number_of, placeholder, rebuilt
from morok.tensor.stored import wanted

if TYPE_CHECKING:
    from morok.passes.pipeline import Program


@dataclass(frozen=True, slots=True)
class KernelCode:
    """One kernel as text, and the optimizations that stage 7 applied to it."""

    name: str
    backend: str
    code: str
    opts: tuple[str, ...] = ()


@needs_memory("lower kernels")
def kernels(tensor: Lazy, device: str | None = None) -> list[KernelCode]:
    """The kernels that compute a tensor, or have computed it, as code for `device`; needs no such hardware."""
    with deferred:
        return _kernels_of(tensor, device)


def _kernels_of(tensor: Lazy, device: str | None) -> list[KernelCode]:
    from morok.passes.pipeline import APPLY_OPTS
    from morok.runtime.device import device as find_device

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
    own = {k: ast for chain in chains_of(schedule, target) for k, ast in zip(chain.steps, chain.asts, strict=True)}
    for k, step in enumerate(schedule.steps):
        opts: list[str] = []

        def look(number: int, name: str, before: Program, after: Program, opts: list[str] = opts) -> None:
            if number == APPLY_OPTS and isinstance(after, UOp):
                opts += map(str, after.arg.opts or ())

        rendered = target.render(lowered(own.get(k, step.ast), target, look), step.ast.arg.name)
        out.append(KernelCode(rendered.name, target.target.name, rendered.text, tuple(opts)))
    return out


def _scheduled_for(schedule: Schedule, other: str) -> Schedule:
    """The schedule of the same graph on another device."""
    leaves = {n for root in schedule.roots for n in root.toposort() if n.op is Op.Buffer}
    moved = {n: placeholder(number_of(n), n.dtype, n.arg, other) for n in leaves}
    by_number = sorted(moved.values(), key=number_of)
    return scheduled(Normal(rebuilt(schedule.roots, moved), by_number, {}, {}), other)
