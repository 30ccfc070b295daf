"""Every lock of the compiler, in one place: inside one no signal's handler runs, and a forked child finds all of them free.

A thread of the parent that holds a lock does not exist in the child, which would wait for it for ever. So whoever forks first
gets all locks, and waits for what other threads are compiling just now: in the child nothing is half done. That is why modules
that are imported late, LLVM for one, are imported inside a lock. Whoever holds a lock takes none that stands before it in `_ALL`.

The locks are reentrant: a garbage collection inside one may run finalizers of the program's, which may compute tensors.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from morok.interrupts import deferred

_turnstile: Final = threading.RLock()  # whoever forks holds it, so that no thread that has no lock yet gets one before


class _Mine(threading.local):
    held = 0  # locks that this thread has


_mine: Final = _Mine()


class Lock:
    """A lock, as `with lock:`.

    waits   whether a thread without locks waits until nobody is about to fork
    defers  whether signals' handlers wait until it is free again
    """

    __slots__ = ("inner", "waits", "defers")

    def __init__(self, waits: bool = False, defers: bool = True) -> None:
        self.inner = threading.RLock()
        self.waits = waits
        self.defers = defers

    def __enter__(self) -> None:
        if self.defers:
            deferred.__enter__()
        if self.waits and not _mine.held:
            with _turnstile:
                pass
        self.inner.acquire()
        _mine.held += 1

    def __exit__(self, *_: object) -> None:
        _mine.held -= 1
        self.inner.release()
        if self.defers:
            deferred.__exit__()


WRITES: Final = Lock(waits=True, defers=False)  # plans that write tensors that were there, one at a time: first of all locks
RULES: Final = Lock(waits=True)  # sets of rules, and their code
PARSER: Final = Lock(waits=True)  # the parser of expressions
KERNELS: Final = Lock(waits=True)  # from graphs to kernels, one at a time
DEVICES: Final = Lock()  # the devices there are
THREAD_POOL: Final = Lock()  # the threads that share kernels
COMPILER: Final = Lock()  # LLVM
REMEMBERED: Final = Lock()  # schedules and kernels
TENSORS: Final = Lock()  # what tensors are
TRACES: Final = Lock()  # what fired
NUMBERS: Final = Lock()  # how many random numbers were drawn
SOLVER: Final = Lock()  # the process that asks the solver
MEMORY: Final = Lock()  # freed memory

_ALL: Final = (
    WRITES,
    KERNELS,
    RULES,
    PARSER,
    DEVICES,
    THREAD_POOL,
    COMPILER,
    REMEMBERED,
    TENSORS,
    TRACES,
    NUMBERS,
    SOLVER,
    MEMORY,
)


def _get_all() -> None:
    deferred.__enter__()
    _turnstile.acquire()
    for lock in _ALL:
        lock.inner.acquire()


def _free_all() -> None:
    for lock in _ALL:
        lock.inner.release()
    _turnstile.release()
    deferred.__exit__()


os.register_at_fork(before=_get_all, after_in_parent=_free_all, after_in_child=_free_all)
