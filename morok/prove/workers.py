"""Proving many rules at once, in processes that can be killed.

Workers are forked, so that checked rules need no pickling; where a system cannot fork, or in a daemonic process of
multiprocessing, which may have no children, rules are proved one after another. Where it gives no more processes, or no more of
what they need, there are as many as there can be.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import mmap
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Generic, TypeVar

from morok.dialect import built_in
from morok.dsl.checked import CheckedRule
from morok.errors import UntrustedHelperError
from morok.interrupts import check, deferred
from morok.prove import ledger, verified
from morok.prove.effort import efforts
from morok.prove.limits import UNLIMITED, Limits
from morok.prove.obligation_store import digest_of
from morok.prove.verdict import Verdict

PATIENCE: Final = 0.1  # seconds between looks for a signal that waits
_FILES: Final = 6  # the two ends of a pipe, and of two more that `multiprocessing` makes
DIED: Final = "the prover's process died"

T = TypeVar("T")
R = TypeVar("R")


def failure(rule: CheckedRule, verdict: str, message: str) -> Verdict:
    """A verdict that says why there is none; never recorded."""
    return Verdict(rule.name, rule.file, rule.line, verdict, message=message, helpers=tuple(sorted(rule.externs)), final=False)


def judge(rule: CheckedRule, budget: int, keep: bool) -> Verdict:
    """Prove one rule; what goes wrong inside the prover is a verdict too.

    keep    return what a record needs: the obligations with their digest, and that of the meaning where it takes long
            (of compiled code)
    """
    try:
        if is_measured(rule):
            from morok.prove.measure import judge as judge_by_measuring

            verdict = judge_by_measuring(rule)
            return replace(verdict, digest=ledger.rule_digest(rule)) if keep else verdict
        from morok.prove.obligations import prove_rule, theory_of

        if not built_in(rule.dialect) and (wrong := list(verified.literal_mistakes(rule, theory_of(rule)))):
            return failure(rule, "broken", verified.message(rule.dialect.name, wrong))
        verdict = prove_rule(rule, budget, keep)
        return replace(verdict, questions=digest_of(verdict.obligations)) if keep else verdict
    except UntrustedHelperError as problem:  # only calls of its helpers could tell
        return failure(rule, "unknown", str(problem))
    except Exception as problem:  # reported as the verdict `error`, which no gate lets pass
        return failure(rule, "error", f"{type(problem).__name__}: {problem}")


# Of glibc's mallopt: from which size on, and beyond how much left unused, memory is given back to the system
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3


LARGE_PAGE: Final = 2 << 20
RESERVED: Final = 3  # pieces just below the size that would be mapped on its own: what nearly every question is content with


def keep_memory() -> None:
    """Never give memory back: every question makes a context of tens of megabytes, and pages handed out anew cost more than
    most answers. Where the C library has no such wish, nothing changes.
    """
    library = ctypes.CDLL(None)
    mallopt = getattr(library, "mallopt", None)
    if mallopt is not None:
        for parameter, size in ((TRIM_THRESHOLD, 1 << 30), (TOP_PAD, 16 << 20), (MMAP_THRESHOLD, 32 << 20)):
            mallopt(parameter, size)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            _use_large_pages(library, 30 << 20)


def _use_large_pages(library: Any, size: int) -> None:
    """Have what is allocated next come in large pages: a context touches four thousand small ones, each of which costs a
    microsecond. The pieces that are reserved here, and freed again untouched, are what the heap grows by.
    """
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = (ctypes.c_size_t,)
    library.free.argtypes = (ctypes.c_void_p,)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    pieces = [piece for piece in (library.malloc(size) for _ in range(RESERVED)) if piece is not None]
    for piece in pieces:
        start = -(-piece // LARGE_PAGE) * LARGE_PAGE
        library.madvise(start, (piece + size - start) // LARGE_PAGE * LARGE_PAGE, mmap.MADV_HUGEPAGE)
    for piece in pieces:
        library.free(piece)


def is_measured(rule: CheckedRule) -> bool:
    return rule.syntax.within is not None


def prove_all(
    rules: Sequence[CheckedRule],
    budget: int,
    jobs: int,
    keep: bool,
    done: Callable[[Verdict], None] | None = None,
    limits: Limits = UNLIMITED,
) -> list[Verdict]:
    """The verdicts on these rules, in their order; `done` hears of each as it comes.

    Those that take longest come first, so that none of them is left alone at the end: what is measured, which is one after the
    other in one process, and then proofs.
    """
    found: dict[int, Verdict] = {}

    def died(task: int, why: str) -> Verdict:
        return failure(rules[task], "error" if why == DIED else "unknown", why)

    load_solver(rules)
    for task, wrong in verified.broken(rules).items():
        found[task] = failure(rules[task], "broken", verified.message(rules[task].dialect.name, wrong))
        if done is not None:
            done(found[task])
    needed = efforts(rules)
    measured = {i for i, r in enumerate(rules) if is_measured(r)}
    sound = [i for i in range(len(rules)) if i not in found]
    tasks = deque(sorted(sound, key=lambda i: (i not in measured, -needed[i])))
    for task, verdict in in_processes(tasks, lambda i: judge(rules[i], budget, keep), died, jobs, measured, limits):
        found[task] = verdict
        if done is not None:
            done(verdict)
    return [found[i] for i in range(len(rules))]


def load_solver(rules: Iterable[CheckedRule]) -> None:
    """Load the solver, the theories and ops of these rules, and what reads them: once, before processes are forked."""
    import z3  # noqa: F401

    import morok.prove.obligations  # noqa: F401

    dialects = {r.dialect.name: r.dialect for r in rules}
    for dialect in dialects.values():
        for place in {dialect.theory, *(info.solver for info in dialect.ops.values())} - {""}:
            module, _, name = place.partition(":")
            with contextlib.suppress(*(() if built_in(dialect) else (Exception,))):  # its verification says what is wrong
                getattr(importlib.import_module(module), name)
    if "morok" in dialects:  # what other dialects have no use for
        for name in ("monoid", "structure", "reindexing", "counting"):
            importlib.import_module(f"morok.prove.encoding.{name}")


@dataclass(slots=True, eq=False)
class _Worker(Generic[T]):
    process: Any
    pipe: Connection
    task: T
    since: float


def _serve(pipe: Connection, others: Sequence[Connection], work: Callable[[T], R], task: T, staying: Container[T]) -> None:
    """Do one task; or one of those for which a process stays, and then what the parent asks for next.

    others  the parent's ends of pipes, this process's among them: it ends when the parent closes its own
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's, which ends its workers
    for end in others:
        end.close()
    keep_memory()
    if task not in staying:
        gc.disable()  # when terms die shows in how the solver prints and counts the rest
        pipe.send(work(task))
        return
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(work(task))
            task = pipe.recv()


