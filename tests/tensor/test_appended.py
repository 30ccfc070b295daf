"""Rules of users, appended to a stage of the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import morok
from morok import Tensor, UOp, dtypes
from morok.dsl.check import check_file
from morok.errors import UnprovedRuleError, UsageError
from morok.ir.op import Op
from morok.passes.appended import appended_key, appended_to
from morok.passes.pipeline import lower
from morok.rewrite.library import groups
from morok.rewrite.ruleset import RuleSet
from morok.runtime.device import device

PACK = 'group shifts "doubling"\n\ndouble: Add(x: i32, x) ~> Shl(x, 1)\ntwice: Mul(x: i32, 2) ~> Shl(x, 1)\n'
N = UOp.var("n", dtypes.i32)


@pytest.fixture
def pack(tmp_path: Path) -> Iterator[Path]:
    """A folder with a rule file and a ledger of its own."""
    folder = tmp_path / "shifty"
    folder.mkdir()
    (folder / "shifts.rules").write_text(PACK)
    with morok.settings(cache_dir=tmp_path / "cache"):
        morok.prove(folder, write=True)
        yield folder


def ops(rules: RuleSet | None, stage: int = 0) -> list[Op]:
    """The ops of the instructions for adding a buffer's element to itself, `rules` appended to a stage."""
    place = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(4)).index(0)
    out = UOp.new(Op.DefineGlobal, (), 1, dtypes.i32.ptr(4)).index(0)
    ast = UOp.sink(out.store(place + place))
    target = device("CPU").target
    if rules is None:
        return [n.op for n in lower(ast, target)]
    with morok.append_rules(stage, rules):
        return [n.op for n in lower(ast, target)]


def test_a_pack_of_a_folder_composes_with_built_in_groups(pack: Path) -> None:
    assert (pack / "proofs" / "shifts.json").is_file()
    rules = morok.load_rules(pack, prove=False, trust_ledger=True)
    assert rules.names == ("shifty.shifts.double", "shifty.shifts.twice")
    assert morok.rewrite((N + 0) + N, groups("identity_and_zero") + rules) is N << 1
    assert morok.rewrite((N + 0) + N, rules + groups("identity_and_zero")) is N << 1


def test_appended_rules_run_in_their_stage_and_only_inside_the_block(pack: Path) -> None:
    rules = morok.load_rules(pack)
    assert Op.Shl not in ops(None)
    assert Op.Shl in ops(rules, stage=18)
    assert Op.Shl in ops(rules, stage=3), "a stage without groups of its own"
    assert appended_to(18) is None
    assert Op.Shl not in ops(None)


def test_two_packs_at_one_stage_are_tried_in_order(pack: Path) -> None:
    rules = morok.load_rules(pack)
    with morok.append_rules(18, groups("negation")), morok.append_rules(18, rules):
        found = appended_to(18)
        assert found is not None
        assert found.names[-1] == "shifty.shifts.twice"
        assert found is appended_to(18), "its matcher is made once"
        assert appended_to(19) is None


def test_kernels_compiled_with_and_without_are_told_apart(pack: Path) -> None:
    plain = appended_key()
    with morok.append_rules(3, morok.load_rules(pack)):
        first = appended_key()
        a = Tensor([3, 4])
        assert (a + a).tolist() == [6, 8]
    with morok.append_rules(3, morok.load_rules(pack)):
        assert appended_key() == first
    assert appended_key() == plain != first


def test_unproved_rules_are_not_appended(tmp_path: Path) -> None:
    file = tmp_path / "false.rules"
    file.write_text('group wrong "false"\n\nhalf: Idiv(x: i32, 2) ~> Shr(x, 1)\n')
    rules = RuleSet.of(check_file(file).rules())
    with pytest.raises(UnprovedRuleError, match=r"wrong\.half"), morok.append_rules(4, rules):
        raise AssertionError("it was appended")


@pytest.mark.parametrize("stage", [0, 21, 22])
def test_stages_that_rewrite_no_graph_take_no_rules(stage: int) -> None:
    with pytest.raises(UsageError, match=f"stage {stage}"), morok.append_rules(stage, groups("negation")):
        raise AssertionError("it was appended")
