"""The reference texts' rules: each is accounted for, by rules that exist, and the page says so."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from morok.errors import LedgerError
from morok.rewrite.library import catalogue, proofs_dir, rules_dir
from morok.tools.catalogue import PAGE, SOURCE, entries, page, verdicts
from morok.tools.cli import main

OPEN = 0  # entries not yet decided; the number only falls


def known() -> dict[str, str]:
    return {rule.name: rule.verdict for rule in catalogue()}


def test_every_rule_of_the_texts_is_there() -> None:
    ids = [e.id for e in entries(rules_dir())]
    assert len(set(ids)) == len(ids) == 252


def test_every_rule_of_the_texts_is_decided() -> None:
    undecided = [e.id for e in entries(rules_dir()) if e.decision == "open"]
    assert len(undecided) <= OPEN, undecided


def test_what_is_named_exists_and_is_proved() -> None:
    found = known()
    for entry in entries(rules_dir()):
        assert set(verdicts(entry, found)) <= {"proved", "bounded", "approximate", "defined"}, entry.id
        if entry.code:
            module, _, name = entry.code.partition(":")
            assert callable(getattr(importlib.import_module(module), name)), entry.id


def test_what_is_not_as_it_stands_has_a_reason() -> None:
    for entry in entries(rules_dir()):
        assert (entry.decision in ("stated", "open")) == (not entry.reason), entry.id
        assert entry.decision not in ("rejected", "open") or not entry.rules, entry.id


def test_the_page_is_made_of_the_rules() -> None:
    assert (proofs_dir() / PAGE).read_text(encoding="utf-8") == page(rules_dir(), known()), "run `morok prove --write`"


@pytest.mark.parametrize(
    "row",
    [
        '{ rules = "a.b" }',
        '{ text = "x ~> x" }',
        '{ text = "x", open = true, rejected = "no" }',
        '{ text = "x", rule = "a.b" }',
        "{",
    ],
)
def test_an_entry_that_says_nothing_is_an_error(row: str, tmp_path: Path) -> None:
    (tmp_path / SOURCE).write_text(f'["group"]\n"id" = {row}\n')
    with pytest.raises(LedgerError):
        entries(tmp_path)


def test_a_rule_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    (tmp_path / SOURCE).write_text('["group"]\n"id" = { text = "x ~> x", rules = "a.b" }\n')
    with pytest.raises(LedgerError, match=r"a\.b"):
        page(tmp_path, {"a.bc": "proved"})
    assert "proved, bounded" in page(tmp_path, {"a.b.Add": "proved", "a.b.Mul": "bounded", "a.bc": "unknown"})


def test_proving_in_part_leaves_the_page(tmp_path: Path) -> None:
    before = (proofs_dir() / PAGE).stat().st_mtime_ns
    file = tmp_path / "my.rules"
    file.write_text('group good "true"\n\nback: Neg(Neg(x: i32)) ~> x\n')
    assert main(["prove", "--write", str(file)]) == 0
    assert (proofs_dir() / PAGE).stat().st_mtime_ns == before
