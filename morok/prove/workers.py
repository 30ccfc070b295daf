"""Proving many rules at once, in processes that can be killed.

Workers are forked, so that checked rules need no pickling; where a system cannot fork, rules are proved one after another.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from morok.dsl.checked import CheckedRule
from morok.prove.verdict import Verdict

WALL_LIMIT: Final = 900.0  # seconds a rule: a safety net far beyond what the budget allows


def failure(rule: CheckedRule, verdict: str, message: str) -> Verdict:
    """A verdict that says why there is none; never recorded."""
    return Verdict(rule.name, rule.file, rule.line, verdict, message=message, helpers=tuple(sorted(rule.externs)), final=False)


def judge(rule: CheckedRule, budget: int, keep: bool) -> Verdict:
    """Prove one rule; what goes wrong inside the prover is a verdict too."""
    try:
        if rule.syntax.within is not None:
            from morok.prove.measure import judge as judge_by_measuring

            return judge_by_measuring(rule)
        from morok.prove.obligations import prove_rule

        return prove_rule(rule, budget, keep)
    except Exception as problem:  # reported as the verdict `error`, which no gate lets pass
        return failure(rule, "error", f"{type(problem).__name__}: {problem}")


@dataclass(slots=True)
class _Worker:
    process: Any
    pipe: Connection
    task: int = -1
    since: float = 0.0


def _serve(pipe: Connection, rules: Sequence[CheckedRule], budget: int, keep: bool) -> None:
    while (task := pipe.recv()) is not None:
        pipe.send((task, judge(rules[task], budget, keep)))


def prove_all(
    rules: Sequence[CheckedRule], budget: int, jobs: int, keep: bool, done: Callable[[Verdict], None] | None = None
) -> list[Verdict]:
    """The verdicts on these rules, in their order; `done` hears of each as it comes."""
    found: dict[int, Verdict] = {}
    for task, verdict in _answers(rules, budget, jobs, keep):
        found[task] = verdict
        if done is not None:
            done(verdict)
    return [found[i] for i in range(len(rules))]


def _answers(rules: Sequence[CheckedRule], budget: int, jobs: int, keep: bool) -> Iterator[tuple[int, Verdict]]:
    if min(jobs, len(rules)) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        for i, rule in enumerate(rules):
            yield i, judge(rule, budget, keep)
        return
    import z3  # noqa: F401  (loaded once, before the workers are forked)

    import morok.prove.obligations  # noqa: F401

    context = multiprocessing.get_context("fork")

    def start() -> _Worker:
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, rules, budget, keep), daemon=True)
        process.start()
        there.close()
        return _Worker(process, here)

    waiting = list(range(len(rules) - 1, -1, -1))
    workers = [start() for _ in range(min(jobs, len(rules)))]
    try:
        while waiting or any(w.task >= 0 for w in workers):
            for w in workers:
                if w.task < 0 and waiting:
                    w.task, w.since = waiting.pop(), time.monotonic()
                    w.pipe.send(w.task)
            ready = wait([w.pipe for w in workers if w.task >= 0], timeout=1.0)
            for at, w in enumerate(workers):
                if w.pipe in ready:
                    try:
                        yield w.pipe.recv()
                        w.task = -1
                        continue
                    except EOFError:
                        yield w.task, failure(rules[w.task], "error", "the prover's process died")
                elif w.task < 0 or time.monotonic() - w.since < WALL_LIMIT:
                    continue
                else:
                    yield w.task, failure(rules[w.task], "unknown", f"no answer within {WALL_LIMIT:.0f} s")
                w.process.kill()
                w.process.join()
                workers[at] = start()
    finally:
        for w in workers:
            if w.process.is_alive():
                if w.task < 0:
                    w.pipe.send(None)
                else:
                    w.process.kill()
            w.process.join()
            w.pipe.close()
