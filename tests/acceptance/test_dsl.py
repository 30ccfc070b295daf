"""Table 1.4: the rule language and the matcher."""

from __future__ import annotations

from pathlib import Path

import pytest

import morok
from acceptance.notation import R, V, argument, unproved
from morok import UOp
from morok import dtypes as d
from morok.dsl.check import check_text
from morok.dsl.parse import parse_text
from morok.errors import RuleError, RuleSyntaxError, UnprovedRuleError
from morok.ir.dtype import DType
from morok.ir.op import Op
from morok.marks import trust
from morok.rewrite import library
from morok.rewrite.engine import graph_rewrite
from morok.rewrite.ruleset import RuleSet
from morok.tools.cli import main

X, Y, N = V("x", 0, 31), V("y", 0, 31), V("n", 1, 8)
F = UOp.var("f", d.f32)
trust("acceptance.rule_helpers")
HELPERS = (
    'helpers "acceptance.rule_helpers"\nextern half(v: const) -> (h: const)?\n    ensures v == h * 2\n'
    "extern count_up() -> (k: const)?\n\n"
)


def neg(x: UOp) -> UOp:
    return UOp.new(Op.Neg, (x,))


def test_brackets_try_every_order_and_parentheses_one() -> None:
    rules = unproved("add: Add[x: index, @zero] ~> x\nsub: Sub(x: index, @zero) ~> x")
    assert rules["t.add"].apply(UOp.const(0) + X) is X
    assert rules["t.add"].apply(X + 0) is X
    assert rules["t.sub"].apply(X - 0) is X
    assert rules["t.sub"].apply(UOp.const(0) - X) is None
    assert rules["t.add"].apply(X + 1) is None


@pytest.mark.parametrize("dtype", [d.i8, d.u64, d.index, d.f16, d.f64, d.i32.vec(4), d.f32.vec(2)], ids=str)
def test_constant_classes_are_of_any_dtype(dtype: DType) -> None:
    rules = unproved("zero: Add[x, @zero] ~> x\none: Mul[x, @one] ~> x\nany: Add[x, c @const] ~> c")
    x = UOp.var("v", dtype)
    assert rules["t.zero"].apply(x + UOp.const(0, dtype)) is x
    assert rules["t.zero"].apply(x + UOp.const(1, dtype)) is None
    assert rules["t.one"].apply(x * UOp.const(1, dtype)) is x
    assert rules["t.any"].apply(x + UOp.const(1, dtype)) is UOp.const(1, dtype)
    if dtype.scalar().is_float:
        assert rules["t.zero"].apply(x + UOp.const(-0.0, dtype)) is None
    if dtype.count > 1:
        uneven = UOp.const([0] * (dtype.count - 1) + [1], dtype)
        assert rules["t.zero"].apply(x + uneven) is None


def test_true_and_false_and_powers_of_two() -> None:
    b = UOp.var("b", d.bool)
    assert unproved("zero: Or[x: bool, @zero] ~> x")["t.zero"].apply(b | False) is b
    rules = unproved(
        "t: And[x: bool, @true] ~> x\nf: Or[x: bool, @false] ~> x\np: Mul[x: i32, @const(c)] if is_pow2(c) ~> Shl(x, log2(c))"
    )
    i = UOp.var("i", d.i32)
    assert rules["t.t"].apply(b & True) is b
    assert rules["t.f"].apply(b | False) is b
    assert rules["t.p"].apply(i * 8) is i << 3
    assert rules["t.p"].apply(i * 6) is None


