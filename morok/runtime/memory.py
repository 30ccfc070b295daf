"""Memory planning: shared memory of intermediate buffers, in-place results; and groups of kernels that may run in parallel."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from morok.errors import LoweringError

K = TypeVar("K", bound=Hashable)


def parallel_groups(dependencies: Sequence[Collection[int]]) -> list[list[int]]:
    """The numbers of kernels in groups that may run in parallel; a group depends on earlier groups only.

    dependencies  for each kernel the kernels that must run before it

    Raises LoweringError for a cycle of dependencies.
    """
    waiting = [len(set(d)) for d in dependencies]
    users: list[list[int]] = [[] for _ in dependencies]
    for kernel, needed in enumerate(dependencies):
        for other in set(needed):
            users[other].append(kernel)
    groups: list[list[int]] = []
    ready = [i for i, n in enumerate(waiting) if n == 0]
    while ready:
        groups.append(ready)
        following: list[int] = []
        for kernel in ready:
            for user in users[kernel]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    following.append(user)
        ready = sorted(following)
    if sum(map(len, groups)) != len(dependencies):
        stuck = [i for i, n in enumerate(waiting) if n]
        raise LoweringError(
            f"kernels {', '.join(map(str, stuck))} wait for each other", hint="assignments to buffers form a cycle"
        )
    return groups


def in_place(
    groups: Sequence[Sequence[int]],
    buffers: Sequence[Sequence[int]],
    overwritable: Sequence[Collection[int]],
    nbytes: Mapping[int, int],
) -> dict[int, int]:
    """In-place results: result buffer -> the buffer whose memory it takes over, an input of its step that no later step uses.

    groups        the steps in execution order; those of a group run at the same time
    buffers       the buffers of each step by slot, its result first
    overwritable  for each step the slots of inputs that its result may overwrite
    nbytes        the bytes of the buffers that may share memory
    """
    group = {step: k for k, members in enumerate(groups) for step in members}
    users: dict[int, list[int]] = {}
    for step in group:
        for b in dict.fromkeys(buffers[step]):
            users.setdefault(b, []).append(step)
    found: dict[int, int] = {}
    for step in (s for members in groups for s in members):
        result = buffers[step][0]
        for slot in sorted(overwritable[step]):
            source = buffers[step][slot]
            if source == result or nbytes.get(source, -1) != nbytes.get(result, -2):
                continue
            earlier = all(s == step or group[s] < group[step] for s in users[source])
            later = all(s == step or group[s] > group[step] for s in users[result])
            if earlier and later:
                memory = found.get(source, source)
                found[result] = memory
                break
    return found


@dataclass(slots=True)
class _Slot:
    nbytes: int
    number: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """Shared memory: the slot of each planned buffer, and the bytes of each slot."""

    slots: dict[Hashable, int] = field(default_factory=dict)
    nbytes: tuple[int, ...] = ()


def assign(steps: Sequence[Collection[K]], nbytes: Mapping[K, int]) -> Assignment:
    """Memory slots for the buffers in `nbytes`: a buffer has its slot for itself from the first to the last step that uses it.

    A step is a kernel, or a group of kernels that run in parallel, as the buffers that it uses. Buffers absent from `nbytes`
    (inputs and outputs) keep their own memory. A buffer takes the smallest free slot that is large enough, else the largest,
    which is enlarged; a new slot is made only if none is free.
    """
    last = {buffer: i for i, step in enumerate(steps) for buffer in step if buffer in nbytes}
    free: list[_Slot] = []
    slots: list[_Slot] = []
    given: dict[K, _Slot] = {}
    for i, step in enumerate(steps):
        used = [b for b in dict.fromkeys(step) if b in nbytes]
        for buffer in sorted((b for b in used if b not in given), key=lambda b: -nbytes[b]):
            slot = _take(free, nbytes[buffer])
            if slot is None:
                slot = _Slot(nbytes[buffer], len(slots))
                slots.append(slot)
            given[buffer] = slot
        free += [given[b] for b in used if last[b] == i]
    return Assignment({b: s.number for b, s in given.items()}, tuple(s.nbytes for s in slots))


def _take(free: list[_Slot], need: int) -> _Slot | None:
    """The smallest free slot of at least `need` bytes, else the largest, enlarged; None if none is free."""
    if not free:
        return None
    enough = [s for s in free if s.nbytes >= need]
    slot = min(enough, key=lambda s: s.nbytes) if enough else max(free, key=lambda s: s.nbytes)
    free.remove(slot)
    slot.nbytes = max(slot.nbytes, need)
    return slot
