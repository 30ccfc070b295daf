"""Symbolic dimensions: one compiled program for every size within bounds."""

from __future__ import annotations

from morok.caller import caller
from morok.errors import BindError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp


class Variable:
    """An integer in vmin..=vmax that is known when a program runs: `Variable("n", 1, 8).bind(5)` is a dimension of size 5."""

    __slots__ = ("name", "vmin", "vmax", "node")

    def __init__(self, name: str, vmin: int, vmax: int) -> None:
        if not 0 <= vmin <= vmax:
            raise BindError(
                f"variable {name}: {vmin}..={vmax} are no bounds of a dimension", place=caller(), expected="0 <= vmin <= vmax"
            )
        self.name = name
        self.vmin = vmin
        self.vmax = vmax
        self.node = UOp.var(name, dtypes.index, vmin, vmax)

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.vmin}, {self.vmax})"

    def bind(self, value: int) -> UOp:
        """The dimension whose size is `value`; BindError outside the bounds."""
        if not self.vmin <= value <= self.vmax:
            raise BindError(f"{self.name} = {value}", place=caller(), expected=f"a value in {self.vmin}..={self.vmax}")
        return UOp.new(Op.Bind, (self.node, UOp.const(value, dtypes.index)))
