"""Linear forms of index expressions: terms, coefficients and a constant; for vectors of indices an offset for each lane.

All at dtype index, where arithmetic is exact and sums may be reordered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from morok.ir.linear_forms import terms
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp


@dataclass(frozen=True, slots=True)
class Linear:
    """`sum(coefficient * term) + constant`; the terms, in order of appearance, are not sums themselves."""

    terms: dict[UOp, int]
    constant: int

    def node(self, like: UOp, constant: bool = True) -> UOp:
        """The sum as a node of the scalar dtype of `like`."""
        d = like.dtype.scalar()
        out: UOp | None = None
        for term, c in self.terms.items():
            if c:
                part = term if c == 1 else term * UOp.const(c, d)
                out = part if out is None else out + part
        if out is None:
            return UOp.const(self.constant if constant else 0, d)
        return out + UOp.const(self.constant, d) if constant and self.constant else out

    @property
    def factor(self) -> int:
        """A divisor of every value of the sum without its constant; 0 if there are no terms."""
        return math.gcd(*self.terms.values())


def _addends(node: UOp, c: int) -> tuple[tuple[UOp, int], ...]:
    """(node, coefficient) of each addend of `c * node`, the last first; () if `node` is no sum and no multiple of one."""
    op, src = node.op, node.src
    if op is Op.Add:
        return (src[1], c), (src[0], c)
    if op is Op.Sub:
        return (src[1], -c), (src[0], c)
    if op is Op.Neg:
        return ((src[0], -c),)
    if op is Op.Mul and src[1].op is Op.Const:
        return ((src[0], c * int(src[1].arg)),)
    if op is Op.Mul and src[0].op is Op.Const:
        return ((src[1], c * int(src[0].arg)),)
    return ()


def linear(x: UOp) -> Linear:
    """The linear form of `x`, a scalar of dtype index."""
    found, constant = terms(x)
    return Linear(dict(found), constant)


def lane_offsets(x: UOp) -> tuple[Linear, tuple[int, ...]] | None:
    """A vector of indices as one scalar sum plus a constant for each lane; None if lanes differ by more than constants."""
    n = x.dtype.count
    total: dict[UOp, int] = {}
    offsets = [0] * n
    stack: list[tuple[UOp, int, tuple[int, ...] | None]] = [(x, 1, None)]
    while stack:
        node, c, lanes = stack.pop()
        op, src = node.op, node.src
        if addends := _addends(node, c):
            stack += [(s, k, lanes) for s, k in addends]
        elif op is Op.Const:
            offsets = [o + c * int(node.arg) for o in offsets]
        elif op is Op.VConst:
            values = node.arg if lanes is None else [node.arg[i] for i in lanes]
            offsets = [o + c * v for o, v in zip(offsets, values, strict=True)]
        elif op is Op.Gep:
            stack.append((src[0], c, node.arg if lanes is None else tuple(node.arg[i] for i in lanes)))
        elif op is Op.Vectorize:
            chosen = src if lanes is None else [src[i] for i in lanes]
            parts = [linear(s) for s in dict.fromkeys(chosen)]
            if any(p.terms != parts[0].terms for p in parts[1:]):
                return None
            for t, k in parts[0].terms.items():
                total[t] = total.get(t, 0) + c * k
            constants = {s: p.constant for s, p in zip(dict.fromkeys(chosen), parts, strict=True)}
            offsets = [o + c * constants[s] for o, s in zip(offsets, chosen, strict=True)]
        elif node.dtype.count == 1:
            total[node] = total.get(node, 0) + c
        elif lanes is not None and all(i == lanes[0] for i in lanes):
            one = node.gep(lanes[0])
            total[one] = total.get(one, 0) + c
        else:
            return None
    return Linear({t: c for t, c in total.items() if c}, 0), tuple(offsets)


def ungated(index: UOp) -> UOp:
    """An index without its gates, each of the form `Where(condition, index, Invalid)`."""
    while index.op is Op.Where:
        index = index.src[1]
    return index


def place_sums(nodes: Iterable[UOp]) -> list[tuple[UOp, Linear]]:
    """(place, linear form of its index) for every Index whose first index is a scalar, without gates `Where(c, i, Invalid)`."""
    found: list[tuple[UOp, Linear]] = []
    for node in nodes:
        if node.op is Op.Index and len(node.src) >= 2:
            i = ungated(node.src[1])
            if i.dtype.is_index and i.dtype.count == 1:
                found.append((node, linear(i)))
    return found


def unit_stride_ids(nodes: Iterable[UOp]) -> frozenset[int]:
    """The ids of the vectorized ranges with stride 1 in some access."""
    vector = (AxisType.Upcast, AxisType.Unroll)
    return frozenset(
        term.arg[0]
        for _, total in place_sums(nodes)
        for term, c in total.terms.items()
        if c == 1 and term.op is Op.Range and term.arg[1] in vector
    )
