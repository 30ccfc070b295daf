"""Compile-time expressions over Python values: what a guard, a `let` or a contract says where everything in it is known."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl import values

BINARY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": values.shl, ">>": values.shr,
}  # fmt: skip
COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "tdiv": values.tdiv, "tmod": values.tmod, "abs": abs, "min": min, "max": max, "gcd": math.gcd, "is_pow2": values.is_pow2,
    "log2": values.log2, "len": len, "all": all, "any": any, "sum": sum, "width": values.width, "step": values.step,
    "at": values.at, "zip": lambda *xs: tuple(zip(*xs, strict=True)),
}  # fmt: skip


class Concrete:
    """Evaluates expressions. Integers are Python's, sequences are tuples, nodes whatever `call` takes.

    names   what each name stands for
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names: dict[str, Any] = dict(names)

    def call(self, e: S.ECall) -> Any:
        """A function of compile-time values; KeyError for another."""
        return FUNCTIONS[e.name](*[self.value(a) for a in e.args])

    def value(self, e: S.Expr) -> Any:
        match e:
            case S.EName():
                return self.names[e.name]
            case S.ENumber():
                return e.value
            case S.EUnary(op="not"):
                return not self.value(e.operand)
            case S.EUnary():
                value = self.value(e.operand)
                return -value if e.op == "-" else ~value
            case S.EBinary(op="and"):
                return self.value(e.left) and self.value(e.right)
            case S.EBinary(op="or"):
                return self.value(e.left) or self.value(e.right)
            case S.EBinary():
                return BINARY[e.op](self.value(e.left), self.value(e.right))
            case S.ECompare():
                operands = [self.value(o) for o in e.operands]
                return all(COMPARE[op](a, b) for op, a, b in zip(e.ops, operands, operands[1:], strict=False))
            case S.ECall():
                return self.call(e)
            case S.EIndex():
                return self.value(e.sequence)[self.value(e.index)]
            case S.ERange():
                return tuple(range(self.value(e.start), self.value(e.stop) + e.inclusive))
            case S.EList():
                return tuple(self.items(e.items))
            case S.EComprehension():
                return tuple(self.comprehension(e))
        return self.other(e)

    def other(self, e: S.Expr) -> Any:
        raise AssertionError(f"{type(e).__name__} among compile-time values")

    def items(self, items: Sequence[S.Expr]) -> list[Any]:
        out: list[Any] = []
        for i in items:
            if isinstance(i, S.ESpread):
                out.extend(self.value(i.sequence))
            elif isinstance(i, S.EComprehension):
                out.extend(self.comprehension(i))
            else:
                out.append(self.value(i))
        return out

    def comprehension(self, e: S.EComprehension) -> list[Any]:
        out: list[Any] = []
        sequence, outer = self.value(e.sequence), self.names
        for item in sequence:
            parts = item if len(e.names) > 1 else (item,)
            self.names = outer | dict(zip(e.names, parts, strict=True))
            if e.condition is None or self.value(e.condition):
                out.append(self.value(e.body))
        self.names = outer
        return out


def evaluate(e: S.Expr, names: Mapping[str, Any]) -> Any:
    """An expression over known values."""
    return Concrete(names).value(e)


__all__ = ["Concrete", "evaluate"]
