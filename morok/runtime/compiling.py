"""Work on another thread: LLVM runs without Python's global lock, so the next kernel is lowered while one is compiled.

The work should be one long foreign call. After each call the thread must regain the lock, which a busy thread gives up only every
5 ms (Python's switch interval): many short calls would mostly wait for the lock.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from morok.interrupts import check, deferred

T = TypeVar("T")
_PATIENCE: Final = 0.05  # seconds between checks for pending signals


class Aside(threading.Thread, Generic[T]):
    """A thread that does `work` once, under the settings (context variables) of the thread that made it."""

    def __init__(self, work: Callable[[], T], name: str) -> None:
        super().__init__(name=name)
        self._work: tuple[contextvars.Context, Callable[[], T]] | None = (contextvars.copy_context(), work)
        self._done: list[T] = []
        self._problem: BaseException | None = None
        with deferred:
            try:
                self.start()
            except RuntimeError:  # no more threads: work here
                self.run()

    def run(self) -> None:
        assert self._work is not None
        context, work = self._work
        try:
            self._done.append(context.run(work))
        except BaseException as problem:
            self._problem = problem
        self._work = None

    def result(self) -> T:
        """The result of the work, once it is done; any exception that the work raised."""
        with deferred:
            while self.is_alive():
                self.join(_PATIENCE)
                check()
            if self._work is not None:  # a forked child: the thread exists in the parent only
                self.run()
        if self._problem is not None:
            raise self._problem
        return self._done[0]
