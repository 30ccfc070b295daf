"""A dialect that has nothing of Morok's IR: terms are lists, which cannot even be hashed; numbers are exact."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import pytest

from morok.dialect import NOT_CONST, OperandInfo, OpInfo, register
from morok.dsl.check import check_text
from morok.errors import RewriteLimitError
from morok.rewrite.engine import Limits, graph_rewrite
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.trace import Trace

Term = list[Any]


def _op(name: str, arity: int, evaluate: Callable[..., int]) -> OpInfo:
    return OpInfo(
        name=name,
        key=name.lower(),
        operands=tuple(OperandInfo(n) for n in "xyz"[:arity]),
        params=("T",) * arity,
        result="T",
        domains={"T": ("num",)},
        kind={1: "unary", 2: "binary"}[arity],
        commutative=name in ("Plus", "Times"),
        evaluate=evaluate,
    )


class Lists:
    """["plus", a, b], ["minus", a], ["const", 3], ["var", "x"]"""

    name = "lists"
    ops: Mapping[str, OpInfo] = {
        "Plus": _op("Plus", 2, lambda d, a, b: a + b),
        "Times": _op("Times", 2, lambda d, a, b: a * b),
        "Minus": _op("Minus", 1, lambda d, a: -a),
    }
    dtypes: Mapping[str, Hashable] = {"num": "num"}
    classes: Mapping[str, frozenset[str]] = {"any": frozenset({"num"}), "int": frozenset({"num"})}
    inline: Mapping[str, str] = {}
    facts: Mapping[str, Callable[..., Any]] = {}
    theory = ""

    def opkey(self, node: Term) -> Hashable:
        return node[0]

    def operands(self, node: Term) -> Sequence[Term]:
        return [] if node[0] in ("const", "var") else node[1:]

    def attr(self, node: Term, name: str) -> Any:
        raise AttributeError(name)

    def type(self, node: Term) -> Hashable:
        return "num"

    def same(self, a: Term, b: Term) -> bool:
        return a == b

    def const_value(self, node: Term) -> Any:
        return node[1] if node[0] == "const" else NOT_CONST

    def const(self, dtype: Hashable, value: Any) -> Term:
        return ["const", value]

    def build(self, op: str, operands: Sequence[Term], attrs: Mapping[str, Any], dtype: Hashable | None) -> Term:
        return [op.lower(), *operands]

    def rebuild(self, node: Term, operands: Sequence[Term]) -> Term:
        return [node[0], *operands]


register(Lists())
X: Term = ["var", "x"]
RULES = """dialect lists

group simple "simple"

plus_zero: Plus[x, 0] ~> x
fold: Plus(@const(a), @const(b)) let v = eval(Plus, a, b) ~> v
    "constants"
double: Plus(x, x) ~> Times(x, 2)
minus_minus: Minus(Minus(x)) ~> x
collect: Plus[Times[x, @const(a)], Times[x, @const(b)]] if a != b ~> Times(x, a + b)
    "like terms"
"""


def rules(text: str = RULES) -> RuleSet:
    return RuleSet.of(list(check_text(text).rules()), unproved=True)


def test_terms_are_rewritten_to_a_fixpoint():
    term = ["plus", ["plus", X, ["const", 0]], ["plus", ["const", 3], ["const", -3]]]
    assert graph_rewrite(term, rules()) == X


def test_the_same_is_what_the_dialect_says():
    assert graph_rewrite(["plus", ["var", "x"], ["var", "x"]], rules()) == ["times", X, ["const", 2]]


def test_orders_guards_and_constants():
    term = ["plus", ["times", ["const", 3], X], ["times", X, ["const", 4]]]
    assert graph_rewrite(term, rules()) == ["times", X, ["const", 7]]


def test_a_shared_term_is_rewritten_once():
    node = X
    for _ in range(20):
        inner = ["minus", ["minus", node]]
        node = ["times", inner, inner]
    trace = Trace()
    graph_rewrite(node, rules(), trace=trace)
    assert len(trace.firings) == 20


@pytest.mark.long
def test_a_deep_term():
    node = X
    for _ in range(20_000):
        node = ["minus", ["plus", node, ["const", 0]]]
    assert graph_rewrite(node, rules()) == X


def test_circles_meet_the_limit_and_are_named():
    turn = rules('dialect lists\n\ngroup t "t"\n\nturn: Plus(x, y) ~> Plus(y, x)\n')
    with pytest.raises(RewriteLimitError, match=r"t\.turn"):
        graph_rewrite(["plus", X, ["var", "y"]], turn, limits=Limits(per_node=50))


def test_bottom_up():
    assert graph_rewrite(["minus", ["minus", X]], rules(), bottom_up=True) == X


class NamedLists(Lists):
    """Templates whose names are, in the engine, something else."""

    name = "named_lists"
    inline: Mapping[str, str] = {"opkey": "frozen({n})", "operands": "kids({n})", "same": "plan({a}, {b})"}
    names: Mapping[str, Any] = {
        "frozen": lambda node: node[0],
        "kids": lambda node: [] if node[0] in ("const", "var") else node[1:],
        "plan": lambda a, b: a == b,
    }


register(NamedLists())


def test_templates_may_name_what_the_engine_has_another_use_for():
    named = rules(RULES.replace("dialect lists", "dialect named_lists"))
    term = [
        "plus",
        ["times", ["const", 3], ["plus", X, ["const", 0]]],
        ["minus", ["minus", ["times", X, ["const", 4]]]],
    ]
    assert graph_rewrite(term, named) == graph_rewrite(term, rules()) == ["times", X, ["const", 7]]
