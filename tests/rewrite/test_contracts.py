"""Helpers' contracts, asserted at each call."""

from __future__ import annotations

from typing import Any

import pytest
from rule_text import rules

import morok
from morok.errors import HelperContractError, RuleError, UnknownNameError
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.morok_dialect import MOROK
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp, vconst
from morok.rewrite import asserted_contracts

HEAD = 'helpers "rewrite_helpers"\n'
X = UOp.var("x", dtypes.index, 0, 40)


def fires(declaration: str, rule: str, node: UOp) -> UOp | None:
    with morok.config.settings(check=True):
        hit = rules(rule, HEAD + declaration).rewrite_node(node)
    return None if hit is None else hit[0]


SPLIT = "r: Idiv(x: index, @const(d)) if d > 0 let (q, r) = split(x, d) => Add(Mul(q, d), r)"


def test_a_kept_promise():
    declaration = (
        "extern split(x: index, d: const) -> (q: index, r: index)?\n    requires d > 0\n    ensures x == d * q + r\n"
    )
    assert fires(declaration, SPLIT, X.idiv(4)) is X.idiv(4) * 4 + X % 4


def test_a_broken_promise():
    declaration = "extern wrong_split(x: index, d: const) -> (q: index, r: index)?\n    ensures x == d * q + r\n"
    with pytest.raises(HelperContractError, match="wrong_split breaks what it ensures") as caught:
        fires(declaration, SPLIT.replace("split", "wrong_split"), X.idiv(4))
    assert "q = Idiv(x, 4)" in str(caught.value)


def test_a_broken_requirement():
    declaration = (
        "extern split(x: index, d: const) -> (q: index, r: index)?\n    requires d > 5\n    ensures x == d * q + r\n"
    )
    with pytest.raises(HelperContractError, match="breaks what it requires"):
        fires(declaration, SPLIT, X.idiv(4))


def test_one_value_in_every_lane():
    """`ensures same(v, n)` compares values: of constant vectors, and of the bits of constants."""
    declaration = "extern reread(n: any, c: any) -> (v: any)?\n    ensures same(v, n)\n"
    rule = "r: n @ Bitcast(c @anyconst(_xs): int, _T: (int | float)) let v = reread(n, c) => v"
    pair = vconst(dtypes.i32, (1, 2))
    assert fires(declaration, rule, pair.bitcast(dtypes.u32.vec(2))) is vconst(dtypes.u32, (1, 2))
    for wrong in (pair.bitcast(dtypes.f32.vec(2)), UOp.const(1, dtypes.i32).bitcast(dtypes.f32)):
        with pytest.raises(HelperContractError, match="reread breaks what it ensures"):
            fires(declaration, rule, wrong)
    zero = UOp.const(0, dtypes.i32).bitcast(dtypes.f32)
    assert fires(declaration, rule, zero) is UOp.const(0.0, dtypes.f32)


def test_contracts_speak_of_nan():
    declaration = f"{HEAD}extern but_for_nan(x: f32, y: index) -> (z: index)\n    ensures z == y\n"
    rule = "r: Where(Lt(x: f32, 0.0), 0, y: index) let z = but_for_nan(x, y) ~> Where(Lt(x, 0.0), 0, z)"
    (extern,) = rules(rule, declaration).rules[0].externs.values()
    x = UOp.var("f", dtypes.f32)

    def checked(seeds: int) -> None:
        for seed in range(seeds):
            asserted_contracts.check_call(extern, MOROK, (x, X), x.ne(x).where(X + 1, X), seed)

    with pytest.raises(HelperContractError, match="x = nan"):
        checked(20)


def test_a_lane_has_its_value_whatever_the_others_have():
    declaration = f"{HEAD}extern by_another_lane(x: index) -> (z: index)\n    ensures z == x\n"
    (extern,) = rules("r: Neg(x: index) let z = by_another_lane(x) ~> Neg(z)", declaration).rules[0].externs.values()
    x = UOp.vectorize(X, X.idiv(0))
    other = x.gep(1, 0)
    with pytest.raises(HelperContractError, match="z has no value where the arguments have one"):
        asserted_contracts.check_call(extern, MOROK, (x,), other.eq(other).where(x, x))


