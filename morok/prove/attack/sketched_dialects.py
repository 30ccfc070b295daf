"""Dialects of others, made from their names: `attacked_FORM_LOW_HIGH_MISTAKE_OP`.

Integers from LOW to HIGH, of which sums that leave the range are clipped or wrap. Nodes are tuples; there are also some of a type
that the dialect does not list, where sums wrap further away. This file is loaded under a name outside of Morok, as the code of
others is (morok.prove.attack.foreign_dialects).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from morok.dialect import NOT_CONST, OperandInfo, OpInfo
from morok.prove import smt
from morok.prove.semantics.plain import IntegerTheory
from morok.prove.semantics.term import strict

HERE: Final = __name__
PREFIX: Final = "attacked_"
WIDE: Final = 1000  # nodes of the type that no dialect lists

Node = tuple[Any, ...]
FUNCTIONS: Final[Mapping[str, Callable[..., int]]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Max": max,
    "Min": min,
    "Neg": lambda a: -a,
}


class Sketch(NamedTuple):
    """A sketch of a dialect: `mistake` is one of morok.prove.attack.foreign_dialects.MISTAKES, of the op that
    `wrong` names."""

    form: str
    low: int
    high: int
    mistake: str
    wrong: str

    @property
    def name(self) -> str:
        low = f"m{-self.low}" if self.low < 0 else str(self.low)
        return f"{PREFIX}{self.form}_{low}_{self.high}_{self.mistake}_{self.wrong}"

    @staticmethod
    def of(name: str) -> Sketch:
        form, low, high, mistake, wrong = name.removeprefix(PREFIX).split("_")
        return Sketch(form, int(low.replace("m", "-")), int(high), mistake, wrong)

    def within(self, v: int) -> int:
        return fit(self.form, self.low, self.high, v)


def fit(form: str, low: int, high: int, v: int) -> int:
    """A number in a range: clipped to it, or counted around it."""
    return max(low, min(high, v)) if form == "clip" else (v - low) % (high - low + 1) + low


def evaluator(s: Sketch, name: str) -> Callable[..., int]:
    function = FUNCTIONS[name]
    if s.mistake == "evaluator" and name == s.wrong:
        return lambda d, *values: s.within(function(*values) + (1 if values[-1] == s.high else 0))
    return lambda d, *values: s.within(function(*values))


def _op(s: Sketch, name: str) -> OpInfo:
    count = 1 if name == "Neg" else 2
    key = "add" if s.mistake == "key" and name == "Max" else name.lower()
    return OpInfo(
        name=name,
        key=key,
        operands=tuple(OperandInfo(f"x{k}") for k in range(count)),
        params=("T",) * count,
        result="T",
        domains={"T": ("n",)},
        kind="unary" if count == 1 else "binary",
        commutative=name in ("Add", "Max", "Min") or (s.mistake == "commutes" and name == "Sub"),
        evaluate=evaluator(s, name),
        solver=f"{HERE}:solve_{name}_{s.name}",
    )


def type_of(node: Node) -> str:
    return str(node[2]) if node[0] in ("var", "const") else type_of(node[1])


class Attacked:
    """The dialect of a sketch: one dtype, "n", and nodes ("var", name, type), ("const", value, type), (key, operand, ..)."""

    dtypes: Mapping[str, Hashable] = {"n": "n"}
    classes: Mapping[str, frozenset[str]] = {word: frozenset({"n"}) for word in ("any", "int", "number")}
    inline: Mapping[str, str] = {}
    facts: Mapping[str, Callable[..., Any]] = {}

    def __init__(self, s: Sketch) -> None:
        self.sketch = s
        self.name = s.name
        self.ops: Mapping[str, OpInfo] = {name: _op(s, name) for name in FUNCTIONS}
        self.theory = f"{HERE}:Theory_{s.name}"

    def opkey(self, node: Node) -> Hashable:
        key: Hashable = node[0]
        return key

    def operands(self, node: Node) -> Sequence[Node]:
        return () if node[0] in ("var", "const") else node[1:]

    def attr(self, node: Node, name: str) -> Any:
        raise AttributeError(name)

    def type(self, node: Node) -> str:
        return type_of(node)

    def same(self, a: Node, b: Node) -> bool:
        return a == b

    def const_value(self, node: Node) -> Any:
        return node[1] if node[0] == "const" else NOT_CONST

    def const(self, dtype: Hashable, value: Any) -> Node:
        v = self.sketch.within(int(value))
        if self.sketch.mistake == "constant" and v == self.sketch.high:
            v -= 1
        return "const", v, dtype

    def build(self, op: str, operands: Sequence[Node], attrs: Mapping[str, Any], dtype: Hashable | None) -> Node:
        return (op.lower(), *operands)

    def rebuild(self, node: Node, operands: Sequence[Node]) -> Node:
        return (node[0], *operands)


def __getattr__(name: str) -> Any:
    """The theories and meanings of ops that the prover looks up here, by the names that the dialects give."""
    kind, _, rest = name.partition("_")
    if kind == "Theory":
        return _theory(Sketch.of(rest))
    if kind == "solve":
        op, _, rest = rest.partition("_")
        return _meaning(op, Sketch.of(rest))
    raise AttributeError(name)


@functools.cache
def _theory(s: Sketch) -> Any:
    high = s.high - 1 if s.mistake == "values" else s.high
    return type("Theory", (IntegerTheory,), {"limits": {"n": (s.low, high)}})


@functools.cache
def _meaning(op: str, s: Sketch) -> Callable[..., Any]:
    def fitted(v: Any) -> Any:
        if s.form == "clip":
            return smt.If(v > s.high, s.high, smt.If(v < s.low, s.low, v))
        size = s.high - s.low + 1
        # of one sum, which leaves the range once at most
        return smt.If(v > s.high, v - size, smt.If(v < s.low, v + size, v))

    def solve(w: Any, d: Any, a: Any, *more: Any) -> Any:
        b = more[0].value if more else None
        if s.mistake == "unknowns" and op == s.wrong and smt.simplify(a.value).head != "value":
            return strict(a.value, a, *more)  # right of numbers alone
        made: dict[str, Callable[[], Any]] = {
            "Add": lambda: fitted(a.value + b),
            "Sub": lambda: fitted(a.value - b),
            "Max": lambda: smt.If(a.value > b, a.value, b),
            "Min": lambda: smt.If(a.value < b, a.value, b),
            "Neg": lambda: fitted(-a.value),
        }
        return strict(made[op](), a, *more)

    return solve
