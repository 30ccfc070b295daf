"""Rules that call helpers of their own: some helpers keep their contracts, some break them, and no rule may rely on one of those.

The rule file begins with comments that are the body of its helper, a Python function. Its module is called by the digest of that
text, and is there while the rule is put to trial.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.marks import trust
from morok.prove import promises
from morok.prove.attack import trial
from morok.prove.attack.features import features
from morok.prove.attack.outcome import STATES, Outcome
from morok.prove.attack.random_terms import INTS
from morok.prove.attack.rule_templates import templates

COMMENT: Final = "# | "
PREFIX: Final = "attacked_helper_"
# What a helper returns in place of R, its right result, where P holds: a contract speaks of small numbers, and great ones.
WRONG: Final = (
    "R + 1",
    "R - 1",
    "- R",
    "7",
    "a",
    "0",
    "None",
    "R + 0.0",
    "(R, R)",
    "bool(R)",
    "a // (b - b)",
    "R + R",
    "abs(R)",
)
# What a helper may know of the graph around: a contract must hold whatever that is.
CONTEXT: Final = "Around"
AROUND: Final = f"""
class {CONTEXT}:
    def __init__(self, nodes=1):
        self.nodes = nodes

    @classmethod
    def of(cls, root):
        return cls(len(root.toposort()))
"""
WHERE: Final = (
    "True",
    "True",
    "True",
    "a > b",
    "a < 0",
    "a == 0",
    "a == b",
    "b < 0",
    "b == 1",
    "a > 100",
    "a % 2 == 1",
)


def promised(rng: random.Random) -> str:
    """A rule file with a rule over integers, or an index, that holds by its helper's contract."""
    rule, result, ensures, right = rng.choice(templates()["promised"]).split(" | ")
    contextual = rng.random() < 0.3
    body = [f"r = {right}"]
    if rng.random() < 0.5:
        where = rng.choice((*WHERE, *(("around.nodes > 2",) * 3 if contextual else ())))
        body.append(f"if {where}: r = {rng.choice(WRONG).replace('R', f'({right})')}")
    at = rng.choice(INTS)
    partial = "?" if rng.random() < 0.3 else ""
    if partial:  # whether the rule applies is not said by its pattern and guards alone
        rule = rule.replace(" ~> ", " => ")
    body.append(f"return r if {rng.choice(('a != b', 'a >= 0', 'True'))} else None" if partial else "return r")
    module = PREFIX + hashlib.sha256("\n".join([*body, str(contextual)]).encode()).hexdigest()[:16]
    extern = f"extern f(a: int, b: int) -> (r: {result}){partial}\n    ensures {ensures}"
    said = "".join(f"{COMMENT}{line}\n" for line in body)
    group = 'group attack "a random rule"' + (f"\n@context {CONTEXT};" if contextual else "")
    return f'{said}\nhelpers "{module}"\n\n{extern}\n\n{group}\n\nr: {rule.replace("D", at)}\n'


def put(text: str, name: str) -> Outcome:
    """A rule and its helper put to trial: the contract is tested as `morok prove --trust-helpers` does."""
    with module_of(text):
        rule = rule_of(text)
        trust(str(rule.helpers))
        try:
            found = trial.fire(rule, name, trial.MORE)
            shown = str(found.different or "")
        except (ArithmeticError, TypeError) as raised:  # by the helper, which no rule may call then
            found, shown = trial.Fired(1), f"the helper raises {raised!r}"
        if not found.times:
            return Outcome("never")
        tested = promises.of_rules([rule], trust_helpers=True)[id(rule)]
        verdict = trial.verdict_of(rule, trial.BUDGET).with_contracts(tested)
        if not verdict.usable:
            state = verdict.verdict if verdict.verdict in STATES else "refuted"
            return Outcome(state, found.times, found.large, found.changed, message=verdict.message)
        scope = "; ".join((*verdict.scope, f"contracts: {verdict.contracts}"))
        return Outcome("false" if shown else "usable", found.times, found.large, found.changed, shown, scope)


def exercised(text: str) -> list[tuple[str, str]]:
    """The features of a rule that calls a helper, as morok.prove.attack.features names them."""
    with module_of(text):
        return features(rule_of(text))


def rule_of(text: str) -> CheckedRule:
    """The rule of a file whose module is there."""
    return trial.one_choice(next(iter(check_text(text, "<attack>").rules())))


@contextlib.contextmanager
def module_of(text: str) -> Iterator[None]:
    """The module of a rule file's helper is there, and what is learned of it is kept nowhere else."""
    body = [line.removeprefix(COMMENT) for line in text.splitlines() if line.startswith(COMMENT)]
    name = text.partition('helpers "')[2].partition('"')[0]
    kept = os.environ.get("MOROK_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{name}.py").write_text(_module(body, "@context" in text), encoding="utf-8")
        sys.path.insert(0, folder)
        os.environ["MOROK_CACHE_DIR"] = folder
        try:
            yield
        finally:
            sys.path.remove(folder)
            sys.modules.pop(name, None)
            if kept is None:
                del os.environ["MOROK_CACHE_DIR"]
            else:
                os.environ["MOROK_CACHE_DIR"] = kept


def _module(body: Sequence[str], contextual: bool) -> str:
    head = (
        [AROUND, f"@helper(context={CONTEXT})", "def f(a, b, around):"]
        if contextual
        else ["", "@helper", "def f(a, b):"]
    )
    lines = ["from morok import helper", *head, *(f"    {line}" for line in body)]
    return "\n".join([*lines, ""])
