"""Values in LLVM IR with Python's operators: `x & 0x7F` emits an `and` with 127 in every lane, and is its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from morok.codegen.llvm.builder import Builder

V = TypeVar("V", bound="Lanes")

_FLOATS: Final = frozenset({"half", "float", "double"})


def _arithmetic(op: str) -> Callable[[V, V | int | str], V]:
    def emit(x: V, y: V | int | str) -> V:
        floating = "f" if x.base in _FLOATS else ""
        return x.made(x.b.binary(floating + op, x.base, x.lanes, x.name, x.operand(y)))

    return emit


@dataclass(frozen=True, slots=True)
class Lanes:
    """A vector of `lanes` elements of the LLVM type `base`, or a scalar; `name` is its name, or a constant.

    Another operand may be a constant, an int or LLVM's text, for every lane. Floats have `+ - * /` alone, integers all but `/`;
    `>>` shifts in zeros.
    """

    b: Builder
    name: str
    base: str = "i64"
    lanes: int = 1

    def made(self: V, name: str) -> V:
        """The value of this name, of the same type."""
        return type(self)(self.b, name, self.base, self.lanes)

    def constant(self: V, number: int | str) -> V:
        """A constant of this type, the same in every lane."""
        return self.made(self.b.const(self.base, self.lanes, number))

    def operand(self, other: Lanes | int | str) -> str:
        """The name of another operand of this type."""
        return other.name if isinstance(other, Lanes) else self.b.const(self.base, self.lanes, other)

    __add__ = _arithmetic("add")
    __sub__ = _arithmetic("sub")
    __mul__ = _arithmetic("mul")
    __truediv__ = _arithmetic("div")
    __and__ = _arithmetic("and")
    __or__ = _arithmetic("or")
    __xor__ = _arithmetic("xor")
    __lshift__ = _arithmetic("shl")
    __rshift__ = _arithmetic("lshr")

    def compare(self, condition: str, other: Lanes | int | str) -> Lanes:
        """The bits, i1, of LLVM's comparison `condition`: eq, slt, olt .."""
        bits = self.b.compare(condition, self.base, self.lanes, self.name, self.operand(other))
        return Lanes(self.b, bits, "i1", self.lanes)

    def select(self, chosen: V, other: V | int | str) -> V:
        """The lanes of `chosen` where these bits are 1, those of `other` elsewhere."""
        return chosen.made(self.b.select(self.name, chosen.base, self.lanes, chosen.name, chosen.operand(other)))

    def convert(self, op: str, base: str) -> Lanes:
        """These lanes in another type by zext, sext, trunc, fpext, fptrunc or bitcast; unchanged if it is their own."""
        return Lanes(self.b, self.b.convert(op, self.base, base, self.lanes, self.name), base, self.lanes)

    def bits(self, base: str) -> Lanes:
        """The same bits in another type of this width."""
        return self.convert("bitcast", base)

    def intrinsic(self: V, name: str, *others: V | int | str) -> V:
        """The result of LLVM's intrinsic `name` on values of this type."""
        return self.made(self.b.intrinsic(name, self.base, self.lanes, self.name, *map(self.operand, others)))