def in_processes(
    tasks: deque[T],
    work: Callable[[T], R],
    died: Callable[[T, str], R],
    jobs: int,
    staying: Container[T] = (),
    limits: Limits = UNLIMITED,
) -> Iterator[tuple[T, R]]:
    """What `work` makes of each task, as it comes; who receives it may add tasks. `died` stands in where there is no answer.

    Every task is in a process of its own: the solver orders operands by the age of its terms, so that the same question costs the
    same only where the same was built before it, which is nothing. But those `staying`, which ask no solver, share one: it loads
    what they need, and another process does so only when nothing else is left to do.
    """
    if "fork" not in multiprocessing.get_all_start_methods() or multiprocessing.current_process().daemon:  # may have no children
        while tasks:
            task = tasks.popleft()
            check()
            why = limits.reached(time.monotonic())
            yield task, died(task, why) if why else work(task)
        return
    with deferred:  # an interrupt ends the workers, all of them
        yield from _in_workers(tasks, work, died, jobs, staying, limits)


def _in_workers(
    tasks: deque[T], work: Callable[[T], R], died: Callable[[T, str], R], jobs: int, staying: Container[T], limits: Limits
) -> Iterator[tuple[T, R]]:
    context = multiprocessing.get_context("fork")
    froze = not gc.get_freeze_count()
    if froze:
        gc.freeze()  # what there is now is shared by every process, and not copied by collections

    workers: list[_Worker[T]] = []
    ended: list[Any] = []
    most = max(jobs, 1)

    def start(task: T) -> bool:
        """Whether the system gives a process for this task."""
        if not _descriptors():
            return False
        here, there = context.Pipe()
        others = [here, *(w.pipe for w in workers)]
        process = context.Process(target=_serve, args=(there, others, work, task, staying), daemon=True)
        try:
            process.start()
        except OSError:
            here.close()
            return False
        finally:
            there.close()
        workers.append(_Worker(process, here, task, time.monotonic()))
        return True

    def start_next() -> bool:
        shared = any(w.task in staying for w in workers)
        task = next((t for t in tasks if not (shared and t in staying)), tasks[0])
        started = start(task)
        if started:
            tasks.remove(task)
        return started

    try:
        while tasks or workers:
            while tasks and (why := limits.reached(time.monotonic())):
                task = tasks.popleft()
                yield task, died(task, why)
            if not tasks and not workers:
                return
            while tasks and len(workers) < most:
                if not start_next():
                    most = len(workers)
            if not workers:  # there can be none at all
                task = tasks.popleft()
                check()
                yield task, work(task)
                continue
            ready = wait([w.pipe for w in workers], timeout=PATIENCE)
            check()
            for w in list(workers):
                task, stays = w.task, False
                if w.pipe in ready:
                    try:
                        answer = w.pipe.recv()
                        stays = task in staying
                    except EOFError:
                        answer = died(task, DIED)
                elif why := limits.reached(w.since):
                    answer = died(task, why)
                else:
                    continue
                if stays and (further := next((t for t in tasks if t in staying), None)) is not None:
                    tasks.remove(further)
                    w.task, w.since = further, time.monotonic()
                    w.pipe.send(w.task)
                else:
                    ended.append(_ended(w))
                    workers.remove(w)
                    if tasks and len(workers) < most and not start_next():  # while that one's memory is given back
                        most = len(workers)
                    ended = [p for p in ended if p.is_alive()]
                yield task, answer
    finally:
        for process in [*ended, *map(_ended, workers)]:
            process.join()
        if froze:
            gc.unfreeze()


def _descriptors() -> bool:
    """Whether this process can open as many files as it takes to start another."""
    opened: list[int] = []
    try:
        for _ in range(_FILES):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return True


def _ended(worker: _Worker[Any]) -> Any:
    """A process that has answered has nothing left to do; one that has not is not waited for. It is still to be joined."""
    worker.process.kill()
    worker.pipe.close()
    return worker.process
