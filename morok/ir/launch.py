"""The parallel part of a kernel on a GPU: launched ranges, and the hardware indices that count them."""

from __future__ import annotations

import math
from typing import Final

from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp

BLOCKS: Final = frozenset({AxisType.Global, AxisType.Thread})
THREADS: Final = frozenset({AxisType.Warp, AxisType.Local, AxisType.GroupReduce})
_LAUNCHED: Final = BLOCKS | THREADS


def launched(r: UOp) -> bool:
    """True if `r` is a range of a parallel axis: the hardware runs all its iterations, and no op need close it."""
    return r.op is Op.Range and r.arg[1] in _LAUNCHED


def counts(h: UOp, r: UOp, step: int | None = None) -> bool:
    """True if the hardware index `h` counts as the range `r` does, or, given a step, `h // step % length` does.

    The second case requires that r has a constant length, and that h takes each number below a multiple of step * length exactly
    once over all values of its Specials.
    """
    if step is None:
        return h.op is Op.Special and h.src[0] is r.src[0]
    found = strides(h, Op.Special)
    if not found or step <= 0 or r.src[0].op is not Op.Const:
        return False
    last, stride = found[-1]
    return stride * int(last.src[0].arg) % (step * int(r.src[0].arg)) == 0


def strides(number: UOp, op: Op) -> list[tuple[UOp, int]] | None:
    """The components of a row-major number, the fastest first, each with its stride; None for any other node.

    Components are different nodes of this op with constant lengths; a stride is the product of the lengths before it.
    """
    found: list[tuple[UOp, int]] = []
    stack = [(number, 1)]
    while stack:
        at, stride = stack.pop()
        if at.op is Op.Add:
            stack += [(s, stride) for s in at.src]
        elif at.op is Op.Mul and at.src[1].op is Op.Const:
            stack.append((at.src[0], stride * int(at.src[1].arg)))
        elif at.op is op and at.src[0].op is Op.Const:
            found.append((at, stride))
        elif at.op is not Op.Const or at.arg != 0:
            return None
    found.sort(key=lambda part: (part[1], part[0].vmax))
    if len({part for part, _ in found}) < len(found):
        return None
    lengths = [int(part.src[0].arg) for part, _ in found]
    return found if all(stride == math.prod(lengths[:k]) for k, (_, stride) in enumerate(found)) else None


def told_apart(at: UOp, s: UOp, t: UOp) -> bool:
    """True if `at` is a distinct place for every iteration of the range `t` and of the threads and lanes around `s`: their
    row-major number. Blocks have separate memory; `s` may be in no other loop.
    """
    around = s.ranges - {t}
    inside = {r for r in around if r.arg[1] not in BLOCKS} | {t}
    if any(r.arg[1] not in THREADS and r.arg[1] is not AxisType.Upcast for r in inside) or at.ranges != inside:
        return False
    found = strides(at, Op.Range)
    return found is not None and {r for r, _ in found} == inside


def renames(q: UOp, t: UOp) -> bool:
    """True if `q` is another range of as many iterations as `t`."""
    return q.op is Op.Range and t.op is Op.Range and q.src[0] is t.src[0] and q.arg[0] != t.arg[0]
