"""The findings of `morok check --strict`."""

from __future__ import annotations

import pytest

from morok.dsl.check import check_text
from morok.dsl.lint import lint


def findings(text: str) -> list[tuple[str, int, str]]:
    return [(e.code, e.place.line, e.message) for e in lint(check_text(f"group g\n\n{text}\n", "f.rules")) if e.place]


CASES = {
    "fine": ("a: Neg(Neg(x)) ~> x", []),
    "unused": ("a: And[x, Or[x, y]] ~> x", [("MRK111", 3, "`y` is bound and never used")]),
    "unused value": ("a: Max[c @const(v), c] ~> c", [("MRK111", 3, "`v` is bound and never used")]),
    "unused let": (
        "a: Add[x: int, @const(v)] let w = v + 1 ~> Sub(x, v)",
        [("MRK111", 3, "`w` is bound and never used")],
    ),
    "used twice in the pattern": ("a: Lt(x: int, x) ~> false", []),
    "bound whole, used below": ("a: Add(c @const(v): int, Neg(c)) if vmin(c) == v ~> c", []),
    "used as a field": (
        "a: Reduce { src: x: number, ranges: rs, op } ~> Reduce { src: Neg(Neg(x)), ranges: rs, op }",
        None,
    ),
    "lanes": ("a: Neg(x: f32 x n) if n == 1 ~> x", []),
    "no doc": ("a: Neg(Neg(x))\n    ~> x", [("MRK112", 3, "`a` has no doc string")]),
    "doc": ('a: Neg(Neg(x))\n    ~> x\n    "signs cancel"', []),
    "shadowed": (
        "a: Add[x, @zero] ~> x assuming nsz\nb: Add[y, @zero] ~> y assuming nsz",
        [("MRK113", 4, "`b` never applies: `g.a` (line 3) matches the same and has no guard")],
    ),
    "not shadowed: a guard": (
        "a: Max(x: int, y) if vmin(x) >= vmax(y) ~> x\nb: Max(x: int, y) if vmin(y) >= vmax(x) ~> y",
        [],
    ),
    "not shadowed: an assumption": (
        "a: Add[x: float, @zero] ~> x assuming nsz\nb: Add[x: float, @zero] ~> Add(x, 0.0) assuming nnan",
        None,
    ),
    "not shadowed: a dtype": ("a: Neg(Neg(x: int)) ~> x\nb: Neg(Neg(x: float)) ~> x", []),
    "not shadowed: another repetition": ("a: Max(x, x) ~> x\nb: Max(x: int, y) if vmin(x) >= vmax(y) ~> x", []),
    "not shadowed: another op": ("a: Add[x, @zero] ~> x assuming nsz\nb: Or[x, @zero] ~> x", []),
    "idle": ("a: Add(x, y) ~> Add(x, y)", [("MRK114", 3, "`a` rewrites its pattern to itself")]),
    "turning": ("a: Add(x, y) ~> Add(y, x)", [("MRK115", 3, "`a` applies to its own result, again and again")]),
    "turning at some dtypes": (
        "a: Mul(x: int, y) ~> Mul(y, x)\nb: Sub(x: (i32 | index), y) ~> Sub(Neg(y), Neg(x))",
        [("MRK115", n, f"`{a}` applies to its own result, again and again") for n, a in ((3, "a"), (4, "b"))],
    ),
    "turning into another dtype": ("a: Cast(x: i32, f32) ~> Cast(Cast(x, i64), f32)", []),
    "not turning: Invalid": ("a: Max(x: index?, y: index) ~> Max(y, x)", []),
    "turning: Invalid too": (
        "a: Max(x: index?, y: index?) ~> Max(y, x)",
        [("MRK115", 3, "`a` applies to its own result, again and again")],
    ),
    "not turning": ("a: Add(x, c @const) ~> Add(c, x)", []),
    "growing": ("a: Neg(x) ~> Neg(Neg(Neg(x)))", [("MRK115", 3, "`a` applies to its own result, again and again")]),
    "guarded": ("a: Add(x: index, y) if vmin(x) > vmax(y) ~> Add(y, x)", []),
}


@pytest.mark.parametrize("name", CASES)
def test_finding(name: str) -> None:
    text, expected = CASES[name]
    found = findings(text)
    if expected is None:
        assert not [f for f in found if f[0] in ("MRK111", "MRK113")]
    else:
        assert found == expected


def test_a_finding_in_a_template_is_one_finding() -> None:
    assert [c for c, _, _ in findings("for op in binary [Max, Min] {\n    a: op(op(x, y), x) ~> op(x, x)\n}")] == [
        "MRK111"
    ]


def test_findings_have_places_and_hints(tmp_path: object) -> None:
    from pathlib import Path

    from morok.dsl.check import check_file

    path = Path(str(tmp_path)) / "my.rules"
    path.write_text("group g\n\na: And[x, Or[x, yy]] ~> x\n")
    (found,) = lint(check_file(path))
    assert str(found).split("\n") == [
        f"{path}:3:17: MRK111: `yy` is bound and never used",
        "  a: And[x, Or[x, yy]] ~> x",
        " " * 18 + "^^",
        "  hint: write _yy",
    ]
