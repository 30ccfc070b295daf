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
from morok.passes.pipeline import Program, lower
from morok.passes.target import Target
from morok.prove import graph_counterexample
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


@pytest.mark.long
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


@pytest.mark.long
def test_rules_that_hold_of_few_lanes_are_not_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that holds of three lanes and forgets the fourth. Graphs of many lanes would refute it; here none is tried."""
    monkeypatch.setattr(graph_counterexample, "LARGE", 0)
    file = tmp_path / "limited.rules"
    file.write_text(
        "group limited\n\nr: Vectorize(xs..) if len(xs) > 1 ~> Vectorize(xs[min(i, 2)] for i in 0..len(xs))\n"
    )
    with morok.settings(cache_dir=tmp_path / "cache"):
        assert morok.prove(file, remember=True)[0].verdict == "unknown"
        with pytest.raises(UnprovedRuleError, match=r"limited\.r"):
            morok.load_rules(file)


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


def choices(target: Target, stage: int) -> int:
    """The Where in a kernel for `max(a, -5)` of i32, after a stage."""
    place = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(4)).index(0)
    found: dict[int, UOp] = {}
    ast = UOp.sink(UOp.new(Op.DefineGlobal, (), 1, dtypes.i32.ptr(4)).index(0).store(place.max(-5)))

    def keep(number: int, name: str, before: Program, after: Program) -> None:
        if isinstance(after, UOp):
            found[number] = after

    lower(ast, target, keep)
    return [n.op for n in found[stage].toposort()].count(Op.Where)


CHOOSE = 'group choices "choices"\n\nchoose: Max(x: i32, -5) ~> Where(Lt(x, -5), -5, x)\n'


@pytest.mark.long
def test_a_target_has_rules_of_its_own(tmp_path: Path) -> None:
    """They fire in stage 17 or 19, once, for this target and for no other; names of groups stand before and after them."""
    (tmp_path / "choices.rules").write_text(CHOOSE)
    with morok.settings(cache_dir=tmp_path / "cache"):
        rules = morok.load_rules(tmp_path / "choices.rules")
        for added in ((rules,), ("powers_of_two", rules), (rules, "powers_of_two")):
            target = Target("LLVM", pre_matcher=added)
            assert [choices(target, n) for n in (16, 17, 20)] == [0, 1, 1]
            assert target.own_rules == (rules,)
            target = Target("LLVM", extra_matcher=added)
            assert [choices(target, n) for n in (18, 19)] == [0, 1]
        assert choices(Target("LLVM"), 20) == 0
        first, second = Target("LLVM", pre_matcher=(rules,)), Target("LLVM", pre_matcher=(rules,))
        assert first == second
        assert hash(first) == hash(second)


def test_rules_of_a_target_pass_the_gate(tmp_path: Path) -> None:
    """Rules that nobody has proved are refused when a kernel is lowered, and so are rules that want a context."""
    file = tmp_path / "false.rules"
    file.write_text(CHOOSE.replace("-5, x)", "-4, x)"))
    unproved = RuleSet.of(check_file(file).rules())
    for _ in range(2):
        with pytest.raises(UnprovedRuleError):
            choices(Target("LLVM", pre_matcher=(unproved,)), 17)
    with pytest.raises(UsageError, match="context"):
        choices(Target("LLVM", extra_matcher=(groups("launch"),)), 19)
