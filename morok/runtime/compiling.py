"""Work on a thread of its own: LLVM works outside of Python's lock, so the next kernel is lowered while one is compiled.

Such a thread should be little but one foreign call. Python's lock, once given back, is had again only when the thread that works
meanwhile is made to let go of it, every 5 ms: work of many short calls would wait for most of that thread's.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from morok.interrupts import check, deferred

T = TypeVar("T")
_PATIENCE: Final = 0.05  # seconds between looks for a signal that waits


class Aside(threading.Thread, Generic[T]):
    """Work that is being done, under the settings of the thread that began it."""

    def __init__(self, work: Callable[[], T], name: str) -> None:
        super().__init__(name=name)
        self._work: tuple[contextvars.Context, Callable[[], T]] | None = (contextvars.copy_context(), work)
        self._done: list[T] = []
        self._problem: BaseException | None = None
        with deferred:
            try:
                self.start()
            except RuntimeError:  # the system gives no more threads: the work is done here
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
        """The result of the work, once it is done; raises what it raised."""
        with deferred:
            while self.is_alive():
                self.join(_PATIENCE)
                check()
            if self._work is not None:  # this is a forked child, where the thread is not
                self.run()
        if self._problem is not None:
            raise self._problem
        return self._done[0]
