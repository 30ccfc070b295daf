"""Ops that are known within a tolerance alone: what a proof may say of their values."""

from __future__ import annotations

from pathlib import Path

import pytest

from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.ir.ops.transcendental import TOLERANCE
from morok.prove.encoding.encoder_state import kept_ops
from morok.prove.semantics import ops as semantics
from morok.prove.solve import DEFAULT_BUDGET
from morok.prove.workers import judge

HERE = Path(__file__).parent
QUICK = 60_000  # what was proved wrongly was so by congruence alone, at once


def corpus(name: str) -> list[CheckedRule]:
    return list(check_file(HERE / f"{name}.rules").rules())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rule", corpus("inexact"), ids=lambda r: r.name)
def test_what_holds_within_every_tolerance_is_proved(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == "proved", found.message


# Each takes two seconds or more, of which one is enough for the quick run.
@pytest.mark.parametrize(
    "rule",
    [pytest.param(r, marks=[] if r.name == "used.under_a_cast" else pytest.mark.long) for r in corpus("inexact_false")],
    ids=lambda r: r.name,
)
def test_what_does_not_is_not_usable(rule: CheckedRule) -> None:
    assert not judge(rule, QUICK, False).usable


@pytest.mark.long
def test_the_first_false_rule_is_not_proved_by_more_time() -> None:
    """It was, at every float dtype; and the reason names the op."""
    (rule,) = check_text('group g "g"\n\nrule: Mul(x: f16, x) ~> Pow(x, 2.0)\n', "g").rules()
    found = judge(rule, DEFAULT_BUDGET, False)
    assert not found.usable
    assert "Pow is known within its tolerance alone" in found.message


@pytest.mark.long
@pytest.mark.parametrize("op", sorted(TOLERANCE, key=lambda op: op.name), ids=lambda op: op.name)
def test_an_op_with_a_tolerance_is_read_as_one(op: object) -> None:
    """A constant is not what `eval` gives, and a rule that keeps the op may not say so: at every op of the table."""
    name = op.name  # type: ignore[attr-defined]
    assert hasattr(semantics, name.lower())
    y, more = (", @const(d)", ", d") if name == "Pow" else ("", "")
    text = f"{name}(@const(c): f16{y}) let v = eval({name}, c{more}) ~> Neg(Neg(v))"
    below = f"Lt({name}(@const(c): f16{y}), x) let v = eval({name}, c{more}) ~> Lt(v, x)"
    kept = (
        f"And(Lt(e @ {name}(@const(c): f16{y}), x), Le(e, x)) let v = eval({name}, c{more}) ~> And(Lt(v, x), Le(e, x))"
    )
    gone, *stays = (next(iter(check_text(f'group g "g"\n\nrule: {t}\n', "g").rules())) for t in (text, below, kept))
    assert name not in kept_ops(gone)
    assert judge(gone, QUICK, False).verdict == "proved"
    for rule in stays:
        assert name in kept_ops(rule)
        assert not judge(rule, QUICK, False).usable
