"""The second solvers: what they decide, that a disagreement is one, that nothing proved goes unrecorded."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.prove import obligation_store
from morok.prove.obligations import prove_rule
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.trust import cross_check
from morok.rewrite import folders
from morok.tools.cli import main


def recorded(text: str) -> list[cross_check.Question]:
    """The obligations of a rule's proof, as the ledger would keep them."""
    rule = next(iter(check_text(f'group g "again"\n\nr: {text}\n    "a rule"\n').rules()))
    return [
        cross_check.Question("g.r", name, body) for name, body in prove_rule(rule, DEFAULT_BUDGET, True).obligations
    ]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("text", "solver"),
    [
        ("Sub(x: i32, x) ~> zero(x)", "bitwuzla"),
        ("Mul[x: u64, @const(c)] if is_pow2(c) ~> Shl(x, log2(c))", "bitwuzla"),
        ("Add[x: f32, -0.0] ~> x", "bitwuzla"),
        ("Max(x: bf16, x) ~> x", "cvc5"),
        ("Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) < n ~> x", "cvc5"),
    ],
)
def test_each_fragment_has_its_solver(text: str, solver: str) -> None:
    asked = recorded(text)
    assert asked
    assert {(r.solver, r.answer) for _, r in cross_check.replies(asked, 1)} == {(solver, "unsat")}


def test_a_question_with_another_answer_is_a_disagreement() -> None:
    true, *_ = recorded("Add(x: i8, y) ~> Add(y, x)")
    other = true.text.replace("bvadd", "bvsub", 1)
    assert other.count("bvadd") == other.count("bvsub") == 1
    false = cross_check.Question(true.rule, true.name, other)
    found = cross_check.report(cross_check.replies([true, false], 1))
    assert found.counts == {("bitwuzla", "sat"): 1, ("bitwuzla", "unsat"): 1}
    assert len(found.disagreements) == 1
    assert "g.r" in found.disagreements[0]
    integers, *_ = recorded("Add(x: index, y) ~> Add(y, x)")
    negated = cross_check.Question("g.s", "g.s index", "(declare-fun x () Int)\n(assert (> x 3))\n(check-sat)\n")
    found = cross_check.report(cross_check.replies([integers, negated], 1))
    assert len(found.disagreements) == 1
    assert "g.s" in found.disagreements[0]


def test_what_a_solver_does_not_understand_is_counted_and_no_agreement() -> None:
    odd = cross_check.Question(
        "g.r", "g.r index", "(declare-fun x () Int)\n(assert (no_such_function x))\n(check-sat)\n"
    )
    found = cross_check.report(cross_check.replies([odd], 1))
    assert found.counts == {("cvc5", "unsupported"): 1}
    assert found.rules_checked == 0
    assert sum(found.reasons.values()) == 1


@pytest.fixture(scope="module")
def sample() -> list[CheckedRule]:
    return random.Random(0).sample(cross_check.rules_of([folders.rules_folder()]), 40)


@pytest.fixture(scope="module")
def made(sample: list[CheckedRule]) -> dict[str, tuple[tuple[str, str], ...]]:
    return cross_check.made(sample, 1)


@pytest.mark.long
def test_a_sample_of_the_ledger_is_agreed_upon(made: dict[str, tuple[tuple[str, str], ...]]) -> None:
    asked = [q for name, obligations in made.items() for q in cross_check.questions(name, obligations)]
    asked = random.Random(0).sample(asked, min(400, len(asked)))
    found = cross_check.report(cross_check.replies(asked, 1))
    assert found.disagreements == ()
    assert sum(n for (_, answer), n in found.counts.items() if answer == "unsat") > 0.9 * len(asked)


@pytest.mark.long
def test_what_is_made_again_is_what_was_recorded(
    sample: list[CheckedRule], made: dict[str, tuple[tuple[str, str], ...]]
) -> None:
    recorded = cross_check.recorded(sample)
    assert {name: obligation_store.digest_of(asked) for name, asked in made.items()} == recorded


@pytest.mark.long
def test_every_record_names_its_obligations() -> None:
    assert "" not in cross_check.recorded(cross_check.rules_of([folders.rules_folder()])).values()


@pytest.mark.long
def test_obligations_from_a_folder_are_compared_with_the_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prove", "--only", "self_folding.*", "--smt2", str(tmp_path)]) == 0
    capsys.readouterr()
    made = obligation_store.read(tmp_path)
    assert "self_folding.or_self" in made
    (tmp_path / "self_folding.or_self.smt2").write_text("; a\n(reset)\n(check-sat)\n")
    assert main(["recheck", "--smt2", str(tmp_path), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    other = said["rules_with_other_obligations"]
    assert "self_folding.or_self" in other
    assert "self_folding.and_self" not in other


@pytest.mark.long
def test_the_command_says_what_was_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recheck", "--sample", "40", "--seed", "test", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["obligations"] == 40
    assert said["disagreements"] == []
    assert said["rules_without_obligations"] == said["rules_with_other_obligations"] == []


@pytest.fixture
def pack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A pack with a ledger of its own, and its obligations in the folder `asked` beside it."""
    file = tmp_path / "pack" / "mine.rules"
    file.parent.mkdir()
    file.write_text(
        'group g "mine"\n\nr: Sub(x: i8, x) ~> zero(x)\n    "nothing"\n\ns: Or(x: i8, x) ~> x\n    "one of two"\n'
    )
    assert main(["prove", "--write", "--smt2", str(tmp_path / "asked"), str(file.parent)]) == 0
    capsys.readouterr()
    return file.parent


def test_a_pack_is_compared_with_its_own_ledger(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recheck", str(pack)]) == 0
    assert "2 of 2 rules checked again" in capsys.readouterr().out
    page = pack / "proofs" / "mine.json"
    kept = page.read_bytes()
    page.unlink()  # what this machine remembers is no ledger of the pack
    assert main(["recheck", str(pack), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["rules_without_obligations"] == ["pack.g.r", "pack.g.s"]
    page.write_bytes(kept)
    asked = pack.parent / "asked"
    assert main(["recheck", "--smt2", str(asked), str(pack)]) == 0
    capsys.readouterr()
    (asked / "pack.g.s.smt2").write_text((asked / "pack.g.r.smt2").read_text())
    assert main(["recheck", "--smt2", str(asked), str(pack), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["rules_with_other_obligations"] == ["pack.g.s"]


def test_rules_that_a_folder_says_nothing_of_are_counted(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = pack.parent / "asked"
    (asked / "pack.g.s.smt2").unlink()
    assert main(["recheck", "--smt2", str(asked), str(pack)]) == 1
    said = capsys.readouterr().out
    assert f"no obligations of 1 rule in {asked}\n" in said
    assert "1 of 1 rules checked again" in said
    assert "other obligations" not in said
    (asked / "pack.g.r.smt2").unlink()
    assert main(["recheck", "--smt2", str(asked), str(pack)]) == 1
    assert capsys.readouterr().out.startswith(
        f"no obligations of 2 rules in {asked}; PATH names the rules that it is of\n"
    )


def test_rules_of_one_name_are_rechecked_one_pack_at_a_time(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = pack.parent / "others" / "pack"
    other.mkdir(parents=True)
    (other / "mine.rules").write_bytes((pack / "mine.rules").read_bytes())
    assert main(["recheck", str(pack), str(other)]) == 2
    assert "pack.g.r" in capsys.readouterr().err
