"""Verdicts on many rules at once, each found in a process of its own (morok.prove.processes)."""

from __future__ import annotations

import contextlib
import importlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from morok.dialect import built_in
from morok.dsl.checked import CheckedRule
from morok.dsl.declared import Mistake
from morok.errors import UntrustedHelperError
from morok.prove import ledger, sources, verified
from morok.prove.effort import efforts
from morok.prove.limits import UNLIMITED, Limits
from morok.prove.measuring import measuring
from morok.prove.obligation_store import digest_of
from morok.prove.obligations import encodings, prove_rule, theory_of
from morok.prove.processes import DIED, in_processes
from morok.prove.smt.session import Died, start
from morok.prove.verdict import Verdict


def failure(rule: CheckedRule, verdict: str, message: str) -> Verdict:
    """A verdict that says why there is none; never recorded."""
    return Verdict(
        rule.name, rule.file, rule.line, verdict, message=message, helpers=tuple(sorted(rule.externs)), final=False
    )


def judge(rule: CheckedRule, budget: int, keep: bool, told: str = "") -> Verdict:
    """Prove one rule; what goes wrong inside the prover is a verdict too.

    keep    return what a record needs: the obligations with their digest, and that of the meaning where it takes long
            (of compiled code)
    told    a digest of the code that tells the solver of the rule's dialect, of which the verdict is to be (`told_of`)
    """
    try:
        if is_measured(rule):
            verdict = measuring().judge(rule)
            return replace(verdict, digest=ledger.rule_digest(rule)) if keep else verdict
        if not built_in(rule.dialect) and (wrong := list(_unverified(rule))):
            return failure(rule, "broken", verified.message(rule.dialect.name, wrong))
        verdict = prove_rule(rule, budget, keep)
        if told and sources.told_digest(rule) != told:  # asked now, when all of that code is loaded
            what = f"the code that tells the solver of dialect {rule.dialect.name} is not what its files said at first: they were"
            return failure(rule, "unknown", f"{what} edited meanwhile, or Python has loaded older byte code of them")
        return replace(verdict, questions=digest_of(verdict.obligations)) if keep else verdict
    except UntrustedHelperError as problem:  # only calls of its helpers could tell
        return failure(rule, "unknown", str(problem))
    except Died as problem:
        return failure(rule, "unknown", f"the solver's process died: {problem}")
    except Exception as problem:  # reported as the verdict `error`, which no gate lets pass
        return failure(rule, "error", f"{type(problem).__name__}: {problem}")


def _unverified(rule: CheckedRule) -> Iterator[Mistake]:
    """The mistakes in what the verification of a dialect has not seen and a rule uses: its numbers, and encodings of its own."""
    theory = theory_of(rule)
    yield from verified.literal_mistakes(rule, theory)
    yield from verified.encoding_mistakes(rule, theory, [a for i in rule.instances for a in encodings(rule, i, theory)])


def told_of(rules: Sequence[CheckedRule]) -> list[str]:
    """For each of these rules a digest of the code that tells the solver of its dialect; "" for the built-in one's."""
    load_solver(rules)
    return ["" if built_in(r.dialect) else sources.told_digest(r) for r in rules]


def is_measured(rule: CheckedRule) -> bool:
    return rule.syntax.within is not None


def prove_all(
    rules: Sequence[CheckedRule],
    budget: int,
    jobs: int,
    keep: bool,
    done: Callable[[CheckedRule, Verdict], None] | None = None,
    limits: Limits = UNLIMITED,
    told: Sequence[str] | None = None,
) -> list[Verdict]:
    """The verdicts on these rules, in their order; `done` hears of each as it comes: names do not tell rules apart.

    Those that take longest come first, so that none of them is left alone at the end: what is measured, which is one after the
    other in one process, and then proofs.

    told    what `told_of` says of these rules, if it was asked before
    """
    found: dict[int, Verdict] = {}

    def died(task: int, why: str) -> Verdict:
        return failure(rules[task], "error" if why == DIED else "unknown", why)

    known = told_of(rules) if told is None else told
    for task, wrong in verified.broken(rules).items():
        found[task] = failure(rules[task], "broken", verified.message(rules[task].dialect.name, wrong))
        if done is not None:
            done(rules[task], found[task])
    needed = efforts(rules)
    measured = {i for i, r in enumerate(rules) if is_measured(r)}
    sound = [i for i in range(len(rules)) if i not in found]
    tasks = deque(sorted(sound, key=lambda i: (i not in measured, -needed[i])))
    # one more than there are jobs: who asks waits for the solver, which is a process of its own
    asking = jobs + (jobs > 1)
    for task, verdict in in_processes(
        tasks, lambda i: judge(rules[i], budget, keep, known[i]), died, asking, measured, limits, stay=True
    ):
        found[task] = verdict
        if done is not None:
            done(rules[task], verdict)
    return [found[i] for i in range(len(rules))]


def load_solver(rules: Iterable[CheckedRule]) -> None:
    """Start the solver, and load the theories and ops of these rules: once, before processes are forked."""
    start()
    dialects = {id(r.dialect): r.dialect for r in rules}
    for dialect in dialects.values():
        for place in {dialect.theory, *(info.solver for info in dialect.ops.values())} - {""}:
            module, _, name = place.partition(":")
            # the verification of a foreign dialect says what is wrong
            with contextlib.suppress(*(() if built_in(dialect) else (Exception,))):
                getattr(importlib.import_module(module), name)
