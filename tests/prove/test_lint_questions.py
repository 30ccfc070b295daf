"""The findings of `morok check --strict` that take a solver: each with a file that has it, and one that nearly has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from morok.dialect import OperandInfo, OpInfo, find
from morok.dsl.check import check_text
from morok.dsl.special_ops import chooses
from morok.errors import MorokError
from morok.prove.lint import findings
from morok.prove.lint.termination import unordered


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path))


def found(rules: str, head: str = "group g") -> list[MorokError]:
    text = f"{head}\n\n{rules}\n"
    return findings(check_text(text, "f.rules"))


def said(rules: str, code: str, head: str = "group g") -> list[tuple[int, str]]:
    return [(e.place.line, e.message) for e in found(rules, head) if e.place and e.code == code]


FIRST = "a: Mod(x: index, @const(n)) if vmin(x) >= 0 and vmax(x) < n ~> x\n"
DIVISION = "a: Idiv(x: index, @const(p)) if 8 // p == 2 ~> x\n"

COVERED = {
    "a weaker guard by other names": "a: Sub(x: index, y) if vmin(y) > 3 ~> Neg(x)\nb: Sub(y: index, x) if vmin(x) > 5 ~> Neg(y)",
    "a weaker guard": FIRST + "b: Mod(x: index, @const(n)) if vmin(x) >= 1 and vmax(x) + 1 < n ~> Mod(x, n + 1)",
    "either order": "a: Add[x: !float, @zero] ~> x\nb: Add(@zero, y: int) ~> Neg(Neg(y))",
    "a constant": "a: Max[c @const(v), x: int] if vmax(x) <= v ~> c\nb: Max(@const(v), x: i32) if vmax(x) < v ~> const(v, i32)",
    "a part of a variable": "a: Neg(x: int) if vmin(x) > 3 ~> Sub(0, x)\nb: Neg(Add(x: i32, y)) if vmin(Add(x, y)) == 5 ~> x",
    "a division that has a value": DIVISION + "b: Idiv(x: index, @const(p)) if p == 3 or p == 4 ~> Neg(x)",
    "every op": "a: (Add | Sub)(x: int, @zero) ~> x\nb: Sub(x: i8, @zero) ~> Neg(Neg(x))",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rules", COVERED.values(), ids=COVERED)
def test_a_covered_rule(rules: str) -> None:
    ((line, message),) = said(rules, "MRK113")
    assert (line, message) == (4, "`b` never applies: `g.a` (line 3) applies wherever it would")


NOT_COVERED = {
    "another guard": FIRST + "b: Mod(x: index, @const(n)) if vmin(x) >= 1 and vmax(x) < n + 1 ~> Mod(x, n + 1)",
    "a division by zero": DIVISION + "b: Idiv(x: index, @const(p)) if p * p < 25 ~> Neg(x)",
    "one order": "a: Add(x: !float, @zero) ~> x\nb: Add[@zero, y: int] ~> Neg(Neg(y))",
    "more dtypes": "a: Add[x: int, @zero] ~> x\nb: Add[x: !float, @zero] ~> Neg(Neg(x))",
    "Invalid": "a: Add[x: index, @zero] ~> x\nb: Add(x: index?, @zero) ~> Neg(Neg(x))",
    "the same node": "a: Max(x: int, x) ~> x\nb: Max(x: int, y) if vmin(x) >= vmax(y) ~> x",
    "other names": "a: Sub(x: index, y) if vmin(y) > 3 ~> Neg(x)\nb: Sub(y: index, x) if vmin(y) > 5 ~> Neg(y)",
    "other terms": "a: Sub(x: index, y) if vmin(Neg(y)) > 3 ~> Neg(x)\nb: Sub(y: index, x) if vmin(Neg(y)) > 5 ~> Neg(y)",
    "an assumption": "a: Add[x: float, @zero] ~> x assuming nsz\nb: Add[x: float, @zero] ~> Neg(Neg(x))",
    "a target without a value": "a: Idiv(x: index, @const(p)) ~> Mul(x, 8 // p)\nb: Idiv(x: index, @const(p)) if p > 3 ~> Neg(x)",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rules", NOT_COVERED.values(), ids=NOT_COVERED)
def test_a_rule_that_gets_its_turn(rules: str) -> None:
    assert said(rules, "MRK113") == []


def test_a_rule_that_applies_to_its_own_result() -> None:
    # it need not hold the other way round
    assert said("a: Add(x: index, y) if vmin(x) < vmax(y) ~> Add(y, x)", "MRK115") == []
    rules = "a: Add(x: index, y) if vmin(x) < vmax(y) or vmin(y) <= vmax(x) ~> Add(y, x)"  # that one of the two holds always does
    assert said(rules, "MRK115") == [(3, "`a` applies to its own result, again and again")]
    rules = "a: Add(x, y) if dtype(x) == dtype(y) ~> Add(y, x)"
    assert said(rules, "MRK115") == [(3, "`a` applies to its own result, again and again")]
    rules = "a: Add(x: int, y) if dtype(x) == dtype(y) ~> Add(y, x)"
    assert said(rules, "MRK115") == [(3, "`a` applies to its own result, again and again")]
    assert said("a: Add(x: index, y) if vmin(x) > vmax(y) ~> Add(y, x)", "MRK115") == []


@pytest.mark.long
def test_guards_that_decide_nothing() -> None:
    rules = "a: Mod(x: int, @const(c)) if c > 0 and vmin(x) <= vmax(x) and c >= 1 ~> x"
    always = " always holds where the pattern has a value and the guards before it hold"
    assert said(rules, "MRK116") == [(3, f"`vmin(x) <= vmax(x)`{always}"), (3, f"`c >= 1`{always}")]
    rules = "a: Mod(x: int, @const(c)) if c > 0 and (vmin(x) > vmax(x) or vmax(x) == 3) ~> x"
    assert said(rules, "MRK116") == [(3, "`vmin(x) > vmax(x)` never holds here")]
    # x % 0 has no value
    assert said("a: Mod(x: int, @const(c)) if c != 0 ~> x", "MRK116") == [(3, f"`c != 0`{always}")]


def test_guards_that_decide() -> None:
    for rules in (
        "a: Idiv(x: int, @const(c)) if 8 // c > 0 ~> x",  # true of c = 1, without a value for c = 0
        "a: Mul(x: (i8 | i16), @const(c)) if c < 200 ~> x",  # always at i8
        "a: Max(x: index, y) if vmin(x) >= vmax(y) ~> x",
    ):
        assert said(rules, "MRK116") == []


def test_a_group_that_may_not_end() -> None:
    rules = "a: Sub(x: int, y) ~> Add(x, Neg(y))\nb: Add[x: int, Neg(y)] ~> Sub(x, y)"
    ((line, message),) = said(rules, "MRK117")
    assert line in (3, 4)
    assert "nothing shows that the group g comes to an end" in message
    assert said(rules.partition("\n")[0], "MRK117") == []
    assert said(rules.partition("\n")[2], "MRK117") == []


def test_measures() -> None:
    def left(rules: str) -> list[str]:
        return [r.name for r in unordered(check_text(f"group g\n\n{rules}\n").groups[0].rules)]

    assert left("a: Cast(Where(c, x: A, y: A), B) ~> Where(c, Cast(x, B), Cast(y, B))") == []
    assert left("a: Mul(Add(x: int, y), c @const) ~> Add(Mul(x, c), Mul(y, c))") == []
    assert left("a: Add(x: int, Add(y, z)) ~> Add(Add(x, y), z)") == []
    assert left("a: FloorMod(x: int, y) ~> Sub(x, Mul(FloorDiv(x, y), y))\nb: FloorDiv(x: int, x) ~> one(x)") == []
    assert left("a: Add(x: int, y) ~> Add(y, x)") == ["g.a"]
    assert left("a: Neg(x: int) ~> Neg(Neg(Neg(x)))") == ["g.a"]
    # whichever number that is, a constant
    assert left("a: Mul(Neg(x: int), @const(c)) ~> Shl(x, where(c > 4, 2, 1))") == []
    assert left("a: Mul(Neg(x: int), @vconst(vs)) ~> Mul(x, VConst { values: [0 - v for v in vs] })") == []
    # each of the three is smaller by some measure, all of them by none
    assert len(left("a: Not(x: int) ~> Neg(Abs(x))\nb: Neg(x: int) ~> Not(Not(x))\nc: Abs(x: int) ~> Not(x)")) == 1


def test_an_op_that_gives_one_of_its_operands_is_told_by_its_operands() -> None:
    """Whatever it is called: where it stands, a part may be Invalid that the variables of another rule do not match."""
    assert [name for name, info in find("morok").ops.items() if chooses(info)] == ["Where"]
    operands = tuple(OperandInfo(c) for c in "cxy")
    of: dict[str, Any] = {
        "name": "Pick",
        "key": "pick",
        "operands": operands,
        "result": "T",
        "domains": {"T": ("i32",)},
    }
    assert chooses(OpInfo(params=("bool", "T", "T"), **of))
    assert not chooses(OpInfo(params=("T", "T", "T"), **of))


@pytest.mark.long
def test_a_reason_to_end() -> None:
    turn = "a: Add(x: index, y) if vmin(x) > vmax(y) ~> Add(y, x)"
    reason = 'group g\n@ends {} "the operand with the lower bounds stands first"'
    assert [m for _, m in said(turn, "MRK117")] == [
        "nothing shows that the group g comes to an end with `a`: no measure orders it"
    ]
    assert said(turn, "MRK117", reason.format("a")) == []
    assert [m for _, m in said(turn, "MRK117", reason.format("a, b"))] == ["there is no rule `b` in the group g"]
    neg = "a: Neg(Neg(x)) ~> x"
    assert [m for _, m in said(neg, "MRK117", reason.format("a"))] == [
        "`a` needs no reason to end: a measure orders it"
    ]
    block = "for op in binary [Add, Mul] {\n    a: op(x: index, y) if vmin(x) > vmax(y) ~> op(y, x)\n}"
    assert len(said(block, "MRK117")) == 1
    assert said(block, "MRK117", reason.format("a")) == []


@pytest.mark.long
def test_an_unchanged_file_needs_no_solver(tmp_path: Path) -> None:
    file = tmp_path / "my.rules"
    file.write_text("group g\n\na: Mod(x: int, @const(c)) if c != 0 ~> x\n")
    program = (
        "import sys; from morok.tools.cli import main; print(main(sys.argv[1:]), 'morok.prove.solve' in sys.modules)"
    )
    ran = [
        subprocess.run(
            [sys.executable, "-c", program, "check", "--strict", str(file)], capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert [r.stdout.split()[-2:] for r in ran] == [["1", "True"], ["1", "False"]]
    assert ran[0].stderr == ran[1].stderr
    assert "MRK116" in ran[1].stderr
