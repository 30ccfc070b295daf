"""A rule fires at the types it is proved at: nodes of others are left alone, unless the dialect says that there are none."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from morok.dialect import NOT_CONST, OperandInfo, OpInfo, register
from morok.dsl.check import check_text
from morok.ir.dtype import dtypes
from morok.ir.morok_dialect import MOROK
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.dialect_encodings import worlds
from morok.prove.dialect_meanings import theory_of
from morok.prove.dialect_nodes import OpNodes
from morok.prove.dialect_values import candidates
from morok.rewrite.engine import graph_rewrite
from morok.rewrite.ruleset import RuleSet

Term = tuple[Any, ...]


def _op(name: str, arity: int = 2, **more: Any) -> OpInfo:
    operands = tuple(OperandInfo(n) for n in "xyz"[:arity])
    given = {"params": ("T",) * arity, "result": "T", "domains": {"T": ("i1", "i8")}, "commutative": arity == 2}
    return OpInfo(name=name, key=name.lower(), operands=operands, **{**given, **more})


class Typed:
    """Nodes say their type: (op, type, operand..), ("const", type, value), ("var", type, name)."""

    name = "typed"
    ops: Mapping[str, OpInfo] = {
        "Add": _op("Add", evaluate=lambda d, a, b: a + b),
        "Xor": _op("Xor", domains={"T": ("i1",)}),
        "Not": _op("Not", 1, domains={"T": ("i1",)}),
        "Lt": _op("Lt", result="i1", commutative=False),
    }
    dtypes: Mapping[str, Hashable] = {"i1": "i1", "i8": "i8"}
    classes: Mapping[str, frozenset[str]] = {"any": frozenset({"i1", "i8"}), "int": frozenset({"i1", "i8"})}
    inline: Mapping[str, str] = {}
    facts: Mapping[str, Callable[..., Any]] = {}
    theory = ""

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

    def const(self, dtype: Hashable, value: Any) -> Term:
        return ("const", dtype, value)

    def build(self, op: str, operands: Sequence[Term], attrs: Mapping[str, Any], dtype: Hashable | None) -> Term:
        return (op.lower(), "i1" if op == "Lt" else operands[0][1], *operands)

    def rebuild(self, node: Term, operands: Sequence[Term]) -> Term:
        return (*node[:2], *operands)


class Closed(Typed):
    name = "typed_closed"
    closed_types = True


register(Typed())
register(Closed())

RULES = """dialect {dialect}

group g "g"

add_self: Add(x: i1, x) ~> zero(x)
add_zero: Add[x, @zero] ~> x
xor_self: Xor(x, x) ~> zero(x)
not_not: Not(Not(x)) ~> x
lt_self: Lt(x, x) ~> const(0, i1)
fold: Add(@const(a), @const(b)) let v = eval(Add, a, b) ~> v
    "constants"
