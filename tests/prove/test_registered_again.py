"""A dialect that is another under its name: rules stay with the one that they were loaded for, as does what is kept of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import mistaken
import pytest

import morok
from morok.dialect import register
from morok.errors import DialectError, LedgerError, UnprovedRuleError, UsageError
from morok.prove.api import prove
from morok.rewrite import files
from morok.rewrite.library import load_rules
from morok.rewrite.ruleset import RuleSet

TWICE = "r: Neg(Neg(x)) ~> x"
# bounded: of greater numbers than the prover tries, 80 is the one at which it is false
TEMPLATE = """for op in binary [*] {
    s: op(x: sat, @const(c)) if c < 90 let d = where((1 << c) == (1 << 80), 1, 0) ~> op(x, c + d)
}"""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    with morok.settings(cache_dir=tmp_path / "cache"):
        yield tmp_path / "mine.rules"


def saying(file: Path, dialect: mistaken.Saturating, text: str) -> Path:
    file.write_text(f'dialect {dialect.name}\n\ngroup g "rules"\n\n{text}\n')
    return file


def again(first: mistaken.Saturating, second: mistaken.Saturating) -> mistaken.Saturating:
    """The second, registered under the first's name."""
    second.name = first.name
    register(second)
    return second


def wrong() -> mistaken.Saturating:
    """A dialect in which a number may differ from the negative of its negative."""
    return mistaken.with_op(mistaken.dialect(), "Neg", evaluate=lambda d, a: mistaken.clip(1 - a))


@pytest.mark.long
def test_a_template_is_expanded_over_the_ops_that_there_are(file: Path) -> None:
    few, more = mistaken.of_ops("Max"), mistaken.of_ops("Max", "Add")
    saying(file, few, TEMPLATE)
    assert load_rules(file).names == ("mine.g.s.Max",)
    again(few, more)
    rules = load_rules(file)
    assert set(rules.names) == {"mine.g.s.Max", "mine.g.s.Add"}
    assert {(v.name, v.verdict) for v in prove(file)} == {(name, "bounded") for name in rules.names}
    for op in ("max", "add"):
        assert rules.rewrite_node((op, ("var", "sat", "x"), ("const", "sat", 80))) is None
    register(few)
    assert load_rules(file).names == ("mine.g.s.Max",)


@pytest.mark.long
def test_rules_of_an_index_with_other_names_than_records_are_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saying(file, mistaken.of_ops("Max", "Add"), TEMPLATE)
    make = files.RuleFile._make_index

    def shortened(self: files.RuleFile) -> files.Index:
        index = make(self)
        return index._replace(groups=tuple(g._replace(rules=g.rules[:1]) for g in index.groups))

    monkeypatch.setattr(files.RuleFile, "_make_index", shortened)
    with pytest.raises(LedgerError, match="other names"):
        load_rules(file)


def test_rules_that_are_others_once_they_are_compiled_are_refused(file: Path) -> None:
    changing = mistaken.of_ops("Max")
    saying(file, changing, TEMPLATE)
    load_rules(file)
    rules = load_rules(file)  # nothing is parsed
    changing.ops = {**changing.ops, "Add": mistaken.ops()["Add"]}
    with pytest.raises(DialectError, match="load the rules again"):
        _ = rules.matcher


@pytest.mark.parametrize("alone", [False, True], ids=["set", "rule"])
@pytest.mark.parametrize("change", ["entry", "evaluator", "fact"])
def test_rules_do_not_fire_once_their_dialect_has_changed_in_place(file: Path, change: str, alone: bool) -> None:
    """A rule evaluates what it was proved for: a matcher made after a change would have what there is then."""
    made = mistaken.of_ops("Neg")
    rules = load_rules(saying(file, made, "f: Neg(@const(c)) ~> eval(Neg, c)"))
    node = ("neg", ("const", "sat", 5))
    rule = rules["mine.g.f"] if alone else None
    if change == "entry":
        mistaken.with_op(made, "Neg", evaluate=lambda d, a: a + 1)
    elif change == "evaluator":
        object.__setattr__(made.ops["Neg"], "evaluate", lambda d, a: a + 1)
    else:
        made.facts = {**made.facts, "vmax": lambda n: -100}
    with pytest.raises(DialectError, match=r"has changed since its rule .* was admitted"):
        _ = rules.rewrite_node(node) if rule is None else rule.apply(node)


def test_a_matcher_that_was_made_evaluates_what_was_proved(file: Path) -> None:
    made = mistaken.of_ops("Neg")
    rules = load_rules(saying(file, made, "f: Neg(@const(c)) ~> eval(Neg, c)"))
    node = ("neg", ("const", "sat", 5))
    before = rules.rewrite_node(node)
    mistaken.with_op(made, "Neg", evaluate=lambda d, a: a + 1)
    assert rules.rewrite_node(node) == before == (("const", "sat", -5), "mine.g.f")


@pytest.mark.long
@pytest.mark.parametrize(
    "joined", [RuleSet.__add__, lambda a, b: RuleSet.of([*a.rules, *b.rules])], ids=["sum", "list"]
)
def test_rules_of_two_dialects_of_one_name_are_not_put_together(
    file: Path, joined: Callable[[RuleSet, RuleSet], RuleSet]
) -> None:
    first = mistaken.dialect()
    old = load_rules(saying(file, first, TWICE))
    second = again(first, wrong())
    new = load_rules(saying(file.with_name("other.rules"), first, "z: Add[x, @zero] ~> x"))
    files.forget_syntax()
    assert old.dialect is old.rules[0].dialect is first
    assert new.dialect is new.rules[0].dialect is second
    with pytest.raises(UsageError, match="registered again"):
        joined(old, new)
    with pytest.raises(UnprovedRuleError):
        load_rules(file)


@pytest.mark.long
def test_rules_of_one_file_in_two_dialects_do_not_rewrite_alike(file: Path) -> None:
    first = mistaken.dialect()
    old = load_rules(saying(file, first, TWICE))
    again(first, mistaken.dialect())
    assert load_rules(file).identity != old.identity
    register(first)
    assert load_rules(file).identity == old.identity


@pytest.mark.long
def test_what_is_proved_of_one_dialect_is_not_remembered_of_the_next(file: Path) -> None:
    first, second = mistaken.dialect(), wrong()
    saying(file, first, TWICE)
    register(first)
    assert [v.verdict for v in prove(file, remember=True, done=lambda _: register(again(first, second)))] == ["proved"]
    with pytest.raises(UnprovedRuleError):
        load_rules(file)
