"""An interpreter of compile-time expressions: their meaning, written a second time and as plainly as can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.functions import BINARY, COMPARISONS, FUNCTIONS, UNARY, Function
from morok.dsl.values import Steps, finite, item, listed, numbers, sequence


class Concrete:
    """An interpreter of expressions. Integers are Python's, sequences are tuples, nodes are of any type that `call` accepts.

    names   the value of each name
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names: dict[str, Any] = dict(names)
        self.steps = Steps()

    def call(self, e: S.ECall) -> Any:
        """A function of compile-time values; KeyError for another."""
        function = FUNCTIONS[e.name]
        if function.fact:
            raise KeyError(e.name)
        return self.applied(function, *e.args)

    def applied(self, function: Function, *operands: S.Expr) -> Any:
        assert callable(function.value)
        kinds = function.kinds(len(operands))
        given = [
            finite(self.value(o)) if kind == "int" else self.value(o) for kind, o in zip(kinds, operands, strict=True)
        ]
        return function.value(*given)

    def value(self, e: S.Expr) -> Any:
        match e:
            case S.EName():
                return self.names[e.name]
            case S.ENumber():
                return e.value
            case S.EUnary():
                return self.applied(UNARY[e.op], e.operand)
            case S.EBinary(op="and"):
                return self.value(e.left) and self.value(e.right)
            case S.EBinary(op="or"):
                return self.value(e.left) or self.value(e.right)
            case S.EBinary():
                return self.applied(BINARY[e.op], e.left, e.right)
            case S.ECompare():
                return self.comparison(e)
            case S.ECall():
                return self.call(e)
            case S.EIndex():
                return item(self.value(e.sequence), finite(self.value(e.index)))
            case S.ERange():
                return tuple(numbers(finite(self.value(e.start)), finite(self.value(e.stop)) + e.inclusive))
            case S.EList():
                return listed(tuple(self.items(e.items)))
            case S.EComprehension():
                return tuple(self.comprehension(e))
        return self.other(e)

    def comparison(self, e: S.ECompare) -> bool:
        """The result of a chain of comparisons: operands are evaluated from the left until one fails, as in Python."""
        left = self.value(e.operands[0])
        for op, operand in zip(e.ops, e.operands[1:], strict=True):
            right = self.value(operand)
            compare = COMPARISONS[op].value
            assert callable(compare)
            if not compare(left, right):
                return False
            left = right
        return True

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
        outer = self.names
        items = sequence(self.value(e.sequence))
        for one in self.steps.taken(items) if len(e.names) == 1 else self.steps.parted(items, len(e.names)):
            parts = one if len(e.names) > 1 else (one,)
            self.names = outer | dict(zip(e.names, parts, strict=True))
            if e.condition is None or self.value(e.condition):
                out.append(self.value(e.body))
        self.names = outer
        return out
