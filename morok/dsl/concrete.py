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


def compiled(e: S.Expr) -> Callable[[Mapping[str, Any]], Any]:
    """An expression as a Python function of what its names stand for: the same as `Concrete` says, where many values are tried.

    `all` and `any` stop where they are decided.
    """
    found = _compiled.get(id(e))
    if found is None:
        if len(_compiled) >= MOST_COMPILED:
            _compiled.clear()
        made = eval(f"lambda names: {_text(e, frozenset())}", {**FUNCTIONS, "shl": values.shl, "shr": values.shr})
        found = _compiled[id(e)] = (e, made)  # the expression is kept, so that its id stays its own
    return found[1]


MOST_COMPILED: Final = 4096  # many times what all contracts of the built-in rules have
_compiled: dict[int, tuple[S.Expr, Callable[[Mapping[str, Any]], Any]]] = {}


def _text(e: S.Expr, own: frozenset[str]) -> str:
    """The Python text of an expression; `own` are the names of comprehensions around it."""

    def text(x: S.Expr) -> str:
        return _text(x, own)

    match e:
        case S.EName(name=name):
            return f"own_{name}" if name in own else f"names[{name!r}]"
        case S.ENumber():
            return f"({e.value!r})"
        case S.EUnary():
            return f"({e.op} {text(e.operand)})"
        case S.EBinary(op="<<" | ">>"):
            return f"{'shl' if e.op == '<<' else 'shr'}({text(e.left)}, {text(e.right)})"
        case S.EBinary():
            return f"({text(e.left)} {e.op} {text(e.right)})"
        case S.ECompare():
            rest = "".join(f" {op} {text(o)}" for op, o in zip(e.ops, e.operands[1:], strict=True))
            return f"({text(e.operands[0])}{rest})"
        case S.ECall() if e.name in FUNCTIONS:
            if e.name in ("all", "any") and isinstance(e.args[0], S.EComprehension):
                return f"{e.name}({_comprehension(e.args[0], own)})"
            return f"{e.name}({', '.join(map(text, e.args))})"
        case S.EIndex():
            return f"{text(e.sequence)}[{text(e.index)}]"
        case S.ERange():
            return f"range({text(e.start)}, {text(e.stop)}{' + 1' if e.inclusive else ''})"
        case S.EList():
            items = [f"*{text(i.sequence)}" if isinstance(i, S.ESpread) else text(i) for i in e.items]
            return f"({', '.join([*items, ''])})" if items else "()"
        case S.EComprehension():
            return f"tuple([{_comprehension(e, own)}])"
    raise AssertionError(f"{type(e).__name__} among compile-time values")


def _comprehension(e: S.EComprehension, own: frozenset[str]) -> str:
    inner = own | set(e.names)
    condition = "" if e.condition is None else f" if {_text(e.condition, inner)}"
    return f"{_text(e.body, inner)} for {', '.join(f'own_{n}' for n in e.names)} in {_text(e.sequence, own)}{condition}"


__all__ = ["Concrete", "compiled"]
