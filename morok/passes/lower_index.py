"""Stage 15: dtype index becomes i32 or i64, whichever bounds prove sufficient, and Invalid becomes a gate.

Three phases in one walk from the leaves: leaves get a concrete dtype by their bounds; an op computes in the narrowest
dtype that holds its result and all its operands; at the places where indices are used, conversions that are left over are
dropped and `Where(c, i, Invalid)` turns into the gate `c` of the Index.
"""

from __future__ import annotations

from typing import Final

from morok.errors import LoweringError
from morok.ir.dtype import DType, dtypes
from morok.ir.op import TABLE, Op
from morok.ir.uop import UOp, toposort, vconst

_CARRIERS: Final = frozenset({Op.Vectorize, Op.Cat})
_TRUE: Final = UOp.const(True)
_FALSE: Final = UOp.const(False)


def concrete(*nodes: UOp) -> DType:
    """The narrowest of i32 and i64 that holds every value of these nodes; LoweringError if neither does."""
    lo = min(n.vmin for n in nodes)
    hi = max(n.vmax for n in nodes)
    for d in (dtypes.i32, dtypes.i64):
        if d.min <= lo and hi <= d.max:
            return d
    if lo > hi:  # Invalid alone: no value at all
        return dtypes.i32
    worst = max(nodes, key=lambda n: max(abs(n.vmin), abs(n.vmax)))
    raise LoweringError(f"an index in {worst.vmin}..={worst.vmax} fits neither i32 nor i64: {worst}")


def _convert(x: UOp, d: DType) -> UOp:
    if x.dtype.scalar() is d:
        return x
    return UOp.const(x.arg, d if x.dtype.count == 1 else d.vec(x.dtype.count)) if x.op is Op.Const else x.cast(d)


class _Lowering:
    def __init__(self, root: UOp) -> None:
        self.done: dict[UOp, UOp] = {}
        self.valid: dict[UOp, UOp] = {}  # for nodes that may be Invalid: when they are not
        for node in toposort((root,)):
            if node.invalid:
                self.valid[node] = self.validity(node)
            self.done[node] = self.lower(node, tuple([self.done[s] for s in node.src]))

    def validity(self, node: UOp) -> UOp:
        if node.op is Op.Invalid:
            return _FALSE
        parts = [self.valid.get(s, _TRUE) for s in node.src]
        if node.op is Op.Where:
            c, (_, t, f) = self.done[node.src[0]], parts
            return (
                _and(c, t) if f is _FALSE else _and(UOp.new(Op.Not, (c,)), f) if t is _FALSE else c.where(*_same_lanes(c, t, f))
            )
        out = _TRUE
        for p in parts:
            out = _and(out, p)
        return out

    def lower(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        op, d = node.op, node.dtype
        if op is Op.Index:
            return self.index(node, src)
        if d.is_index:
            return self.at_index(node, src)
        if op is Op.Cast and node.src[0].dtype.is_index:
            return _convert(src[0], d.scalar()) if d.is_int else src[0].cast(d)
        if any(s.dtype.is_index for s in node.src) and TABLE.entries[op].pointwise:
            t = concrete(*[s for s in node.src if s.dtype.is_index])
            src = tuple(_convert(s, t) if old.dtype.is_index else s for old, s in zip(node.src, src, strict=True))
        return node if src == node.src else node.replace(src)

    def at_index(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        """A node of dtype index, at i32 or i64."""
        op = node.op
        if op is Op.Const:
            return UOp.const(node.arg, _lanes(concrete(node), node))
        if op is Op.VConst:
            return vconst(concrete(node), node.arg)
        if op is Op.Invalid:
            return UOp.const(0, _lanes(dtypes.i32, node))
        if op is Op.DefineVar:
            return UOp.new(op, (), node.arg, concrete(node))
        if op is Op.Special:
            return UOp.new(op, (_convert(src[0], dtypes.i32),), node.arg)
        if op is Op.Cast:  # from a number: its value is the index
            t = concrete(node)
            return src[0] if src[0].dtype.scalar() in (dtypes.i32, dtypes.i64) else src[0].cast(t)
        if op is Op.Where and (node.src[2].op is Op.Invalid or node.src[1].op is Op.Invalid):
            return src[1] if node.src[2].op is Op.Invalid else src[2]
        if TABLE.entries[op].pointwise or op in _CARRIERS:
            operands = [s for s in node.src if s.dtype.is_index]
            t = concrete(node, *operands)
            return UOp.new(op, tuple(_convert(s, t) if old.dtype.is_index else s for old, s in zip(node.src, src, strict=True)))
        return UOp.new(op, src, node.arg)

    def index(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        buffer, *places = src
        gate = places.pop() if node.arg else _TRUE
        for old in node.src[1:]:
            if old in self.valid:
                gate = _and(gate, self.valid[old])
        if gate is _TRUE:
            return UOp.new(Op.Index, (buffer, *places), False)
        return UOp.new(Op.Index, (buffer, *places, gate), True)


def _lanes(d: DType, node: UOp) -> DType:
    return d if node.dtype.count == 1 else d.vec(node.dtype.count)


def _same_lanes(*xs: UOp) -> tuple[UOp, ...]:
    n = max(x.dtype.count for x in xs)
    return tuple(x if x.dtype.count == n else UOp.vectorize(*([x] * n)) for x in xs[1:])


def _and(a: UOp, b: UOp) -> UOp:
    if a is _TRUE or b is _FALSE:
        return b
    if b is _TRUE or a is _FALSE:
        return a
    if a.dtype is not b.dtype:
        n = max(a.dtype.count, b.dtype.count)
        a, b = (x if x.dtype.count == n else UOp.vectorize(*([x] * n)) for x in (a, b))
    return a & b


def lower_index(root: UOp) -> UOp:
    """`root` without dtype index."""
    return _Lowering(root).done[root]
