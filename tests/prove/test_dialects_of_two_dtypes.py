"""Dialects of two dtypes: each dtype is verified by itself, and ops mean what they evaluate to, not what they are called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from two_sizes import BIG, OPS, OTHERS, SM, Term, TwoSizes, dialect, term

from morok.dialect import NOT_CONST, OperandInfo, OpInfo, verify
from morok.dsl.check import check_text
from morok.errors import HelperContractError
from morok.prove.api import prove
from morok.prove.sources import op_digest
from morok.rewrite.asserted_contracts import check_call
from morok.rewrite.ruleset import RuleSet

X, Y = ("var", BIG, "x"), ("var", BIG, "y")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.long
def test_the_sound_dialect_has_no_mistakes() -> None:
    assert verify(dialect()) == verify(dialect(ops={**OPS, **OTHERS})) == []


@pytest.mark.parametrize(
    ("promised", "broken", "made", "given"),
    [
        ("q == x", "x == 0 or q == y", ("Where", X, Y, ("const", BIG, 1)), (X, Y)),
        ("q == x", "q == min(x, 100)", ("First", ("const", BIG, 500), ("const", SM, 0)), (("const", BIG, 500), Y)),
    ],
)
def test_contracts_are_tested_by_what_ops_of_the_dialect_mean(
    promised: str, broken: str, made: Term, given: tuple[Term, ...]
) -> None:
    """An op called Where has its condition last, and an evaluator is given the dtype of its leading operand."""
    d = dialect(ops={**OPS, **OTHERS})
    head = f'dialect {d.name}\nhelpers "two_sizes"\n\nextern chosen(x: big, y: big) -> (q: big)\n    ensures '
    group = '\n\ngroup g "g"\n\nr: Mul(x: big, y: big) let q = chosen(x, y) => Mul(x, q)\n'
    sound, unsound = (
        next(check_text(head + promise + group).rules()).externs["chosen"] for promise in (promised, broken)
    )
    result = term(d, *made)
    check_call(sound, d, given, result)
    with pytest.raises(HelperContractError, match="breaks what it ensures"):
        check_call(unsound, d, given, result)


def rewritten(d: Any, rule: str, node: Term) -> bool:
    rules = RuleSet.of(list(check_text(f'dialect {d.name}\n\ngroup g "g"\n\nr: {rule}\n').rules()), unproved=True)
    return rules.rewrite_node(node) is not None


class Wrapping(int):
    """A number of another class, as those of numpy: sums of it wrap at 128."""

    def __add__(self, other: int) -> Wrapping:
        return Wrapping((int(self) + int(other) + 128) % 256 - 128)


def wrapping(evaluate: Any) -> OpInfo:
    return replace(OPS["Add"], evaluate=lambda d, a, b: Wrapping(evaluate(d, a, b)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("state", "field"),
    [
        ({"const_value": lambda self, n: Wrapping(n[2]) if n[0] == "const" else NOT_CONST}, "const_value"),
        ({"ops": {**OPS, "Add": wrapping(OPS["Add"].evaluate)}}, "evaluate"),
        ({"facts": {"vmin": lambda n: 0, "vmax": lambda n: Wrapping(n[1][1])}}, "facts['vmax']"),
        ({"facts": {"rank": lambda n: Wrapping(2)}}, "facts['rank']"),
    ],
)
def test_numbers_that_may_wrap_are_a_mistake(state: dict[str, Any], field: str) -> None:
    """Proofs are about whole numbers: `a + b <= 100` holds of 100 and 90 where these are bytes."""
    found = verify(dialect(**state))
    assert {e.field for e in found} == {field}
    assert all("of class Wrapping" in str(e) for e in found)


def test_constants_that_are_no_numbers_of_python_s_own_are_not_matched() -> None:
    """Nodes come from elsewhere than from `const`, which verification tries."""
    d = dialect()
    for value, fires in ((0, True), (Wrapping(90), False)):
        assert (
            rewritten(d, "Add(x: big, @const(a)) if a + 100 <= 100 ~> x", term(d, "Add", X, ("const", BIG, value)))
            == fires
        )


def looking_through(self: Any, n: Term) -> Any:
    """A value for products of constants too, and a wrong one."""
    known = [o[2] for o in n[2:] if o[0] == "const"] if n[0] == "Mul" else []
    return n[2] if n[0] == "const" else min(n[1][1], known[0] * known[1] + 1) if len(known) == 2 else NOT_CONST


NOTES: dict[str, dict[Any, Any]] = {}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("state", "field"),
    [
        ({"same": lambda self, a, b: a == b or (a[0] == b[0] == "const" and a[2] == b[2])}, "same"),
        ({"const_value": looking_through}, "const_value"),
        ({"recall": lambda self, n: NOTES.setdefault(n[0], {})}, "recall"),
        (
            {"recall": lambda self, n: NOTES.setdefault("Mul", {}) if n[0] == "Mul" else NOTES.setdefault(str(n), {})},
            "recall",
        ),
        ({"recall": lambda self, n: {}}, "recall"),
    ],
)
def test_methods_that_are_asked_about_nodes_of_every_op(state: dict[str, Any], field: str) -> None:
    """Their mistakes are no single op's: rules over others meet such nodes."""
    assert {(e.op, e.field) for e in verify(dialect(**state))} == {("", field)}


