"""Verdicts that this machine has found, by exactly what they are of: nothing is asked twice, and a run that was killed goes on.

A verdict is that of a meaning (morok.prove.digest), a budget, a version of the solver, and of every file that has a part in the
answer: which rules are refuted, and with what, is found by matchers and the interpreter too. The name of the rule does not count.
What a limit of time ended is never kept, and neither is an error of the prover. The gate does not look here.
"""

from __future__ import annotations

import functools
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from morok.dsl.checked import CheckedRule
from morok.dsl.extent import Extent
from morok.prove.fingerprints import answering_bytes, digest
from morok.prove.verdict import Verdict
from morok.rewrite import store

FORMAT: Final = 2
_KEPT: Final = (
    "verdict",
    "scope",
    "helpers",
    "counterexample",
    "message",
    "resources",
    "solver",
    "questions",
    "extents",
)


@functools.cache
def _solver() -> str:
    """The version of the solver that is installed; "" where none is."""
    try:
        return version("z3-solver")
    except PackageNotFoundError:
        return ""


def _key(meaning: str, budget: int) -> str:
    return digest(f"verdict {FORMAT} {meaning} {budget} {_solver()} {answering_bytes()}")


def save(verdict: Verdict, meaning: str, budget: int) -> None:
    """Keep a verdict, if it is one that would be found again."""
    if verdict.final and verdict.verdict != "error":
        kept = {name: getattr(verdict, name) for name in _KEPT}
        store.save_json(_key(meaning, budget), kept)


def load(rule: CheckedRule, meaning: str, budget: int) -> Verdict | None:
    """The verdict on a rule of this meaning; None if this machine has not found one."""
    found = store.load_json(_key(meaning, budget))
    if found is None:
        return None
    found["scope"], found["helpers"] = tuple(found["scope"]), tuple(found["helpers"])
    found["extents"] = tuple(map(Extent.load, found["extents"]))
    return Verdict(rule.name, rule.file, rule.line, **found, recorded_earlier=True, digest=meaning)