def test_a_repeated_variable_is_the_same_node() -> None:
    rules = unproved("r: Idiv(x: index, x) ~> one(x)")
    assert rules["t.r"].apply(X // X) is UOp.const(1)
    assert rules["t.r"].apply(X // Y) is None


def test_the_whole_match_is_bound() -> None:
    rules = unproved("r: n @ Mod(x: index, y) if vmax(n) < 8 ~> Add(n, y)")
    node = X % N
    assert rules["t.r"].apply(node) is node + N
    assert rules["t.r"].apply(X % 9) is None


def test_a_rule_that_declines_leaves_the_node_to_the_next() -> None:
    text = 'group t "test"\n\na: Add(x: index, @const(v)) let h = half(v) => Mul(x, h)\nb: Add(x: index, @const) ~> x\n'
    rules = RuleSet.of(list(check_text(HELPERS + text).rules()), unproved=True)
    assert rules["t.a"].apply(X + 7) is None
    assert graph_rewrite(X + 7, rules) is X
    assert graph_rewrite(X + 8, rules) is X * 4


def test_the_prover_sees_the_guard(tmp_path: Path) -> None:
    """The same rule with its guard is proved, and without it refuted."""
    file = tmp_path / "guards.rules"
    file.write_text(
        'group t "test"\n\nwith: Idiv(x: i32, @const(c)) if is_pow2(c) and c > 1 and vmin(x) >= 0 ~> Shr(x, log2(c))\n'
        '    "not negative"\nwithout: Idiv(x: i32, @const(c)) if is_pow2(c) and c > 1 ~> Shr(x, log2(c))\n    "any"\n'
    )
    verdicts = {v.name.split(".")[-1]: v.verdict for v in morok.prove(file)}
    assert verdicts == {"with": "proved", "without": "refuted"}


def test_fields_by_name() -> None:
    rules = unproved(
        "cast: Cast { x: y: i32, dtype: T } if bits(T) == 8 ~> Cast(Neg(y), T)\n"
        "none: Exp2(Index { gate: None, .. }) ~> 4.0\n"
        "some: Exp2(Index { gate: Some(g), .. }) ~> Where(g, 1.0, 2.0)\n"
        "rest: Reduce { src: x: float, .. } ~> x"
    )
    place, b = argument(0, 8).index(X), UOp.var("b", d.bool)
    i = UOp.var("i", d.i32)
    assert rules["t.cast"].apply(i.cast(d.u8)) is (-i).cast(d.u8)
    assert rules["t.cast"].apply(i.cast(d.i64)) is None
    gated = argument(0, 8).index(X, gate=b)
    assert rules["t.none"].apply(place.exp2()) is UOp.const(4.0)
    assert rules["t.none"].apply(gated.exp2()) is None
    assert rules["t.some"].apply(gated.exp2()) is b.where(UOp.const(1.0), UOp.const(2.0))
    assert rules["t.some"].apply(place.exp2()) is None
    assert rules["t.rest"].apply(F.reduce(Op.Add, R(4), R(3, 1))) is F


def test_nested_patterns() -> None:
    rules = unproved(
        "r: Add[Mod(x: index, n), Mul[Idiv(x, n), n]] ~> x\ndeep: Neg(Neg(Neg(Neg(Neg(x: index))))) ~> Neg(x)"
    )
    for whole in ((X % N) + (X // N) * N, N * (X // N) + X % N):
        assert rules["t.r"].apply(whole) is X
    assert rules["t.r"].apply((X % N) + (Y // N) * N) is None
    assert rules["t.deep"].apply(neg(neg(neg(neg(neg(X)))))) is neg(X)


def test_alternatives() -> None:
    rules = unproved("ops: (Add | Mul)(x: index, y) ~> Max(x, y)\npatterns: Neg(Abs(x: index) | Neg(x)) ~> x")
    for node in (X + Y, X * Y):
        assert rules["t.ops"].apply(node) is X.max(Y)
    assert rules["t.ops"].apply(X - Y) is None
    assert rules["t.patterns"].apply(-X.abs()) is X
    assert rules["t.patterns"].apply(neg(neg(X))) is X


BINARY13 = ("Add", "Sub", "Mul", "Idiv", "Mod", "Max", "Min", "And", "Or", "Xor", "Shl", "Shr", "Lt")


def test_a_template_is_one_rule_an_op() -> None:
    rules = unproved(
        f"for op in binary [{', '.join(BINARY13)}] {{\n    fold: op(@const(a), @const(b)) ~> eval(op, a, b)\n}}"
    )
    assert rules.names == tuple(f"t.fold.{name}" for name in BINARY13)
    seven, two = UOp.const(7, d.i32), UOp.const(2, d.i32)
    results = [3 * 3, 5, 14, 3, 1, 7, 2, 2, 7, 5, 28, 1, False]
    for name, want in zip(BINARY13, results, strict=True):
        node = UOp.new(Op[name], (seven, two))
        assert graph_rewrite(node, rules) is UOp.const(want, d.bool if name == "Lt" else d.i32), name


def test_every_op_of_a_class() -> None:
    names = unproved("for op in binary [*] {\n    f: op(x, x) ~> op(x, x)\n}").names
    assert {"t.f.Add", "t.f.Lt", "t.f.FloorMod", "t.f.Xor"} <= set(names)


def test_a_context_reaches_helpers_and_mixes_with_rules_without() -> None:
    text = 'group c "counts"\n@context Counter;\n\nnumber: Neg(x: index) let k = count_up() => Mul(x, k)\n    "a counter"\n'
    counted = RuleSet.of(list(check_text(HELPERS + text).rules()), unproved=True)
    context = [5]
    assert graph_rewrite(-X, counted, context=context) is X * 6
    assert graph_rewrite(-X, counted, context=context) is X * 7
    both = unproved("zero: Add[x: index, @zero] ~> x") + counted
    assert graph_rewrite(-(X + 0), both, context=context) is X * 8
    assert context == [8]


def test_groups_join_left_first() -> None:
    nan = unproved("zeros: Fdiv(@zero, @zero) ~> nan")
    one = unproved("one: Fdiv(x: float, x) ~> one(x)")
    zeros = UOp.const(0.0) / UOp.const(0.0)
    first = graph_rewrite(zeros, nan + one)
    assert first.arg != first.arg
    assert graph_rewrite(zeros, one + nan) is UOp.const(1.0)
    assert graph_rewrite(F / F, nan + one) is UOp.const(1.0)


@pytest.mark.long
def test_a_thousand_rules_cost_a_range_only_its_own() -> None:
    """A Range is offered to the function of its op, which knows one rule, and nothing of the thousand."""
    rules = unproved(
        "\n".join(f"r{i}: Add(x: index, {i}) ~> x" for i in range(1000))
        + "\nrange: r @ Range { end: e, .. } if vmax(e) == 77 ~> zero(r)\nany: n: index if vmin(n) == 5 ~> 99"
    )
    code = rules.code
    start = code.index("def match_Range")
    end = code.find("\ndef ", start + 1)
    body = code[start : end if end > 0 else len(code)]
    assert "t.range" in body
    assert "t.any" in body
    assert "t.r9" not in body
    assert rules["t.range"].apply(R(77)) is UOp.const(0)
    assert graph_rewrite(R(8), rules) is R(8)
    assert graph_rewrite(X + 999, rules) is X


def test_generated_code_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--show-code", "add_zero"]) == 0
    assert "def match_Add(" in capsys.readouterr().out
    assert main(["rules", "--show-code", "no_such_rule"]) == 2


def test_a_syntax_error_has_place_caret_and_expectation() -> None:
    text = 'group t "test"\n\na: Add(x: i32, y ~> x\n\nb: Sub(x: i32, y) ~> x\nc: Mul(x: i32,, y) ~> x\n'
    with pytest.raises(RuleError) as caught:
        parse_text(text, "my.rules")
    assert len(caught.value.errors) == 2
    first, second = caught.value.errors
    for error, line in ((first, 3), (second, 6)):
        assert isinstance(error, RuleSyntaxError)
        assert error.place is not None
        assert (error.place.file, error.place.line) == ("my.rules", line)
        assert "^" in error.excerpt
        assert error.excerpt.splitlines()[0].strip() in text or text.splitlines()[line - 1] in error.excerpt
        assert error.expected
    said = str(caught.value)
    assert "my.rules:3:" in said
    assert "my.rules:6:15" in said


def test_a_corrupted_rule_is_refuted_and_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "corrupt.rules"
    file.write_text('group t "test"\n\nr: Sub(Add(x: i32, y), y) ~> y\n    "x, before the corruption"\n')
    assert main(["prove", str(file)]) == 1
    assert "refuted" in capsys.readouterr().out
    with pytest.raises(UnprovedRuleError):
        morok.load_rules(file)


def test_a_users_rule_is_proved_and_runs(tmp_path: Path) -> None:
    file = tmp_path / "mine.rules"
    file.write_text('group doubling "sums of equals"\n\nshift: Add(x: int, x) ~> Shl(x, 1)\n    "wrapping included"\n')
    rules = morok.load_rules(file)
    for dtype in (d.i8, d.u32, d.i64):
        x = UOp.var("x", dtype)
        assert morok.rewrite(x + x, rules) is x << 1
        assert rules["doubling.shift"].apply(x * x) is None
    x = UOp.var("x", d.i32)
    assert morok.rewrite((x + 0) + x, library.symbolic() + rules).op in (Op.Shl, Op.Mul)
    assert morok.rewrite((x + 0) + x, rules + library.symbolic()) is x << 1
