"""Proofs at every size, for tests."""

from __future__ import annotations

from morok.dsl.checked import CheckedRule
from morok.prove import smt
from morok.prove.answers import Result
from morok.prove.parametric.proof import parametric_proof
from morok.prove.smt import Expr
from morok.prove.solve import ask

BUDGET = 1_000_000


def asked(name: str, conditions: list[Expr], share: float, model: bool = True) -> Result:
    """The answer to a question, within a budget of its own."""
    return ask(conditions, BUDGET, None, model)


def shown(rule: CheckedRule) -> bool:
    """Truth of a rule being shown at every size."""
    smt.forget()
    return parametric_proof(rule, asked).holds
