"""Fixed-width integers as bit vectors: exact, at the width of the dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from morok.prove import smt
from morok.prove.semantics.term import Operators, World, both
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol


@dataclass(frozen=True, slots=True)
class Bits(Operators):
    """The arithmetic of one integer dtype."""

    world: World
    bits: int
    signed: bool

    @property
    def sort(self) -> Any:
        return smt.BitVecSort(self.bits)

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    def const(self, value: int) -> Expr:
        return smt.BitVecVal(value, self.bits)

    def variable(self, name: Symbol) -> Expr:
        return smt.BitVec(name, self.bits)

    def read(self, value: Expr) -> int:
        """The Python value of a numeral."""
        return smt.signed(value.data, self.bits) if self.signed else int(value.data)

    def divisible(self, a: Expr, b: Expr) -> Expr:
        """A condition that a quotient of the two exists and fits."""
        if not self.signed:
            return b != 0
        return both(b != 0, smt.Not(smt.And(b == -1, a == self.const(self.low))))

    def tdiv(self, a: Expr, b: Expr) -> Expr:
        return a / b if self.signed else smt.UDiv(a, b)

    def tmod(self, a: Expr, b: Expr) -> Expr:
        return smt.SRem(a, b) if self.signed else smt.URem(a, b)

    def floordiv(self, a: Expr, b: Expr) -> Expr:
        if not self.signed:
            return smt.UDiv(a, b)
        q, r = a / b, smt.SRem(a, b)
        return smt.If(smt.And(r != 0, (r < 0) != (b < 0)), q - 1, q)

    def floormod(self, a: Expr, b: Expr) -> Expr:
        return a % b if self.signed else smt.URem(a, b)  # `%` on bit vectors is bvsmod, with the divisor's sign

    def lt(self, a: Expr, b: Expr) -> Expr:
        return a < b if self.signed else smt.ULT(a, b)

    def le(self, a: Expr, b: Expr) -> Expr:
        return a <= b if self.signed else smt.ULE(a, b)

    def shiftable(self, b: Expr) -> Expr:
        return smt.ULT(b, self.const(self.bits))  # a negative amount is a great unsigned one

    def shl(self, a: Expr, b: Expr) -> Expr:
        return a << b

    def shr(self, a: Expr, b: Expr) -> Expr:
        return a >> b if self.signed else smt.LShR(a, b)

    def bit_and(self, a: Expr, b: Expr) -> Expr:
        return a & b

    def bit_or(self, a: Expr, b: Expr) -> Expr:
        return a | b

    def bit_xor(self, a: Expr, b: Expr) -> Expr:
        return a ^ b

    def bit_not(self, a: Expr) -> Expr:
        return ~a

    def from_bool(self, a: Expr) -> Expr:
        return smt.If(a, self.const(1), self.const(0))

    def convert(self, a: Expr, source: Bits) -> Expr:
        """A value of another integer dtype, wrapped to this one."""
        if self.bits <= source.bits:
            return a if self.bits == source.bits else smt.Extract(self.bits - 1, 0, a)
        extra = self.bits - source.bits
        return smt.SignExt(extra, a) if source.signed else smt.ZeroExt(extra, a)
