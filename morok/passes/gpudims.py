"""Stage 12: ranges that a GPU runs in parallel become its block and thread indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from morok.errors import LoweringError
from morok.ir.dtype import AddrSpace, PtrType
from morok.ir.op import AxisType, Op
from morok.ir.ranges import CLOSES
from morok.ir.uop import UOp
from morok.passes.affine import linear
from morok.passes.ranges import const_end
from morok.passes.target import Target
from morok.passes.walk import rebuild

GLOBAL_AXES: Final = frozenset({AxisType.Global, AxisType.Thread})
LOCAL_AXES: Final = frozenset({AxisType.Warp, AxisType.Local, AxisType.GroupReduce})


def _smallest_divisor(n: int) -> int:
    return next((d for d in range(2, math.isqrt(n) + 1) if n % d == 0), n)


def limit_dims(dims: Sequence[int], limits: Sequence[int]) -> tuple[int, ...]:
    """Sizes with the same product, at most as many as there are limits and none above its own.

    Neighbours are multiplied together while there are too many, then what is too large hands factors to the next.
    LoweringError where that cannot be done.
    """
    out = list(dims)
    while len(out) > len(limits):
        at = next((i for i in range(len(out) - 1) if i < len(limits) and out[i] * out[i + 1] <= limits[i]), None)
        if at is None:
            raise LoweringError(f"cannot fit dimensions {tuple(dims)} into {tuple(limits)}")
        out[at : at + 2] = [out[at] * out[at + 1]]
    if any(d > m for d, m in zip(out, limits, strict=False)):
        out += [1] * (len(limits) - len(out))
        for i, limit in enumerate(limits):
            while out[i] > limit:
                d = _smallest_divisor(out[i])
                if i + 1 == len(limits) and all(o * d > m for o, m in zip(out[:i], limits, strict=False)):
                    raise LoweringError(f"cannot fit dimensions {tuple(dims)} into {tuple(limits)}")
                to = i + 1 if i + 1 < len(limits) else next(j for j in range(i) if out[j] * d <= limits[j])
                out[i] //= d
                out[to] *= d
                if out[i] == 1 and out[to] > limits[to] and to <= i:
                    raise LoweringError(f"cannot fit dimensions {tuple(dims)} into {tuple(limits)}")
        if any(d > m for d, m in zip(out, limits, strict=True)):
            raise LoweringError(f"cannot fit dimensions {tuple(dims)} into {tuple(limits)}")
    return tuple(out)


def hardware_indices(prefix: str, ranges: Sequence[UOp], limits: Sequence[int]) -> dict[UOp, UOp]:
    """What each range is in terms of Specials `prefix0`, `prefix1`, ..: the first range is the fastest index."""
    if not ranges:
        return {}
    sizes = [const_end(r) for r in ranges]
    if any(s is None for s in sizes):
        if len(ranges) > len(limits):
            raise LoweringError(f"{len(ranges)} ranges with symbolic lengths do not fit {len(limits)} dimensions")
        return {r: UOp.new(Op.Special, (r.src[0],), f"{prefix}{i}") for i, r in enumerate(ranges)}
    dims = [s for s in sizes if s is not None]
    chosen = limit_dims(dims, limits)
    specials = [UOp.new(Op.Special, (UOp.const(n),), f"{prefix}{i}") for i, n in enumerate(chosen)]
    if chosen == tuple(dims):
        return dict(zip(ranges, specials, strict=True))
    out: dict[UOp, UOp] = {}
    # walk both size lists side by side; where their products meet, the dimensions so far are a group of their own
    i = j = 0
    while i < len(dims):
        group, members, product, total = [dims[i]], [ranges[i]], dims[i], chosen[j]
        flat = specials[j]
        stride = chosen[j]
        i, j = i + 1, j + 1
        while product != total:
            if product < total:
                product, group, members, i = product * dims[i], [*group, dims[i]], [*members, ranges[i]], i + 1
            else:
                flat = flat + specials[j] * stride
                stride *= chosen[j]
                total, j = total * chosen[j], j + 1
        step = 1
        for k, (n, r) in enumerate(zip(group, members, strict=True)):
            value = flat if step == 1 else flat // step
            out[r] = value if k == len(group) - 1 else value % n
            step *= n
    return out


def _by_stride(ranges: list[UOp], nodes: list[UOp]) -> list[UOp]:
    """Ranges in the order of their strides in the stores, least first: neighbouring threads touch neighbouring elements."""
    stride: dict[UOp, int] = {}
    for n in nodes:
        if n.op is Op.Store and n.src[0].op is Op.Index:
            index = n.src[0].src[1]
            while index.op is Op.Where:
                index = index.src[1]
            if index.dtype.is_index and index.dtype.count == 1:
                for t, c in linear(index).terms.items():
                    stride[t] = min(abs(c), stride.get(t, abs(c)))
    return sorted(ranges, key=lambda r: (stride.get(r, math.inf), -r.arg[0]))


def add_gpu_dims(root: UOp, target: Target) -> UOp:
    """`root` with block and thread indices in place of Global and Local ranges; other targets have none and keep loops."""
    if not target.has_local:
        return root
    nodes = root.toposort()
    ranges = [n for n in nodes if n.op is Op.Range]
    outer = _by_stride([r for r in ranges if r.arg[1] in GLOBAL_AXES], nodes)
    inner = _by_stride([r for r in ranges if r.arg[1] in LOCAL_AXES], nodes)
    if not outer and not inner:
        return root
    threads = math.prod(int(r.vmax) + 1 for r in inner)
    if threads > target.block_threads:
        raise LoweringError(f"{threads} threads in a block; {target.name} has at most {target.block_threads}")
    mapping = {
        **hardware_indices("gidx", outer, target.grid_max),
        **hardware_indices("lidx", inner, target.block_max),
    }
    root = rebuild(root, lambda node, src: _masked(node, src, inner))
    done: dict[UOp, UOp] = dict(mapping)
    for n in root.toposort():
        if n in done:
            continue
        src = tuple([done[s] for s in n.src])
        # a hardware index is no loop: nothing closes it, and all is inside it
        first = 1 if n.op is Op.After else CLOSES.get(n.op)
        if first is not None:
            src = (*src[:first], *[done[s] for s in n.src[first:] if s not in mapping])
            if n.op in (Op.End, Op.After) and len(src) == 1:
                done[n] = src[0]
                continue
        done[n] = n if src == n.src else n.replace(src)
    return done[root]


def _masked(store: UOp, src: tuple[UOp, ...], threads: list[UOp]) -> UOp | None:
    """A store to global memory for the one thread that is 0 along every thread index it does not use; None if it uses all."""
    place = src[0] if src else store
    if store.op is not Op.Store or place.op is not Op.Index:
        return None
    buffer = place.src[0]
    while buffer.op is Op.After:
        buffer = buffer.src[0]
    if not isinstance(buffer.dtype, PtrType) or buffer.dtype.space is not AddrSpace.GLOBAL:
        return None
    gate: UOp | None = place.src[-1] if place.arg else None
    unused = [r for r in threads if r not in place.ranges]
    for r in unused:
        first = r.eq(0)
        gate = first if gate is None else gate & first
    if gate is None or not unused:
        return None
    places = place.src[1:-1] if place.arg else place.src[1:]
    return store.replace((UOp.new(Op.Index, (place.src[0], *places, gate), True), *src[1:]))
