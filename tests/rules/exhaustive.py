"""Index expressions at every choice of values for their variables at once, by NumPy: an oracle beside the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
from expressions import leaves

from morok.ir.op import Op
from morok.ir.uop import UOp

Array = Any


def grid(nodes: list[UOp]) -> dict[UOp, Array]:
    """Every choice of values for the variables and ranges below these nodes, as arrays of one length."""
    names = leaves(nodes)
    axes = [np.arange(int(n.vmin), int(n.vmax) + 1, dtype=np.int64) for n in names]
    arrays = np.meshgrid(*axes, indexing="ij") if axes else []
    return {n: a.ravel() for n, a in zip(names, arrays, strict=True)}


def _quotient(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, 1, b)
    return np.sign(a) * np.sign(safe) * (np.abs(a) // np.abs(safe))


BINARY = {
    Op.Add: np.add, Op.Sub: np.subtract, Op.Mul: np.multiply, Op.Max: np.maximum, Op.Min: np.minimum,
    Op.Lt: np.less, Op.Le: np.less_equal, Op.Gt: np.greater, Op.Ge: np.greater_equal, Op.Eq: np.equal, Op.Ne: np.not_equal,
    Op.Xor: np.bitwise_xor,
    Op.Idiv: _quotient,
    Op.Mod: lambda a, b: a - b * _quotient(a, b),
    Op.FloorDiv: lambda a, b: a // np.where(b == 0, 1, b),
    Op.FloorMod: lambda a, b: a % np.where(b == 0, 1, b),
}  # fmt: skip
DIVISIONS = (Op.Idiv, Op.Mod, Op.FloorDiv, Op.FloorMod)


def everywhere(node: UOp, at: dict[UOp, Array]) -> tuple[Array, Array]:
    """The values of a node, and where it has one."""
    size = next((len(a) for a in at.values()), 1)
    found: dict[UOp, tuple[Array, Array]] = {}
    for n in node.toposort():
        s = [found[x] for x in n.src if x in found]
        if n in at:
            found[n] = at[n], np.ones(size, bool)
        elif n.op is Op.Const:
            found[n] = np.full(size, n.arg), np.ones(size, bool)
        elif n.op is Op.Where:
            (c, dc), (t, dt), (f, df) = s
            found[n] = np.where(c, t, f), dc & np.where(c, dt, df)
        elif n.op is Op.Neg:
            found[n] = -s[0][0], s[0][1]
        elif n.op is Op.Not:
            found[n] = ~s[0][0], s[0][1]
        elif n.op is Op.Cast:
            found[n] = s[0][0].astype(np.int64 if n.dtype.is_integral else bool), s[0][1]
        elif n.op in (Op.And, Op.Or):
            (a, da), (b, db) = s
            decides = n.op is Op.Or  # one operand that decides is enough
            found[n] = (a & b, a | b)[decides], (da & db) | (da & (a == decides)) | (db & (b == decides))
        else:
            (a, da), (b, db) = s
            found[n] = BINARY[n.op](a, b), da & db & (b != 0 if n.op in DIVISIONS else True)
    return found[node]


def differences(before: UOp, after: UOp) -> list[dict[str, Any]]:
    """Every choice of values at which `after` has not the value of `before`, where that has one."""
    at = grid([before, after])
    (a, da), (b, db) = everywhere(before, at), everywhere(after, at)
    wrong = np.nonzero(da & (~db | (a != b)))[0]
    return [{n.text(): int(v[i]) for n, v in at.items()} for i in wrong[:5]]
