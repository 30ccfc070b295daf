"""What `OpInfo.types` and `OpInfo.field_kinds` say of ops that do not work lane by lane, in dialects that nobody here knows."""

from __future__ import annotations

from typing import Any

import pytest

from morok import dialect
from morok.dialect import OperandInfo, OpInfo
from morok.dsl.check import check_text
from morok.errors import MorokError, RuleError, UsageError

X, Y = OperandInfo("x"), OperandInfo("y")
ARITHMETIC: dict[str, Any] = {
    "params": ("T", "T"),
    "result": "T",
    "domains": {"T": ("whole", "real")},
    "kind": "binary",
}


def pick(types: str, **more: Any) -> OpInfo:
    return OpInfo(
        "Pick", "pick", (X, Y), ("at", "order"), types=types, field_kinds={"at": "int", "order": "ints?"}, **more
    )


class Small:
    """Numbers, whole and real, a sum of two, and an op whose typing each test says."""

    name = "small"
    dtypes = {"whole": "whole", "real": "real", "void": "void"}
    classes = {"any": frozenset({"whole", "real"}), "int": frozenset({"whole"})}
    inline: dict[str, str] = {}
    facts: dict[str, Any] = {}
    theory = ""
    names: dict[str, Any] = {}

    def __init__(self, op: OpInfo) -> None:
        self.ops = {"Add": OpInfo("Add", "add", (X, Y), **ARITHMETIC), "Pick": op}

    def __getattr__(self, name: str) -> Any:
        return lambda *a: None


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "_registry", dict(dialect._registry))


def instances(op: OpInfo, rule: str) -> list[dict[str, str]]:
    """The choices of dtypes at which a rule over `op` is checked."""
    dialect.register(Small(op))
    (found,) = check_text(f'dialect small\n\ngroup g "a group"\n\nr: {rule}\n').rules()
    return [dict(i.dtypes) for i in found.instances]


def test_a_result_of_its_operands_type_follows_it() -> None:
    rule = "Pick { x: Add(a: whole, b), y: c, at: i, .. } ~> Pick { x: Add(b, a), y: c, at: i }"
    assert instances(pick("result = x"), rule)
    with pytest.raises(RuleError, match="real"):
        instances(pick("result = x"), "Add(Pick { x: _a: whole, y: _b, at: _i, .. }, r: real) ~> r")
    assert instances(pick("result in any"), "Add(Pick { x: _a: whole, y: _b, at: _i, .. }, r: real) ~> r")


def test_elements_are_of_the_dtypes_and_classes_that_are_named() -> None:
    assert instances(pick("y in int; result ~ x"), "Pick { x: a: real, y: _b: whole, at: _i, .. } ~> a")
    with pytest.raises(RuleError, match="whole"):
        instances(pick("y in int; result ~ x"), "Pick { x: a: real, y: _b: real, at: _i, .. } ~> a")


def test_fields_with_a_question_mark_may_be_left_out_and_others_not() -> None:
    dialect.register(Small(pick("result = x")))
    with pytest.raises(RuleError, match="at"):
        check_text('dialect small\n\ngroup g "a group"\n\nr: Pick { x: a: whole, y: _b } ~> a\n').rules()


@pytest.mark.parametrize(
    "types", ["result is x", "result = z", "q in int", "x", "x scalar y", "x in", "x = y z", "= x"]
)
def test_words_that_say_nothing_are_an_error_that_names_the_op(types: str) -> None:
    with pytest.raises(UsageError, match=r"op Pick .*"):
        instances(pick(types), "Pick { x: a: whole, y: _b, at: _i, .. } ~> a")


@pytest.mark.parametrize("kinds", [{"nowhere": "int"}, {"at": "number"}, {"at": "int??"}])
def test_kinds_of_no_field_and_of_no_meaning_are_refused(kinds: dict[str, str]) -> None:
    with pytest.raises(MorokError, match="Pick"):
        OpInfo("Pick", "pick", (X, Y), ("at",), field_kinds=kinds)


def test_a_condition_governs_all_lanes_of_the_others() -> None:
    """A scalar condition of a vector choice is well-typed, since the op says that its operand is a condition."""
    where = check_text('group g "a group"\n\nr: Where(c: bool x 1, a: i32 x 4, _b) ~> Where(c, a, a)\n').rules()
    assert next(iter(where)).instances
