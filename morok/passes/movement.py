"""Movement ops as maps on index vectors: where in its operand a view reads.

An index vector has one index a dimension (0 where the size is 1). Under its gates index k lies in [0, size k); outside
them it may be anything, and nothing is read there. Division and remainder are of numbers that are not negative under the
gates, so truncation is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.shape import Shape, dim, edges, shape_of
from morok.ir.uop import UOp

Indices = tuple[UOp, ...]

INDEX: Final = dtypes.index
ZERO: Final = UOp.const(0, INDEX)
_ADD: Final = Op.Add
_SUB: Final = Op.Sub
_MUL: Final = Op.Mul
_IDIV: Final = Op.Idiv
_MOD: Final = Op.Mod
_CONST: Final = Op.Const


def number(value: int | UOp) -> UOp:
    return value if isinstance(value, UOp) else UOp.const(value, INDEX)


def add(a: UOp, b: int | UOp) -> UOp:
    """a + b, constants collected on the right."""
    c = number(b)
    if c.op is not _CONST:
        return c if a is ZERO else a + c
    if a.op is _CONST:
        return UOp.const(a.arg + c.arg, INDEX)
    if a.op is _ADD and a.src[1].op is _CONST:
        a, c = a.src[0], UOp.const(a.src[1].arg + c.arg, INDEX)
    return a if c.arg == 0 else a + c


def mirror(size: int | UOp, a: UOp) -> UOp:
    """size - 1 - a."""
    last = number(size - 1)
    if last.op is _CONST:
        if a.op is _CONST:
            return UOp.const(last.arg - a.arg, INDEX)
        if a.op is _SUB and a.src[0].op is _CONST:
            return add(a.src[1], last.arg - a.src[0].arg)
    return last - a


def mul(a: UOp, b: int | UOp) -> UOp:
    c = number(b)
    if c.op is _CONST:
        if c.arg == 1:
            return a
        if c.arg == 0:
            return ZERO
        if a.op is _CONST:
            return UOp.const(a.arg * c.arg, INDEX)
        if a.op is _MUL and a.src[1].op is _CONST:
            return a.src[0] * UOp.const(a.src[1].arg * c.arg, INDEX)
    return ZERO if a is ZERO else a * c


def div(a: UOp, b: int | UOp) -> UOp:
    """a / b for b > 0, truncated."""
    c = number(b)
    if c.op is _CONST:
        if c.arg == 1:
            return a
        if a.vmin >= 0 and a.vmax < c.arg:
            return ZERO
        if a.op is _CONST and a.arg >= 0:
            return UOp.const(a.arg // c.arg, INDEX)
        if a.op is _IDIV and a.src[1].op is _CONST:
            return a.src[0] // UOp.const(a.src[1].arg * c.arg, INDEX)
    return a // c


def mod(a: UOp, b: int | UOp) -> UOp:
    """The remainder of a / b for b > 0."""
    c = number(b)
    if c.op is _CONST:
        if c.arg == 1:
            return ZERO
        if a.vmin >= 0 and a.vmax < c.arg:
            return a
        if a.op is _CONST and a.arg >= 0:
            return UOp.const(a.arg % c.arg, INDEX)
        if a.op is _MOD and a.src[1].op is _CONST and a.src[1].arg % c.arg == 0:
            return a.src[0] % c
    return a % c


def flatten(indices: Sequence[UOp], shape: Shape) -> UOp:
    """The position in row-major order."""
    flat, stride = ZERO, number(1)
    for i, n in zip(reversed(indices), reversed(shape), strict=True):
        flat = add(mul(i, stride), flat)
        stride = mul(stride, n)
    return flat


def reshape(indices: Indices, seen: Shape, below: Shape) -> Indices:
    """Where a view of shape `seen` reads in row-major order in its operand of shape `below`."""
    out: list[UOp] = []
    a = [(i, n) for i, n in zip(indices, seen, strict=True) if n != 1]
    b = [n for n in below if n != 1]
    x = y = 0
    while x < len(a) or y < len(b):
        if x < len(a) and y < len(b) and a[x][1] == b[y]:
            out.append(a[x][0])
            x, y = x + 1, y + 1
            continue
        start_x, start_y = x, y
        left, right = 1, 1
        while x < len(a) or y < len(b):  # the shortest groups of equal size
            n, m = (a[x][1] if x < len(a) else 1), (b[y] if y < len(b) else 1)
            if isinstance(n, UOp) or isinstance(m, UOp):
                # a symbolic size that does not stand alone: everything from here on is one group
                x, y = len(a), len(b)
                break
            if (left <= right and x < len(a)) or y >= len(b):
                left, x = left * n, x + 1
            else:
                right, y = right * m, y + 1
            if left == right:
                break
        out.extend(_regroup(a[start_x:x], b[start_y:y]))
    found = iter(out)
    return tuple(ZERO if n == 1 else next(found) for n in below)


def _regroup(group: list[tuple[UOp, int | UOp]], below: list[int | UOp]) -> list[UOp]:
    """The digits, in the mixed radix `below`, of the number whose digits are given."""
    sizes = [n for _, n in group if isinstance(n, int)]
    if len(sizes) != len(group) or any(isinstance(n, UOp) for n in below):
        return _divided(flatten([i for i, _ in group], tuple(n for _, n in group)), below)
    digits = [i for i, _ in group]
    strides = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    out: list[UOp] = []
    flat: UOp | None = None
    stride = math.prod(sizes)
    for m in below:
        assert isinstance(m, int)
        low, high = stride // m, stride
        digit = _digit(digits, sizes, strides, low, high)
        if digit is None:
            if flat is None:
                flat = flatten(digits, tuple(sizes))
            digit = div(flat, low)
            if high != strides[0] * sizes[0]:
                digit = mod(digit, m)
        out.append(digit)
        stride = low
    return out


def _digit(digits: list[UOp], sizes: list[int], strides: list[int], low: int, high: int) -> UOp | None:
    """The part of a number between the weights `low` and `high`, put together from the digits that overlap it; None where a
    digit's weights do not nest with these."""
    out = ZERO
    for i, n, s in zip(digits, sizes, strides, strict=True):
        bottom, top = max(low, s), min(high, s * n)
        if bottom >= top:
            continue
        if bottom % s or top % bottom or bottom % low or (s * n) % top:
            return None
        part = div(i, bottom // s)
        if top < s * n:
            part = mod(part, top // bottom)
        out = add(mul(part, bottom // low), out)
    return out


def _divided(flat: UOp, below: list[int | UOp]) -> list[UOp]:
    out: list[UOp] = []
    rest = flat
    for k in range(len(below)):
        stride: UOp = number(1)
        for n in below[k + 1 :]:
            stride = mul(stride, n)
        out.append(div(rest, stride))
        rest = mod(rest, stride)
    return out


def through(node: UOp, indices: Indices) -> tuple[Indices, list[UOp]]:
    """Where the view `node` reads in its operand, and the conditions under which it reads at all."""
    op, below = node.op, shape_of(node.src[0])
    if op is Op.Reshape:
        return reshape(indices, shape_of(node), below), []
    if op is Op.Permute:
        order: tuple[int, ...] = node.arg
        return tuple(indices[order.index(k)] for k in range(len(order))), []
    if op is Op.Expand:
        return tuple(ZERO if n == 1 else i for i, n in zip(indices, below, strict=True)), []
    if op is Op.Flip:
        return tuple(mirror(n, i) if f else i for i, n, f in zip(indices, below, node.arg, strict=True)), []
    if op is Op.Shrink:
        return tuple(add(i, b) for i, (b, _) in zip(indices, edges(node), strict=True)), []
    assert op is Op.Pad
    moved: list[UOp] = []
    gates: list[UOp] = []
    for i, n, (b, e) in zip(indices, below, edges(node), strict=True):
        begin, end = number(dim(b)), add(number(n), b)
        if i.vmin < begin.vmax:
            gates.append(i.ge(begin))
        if i.vmax >= end.vmin and not _is_zero(e):
            gates.append(i.lt(end))
        moved.append(add(i, _negative(begin)))
    return tuple(moved), gates


@dataclass(frozen=True, slots=True)
class Part:
    """An operand of a Concat: where an index into the whole reads it, under which conditions, and its end along the axis."""

    operand: UOp
    indices: Indices
    gates: list[UOp]
    end: UOp


def parts(node: UOp, indices: Indices) -> list[Part]:
    """The operands of a Concat that an index vector may read, in order."""
    axis: int = node.arg
    i = indices[axis]
    out: list[Part] = []
    end = ZERO
    for k, s in enumerate(node.src):
        begin, end = end, add(end, shape_of(s)[axis])
        if i.vmax < begin.vmin or i.vmin >= end.vmax:
            continue
        gates = [i.ge(begin)] if begin is not ZERO and i.vmin < begin.vmax else []
        if k < len(node.src) - 1 and i.vmax >= end.vmin:
            gates.append(i.lt(end))
        out.append(Part(s, (*indices[:axis], add(i, _negative(begin)), *indices[axis + 1 :]), gates, end))
    return out


def _is_zero(n: UOp) -> bool:
    return n.op is _CONST and n.arg == 0


def _negative(n: UOp) -> UOp:
    return UOp.const(-n.arg, INDEX) if n.op is _CONST else mul(n, -1)
