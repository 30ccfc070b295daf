"""Symbolic dimensions: one compiled program for every size within bounds."""

from __future__ import annotations

from morok.arguments import index_or_none, shown
from morok.caller import caller
from morok.errors import BindError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp


class Variable:
    """An integer in vmin..=vmax that is known when a program runs: `Variable("n", 1, 8).bind(5)` is a dimension of size 5."""

    __slots__ = ("name", "vmin", "vmax", "node")

    def __init__(self, name: str, vmin: int, vmax: int) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise BindError(
                f"{shown(name)} is no name of a variable", place=caller(), expected="letters, digits and _, no digit first"
            )
        low, high = index_or_none(vmin), index_or_none(vmax)
        if low is None or high is None or not 0 <= low <= high:
            what = f"variable {name}: {shown(vmin)}..={shown(vmax)} are no bounds of a dimension"
            raise BindError(what, place=caller(), expected="0 <= vmin <= vmax")
        self.name = name
        self.vmin = low
        self.vmax = high
        self.node = UOp.var(name, dtypes.index, low, high)

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.vmin}, {self.vmax})"

    def bind(self, value: int) -> UOp:
        """The dimension whose size is `value`; BindError outside the bounds."""
        number = index_or_none(value)
        if number is None or not self.vmin <= number <= self.vmax:
            raise BindError(f"{self.name} = {shown(value)}", place=caller(), expected=f"a value in {self.vmin}..={self.vmax}")
        return UOp.new(Op.Bind, (self.node, UOp.const(number, dtypes.index)))
