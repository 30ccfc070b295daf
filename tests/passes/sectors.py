"""Sectors of global memory that the warps of a lowered kernel touch, found by running its address arithmetic for all threads."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from morok.codegen.machines import CUDA
from morok.ir.dtype import AddrSpace, PtrType
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.passes.pipeline import lower

Array = np.ndarray[Any, Any]
Contents = Mapping[int, Array]  # of buffers, by slot, that say where others are read

WARP, SECTOR = 32, 32
BANKS, WORD = 32, 4
LINEARIZE = 21


@dataclass(frozen=True)
class Access:
    """A load or store for all threads and iterations that its place depends on, in one array each: the element where it begins,
    the thread, counted over all blocks, and whether it takes part; `times` over.
    """

    node: UOp
    elements: Array
    threads: Array
    active: Array
    times: int

    @property
    def slot(self) -> int:
        slot: int = storage(self.node.src[0]).arg
        return slot

    @property
    def lanes(self) -> int:
        return (self.node if self.node.op is Op.Load else self.node.src[1]).dtype.count


@dataclass(frozen=True)
class Traffic:
    """Instructions of warps that touch global memory, and the sectors that each of them touches, all together."""

    requests: int
    sectors: int


def divide(x: Array, y: Array) -> Array:
    q: Array = np.abs(x) // np.abs(y)
    return np.where((x < 0) != (y < 0), -q, q)


OPS: dict[Op, Callable[..., Any]] = {
    Op.Add: np.add, Op.Sub: np.subtract, Op.Mul: np.multiply, Op.Neg: np.negative, Op.Max: np.maximum, Op.Min: np.minimum,
    Op.Idiv: divide, Op.Mod: np.fmod, Op.Shl: np.left_shift, Op.Shr: np.right_shift, Op.And: np.bitwise_and, Op.Or: np.bitwise_or,
    Op.Xor: np.bitwise_xor, Op.Lt: np.less, Op.Le: np.less_equal, Op.Gt: np.greater, Op.Ge: np.greater_equal, Op.Eq: np.equal,
    Op.Ne: np.not_equal, Op.Where: np.where, Op.MulAcc: lambda x, y, z: x * y + z,
}  # fmt: skip


def instructions(ast: UOp) -> list[UOp]:
    """The kernel as stage 21 leaves it: places have gates, and nothing is behind a branch."""
    found: list[list[UOp]] = []

    def keep(number: int, name: str, before: Any, after: Any) -> None:
        if number == LINEARIZE:
            found.append(after)

    lower(ast, CUDA, keep)
    return found[0]


def value(node: UOp, given: Mapping[UOp, Array], contents: Contents) -> Array:
    """The value of an integer or bool expression, for all threads and iterations in `given` at once."""
    done = dict(given)
    stack = [node]
    while stack:
        n = stack[-1]
        src = n.src[:1] if n.op is Op.Cast else n.src[0].src[1:2] if n.op is Op.Load else n.src
        if missing := [s for s in src if s not in done and n not in done]:
            stack += missing
            continue
        stack.pop()
        if n in done:
            continue
        if n.op is Op.Const:
            done[n] = np.asarray(n.arg)
        elif n.op is Op.Load:
            done[n] = contents[storage(n.src[0]).arg][done[src[0]]]
        elif n.op is Op.Cast:
            done[n] = done[src[0]].astype(bool if n.dtype.is_bool else np.int64)
        else:
            done[n] = OPS[n.op](*[done[s] for s in src])
    return done[node]


def thread_indices(program: Sequence[UOp]) -> list[UOp]:
    """threadIdx.x, y and z, as far as a program has them."""
    return sorted((n for n in program if n.op is Op.Special and n.arg.startswith("lidx")), key=lambda s: str(s.arg))


def accesses(
    program: Sequence[UOp], threads: Sequence[UOp], contents: Contents, space: AddrSpace = AddrSpace.GLOBAL
) -> Iterator[Access]:
    """All loads and stores of global memory, or of another, the threads of a block numbered along these indices, the first
    fastest.
    """
    blocks = [n for n in program if n.op is Op.Special and n not in threads]
    loops: list[UOp] = []
    for n in program:
        if n.op is Op.Range:
            loops.append(n)
        elif n.op is Op.End:
            loops.remove(n.src[1])
        elif n.op in (Op.Load, Op.Store):
            d = storage(n.src[0]).dtype
            if isinstance(d, PtrType) and d.space is space:
                yield _access(n, [*threads, *blocks], loops, contents)


def traffic(program: Sequence[UOp], threads: Sequence[UOp], contents: Contents) -> Traffic:
    """What the warps of all blocks touch; parameters as of `accesses`."""
    block = math.prod(map(_length, threads))
    requests = sectors = 0
    for a in accesses(program, threads, contents):
        size = a.node.src[0].dtype.scalar().itemsize
        first, last = a.elements * size // SECTOR, ((a.elements + a.lanes) * size - 1) // SECTOR
        assert np.all(first == last)  # wide accesses are aligned
        warps = a.threads // block * -(-block // WARP) + a.threads % block // WARP
        iteration = np.arange(len(warps)) // (a.threads.max() + 1)
        rows = (warps + iteration * (warps.max() + 1))[a.active]
        requests += len(np.unique(rows)) * a.times
        sectors += len(np.unique(rows * (first.max() + 1) + first[a.active])) * a.times
    return Traffic(requests, sectors)


def bank_conflicts(program: Sequence[UOp]) -> int:
    """The most words of one bank of shared memory that a warp asks for at once, by accesses of a word or less."""
    threads = thread_indices(program)
    block = math.prod(map(_length, threads))
    most = 0
    for a in accesses(program, threads, {}, AddrSpace.LOCAL):
        assert a.lanes * a.node.src[0].dtype.scalar().itemsize <= WORD
        words = a.elements * a.node.src[0].dtype.scalar().itemsize // WORD
        warps = a.threads // block * -(-block // WARP) + a.threads % block // WARP
        iterations = np.arange(len(warps)) // (a.threads.max() + 1)
        asked = set(zip(iterations[a.active].tolist(), warps[a.active].tolist(), words[a.active].tolist(), strict=True))
        most = max(most, *Counter((i, w, x % BANKS) for i, w, x in asked).values())
    return most


def elements(program: Sequence[UOp], contents: Contents) -> Counter[tuple[int, int]]:
    """How often each element of each buffer, by slot, is loaded or stored."""
    found = Counter[tuple[int, int]]()
    for a in accesses(program, thread_indices(program), contents):
        for lane in range(a.lanes):
            found.update(
                {(a.slot, int(e)): a.times * n for e, n in Counter((a.elements + lane)[a.active].tolist()).items()}
            )
    return found


def _length(r: UOp) -> int:
    return int(r.src[0].arg)


def _access(n: UOp, launched: Sequence[UOp], loops: Sequence[UOp], contents: Contents) -> Access:
    place = n.src[0]
    inner = [r for r in loops if any(r in s.ranges for s in place.src[1:])]
    axes = [*inner, *reversed(launched)]  # the last counts fastest
    grids = np.meshgrid(*[np.arange(_length(a)) for a in axes], indexing="ij")
    given = {a: g.reshape(-1) for a, g in zip(axes, grids, strict=True)}
    size = math.prod(map(_length, axes))
    at = np.broadcast_to(value(place.src[1], given, contents), size)
    active = np.broadcast_to(value(place.src[2], given, contents), size) if place.arg else np.ones(size, bool)
    times = math.prod(_length(r) for r in loops if r not in inner)
    return Access(n, at, np.arange(size) % math.prod(map(_length, launched)), active, times)
