"""The gate: what nothing vouches for becomes no matcher, and what is unproved by its maker's word enters no pipeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import morok
from morok import UOp, dialect, dtypes
from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.errors import DialectError, UnprovedRuleError, UntrustedHelperError, UsageError
from morok.ir.morok_dialect import MOROK
from morok.ir.op import Op
from morok.marks import trust
from morok.passes.pipeline import lower
from morok.passes.target import Target
from morok.rewrite import matchers
from morok.rewrite.engine import graph_rewrite
from morok.rewrite.files import RuleFile
from morok.rewrite.matchers import tried
from morok.rewrite.peephole import line_rewrite
from morok.rewrite.ruleset import RuleSet

TRUE = 'group double "doubling"\n\nshift: Add(x: i32, x) ~> Shl(x, 1)\n'
FALSE = 'group wrong "false"\n\nhalf: Add(x: i32, x) ~> Shl(x, 2)\n'
X = UOp.var("x", dtypes.i32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    with morok.settings(cache_dir=tmp_path / "cache"):
        yield tmp_path / "cache"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "wrong.rules"
    file.write_text(FALSE)
    return file


def rules_of(text: str) -> list[CheckedRule]:
    return list(check_text(text).rules())


WAYS: list[Callable[[RuleSet], Any]] = [
    lambda rules: rules.matcher,
    lambda rules: rules.code,
    lambda rules: rules.tried(X + X),
    lambda rules: tried(rules, X + X),
    lambda rules: rules.rewrite_node(X + X),
    lambda rules: rules["wrong.half"].apply(X + X),
    lambda rules: rules["wrong.half"].code,
    lambda rules: morok.rewrite(X + X, rules),
    lambda rules: graph_rewrite(X + X, rules),
    lambda rules: graph_rewrite(X + X, rules, bottom_up=True),
    lambda rules: graph_rewrite(X + X, boolean(), before=rules),
    lambda rules: line_rewrite([X, X + X], rules),
    lambda rules: morok.append_rules(4, rules).__enter__(),
    lambda rules: lower(UOp.sink(X + X), Target("LLVM", pre_matcher=(rules,))),
]


def boolean() -> RuleSet:
    from morok.rewrite.library import group

    return group("boolean")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("made", ["of rules", "of a file", "behind proved ones", "as a block", "as its whole"])
def test_no_way_leads_past_the_gate(way: int, made: str, file: Path) -> None:
    some = RuleSet.of(list(check_file(file).rules()))
    if made == "of a file":
        some = RuleSet(RuleFile(file, file.read_bytes(), "").parts())
    elif made == "behind proved ones":
        some = boolean() + some
    elif made == "as a block":
        some = RuleSet(some.parts, (some,))
    elif made == "as its whole":
        some = RuleSet(some.parts, (), some)
    with pytest.raises(UnprovedRuleError, match=r"wrong\.half"):
        WAYS[way](some)


def test_what_the_ledger_vouches_for_passes_however_it_is_put_together(tmp_path: Path) -> None:
    file = tmp_path / "mine.rules"
    file.write_text(TRUE)
    rules = list(check_file(file).rules())
    with pytest.raises(UnprovedRuleError):
        RuleSet.of(rules).rewrite_node(X + X)
    morok.prove(file, remember=True)
    assert RuleSet.of(rules).rewrite_node(X + X) == (X << 1, "double.shift")
    assert morok.rewrite(X + X, RuleSet.of(rules) + boolean()) is X << 1
    assert RuleSet(RuleFile(file, TRUE.encode(), "mine").parts()).rewrite_node(X + X) == (X << 1, "mine.double.shift")


def test_a_pack_that_its_own_ledger_vouches_for_fires_rule_by_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.rules"
    file.write_text(TRUE)
    morok.prove(file, write=True)
    with morok.settings(cache_dir=tmp_path / "another machine"):
        rules = morok.load_rules(file, prove=False, trust_ledger=True)
        assert rules["double.shift"].apply(X + X) is X << 1
        assert (rules + boolean())["double.shift"].apply(X + X) is X << 1


def test_unproved_rules_fire_where_their_maker_says_so_and_enter_no_pipeline(cache: Path) -> None:
    rules = RuleSet.of(rules_of(FALSE), unproved=True)
    assert rules["wrong.half"].apply(X + X) is X << 2
    assert rules.matcher.unproved
    assert (boolean() + rules).matcher.unproved
    assert not boolean().matcher.unproved
    inside = (RuleSet(boolean().parts, (rules,)), RuleSet(boolean().parts, (), rules))
    for some in inside:
        with pytest.raises(UnprovedRuleError, match=r"wrong\.half .* unproved=True"):
            morok.rewrite(X + X, some)
    for some in (rules, boolean() + rules, rules + boolean()):
        assert some.rewrite_node(X + X) == (X << 2, "wrong.half")
        for way in (morok.rewrite, lambda graph, rules: morok.append_rules(4, rules).__enter__()):
            with pytest.raises(UnprovedRuleError, match="unproved=True") as refused:
                way(X + X, some)
            assert "load_rules" in refused.value.hint
        with pytest.raises(UnprovedRuleError, match="unproved=True"):
            lower(UOp.sink(X + X), Target("LLVM", extra_matcher=(some,)))


def test_what_unproved_rules_made_is_not_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the matcher on disk nor what became of a node; of proved rules both are."""
    kept: list[str] = []
    monkeypatch.setattr(matchers, "_save", lambda key, made: kept.append(key))
    unproved = RuleSet.of(rules_of(FALSE), unproved=True)
    file = tmp_path / "mine.rules"
    file.write_text(TRUE)
    node = X + X
    for rules, found, remembered in (
        (unproved, X << 2, False),
        (boolean() + unproved, X << 2, False),
        (morok.load_rules(file), X << 1, True),
    ):
        kept.clear()
        before = dict(node.memo)
        assert graph_rewrite(node, rules) is found
        assert bool(kept) == remembered
        assert (node.memo != before) == remembered


