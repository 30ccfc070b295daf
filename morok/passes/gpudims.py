"""Stage 12, helpers of rules/target/gpudims.rules: the launch dimensions of a kernel, their order, and the hardware's limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.errors import LoweringError
from morok.ir.dtype import AddrSpace, PtrType
from morok.ir.launch import BLOCKS, THREADS
from morok.ir.op import Op
from morok.ir.places import storage
from morok.ir.uop import UOp
from morok.marks import helper
from morok.passes.affine import lane_offsets, ungated
from morok.passes.barrier_check import check_barriers
from morok.passes.coalescing import thread_order
from morok.passes.range_stages import const_end
from morok.passes.target import Target

SMALL: Final = Target("", grid_max=(4,) * 3, block_max=(4,) * 3, block_threads=64)  # the default target


def _smallest_divisor(n: int) -> int:
    return next((d for d in range(2, math.isqrt(n) + 1) if n % d == 0), n)


def limit_dims(dims: Sequence[int], limits: Sequence[int]) -> tuple[int, ...]:
    """Dimensions with the same product, at most as many as `limits`, and each within its limit.

    Adjacent dimensions are merged while there are too many; then a dimension above its limit passes factors to the next.
    LoweringError if that fails.
    """
    out = list(dims)
    while len(out) > len(limits):
        at = next((i for i in range(len(out) - 1) if i < len(limits) and out[i] * out[i + 1] <= limits[i]), None)
        if at is None:
            raise _too_large(dims, limits)
        out[at : at + 2] = [out[at] * out[at + 1]]
    if any(d > m for d, m in zip(out, limits, strict=False)):
        out += [1] * (len(limits) - len(out))
        for i, limit in enumerate(limits):
            while out[i] > limit:
                d = _smallest_divisor(out[i])
                if i + 1 == len(limits) and all(o * d > m for o, m in zip(out[:i], limits, strict=False)):
                    raise _too_large(dims, limits)
                to = i + 1 if i + 1 < len(limits) else next(j for j in range(i) if out[j] * d <= limits[j])
                out[i] //= d
                out[to] *= d
                if out[i] == 1 and out[to] > limits[to] and to <= i:
                    raise _too_large(dims, limits)
        if any(d > m for d, m in zip(out, limits, strict=True)):
            raise _too_large(dims, limits)
    return tuple(out)


def _too_large(dims: Sequence[int], limits: Sequence[int]) -> LoweringError:
    return LoweringError(
        f"cannot fit launch dimensions {tuple(dims)} into the hardware's {tuple(limits)}",
        expected="sizes that can be merged and divided to fit",
        hint="split the result into several kernels",
    )


@dataclass(slots=True)
class Launch:
    """The hardware indices of one kernel.

    indices      the index of each range that has one of its own
    coordinates  for each other range (index, stride): range = index // stride % length
    threads      the ranges over the threads of a block
    """

    indices: dict[UOp, UOp] = field(default_factory=dict)
    coordinates: dict[UOp, tuple[UOp, int]] = field(default_factory=dict)
    threads: list[UOp] = field(default_factory=list)

    @classmethod
    def of(cls, root: UOp, target: Target = SMALL) -> Launch:
        """The launch of a kernel. LoweringError if it does not fit the target's limits, or depends on an order of threads."""
        nodes = root.toposort()
        check_barriers(nodes)
        ranges = [n for n in nodes if n.op is Op.Range]
        found = cls()
        blocks = _by_stride([r for r in ranges if r.arg[1] in BLOCKS], nodes)
        found.threads = thread_order(_by_stride([r for r in ranges if r.arg[1] in THREADS], nodes), nodes, target)
        threads = math.prod(int(r.vmax) + 1 for r in found.threads)
        if threads > target.block_threads:
            raise LoweringError(
                f"the kernel has {threads} threads in a block",
                expected=f"at most {target.block_threads} on {target.name}",
                hint="use smaller LOCAL or GROUP optimizations",
            )
        found.dimensions("gidx", blocks, target.grid_max)
        found.dimensions("lidx", found.threads, target.block_max)
        return found

    def dimensions(self, prefix: str, ranges: Sequence[UOp], limits: Sequence[int]) -> None:
        """Fill in `indices` or `coordinates` for each range, by Specials `prefix0`, `prefix1`, ..; the first is the fastest."""
        sizes = [const_end(r) for r in ranges]
        dims = [n for n in sizes if n is not None]
        if len(dims) < len(sizes) and len(ranges) > len(limits):
            raise LoweringError(
                f"a launch with symbolic lengths has {len(ranges)} axes, and they cannot be merged",
                expected=f"at most {len(limits)} parallel axes",
                hint="bind the variables, or reshape the result to fewer axes",
            )
        chosen = tuple(dims) if len(dims) < len(sizes) else limit_dims(dims, limits)
        if chosen == tuple(dims):
            self.indices.update({r: UOp.new(Op.Special, (r.src[0],), f"{prefix}{i}") for i, r in enumerate(ranges)})
            return
        specials = [UOp.new(Op.Special, (UOp.const(n),), f"{prefix}{i}") for i, n in enumerate(chosen)]
        # walk both lists of sizes in step; wherever their products agree, the ranges and dimensions so far form a group
        i = j = 0
        while i < len(dims):
            members, product, total = [ranges[i]], dims[i], chosen[j]
            flat = specials[j]
            stride = chosen[j]
            i, j = i + 1, j + 1
            while product != total:
                if product < total:
                    product, members, i = product * dims[i], [*members, ranges[i]], i + 1
                else:
                    flat = flat + specials[j] * stride
                    stride *= chosen[j]
                    total, j = total * chosen[j], j + 1
            if len(members) == 1 and flat.op is Op.Special:
                self.indices[members[0]] = flat
                continue
            step = 1
            for r in members:
                self.coordinates[r] = flat, step
                step *= int(r.vmax) + 1


@helper
def dimension(r: UOp, launch: Launch) -> UOp | None:
    """The hardware index equal to `r`; None if r shares an index with other ranges."""
    return launch.indices.get(r)


@helper
def coordinate(r: UOp, launch: Launch) -> tuple[UOp, int] | None:
    """(index, stride) with r = index // stride % length; None if r has an index of its own."""
    return launch.coordinates.get(r)


@helper
def idle(place: UOp, launch: Launch) -> UOp | None:
    """A range of threads along which all threads would store to this place in global memory; None if there is none."""
    d = storage(place).dtype
    if not isinstance(d, PtrType) or d.space is not AddrSpace.GLOBAL:
        return None
    return next((r for r in launch.threads if r not in place.ranges), None)


def _by_stride(ranges: list[UOp], nodes: list[UOp]) -> list[UOp]:
    """Ranges by ascending stride in the stores: adjacent threads store to adjacent elements."""
    stride: dict[UOp, int] = {}
    for n in nodes:
        if n.op is Op.Store and n.src[0].op is Op.Index:
            index = ungated(n.src[0].src[1])
            sums = lane_offsets(index) if index.dtype.is_index else None
            for t, c in sums[0].terms.items() if sums is not None else ():
                stride[t] = min(abs(c), stride.get(t, abs(c)))
    return sorted(ranges, key=lambda r: (stride.get(r, math.inf), -r.arg[0]))