def loaded(gate: UOp | None) -> UOp:
    return UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(8)).index(X, gate=gate).load()


def test_a_load_that_stood_behind_a_condition():
    """It has a value behind its own gate, and none without: its place need not be there."""
    declaration = f"{HEAD}extern same_again(x: i32) -> (y: i32)\n"
    (extern,) = rules("r: Neg(x: i32) let y = same_again(x) ~> y", declaration).rules[0].externs.values()
    gate = UOp.var("g", dtypes.bool)

    def check(load: UOp) -> None:
        chosen = UOp.new(Op.Where, (gate, load, UOp.const(0, dtypes.i32)))
        for seed in range(40):
            asserted_contracts.check_call(extern, MOROK, (chosen,), load, seed)

    check(loaded(gate))
    with pytest.raises(HelperContractError, match="y has no value where the arguments have one"):
        check(loaded(None))


def test_the_lanes_of_a_node_are_asked_for_once(monkeypatch):
    """Not once for each lane of each assignment, which takes minutes for the contracts of wide products."""
    declaration = f"{HEAD}extern same_again(x: i32) -> (y: i32)\n    ensures same(y, x)\n"
    (extern,) = rules("r: Neg(x: i32) let y = same_again(x) ~> y", declaration).rules[0].externs.values()
    wide = UOp.new(Op.Vectorize, tuple([UOp.var(f"x{k}", dtypes.i32) for k in range(64)]))
    asked: list[UOp] = []
    lanes_of = type(MOROK).lanes_of

    def noted(dialect: Any, node: UOp) -> Any:
        asked.append(node)
        return lanes_of(dialect, node)

    monkeypatch.setattr(type(MOROK), "lanes_of", noted)
    asserted_contracts.check_call(extern, MOROK, (wide,), wide)
    assert asked == [wide]


def test_nothing_is_asserted_otherwise():
    declaration = "extern wrong_split(x: index, d: const) -> (q: index, r: index)?\n    ensures x == d * q + r\n"
    group = rules(SPLIT.replace("split", "wrong_split"), HEAD + declaration)
    assert group.rewrite_node(X.idiv(4)) is not None


def test_declining_must_be_declared():
    declaration = "extern half_or_nothing(n: const) -> (h: const)\n    ensures n == 2 * h\n"
    with pytest.raises(HelperContractError, match="declined"):
        fires(declaration, "r: Add(x: index, @const(v)) let h = half_or_nothing(v) ~> Mul(x, h)", X + 3)


def test_storage_that_a_node_reaches_is_not_new():
    """`ensures free_of(s, acc)` is about nodes: a helper that hands out a register which its argument reads is found out."""
    register = UOp.new(Op.DefineReg, (), 0, dtypes.i32.ptr(1, AddrSpace.REG))
    other = UOp.new(Op.DefineReg, (), 1, dtypes.i32.ptr(1, AddrSpace.REG))
    loop = UOp.range(4, 0, AxisType.Reduce)
    reads = register.index(0).load() + 1
    assert not asserted_contracts.is_free_of(MOROK, reads, UOp.new(Op.After, (register, loop)))
    assert asserted_contracts.is_free_of(MOROK, reads, UOp.new(Op.After, (other, loop)))
    assert not asserted_contracts.is_free_of(MOROK, loop + 1, loop)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("", "the rule file names no module of helpers"),
        ('helpers "nowhere.module"\n', "No module named 'nowhere.module'"),
        ('helpers "json"\n', "json has no function split"),
    ],
)
def test_a_helper_that_is_nowhere(head: str, said: str) -> None:
    declaration = "extern split(x: index, d: const) -> (q: index, r: index)?\n    ensures x == d * q + r\n"
    with pytest.raises(RuleError, match=said) as caught:
        rules(SPLIT, head + declaration)
    (error,) = caught.value.errors
    assert isinstance(error, UnknownNameError)
    assert "a function that its module marks with @morok.helper" in error.expected
