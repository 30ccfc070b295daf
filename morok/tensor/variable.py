"""Symbolic sizes of axes: one compiled program for every size within bounds."""

from __future__ import annotations

from morok.arguments import index_or_none, shown
from morok.caller import caller
from morok.errors import BindError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp


class Variable:
    """A symbolic size of an axis, in vmin..=vmax, bound to a number when a program runs: one compiled program for all sizes.

    BindError for a name that is no identifier, and unless 0 <= vmin <= vmax.

    >>> n = Variable("n", 1, 8)
    >>> Tensor.arange(8)[: n.bind(3)].sum().item()
    3
    """

    __slots__ = ("name", "vmin", "vmax", "node")

    def __init__(self, name: str, vmin: int, vmax: int) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise BindError(
                f"{shown(name)} is not a name for a variable",
                place=caller(),
                expected="letters, digits and _, no digit first",
            )
        low, high = index_or_none(vmin), index_or_none(vmax)
        if low is None or high is None or not 0 <= low <= high:
            what = f"variable {name}: {shown(vmin)}..={shown(vmax)} cannot be bounds of a dimension"
            raise BindError(what, place=caller(), expected="0 <= vmin <= vmax")
        self.name = name
        self.vmin = low
        self.vmax = high
        self.node = UOp.var(name, dtypes.index, low, high)

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.vmin}, {self.vmax})"

    def bind(self, value: int) -> UOp:
        """The size `value` of an axis, as a node of dtype index; BindError outside the bounds.

        >>> Variable("n", 1, 8).bind(5).src[1].arg
        5
        """
        number = index_or_none(value)
        if number is None or not self.vmin <= number <= self.vmax:
            raise BindError(
                f"{shown(value)} is not a value of variable {self.name}",
                place=caller(),
                expected=f"a value in {self.vmin}..={self.vmax}",
            )
        return UOp.new(Op.Bind, (self.node, UOp.const(number, dtypes.index)))