def test_the_word_is_a_switch() -> None:
    with pytest.raises(UsageError, match="unproved"):
        RuleSet.of(rules_of(TRUE), unproved="yes")  # type: ignore[arg-type]


HELPERS = """\
from morok import helper

@helper
def seven(x: int) -> int:
    return 7
"""
CALLS = """\
helpers "gate_helpers"
extern seven(x: const) -> (q: const)
    ensures q == x
group calls "a contract that is not kept"
same: Add(@const(x): index, y) let q = seven(x) ~> Add(const(q, index), y)
"""


def test_contracts_are_tested_before_a_rule_fires_in_a_set_of_a_trusted_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gate_helpers.py").write_text(HELPERS)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "calls.rules"
    file.write_text(CALLS)
    rules = list(check_file(file).rules())
    morok.prove(file, remember=True)
    node = UOp.const(3, dtypes.index) + UOp.var("y", dtypes.index)
    with pytest.raises(UntrustedHelperError):
        RuleSet.of(rules).rewrite_node(node)
    trust("gate_helpers")
    with pytest.raises(UnprovedRuleError, match="contract that is not true"):
        RuleSet.of(rules).rewrite_node(node)


def test_no_other_dialect_takes_the_name_of_the_built_in_one() -> None:
    """The built-in rules would fire over its ops, though they were proved of others."""

    class Mine(type(MOROK)):  # type: ignore[misc]
        ops = {**MOROK.ops, "Add": dataclasses.replace(MOROK.ops["Add"], evaluate=lambda d, a, b: a - b)}

    with pytest.raises(DialectError, match="Mine is called 'morok', as the built-in dialect is") as refused:
        dialect.register(Mine())
    assert refused.value.field == "name"
    assert dialect.find("morok") is MOROK
    five, three = UOp.const(5, dtypes.i32), UOp.const(3, dtypes.i32)
    assert morok.simplify(UOp.new(Op.Add, (five, three))) is UOp.const(8, dtypes.i32)
