"""Shapes of tensor-level nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from morok.ir.op import Op
from morok.ir.ranges import remember, unknown

if TYPE_CHECKING:
    from morok.ir.uop import UOp

Shape = tuple["int | UOp", ...]
_memo: Final = "shape"


def dim(node: UOp) -> int | UOp:
    """A dimension operand as a number, where it is one."""
    return int(node.arg) if node.op is Op.Const else node


def shape_of(root: UOp) -> Shape:
    """The shape of a tensor-level node: () for scalars, an int or a node of dtype index a dimension."""
    if _memo not in root.memo:
        for node in unknown(root, _memo):
            remember(node, _memo, _compute(node))
    return _of(root)


def edges(node: UOp) -> tuple[tuple[UOp, UOp], ...]:
    """The (begin, end) pairs of a Pad or Shrink, one an axis."""
    half = (len(node.src) - 1) // 2
    return tuple(zip(node.src[1 : 1 + half], node.src[1 + half :], strict=True))


def _compute(node: UOp) -> Shape:
    op, src = node.op, node.src
    if op is Op.Buffer:
        return (node.arg,)
    if op is Op.BufferView:
        return (node.arg[1],)
    if op is Op.Iota:
        return (dim(src[0]),)
    if op in (Op.Reshape, Op.Expand):
        return tuple(dim(s) for s in src[1:])
    if op is Op.Permute:
        below = _of(src[0])
        return tuple(below[a] for a in node.arg)
    if op is Op.ReduceAxis:
        axes = node.arg[1]
        return tuple(d for i, d in enumerate(_of(src[0])) if i not in axes)
    if op is Op.Pad:
        return tuple(_plus(_plus(d, dim(b)), dim(e)) for d, (b, e) in zip(_of(src[0]), edges(node), strict=True))
    if op is Op.Shrink:
        return tuple(_minus(dim(e), dim(b)) for b, e in edges(node))
    if op in (Op.Const, Op.DefineVar, Op.Range, Op.Index, Op.Unique, Op.Device) or not src:
        return ()
    for s in src:
        if shape := _of(s):
            return shape
    return ()


def _of(node: UOp) -> Shape:
    found: Shape = node.memo[_memo]
    return found


def _plus(a: int | UOp, b: int | UOp) -> int | UOp:
    return a if isinstance(b, int) and b == 0 else a + b


def _minus(a: int | UOp, b: int | UOp) -> int | UOp:
    return a if isinstance(b, int) and b == 0 else a - b
