"""A sound dialect of two dtypes, "sm" (0 to 100) and "big" (0 to 1000), whose sums stop at the upper end: tests replace parts."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from morok.dialect import NOT_CONST, OperandInfo, OpInfo, register
from morok.marks import helper
from morok.prove import smt
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.plain import IntegerTheory, IntegerWorld
from morok.prove.semantics.term import strict

SM, BIG = ("u", 100), ("u", 1000)
MOST = {"sm": 100, "big": 1000}
BOTH = ("sm", "big")
Term = tuple[Any, ...]
_numbers = itertools.count()


class Theory(IntegerTheory):
    limits = {name: (0, most) for name, most in MOST.items()}


class Positive(IntegerTheory):
    """Without 0."""

    limits = {name: (1, most) for name, most in MOST.items()}


class GenerousWorld(IntegerWorld):
    def fits(self, dtype: str, number: Num) -> Any:
        return smt.TRUE


@dataclass(frozen=True)
class Encoding:
    name: str = "integers"
    share: float = 1.0

    def world(self) -> IntegerWorld:
        return GenerousWorld(self.name, limits=Theory.limits)


class Generous(Theory):
    """In which every number is a value."""

    def attempts(self, *asked: Any) -> list[Any]:
        return [Encoding()]


def _up_to(d: str, v: Any) -> Any:
    return smt.If(v > MOST[d], MOST[d], v)


def solve_add(w: Any, d: Any, a: Any, b: Any) -> Any:
    return strict(_up_to(d, a.value + b.value), a, b)


def solve_mul(w: Any, d: Any, a: Any, b: Any) -> Any:
    return strict(_up_to(d, a.value * b.value), a, b)


def solve_flip(w: Any, d: Any, a: Any) -> Any:
    return strict(MOST[d] - a.value, a)


def solve_wide(w: Any, d: Any, a: Any) -> Any:
    return strict(a.value, a)


def solve_narrow(w: Any, d: Any, a: Any) -> Any:
    return strict(_up_to("sm", a.value), a)


def solve_width(w: Any, d: Any, a: Any) -> Any:
    return strict(smt.IntVal(MOST[d]), a)


def solve_where(w: Any, d: Any, a: Any, b: Any, c: Any) -> Any:
    return strict(smt.If(c.value != 0, a.value, b.value), a, b, c)


def solve_first(w: Any, d: Any, a: Any, b: Any) -> Any:
    return strict(_up_to(d, a.value), a, b)


def op(name: str, arity: int, evaluate: Callable[..., int], **more: Any) -> OpInfo:
    given: dict[str, Any] = {
        "params": ("T",) * arity,
        "result": "T",
        "domains": {"T": BOTH},
        "kind": {1: "unary", 2: "binary", 3: "ternary"}[arity],
        "solver": f"{__name__}:solve_{name.lower()}",
    }
    operands = tuple(OperandInfo(n) for n in "xyz"[:arity])
    return OpInfo(name=name, key=name, operands=operands, evaluate=evaluate, **{**given, **more})


OPS: Mapping[str, OpInfo] = {
    "Add": op("Add", 2, lambda d, a, b: min(d[1], a + b), commutative=True),
    "Mul": op("Mul", 2, lambda d, a, b: min(d[1], a * b), commutative=True),
    "Flip": op("Flip", 1, lambda d, a: d[1] - a),
    "Wide": op("Wide", 1, lambda d, a: a, params=("sm",), domains={}, result="big"),
    "Narrow": op("Narrow", 1, lambda d, a: min(a, 100), params=("big",), domains={}, result="sm"),
    "Width": op("Width", 1, lambda d, a: d[1], result="big", comparison=True),
}
# an op that is called as another one is elsewhere, and one whose operands are of two dtypes
OTHERS: Mapping[str, OpInfo] = {
    "Where": op("Where", 3, lambda d, a, b, c: a if c else b),
    "First": op(
        "First",
        2,
        lambda d, a, b: min(d[1], a),
        params=("S", "T"),
        domains={"S": BOTH, "T": BOTH},
        result="big",
        comparison=True,
    ),
}


class TwoSizes:
    """Nodes are (op, dtype, operand..), ("const", dtype, value) or ("var", dtype, name)."""

    theory = f"{__name__}:Theory"

    def __init__(self) -> None:
        self.name = f"two_sizes{next(_numbers)}"
        self.ops = OPS
        self.dtypes: Mapping[str, Hashable] = {"sm": SM, "big": BIG}
        self.classes: Mapping[str, frozenset[str]] = {c: frozenset(BOTH) for c in ("any", "int", "number")}
        self.inline: Mapping[str, str] = {}
        self.facts: Mapping[str, Callable[..., Any]] = {}

    def opkey(self, node: Term) -> Hashable:
        return node[0]

    def operands(self, node: Term) -> Sequence[Term]:
        return () if node[0] in ("const", "var") else node[2:]

    def attr(self, node: Term, name: str) -> Any:
        raise AttributeError(name)

    def type(self, node: Term) -> Hashable:
        return node[1]

    def same(self, a: Term, b: Term) -> bool:
        return a == b

    def const_value(self, node: Term) -> Any:
        return node[2] if node[0] == "const" else NOT_CONST

    def const(self, dtype: Any, value: Any) -> Term:
        return ("const", dtype, max(0, min(dtype[1], int(value))))

    def build(self, op: str, operands: Sequence[Term], attrs: Mapping[str, Any], dtype: Hashable | None) -> Term:
        named = {"sm": SM, "big": BIG}
        return (op, named.get(self.ops[op].result, operands[0][1]), *operands)

    def rebuild(self, node: Term, operands: Sequence[Term]) -> Term:
        return (*node[:2], *operands)


@helper
def chosen(x: Term, y: Term) -> Term:
    return ("Where", x[1], x, y, ("const", x[1], 1))


def dialect(**state: Any) -> TwoSizes:
    """A new dialect with some methods replaced, which are functions, and other state; registered."""
    methods = {name: value for name, value in state.items() if isinstance(value, types.FunctionType)}
    made: TwoSizes = types.new_class("Changed", (TwoSizes,), exec_body=lambda scope: scope.update(methods))()
    for name, value in state.items():
        if name not in methods:
            setattr(made, name, value)
    register(made)
    return made


def term(made: TwoSizes, op: str, *operands: Term) -> Term:
    return made.build(op, operands, {}, None)


def value(made: TwoSizes, node: Term, **variables: int) -> int:
    """The value of a term, by the evaluators."""
    if node[0] == "var":
        return variables[node[2]]
    if node[0] == "const":
        found: int = node[2]
        return found
    evaluate = made.ops[node[0]].evaluate
    assert evaluate is not None
    result: int = evaluate(node[2][1], *(value(made, o, **variables) for o in node[2:]))
    return result