@pytest.mark.long
def test_a_dialect_may_remember_what_it_likes_of_each_node() -> None:
    assert verify(dialect(recall=lambda self, n: NOTES.setdefault(str(n), {}))) == []


@pytest.mark.parametrize("closed", [False, True])
def test_a_variable_that_stands_twice_is_of_one_dtype(closed: bool) -> None:
    """Whatever the dialect takes for the same."""
    d = dialect(same=lambda self, a, b: a[0] == b[0] and a[2:] == b[2:], closed_types=closed)
    rule, widths = "Add(Width(x), Width(x)) ~> Width(x)", [term(d, "Width", ("const", kind, 3)) for kind in (SM, BIG)]
    assert rewritten(d, rule, term(d, "Add", widths[0], widths[0]))
    assert not rewritten(d, rule, term(d, "Add", *widths))


def test_dtypes_are_compared_by_equality_where_nodes_are_by_identity() -> None:
    d = dialect(hash_consed=True)
    equal = ("u", int("100"))
    assert equal == SM
    assert equal is not SM
    for rule, fires in (("Flip(k @const(a)) if dtype(k) != sm ~> k", False), ("Flip(x: sm) ~> x", True)):
        assert rewritten(d, rule, term(d, "Flip", ("const", equal, 7))) == fires


@pytest.mark.long
@pytest.mark.parametrize(
    ("written", "verdict"),
    [("Add(x, zero(x))", "broken"), ("Add(x, const(0, big))", "broken"), ("Mul(x, one(x))", "proved")],
)
def test_numbers_that_a_rule_writes_as_zero_or_const(written: str, verdict: str) -> None:
    """The solver's 0 is no value of a dtype that begins with 1: the dialect's is 1."""
    ops = {name: OPS[name] for name in ("Add", "Mul")}
    d = dialect(
        ops=ops, theory="two_sizes:Positive", const=lambda self, kind, v: ("const", kind, max(1, min(kind[1], int(v))))
    )
    assert verify(d) == []
    rule = f"r: Add(x: big, y) ~> Add({written}, y)"
    (found,) = prove(list(check_text(f'dialect {d.name}\n\ngroup g "g"\n\n{rule}\n').rules()), jobs=1, contracts=False)
    assert found.verdict == verdict
    assert verdict == "proved" or "of the number 0 that the rule writes it makes 1 at big" in found.message


@pytest.mark.long
def test_a_theory_that_makes_other_constants_of_numbers_beyond_a_dtype() -> None:
    found = verify(dialect(theory="two_sizes:Generous"))
    assert {e.field for e in found} == {"theory"}
    assert all("`constant_of` makes another value of the number" in str(e) for e in found)


INDICES: dict[str, Any] = {"fields": ("indices",), "field_kinds": {"indices": "ints"}}
TAKE = OpInfo("Take", "Take", (OperandInfo("vector"),), types="result ~ vector", role="take", **INDICES)
JOIN = OpInfo("Join", "Join", (OperandInfo("parts", many=True),), types="result ~ parts", role="join")


def lanes_of(self: Any, n: Term) -> tuple[Term, ...]:
    if n[0] in ("const", "var"):
        return (n,)
    if n[0] == "Take":
        return tuple([lanes_of(self, n[2])[i] for i in n[3]])
    given = [lanes_of(self, part) for part in n[2:]]
    if n[0] == "Join":
        return tuple([lane for lanes in given for lane in lanes])
    return tuple([(*n[:2], *lanes) for lanes in zip(*given, strict=True)])


def turned(self: Any, n: Term) -> tuple[Term, ...]:
    return lanes_of(self, n)[::-1]


VECTORS: dict[str, Any] = {
    "ops": {**OPS, "Take": TAKE, "Join": JOIN},
    "operands": lambda self, n: () if n[0] in ("const", "var") else n[2:3] if n[0] == "Take" else n[2:],
    "attr": lambda self, n, name: n[3],
    "build": lambda self, op, o, attrs, dtype: (
        (op, o[0][1], *o, *attrs.values()) if attrs else TwoSizes.build(self, op, o, attrs, dtype)
    ),
    "rebuild": lambda self, n, o: (*n[:2], *o, *n[3:]) if n[0] == "Take" else (*n[:2], *o),
    "lanes_of": lanes_of,
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({}, set()),
        ({"lanes_of": None}, {("Take", "role"), ("Join", "role")}),
        ({"lanes_of": turned}, {("Take", "role"), ("Join", "role")}),
        ({"ops": {**OPS, "Take": TAKE, "Join": replace(JOIN, role="open")}}, {("Join", "role")}),
        ({"ops": {**OPS, "Take": replace(TAKE, role="constants"), "Join": JOIN}}, {("Take", "role")}),
        ({"attr": lambda self, n, name: n[3][::-1]}, {("Take", "attr")}),
        ({"rebuild": lambda self, n, o: (*n[:2], *o, (0,)) if n[0] == "Take" else (*n[:2], *o)}, {("Take", "role")}),
    ],
)
def test_roles_are_tried_on_the_lanes_of_nodes(state: dict[str, Any], found: set[tuple[str, str]]) -> None:
    assert {(e.op, e.field) for e in verify(dialect(**{**VECTORS, **state}))} == found


def test_a_role_counts_for_the_digests_of_rules_over_the_op() -> None:
    d = dialect(**VECTORS)
    assert op_digest(TAKE, d) != op_digest(replace(TAKE, role="join"), d)
