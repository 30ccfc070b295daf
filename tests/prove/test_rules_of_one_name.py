"""A verdict is one rule's: no other has it, of whatever file and name, and no other dialect of its dialect's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mistaken
import pytest

import morok
from morok import UOp, dtypes
from morok.dsl.check import check_bytes
from morok.dsl.checked import CheckedRule
from morok.errors import UnprovedRuleError
from morok.ir.op import Op
from morok.prove import ledger
from morok.prove.api import prove
from morok.prove.verdict import Verdict
from morok.rewrite.library import load_rules, rewrite
from morok.rewrite.ruleset import RuleSet

TRUE = 'group double "doubling"\n\nshift: Add(x: i32, x) ~> Shl(x, 1)\n'
FALSE = TRUE.replace("Shl(x, 1)", "Shl(x, 2)")
RIGHT = {TRUE: "proved", FALSE: "refuted"}


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    with morok.settings(cache_dir=tmp_path / "cache"):
        yield tmp_path / "mine.rules"


def rule(text: str, file: Path) -> CheckedRule:
    (found,) = check_bytes(text.encode(), str(file), pack="mine").rules()
    return found


def refused(file: Path) -> None:
    """That a file of the false rule is not loaded, whatever was proved before."""
    file.write_text(FALSE)
    assert ledger.unchanged(file, FALSE.encode(), trust_ledger=True) is None
    for proving in (False, True):
        with pytest.raises(UnprovedRuleError):
            load_rules(file, prove=proving)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("texts", [(TRUE, FALSE), (FALSE, TRUE)], ids=["true first", "false first"])
@pytest.mark.parametrize("kept", [{}, {"write": True}, {"use_cache": False, "remember": True}], ids=str)
def test_two_rules_of_one_file_and_name_have_a_verdict_each(
    file: Path, texts: tuple[str, str], kept: dict[str, Any]
) -> None:
    heard: list[Verdict] = []
    rules = [rule(text, file) for text in texts]
    found = prove(rules, done=heard.append, **kept)
    assert [v.verdict for v in found] == [RIGHT[text] for text in texts]
    assert {v.verdict: v.digest for v in heard} == {
        RIGHT[t]: ledger.rule_digest(r) for t, r in zip(texts, rules, strict=True)
    }
    assert [v.verdict for v in prove(rules)] == [v.verdict for v in found]
    refused(file)


def test_an_interrupted_run_keeps_each_verdict_for_the_rule_that_it_is_of(file: Path) -> None:
    def interrupted(_: Verdict) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prove([rule(TRUE, file), rule(FALSE, file)], jobs=1, done=interrupted)
    refused(file)


@pytest.mark.long
def test_each_dialect_of_one_name_is_verified() -> None:
    wrong, right = (
        mistaken.with_op(mistaken.dialect(), "Neg", evaluate=lambda d, a: mistaken.clip(1 - a)),
        mistaken.dialect(),
    )
    wrong.name = right.name
    text = f'dialect {right.name}\n\ngroup g "of one of two dialects"\n\nr: Neg(Neg(x)) ~> x\n'
    for dialects in ([right, wrong], [wrong, right]):
        rules = [next(check_bytes(text.encode(), f"{i}.rules", d).rules()) for i, d in enumerate(dialects)]
        assert [v.verdict for v in prove(rules)] == ["proved" if d is right else "broken" for d in dialects]


HEAD = 'group sizes "two rules of one name"\n\n'
# of powers of two so many are tried
LIMITED = f"{HEAD}last: Mul(x: index, @const(c)) if c > 0 and is_pow2(c) ~> Neg(Mul(x, const(-c, index)))\n"
OTHERS = {
    "proved": f"{HEAD}last: Sub(x: i32, x) ~> zero(x)\n",
    "bounded": f"{HEAD}last: Sub(x: index, @const(c)) if c > 0 and is_pow2(c) ~> Add(x, const(-c, index))\n",
}
X = UOp.var("x", dtypes.index)


def times(c: int) -> UOp:
    return UOp.new(Op.Mul, (X, UOp.const(c, dtypes.index)))


def of_a_folder(folder: Path) -> RuleSet:
    return load_rules(folder)


def of_a_list(folder: Path) -> RuleSet:
    """The same of a list of checked rules."""
    return RuleSet.of(load_rules(folder).rules)


@pytest.mark.long
@pytest.mark.parametrize("put_together", [of_a_folder, of_a_list])
@pytest.mark.parametrize("other", OTHERS)
def test_a_bounded_rule_keeps_its_limits_beside_another_of_its_name(
    file: Path, put_together: Callable[[Path], RuleSet], other: str
) -> None:
    folder = file.parent / "pack"
    folder.mkdir()
    (folder / "a.rules").write_text(LIMITED)
    (folder / "b.rules").write_text(OTHERS[other])
    rules = put_together(folder)
    assert len(set(rules.names)) == 1
    assert rewrite(times(64), rules) is not times(64)
    assert rewrite(times(1 << 70), rules) is times(1 << 70)
