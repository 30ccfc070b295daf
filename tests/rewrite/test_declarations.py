"""What a dialect declares of its ops, and what matchers are asked for, is checked where it is said."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from morok.dialect import OperandInfo, OpInfo
from morok.errors import ConfigError, DialectError, UsageError
from morok.ir.morok_dialect import MOROK
from morok.rewrite.library import groups

X, Y = OperandInfo("x"), OperandInfo("y")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": 1},
        {"key": []},
        {"operands": "xy"},
        {"operands": (X, "y")},
        {"operands": None},
        {"fields": "axes"},
        {"fields": (1,)},
        {"params": 3},
        {"result": None},
        {"domains": ["T"]},
        {"domains": {"T": "f32"}},
        {"domains": {1: ("f32",)}},
        {"kind": "quaternary"},
        {"commutative": "yes"},
        {"comparison": None},
        {"evaluate": 1},
        {"solver": len},
        {"types": 3},
        {"field_kinds": {"axes": "ints"}},
        {"dtype_given": "maybe"},
    ],
)
def test_declarations_of_ops_that_cannot_be(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"name": "Add", "key": "add", "operands": (X, Y)}
    with pytest.raises(UsageError):
        OpInfo(**{**right, **wrong})


@pytest.mark.parametrize(
    "wrong",
    [{"name": None}, {"position": "anywhere"}, {"position": 1}, {"many": "no"}, {"optional": []}, {"holds": "gold"}],
)
def test_declarations_of_operands_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        OperandInfo(**{"name": "x", **wrong})


def test_declarations_are_values() -> None:
    """Lists become tuples, so that equal declarations are equal and have one hash."""
    listed: Any = [X, Y]
    one = OpInfo("Add", "add", listed, domains={"T": ["f32"]})  # type: ignore[dict-item]
    other = OpInfo("Add", "add", (X, Y), domains={"T": ("f32",)})
    assert one == other
    assert hash(one) == hash(other)
    assert {one: 1}[other] == 1


def test_declarations_are_read_only() -> None:
    """An op stays as it was when rules about it were proved."""
    info = OpInfo("Add", "add", (X, Y), fields=("k",), domains={"T": ("f32",)}, field_kinds={"k": "int"})
    changed: Any
    for changed in (info.domains, info.field_kinds):
        with pytest.raises(TypeError):
            changed["T"] = ("f32", "f64")
    assert copy.deepcopy(info) == pickle.loads(pickle.dumps(info)) == info


@pytest.mark.parametrize("part", ["ops", "dtypes", "classes", "inline", "names", "members", "facts"])
def test_the_built_in_dialect_is_read_only(part: str) -> None:
    held = getattr(MOROK, part)
    with pytest.raises(TypeError):
        held[next(iter(held))] = None
    with pytest.raises(DialectError, match=f"{part} of dialect morok cannot be replaced"):
        setattr(MOROK, part, {})


def test_a_matcher_under_liberties() -> None:
    rules = groups("identity_and_zero")
    flags: Any
    for flags in ({"contract"}, ["contract"], ("contract", "contract"), frozenset({"contract"})):
        assert rules.matcher_under(flags, False) is rules.matcher_under(frozenset({"contract"}), False)
    for flags in ("contract", frozenset({1}), frozenset({"speed"}), None, 3, [["contract"]]):
        with pytest.raises(ConfigError):
            rules.matcher_under(flags, False)
    checked: Any
    for checked in ("no", None, [], 2):
        with pytest.raises(UsageError):
            rules.matcher_under(frozenset(), checked)
