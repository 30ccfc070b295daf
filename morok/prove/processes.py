"""Processes that do tasks, one each, and can be killed.

They are forked, so that tasks need no pickling; where a system cannot fork, or in a daemonic process of multiprocessing, which
may have no children, tasks are done one after another. Where it gives no more processes, or no more of what they need, there are
as many as there can be.
"""

from __future__ import annotations

import contextlib
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
    # may have no children
    if "fork" not in multiprocessing.get_all_start_methods() or multiprocessing.current_process().daemon:
        while tasks:
            task = tasks.popleft()
            check()
            why = limits.over()
            yield task, died(task, why) if why else work(task)
        return
    with deferred:  # an interrupt ends the workers, all of them
        yield from _Workers(tasks, work, died, jobs, together, limits, stay).answers()


class _Workers(Generic[T, R]):
    """The processes that do tasks, at most so many at a time.

    workers  those with a task; `ended` are those that have ended, and may still have to be joined
    most     how many there can be: fewer than asked for where the system gives no more
    """

    def __init__(
        self,
        tasks: deque[T],
        work: Callable[[T], R],
        died: Callable[[T, str], R],
        jobs: int,
        together: Container[T],
        limits: Limits,
        stay: bool,
    ) -> None:
        self.tasks = tasks
        self.work = work
        self.died = died
        self.together = together
        self.limits = limits
        self.stay = stay
        self.context = multiprocessing.get_context("fork")
        self.workers: list[_Worker[T]] = []
        self.ended: list[Any] = []
        self.most = max(jobs, 1)

    def answers(self) -> Iterator[tuple[T, R]]:
        try:
            while self.tasks or self.workers:
                while self.tasks and (why := self.limits.over()):
                    task = self.tasks.popleft()
                    yield task, self.died(task, why)
                self.fill()
                if self.workers:
                    yield from self.answered()
                elif self.tasks:  # there can be none at all
                    task = self.tasks.popleft()
                    check()
                    yield task, self.work(task)
        finally:
            for process in [*self.ended, *map(_ended, self.workers)]:
                process.join()

    def fill(self) -> None:
        """Start as many processes as there may be, and as there are tasks for."""
        while self.tasks and len(self.workers) < self.most:
            if not self.start():
                self.most = len(self.workers)

    def start(self) -> bool:
        """True if the system gives a process for the next task."""
        if not _descriptors():
            return False
        task = self.following(None)
        assert task is not None
        here, there = self.context.Pipe()
        others = [here, *(w.pipe for w in self.workers)]
        process = self.context.Process(target=_serve, args=(there, others, self.work, task), daemon=True)
        try:
            process.start()
        except OSError:
            here.close()
            return False
        finally:
            there.close()
        self.workers.append(_Worker(process, here, task, time.monotonic(), task in self.together))
        self.tasks.remove(task)
        return True

    def following(self, worker: _Worker[T] | None) -> T | None:
        """The next task for a process, or for a new one; None if it has none."""
        if worker is not None and not self.stay:
            return next((t for t in self.tasks if t in self.together), None) if worker.shares else None
        shared = any(w.shares for w in self.workers if w is not worker)
        return next(
            (t for t in self.tasks if not (shared and t in self.together)), self.tasks[0] if self.tasks else None
        )

    def answered(self) -> Iterator[tuple[T, R]]:
        """The answers that come within PATIENCE, of processes that get their next tasks, or end."""
        ready = wait([w.pipe for w in self.workers], timeout=PATIENCE)
        check()
        for w in list(self.workers):
            task, answered = w.task, False
            if w.pipe in ready:
                try:
                    answer = w.pipe.recv()
                    answered = True
                except EOFError:
                    answer = self.died(task, DIED)
            elif why := self.limits.reached(w.since):
                answer = self.died(task, why)
            else:
                continue
            if answered and (further := self.following(w)) is not None:
                self.tasks.remove(further)
                w.task, w.since, w.shares = further, time.monotonic(), w.shares or further in self.together
                w.pipe.send(w.task)
            else:
                self.ended.append(_ended(w))
                self.workers.remove(w)
                self.fill()  # while that one's memory is given back
                self.ended = [p for p in self.ended if p.is_alive()]
            yield task, answer


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
