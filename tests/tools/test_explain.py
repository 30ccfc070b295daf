"""`morok explain`: what it says of a rule, and what it suggests for a name that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from morok.tools.cli import main

Captured = pytest.CaptureFixture[str]


def test_premises_lemmas_sources_and_use(capsys: Captured) -> None:
    assert main(["explain", "fold_divmod_general.gcd_div", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rules"]
    assert row["verdict"] == "proved"
    assert row["premises"][:2] == ["the pattern has a value", "x is not Invalid"]
    assert "d > 1 and vmin(x) >= 0" in row["premises"]
    assert "common_factor(x, d) gives g, n, r with x == g * n + r and g > 1 and d % g == 0" in row["premises"]
    assert row["lemmas"] == ["common_factor is called only where d > 1"]
    assert [s["id"] for s in row["sources"]] == ["fdg.5.idiv"]
    assert "8 Post-opt symbolic" in row["stages"]
    assert row["tiers"] == ["symbolic_simple", "symbolic", "sym"]


def test_assumptions_and_orders(capsys: Captured) -> None:
    assert main(["explain", "identity_and_zero.add_zero_float"]) == 0
    said = capsys.readouterr().out
    lines = (
        "verdict: proved, by z3",
        "the sign of a zero does not matter",
        "Add does not depend on the order of its operands",
    )
    for line in (*lines, "repaired from the texts' id.add0"):
        assert line in said


@pytest.mark.long
def test_what_was_measured_has_no_premises(capsys: Captured) -> None:
    assert main(["explain", "transcendental.exp2_f32"]) == 0
    said = capsys.readouterr().out
    assert "verdict: approximate\n" in said
    assert "takes for granted" not in said


def test_names_for_parts_and_for_values(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "my.rules"
    file.write_text(
        "group g\n\na: Sub(x: int, @const(c)) let d = 0 - c, y = Add(x, d) if d > 0 ~> Add(y, 0)\n", encoding="utf-8"
    )
    assert main(["explain", "g.a", "--rules", str(file), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rules"]
    assert row["premises"] == ["the pattern has a value", "d has a value: 0 - c", "y stands for Add(x, d)", "d > 0"]


def test_which_nodes_have_which_dtypes(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "my.rules"
    file.write_text(
        "group g\n\na: Where(Lt(x: (i8 | i16), y), t: (f16 | bool), f) ~> Where(Ge(x, y), f, t)\n", encoding="utf-8"
    )
    assert main(["explain", "a", "--rules", str(file)]) == 0
    said = capsys.readouterr().out
    assert "  x, y at i8, i16\n  t, f at bool, f16\n" in said
    assert main(["explain", "a", "--rules", str(file), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rules"]
    assert row["dtypes"] == {"x, y": ["i8", "i16"], "t, f": ["bool", "f16"]}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("identiy_and_zero.add_zro", "identity_and_zero.add_zero"),
        ("add_zer", "identity_and_zero.add_zero"),
        ("xyzzy", "`morok rules`"),
    ],
)
def test_near_names(name: str, meant: str, capsys: Captured) -> None:
    assert main(["explain", name]) == 2
    said = capsys.readouterr().err
    assert f"there is no rule '{name}'" in said
    assert meant in said


def test_near_names_in_a_file(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "my.rules"
    file.write_text("group signs\n\nback: Neg(Neg(x)) ~> x\n")
    assert main(["explain", "bakc", "--rules", str(file)]) == 2
    assert "did you mean my.signs.back?" in capsys.readouterr().err
