"""Morok's engine for somebody else's terms: plain nested tuples, with arithmetic that saturates.

A term is ("var", name), ("const", value) or (op, operand, operand). Nothing of Morok's own IR is loaded: a dialect says what the
ops are, how they are typed and evaluated, and what they mean to the solver.

Run it: python examples/foreign.py
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from morok.dialect import NOT_CONST, OperandInfo, OpInfo, register

LOW, HIGH = -100, 100
RULES = Path(__file__).with_suffix(".rules")
Term = tuple[Any, ...]


def clip(v: int) -> int:
    return max(LOW, min(HIGH, v))


def _op(name: str, evaluate: Callable[..., int]) -> OpInfo:
    operands = (OperandInfo("x"), OperandInfo("y"))
    return OpInfo(
        name=name,
        key=name.lower(),
        operands=operands,
        params=("T", "T"),
        result="T",
        domains={"T": ("sat",)},
        kind="binary",
        commutative=name in ("Add", "Max"),
        evaluate=evaluate,
        solver=f"{__name__ if __name__ != '__main__' else 'foreign'}:solve_{name.lower()}",
    )


class Saturating:
    """The dialect: one dtype, "sat", and three ops."""

    name = "saturating"
    ops: Mapping[str, OpInfo] = {
        "Add": _op("Add", lambda d, a, b: clip(a + b)),
        "Sub": _op("Sub", lambda d, a, b: clip(a - b)),
        "Max": _op("Max", lambda d, a, b: max(a, b)),
    }
    dtypes: Mapping[str, Hashable] = {"sat": "sat"}
    classes: Mapping[str, frozenset[str]] = {
        "any": frozenset({"sat"}),
        "int": frozenset({"sat"}),
        "number": frozenset({"sat"}),
    }
    inline: Mapping[str, str] = {}
    facts: Mapping[str, Callable[..., Any]] = {}
    theory = f"{__name__ if __name__ != '__main__' else 'foreign'}:Theory"

    def opkey(self, node: Term) -> Hashable:
        return node[0]

    def operands(self, node: Term) -> Sequence[Term]:
        return node[1:] if node[0] in ("add", "sub", "max") else ()

    def attr(self, node: Term, name: str) -> Any:
        raise AttributeError(name)

    def type(self, node: Term) -> Hashable:
        return "sat"

    def same(self, a: Term, b: Term) -> bool:
        return a == b

    def const_value(self, node: Term) -> Any:
        return node[1] if node[0] == "const" else NOT_CONST

    def const(self, dtype: Hashable, value: Any) -> Term:
        return ("const", clip(int(value)))

    def build(self, op: str, operands: Sequence[Term], attrs: Mapping[str, Any], dtype: Hashable | None) -> Term:
        return (op.lower(), *operands)

    def rebuild(self, node: Term, operands: Sequence[Term]) -> Term:
        return (node[0], *operands)


register(Saturating())


# What the prover alone uses: loaded with the solver, when something is proved.


def __getattr__(name: str) -> Any:
    if name == "Theory":
        from morok.prove.semantics.plain import IntegerTheory

        class Theory(IntegerTheory):
            limits = {"sat": (LOW, HIGH)}

        return Theory
    raise AttributeError(name)


def _clipped(w: Any, value: Any, *operands: Any) -> Any:
    import z3

    from morok.prove.semantics.term import strict

    return strict(z3.If(value > HIGH, HIGH, z3.If(value < LOW, LOW, value)), *operands)


def solve_add(w: Any, d: Any, a: Any, b: Any) -> Any:
    return _clipped(w, a.value + b.value, a, b)


def solve_sub(w: Any, d: Any, a: Any, b: Any) -> Any:
    return _clipped(w, a.value - b.value, a, b)


def solve_max(w: Any, d: Any, a: Any, b: Any) -> Any:
    import z3

    from morok.prove.semantics.term import strict

    return strict(z3.If(a.value > b.value, a.value, b.value), a, b)


def main() -> None:
    from morok.prove.api import prove
    from morok.rewrite.library import load_rules, rewrite

    for verdict in prove(RULES, jobs=1):
        print(f"{verdict.name:<24} {verdict.verdict}")
    rules = load_rules(RULES)
    x: Term = ("var", "x")
    term: Term = ("add", ("add", ("max", x, x), ("const", 30)), ("add", ("const", 0), ("const", 12)))
    print(f"{term}\n-> {rewrite(term, rules)}")


if __name__ == "__main__":
    main()
