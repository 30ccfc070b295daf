"""Processes that do tasks, one each, and can be killed.

They are forked, so that tasks need no pickling; where a system cannot fork, or in a daemonic process of multiprocessing, which
may have no children, tasks are done one after another. Where it gives no more processes, or no more of what they need, there are
as many as there can be.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Generic, TypeVar

from morok.interrupts import check, deferred
from morok.prove.limits import UNLIMITED, Limits

PATIENCE: Final = 0.1  # seconds between looks for a signal that waits
_FILES: Final = 6  # the two ends of a pipe, and of two more that `multiprocessing` makes
DIED: Final = "the prover's process died"

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class _Worker(Generic[T]):
    """A process with a task.

    shares  whether it has done one of the tasks that go together
    """

    process: Any
    pipe: Connection
    task: T
    since: float
    shares: bool


def _serve(pipe: Connection, others: Sequence[Connection], work: Callable[[T], R], task: T) -> None:
    """Do a task, and then what the parent asks for next, if anything.

    others  the parent's ends of pipes, this process's among them: it ends when the parent closes its own
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's, which ends its workers
    for end in others:
        end.close()
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(work(task))
            task = pipe.recv()


def in_processes(
    tasks: deque[T],
    work: Callable[[T], R],
    died: Callable[[T, str], R],
    jobs: int,
    together: Container[T] = (),
    limits: Limits = UNLIMITED,
    stay: bool = False,
) -> Iterator[tuple[T, R]]:
    """The answers of `work` to tasks, as they come; who receives one may add tasks. `died` stands in where there is no answer.

    Every task is in a process of its own, so that one that hangs, or runs out of memory, ends alone; unless processes `stay`, and
    do one task after another. Those that go `together` share a process in any case: it loads what they need, and another process
    does so only when nothing else is left to do.
    """
    if "fork" not in multiprocessing.get_all_start_methods() or multiprocessing.current_process().daemon:  # may have no children
        while tasks:
            task = tasks.popleft()
            check()
            why = limits.reached(time.monotonic())
            yield task, died(task, why) if why else work(task)
        return
    with deferred:  # an interrupt ends the workers, all of them
        yield from _in_workers(tasks, work, died, jobs, together, limits, stay)


def _in_workers(
    tasks: deque[T],
    work: Callable[[T], R],
    died: Callable[[T, str], R],
    jobs: int,
    together: Container[T],
    limits: Limits,
    stay: bool,
) -> Iterator[tuple[T, R]]:
    context = multiprocessing.get_context("fork")
    froze = not gc.get_freeze_count()
    if froze:
        gc.freeze()  # what there is now is shared by every process, and not copied by collections

    workers: list[_Worker[T]] = []
    ended: list[Any] = []
    most = max(jobs, 1)

    def start(task: T) -> bool:
        """True if the system gives a process for this task."""
        if not _descriptors():
            return False
        here, there = context.Pipe()
        others = [here, *(w.pipe for w in workers)]
        process = context.Process(target=_serve, args=(there, others, work, task), daemon=True)
        try:
            process.start()
        except OSError:
            here.close()
            return False
        finally:
            there.close()
        workers.append(_Worker(process, here, task, time.monotonic(), task in together))
        return True

    def following(worker: _Worker[T] | None) -> T | None:
        """The next task for a process, or for a new one; None if it has none."""
        if worker is not None and not stay:
            return next((t for t in tasks if t in together), None) if worker.shares else None
        shared = any(w.shares for w in workers if w is not worker)
        return next((t for t in tasks if not (shared and t in together)), tasks[0] if tasks else None)

    def start_next() -> bool:
        task = following(None)
        assert task is not None
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
                task, answered = w.task, False
                if w.pipe in ready:
                    try:
                        answer = w.pipe.recv()
                        answered = True
                    except EOFError:
                        answer = died(task, DIED)
                elif why := limits.reached(w.since):
                    answer = died(task, why)
                else:
                    continue
                if answered and (further := following(w)) is not None:
                    tasks.remove(further)
                    w.task, w.since, w.shares = further, time.monotonic(), w.shares or further in together
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
    """True if this process can open as many files as it takes to start another."""
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
