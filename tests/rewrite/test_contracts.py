"""Helpers' contracts, asserted at each call."""

from __future__ import annotations

import pytest
from rule_text import rules

import morok
from morok.errors import HelperContractError, UnknownNameError
from morok.ir.dialect import MOROK
from morok.ir.dtype import AddrSpace, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.rewrite import contracts

HEAD = 'helpers "rewrite_helpers"\n'
X = UOp.var("x", dtypes.index, 0, 40)


def fires(declaration: str, rule: str, node: UOp) -> UOp | None:
    with morok.config.settings(check=True):
        hit = rules(rule, HEAD + declaration).rewrite_node(node)
    return None if hit is None else hit[0]


SPLIT = "r: Idiv(x: index, @const(d)) if d > 0 let (q, r) = split(x, d) => Add(Mul(q, d), r)"


def test_a_kept_promise():
    declaration = "extern split(x: index, d: const) -> (q: index, r: index)?\n    requires d > 0\n    ensures x == d * q + r\n"
    assert fires(declaration, SPLIT, X.idiv(4)) is X.idiv(4) * 4 + X % 4


def test_a_broken_promise():
    declaration = "extern wrong_split(x: index, d: const) -> (q: index, r: index)?\n    ensures x == d * q + r\n"
    with pytest.raises(HelperContractError, match="wrong_split breaks what it ensures") as caught:
        fires(declaration, SPLIT.replace("split", "wrong_split"), X.idiv(4))
    assert "q = Idiv(x, 4)" in str(caught.value)


def test_a_broken_requirement():
    declaration = "extern split(x: index, d: const) -> (q: index, r: index)?\n    requires d > 5\n    ensures x == d * q + r\n"
    with pytest.raises(HelperContractError, match="breaks what it requires"):
        fires(declaration, SPLIT, X.idiv(4))


def test_nothing_is_asserted_otherwise():
    declaration = "extern wrong_split(x: index, d: const) -> (q: index, r: index)?\n    ensures x == d * q + r\n"
    group = rules(SPLIT.replace("split", "wrong_split"), HEAD + declaration)
    assert group.rewrite_node(X.idiv(4)) is not None


def test_declining_must_be_declared():
    declaration = "extern half(n: const) -> (h: const)\n    ensures n == 2 * h\n"
    with pytest.raises(HelperContractError, match="declined"):
        fires(declaration, "r: Add(x: index, @const(v)) let h = half(v) ~> Mul(x, h)", X + 3)


def test_storage_that_a_node_reaches_is_not_new():
    """`ensures free_of(s, acc)` is about nodes: a helper that hands out a register which its argument reads is found out."""
    register = UOp.new(Op.DefineReg, (), 0, dtypes.i32.ptr(1, AddrSpace.REG))
    other = UOp.new(Op.DefineReg, (), 1, dtypes.i32.ptr(1, AddrSpace.REG))
    loop = UOp.range(4, 0, AxisType.Reduce)
    reads = register.index(0).load() + 1
    assert not contracts.knows_nothing_of(MOROK, reads, UOp.new(Op.After, (register, loop)))
    assert contracts.knows_nothing_of(MOROK, reads, UOp.new(Op.After, (other, loop)))
    assert not contracts.knows_nothing_of(MOROK, loop + 1, loop)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("", "the rule file of the helper split names no module"),
        ('helpers "nowhere.module"\n', "No module named 'nowhere'"),
        ('helpers "json"\n', "json has no function split"),
    ],
)
def test_a_helper_that_is_nowhere(head: str, said: str) -> None:
    declaration = "extern split(x: index, d: const) -> (q: index, r: index)?\n    ensures x == d * q + r\n"
    with pytest.raises(UnknownNameError, match=said) as caught:
        rules(SPLIT, head + declaration).rewrite_node(X.idiv(4))
    assert "a module with a function split" in caught.value.expected