"""


def rules(dialect: str = "typed") -> RuleSet:
    return RuleSet.of(list(check_text(RULES.format(dialect=dialect)).rules()), unproved=True)


def var(t: str) -> Term:
    return ("var", t, "x")


FIRE: list[tuple[Term, Term]] = [
    (("add", "i1", var("i1"), var("i1")), ("const", "i1", 0)),
    (("add", "i8", var("i8"), ("const", "i8", 0)), var("i8")),
    (("xor", "i1", var("i1"), var("i1")), ("const", "i1", 0)),
    (("not", "i1", ("not", "i1", var("i1"))), var("i1")),
    (("add", "i8", ("const", "i8", 1), ("const", "i8", 2)), ("const", "i8", 3)),
]
LEFT: list[Term] = [
    ("add", "i8", var("i8"), var("i8")),  # listed, and not what the rule says
    ("add", "i32", var("i32"), var("i32")),  # what the dialect does not list
    ("add", "i7", var("i7"), ("const", "i7", 0)),
    ("xor", "i8", var("i8"), var("i8")),  # an op at a type that it does not list
    ("xor", "i7", var("i7"), var("i7")),
    ("not", "i7", ("not", "i7", var("i7"))),
    ("not", "i1", ("not", "i1", var("i7"))),  # an operand of another type than the op has
    ("add", "i1", var("i7"), var("i7")),
    ("add", "i7", ("const", "i7", 1), ("const", "i7", 2)),
    ("add", "i8", ("const", "i7", 1), ("const", "i8", 2)),
    ("add", "i8", ("const", "i1", 1), ("const", "i1", 2)),
    ("add", "i1", var("i1"), var("i1"), var("i1")),  # more operands than the op has, and fewer
    ("add", "i1", var("i1")),
    ("not", "i1"),
]


@pytest.mark.parametrize(("term", "result"), FIRE)
def test_a_rule_fires_at_its_types(term: Term, result: Term) -> None:
    assert graph_rewrite(term, rules()) == result


@pytest.mark.parametrize("term", LEFT)
def test_and_at_no_others(term: Term) -> None:
    assert graph_rewrite(term, rules()) == term


def test_where_types_are_closed_what_follows_from_ops_is_not_tested() -> None:
    assert graph_rewrite(("xor", "i7", var("i7"), var("i7")), rules("typed_closed")) == ("const", "i7", 0)
    assert graph_rewrite(("add", "i8", var("i8"), var("i8")), rules("typed_closed")) == (
        "add",
        "i8",
        var("i8"),
        var("i8"),
    )


def test_malformed_nodes_are_left_alone() -> None:
    """Whatever the tests are that rules share: none reads an operand that is not there."""
    text = """dialect typed

group h "h"

a: Add(Xor(x, y), Xor(x, z)) ~> x
b: Add(Xor(x, y), Not(y)) ~> x
c: Add(Not(x), Not(x)) ~> x
d: Add(Not(x), y: i1) ~> x
e: Add(@const(a), Xor(y, y)) ~> y
f: Xor(Add(x, y), Not { x: y }) ~> x
g: Xor { x: Add { x, .. }, .. } ~> x
"""
    made = RuleSet.of(list(check_text(text).rules()), unproved=True)
    leaves: list[Term] = [
        var("i1"),
        ("const", "i1", 0),
        ("xor", "i1", var("i1")),
        ("xor", "i1"),
        ("not", "i1"),
        ("add", "i1"),
    ]
    for op in ("add", "xor", "not"):
        for a in leaves:
            for operands in ((), (a,), (a, ("not", "i1")), (a, a, a)):
                term = (op, "i1", *operands)
                assert graph_rewrite(term, made) == term


@pytest.mark.long
def test_ops_list_all_dtypes_that_they_take() -> None:
    """Matchers of the built-in dialect leave out what follows from ops: none takes, or gives, what it does not list."""
    theory = theory_of(MOROK)
    made = {n: [worlds(theory, MOROK, "Add", [n])[0].world()] for n in MOROK.dtypes}
    values = {n: candidates(of[0], n, random.Random(n)) for n, of in made.items()}
    ops = [info for info in MOROK.ops.values() if info.params and not info.fields]
    assert [m for info in ops for m in OpNodes(MOROK, info, values, made).mistakes()] == []
    for name in ("Cast", "Where"):
        info = MOROK.ops[name]
        fewer = replace(info, domains={k: tuple(d for d in v if d != "f8e5m2") for k, v in info.domains.items()})
        assert [m.field for m in OpNodes(MOROK, fewer, values, made).mistakes()] == ["closed_types"]


def test_a_float_operand_is_none_of_8_bits() -> None:
    text = "r: Max(Cast(x: float, f64), y: f64) if bits(dtype(x)) < 16 or same(y, Cast(x, f64)) ~> y"
    made = RuleSet.of(list(check_text(f'group g "g"\n\n{text}\n').rules()), unproved=True)
    for d in (dtypes.f8e4m3, dtypes.f8e5m2):
        x, y = (
            UOp.new(Op.DefineGlobal, (), 0, d.ptr(4)).index(UOp.const(1)).load().cast(dtypes.f64),
            UOp.var("y", dtypes.f64),
        )
        assert made.rewrite_node(UOp.new(Op.Max, (x, y))) is None
