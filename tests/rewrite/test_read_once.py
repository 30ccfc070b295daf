"""Rule files are read once: what is parsed, proved, recorded and compiled are the same bytes, whatever becomes of the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import morok
from morok import UOp, dtypes
from morok.dsl.check import check_file
from morok.dsl.lint import lint
from morok.errors import RuleError, RuleLimitError, UnprovedRuleError
from morok.prove import admission, api, ledger, workers
from morok.rewrite import folders

TRUE = 'group double "doubling"\n\nshift: Add(x: i32, x) ~> Shl(x, 1)\n'
FALSE = TRUE.replace("Shl(x, 1)", "Shl(x, 2)")
X = UOp.var("x", dtypes.i32)


@pytest.fixture
def pack(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "mine.rules"
    file.write_text(TRUE)
    with morok.settings(cache_dir=tmp_path / "cache"):
        yield file


def save_while_proving(monkeypatch: pytest.MonkeyPatch, save: Callable[[], Any]) -> None:
    """Let somebody save a file just before the solver is asked about it."""
    real = workers.prove_all

    def prove_all(*given: Any) -> Any:
        save()
        return real(*given)

    monkeypatch.setattr(workers, "prove_all", prove_all)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ledgered", [False, True])
def test_a_file_saved_while_it_is_proved_is_not_the_one_that_was_proved(
    pack: Path, monkeypatch: pytest.MonkeyPatch, ledgered: bool
) -> None:
    save_while_proving(monkeypatch, lambda: pack.write_text(FALSE))
    verdicts = morok.prove(pack, write=ledgered, remember=not ledgered)
    assert [v.verdict for v in verdicts] == ["proved"]
    assert ledger.unchanged(pack, FALSE.encode(), trust_ledger=True) is None
    assert ledger.unchanged(pack, TRUE.encode(), trust_ledger=ledgered) is not None
    with pytest.raises(UnprovedRuleError, match=r"mine\.double\.shift"):
        morok.load_rules(pack, prove=False, trust_ledger=True)


def test_a_pack_saved_while_it_is_loaded_fires_as_it_was_proved(pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_while_proving(monkeypatch, lambda: pack.write_text(FALSE))
    rules = morok.load_rules(pack)
    assert morok.rewrite(X + X, rules) is X << 1
    assert rules["double.shift"].apply(X + X) is X << 1
    with pytest.raises(UnprovedRuleError):
        morok.load_rules(pack)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("known", [False, True])
def test_a_pack_saved_between_loading_and_first_use_fires_as_it_was_loaded(pack: Path, known: bool) -> None:
    if known:
        morok.prove(pack, remember=True)
    rules = morok.load_rules(pack)
    pack.write_text(FALSE)
    assert morok.rewrite(X + X, rules) is X << 1
    pack.unlink()
    assert rules["double.shift"].apply(X + X) is X << 1
    pack.write_text(TRUE)
    again = morok.load_rules(pack, prove=False)
    assert morok.rewrite(X + X, again) is X << 1, "what was kept on disk is of the text that it was made of"


def test_a_link_repointed_between_loading_and_first_use(pack: Path, tmp_path: Path) -> None:
    false, link = tmp_path / "other" / "mine.rules", tmp_path / "link.rules"
    false.parent.mkdir()
    false.write_text(FALSE)
    link.symlink_to(pack)
    rules = morok.load_rules(link)
    link.unlink()
    link.symlink_to(false)
    assert morok.rewrite(X + X, rules) is X << 1
    with pytest.raises(UnprovedRuleError):
        morok.load_rules(link, prove=False)


def test_a_rule_proved_on_the_spot_vouches_for_no_other_rule_of_its_file(pack: Path) -> None:
    pack.write_text(TRUE + "wrong: Sub(x: i32, y) ~> Add(x, y)\n")
    true, _ = check_file(pack).rules()
    admission.records_of([true], prove=True)
    with pytest.raises(UnprovedRuleError, match=r"wrong"):
        morok.load_rules(pack, prove=False)


def test_findings_quote_the_text_that_was_checked(pack: Path) -> None:
    pack.write_text(TRUE + "self: Mul(x: i32, y) ~> Mul(x, y)\n")
    checked = check_file(pack)
    pack.write_text("\n\n\n# another\n")
    (found,) = lint(checked)
    assert "Mul(x, y)" in str(found)


def test_no_more_of_a_file_is_read_than_a_rule_file_may_have(pack: Path) -> None:
    with pack.open("wb") as file:
        file.truncate(1 << 40)
    for read in (check_file, morok.load_rules):
        with pytest.raises(RuleLimitError, match="more than"):
            read(pack)


@pytest.mark.long
def test_a_link_that_leads_to_a_built_in_file_by_now_makes_no_rule_of_a_pack_built_in(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The contracts of built-in helpers are tested in CI: as built-in files state them, and not as others do."""
    pack.write_text(
        'helpers "morok.ir.sums"\n\nextern scaled(x: index, c: const) -> (s: index)\n    ensures s == x * c + 1\n\n'
        'group g "one"\n\nr: Mul(x @ Add(_a: index, _b), @const(c)) let s = scaled(x, c) ~> Sub(s, 1)\n    "a false contract"\n'
    )
    link = tmp_path / "link.rules"
    link.symlink_to(pack)

    def repoint() -> None:
        link.unlink()
        link.symlink_to(next(folders.rules_folder().rglob("identity.rules")))

    save_while_proving(monkeypatch, repoint)
    with pytest.raises(UnprovedRuleError, match="contract that is not true"):
        morok.load_rules(link)


def test_pipes_and_devices_are_no_rule_files(pack: Path) -> None:
    """They would be waited for, or never end; in a folder they are passed over."""
    pipe = pack.with_name("pipe.rules")
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):
        with pytest.raises(RuleError, match="no regular file"):
            morok.load_rules(path)
    assert api.rule_files([pack.parent]) == [pack]
    assert morok.load_rules(pack.parent)
