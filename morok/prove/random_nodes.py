"""Random nodes of Morok's own ops, to try helpers on."""

from __future__ import annotations

import random
from typing import Final

from morok.dsl.checked import Instance, Ty
from morok.ir.dtype import BY_NAME, DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.calls import UnmadeError

FLOATS: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e30, -1e-30)


class RandomNodes:
    """Random graphs of Morok's own ops over a few variables."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lanes: dict[str, int] = {}
        self.made: dict[DType, list[UOp]] = {}
        self.constants: tuple[int, ...] = ()

    def make(self, ty: Ty, instance: Instance, constants: tuple[int, ...]) -> UOp:
        if ty.place:
            raise UnmadeError("no storage is made up")
        self.constants = constants
        name = self.rng.choice(("i32", "f32", "index", "bool")) if ty.element == "any" else instance.element(ty)
        scalar = BY_NAME[name]
        if scalar is dtypes.void:
            raise UnmadeError("no statements are made up")
        if ty.pointer:
            return UOp.new(Op.DefineGlobal, (), self.rng.randrange(3), scalar.ptr(self.rng.choice((1, 8, 64))))
        count = ty.lanes if isinstance(ty.lanes, int) else self._count(ty.lanes)
        return self.node(scalar if count == 1 else scalar.vec(count), self.rng.choice((0, 1, 1, 2, 3)))

    def _count(self, name: str) -> int:
        if name not in self.lanes:
            self.lanes[name] = self.rng.choice((1, 1, 1, 2, 3, 4, 8))
        return self.lanes[name]

    def node(self, d: DType, depth: int) -> UOp:
        """A random graph of that dtype."""
        rng = self.rng
        known = self.made.setdefault(d, [])
        if known and rng.random() < 0.2:
            return rng.choice(known)
        if depth == 0:
            made = self._leaf(d)
        elif d.scalar().name == "bool":
            if rng.random() < 0.6:
                inner = rng.choice((dtypes.index, dtypes.i32)).vec(d.count)
                made = UOp.new(
                    rng.choice((Op.Lt, Op.Ne, Op.Eq)), (self.node(inner, depth - 1), self.node(inner, depth - 1))
                )
            else:
                made = UOp.new(rng.choice((Op.And, Op.Or)), (self.node(d, depth - 1), self.node(d, depth - 1)))
        else:
            integral = not d.scalar().is_float
            op = rng.choice(
                (Op.Add, Op.Add, Op.Mul, Op.Sub, Op.Neg, Op.Max, Op.Where, *((Op.Idiv, Op.Mod) if integral else ()))
            )
            x = self.node(d, depth - 1)
            if op is Op.Neg:
                made = UOp.new(op, (x,))
            elif op is Op.Where:
                made = UOp.new(op, (self.node(dtypes.bool, 0), x, self.node(d, depth - 1)))
            elif op in (Op.Idiv, Op.Mod) or (op is Op.Mul and rng.random() < 0.8):
                made = UOp.new(op, (x, UOp.const(rng.choice((1, 2, 3, 4, 6, 8, 12)), d)))
            else:
                made = UOp.new(op, (x, self.node(d, depth - 1)))
        known.append(made)
        return made

    def _leaf(self, d: DType) -> UOp:
        rng, s = self.rng, d.scalar()
        if rng.random() < 0.3:
            if s.is_float:
                return UOp.const(rng.choice(FLOATS), d)
            if s.name == "bool":
                return UOp.const(rng.random() < 0.5, d)
            values = [v for v in self.constants if s.is_index or s.min <= v <= s.max]
            return UOp.const(rng.choice((rng.choice(values), rng.randint(0, 12))), d)
        if not s.is_index and rng.random() < 0.2:
            buffer = UOp.new(Op.DefineGlobal, (), rng.randrange(3), s.ptr(rng.choice((1, 8, 64))))
            return UOp.new(Op.Load, (buffer.index(self._leaf(dtypes.index)),), None, d)
        name = rng.choice("abcd")
        if s.name == "bool" or s.is_float:
            return UOp.var(f"{name}_{s.name}", d)
        low = rng.choice((0, 0, 0, 1, -5)) if s.min < 0 or s.is_index else 0
        return UOp.var(
            f"{name}_{s.name}_{len(self.made)}_{rng.randrange(3)}", d, low, low + rng.choice((0, 1, 3, 15, 100))
        )
