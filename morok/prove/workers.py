"""Proving many rules at once, in processes that can be killed.

Workers are forked, so that checked rules need no pickling; where a system cannot fork, rules are proved one after another.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import multiprocessing
import signal
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


@dataclass(slots=True, eq=False)
class _Worker:
    process: Any
    pipe: Connection
    task: int
    since: float


# Of glibc's mallopt: from which size on, and beyond how much left unused, memory is given back to the system
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3


def keep_memory() -> None:
    """Never give memory back: every question makes a context of tens of megabytes, and pages handed out anew cost more than
    most answers. Where the C library has no such wish, nothing changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, size in ((TRIM_THRESHOLD, 1 << 30), (TOP_PAD, 16 << 20), (MMAP_THRESHOLD, 32 << 20)):
            mallopt(parameter, size)


def is_measured(rule: CheckedRule) -> bool:
    return rule.syntax.within is not None


def _serve(
    pipe: Connection, others: Sequence[Connection], rules: Sequence[CheckedRule], task: int, budget: int, keep: bool
) -> None:
    """Prove one rule; or measure one, and those that the parent asks for next. `others` are the parent's ends of pipes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's, which ends its workers
    for end in others:
        end.close()
    keep_memory()
    if not is_measured(rules[task]):
        gc.disable()  # when terms die shows in how the solver prints and counts the rest
        pipe.send(judge(rules[task], budget, keep))
        return
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(judge(rules[task], budget, keep))
            task = pipe.recv()


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
    """Every proof in a process of its own: the solver orders operands by the age of its terms, so that the same question costs
    the same only where the same was built before it, which is nothing. No solver counts what is measured: there a process stays.

    Those with most instances come first, so that none of the long ones is left alone at the end.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        for i, rule in enumerate(rules):
            yield i, judge(rule, budget, keep)
        return
    import z3  # noqa: F401  (loaded once, before the workers are forked)

    import morok.prove.obligations  # noqa: F401

    for module, _, name in {tuple(r.dialect.theory.partition(":")) for r in rules}:
        getattr(importlib.import_module(module), name)

    context = multiprocessing.get_context("fork")
    gc.freeze()  # what there is now is shared by every process, and not copied by collections

    def start(task: int) -> _Worker:
        here, there = context.Pipe()
        process = context.Process(
            target=_serve, args=(there, [here, *(w.pipe for w in workers)], rules, task, budget, keep), daemon=True
        )
        process.start()
        there.close()
        return _Worker(process, here, task, time.monotonic())

    waiting = sorted(range(len(rules)), key=lambda i: (len(rules[i].instances), -i))
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < max(jobs, 1):
                workers.append(start(waiting.pop()))
            ready = wait([w.pipe for w in workers], timeout=1.0)
            for w in list(workers):
                if w.pipe in ready:
                    try:
                        verdict = w.pipe.recv()
                        stays = is_measured(rules[w.task])
                    except EOFError:
                        verdict = failure(rules[w.task], "error", "the prover's process died")
                        stays = False
                elif time.monotonic() - w.since < WALL_LIMIT:
                    continue
                else:
                    verdict = failure(rules[w.task], "unknown", f"no answer within {WALL_LIMIT:.0f} s")
                    stays = False
                yield w.task, verdict
                if stays and waiting and is_measured(rules[waiting[-1]]):
                    w.task, w.since = waiting.pop(), time.monotonic()
                    w.pipe.send(w.task)
                else:
                    _end(w)
                    workers.remove(w)
    finally:
        for w in workers:
            _end(w)


def _end(worker: _Worker) -> None:
    """A process that has answered has nothing left to do; one that has not is not waited for."""
    worker.process.kill()
    worker.process.join()
    worker.pipe.close()
