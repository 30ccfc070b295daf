"""All locks of the compiler: signal handlers do not run inside one, and in a forked child all are free.

A thread that holds a lock in the parent does not exist in the child, which would wait for it forever. So a fork first acquires
all locks, and waits for compilations of other threads: the child's state is consistent. (It waits for their imports too, see
`late_imports`.) Locks are acquired in the order of `_ALL`, to avoid deadlocks.

The locks are reentrant: a garbage collection inside one may run the program's finalizers, which may compute tensors.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from morok.interrupts import deferred
from morok.late_imports import hold_before_a_fork

_turnstile: Final = threading.RLock()  # held during a fork: threads without locks wait for it before they acquire one


class _Mine(threading.local):
    held = 0  # number of locks held by this thread
    forks = False


_mine: Final = _Mine()


class Lock:
    """A lock, used as `with lock:`.

    waits   True if a thread without locks waits for a fork in progress
    defers  True if signal handlers are deferred until it is released
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


WRITES: Final = Lock(waits=True, defers=False)  # runs of plans that write to existing tensors; the outermost lock
RULES: Final = Lock(waits=True)  # rule sets and their matchers
PARSER: Final = Lock(waits=True)  # the parser of expressions
KERNELS: Final = Lock(waits=True)  # scheduling and lowering of graphs
DEVICES: Final = Lock()  # the table of devices
THREAD_POOL: Final = Lock()  # the worker threads of kernels
COMPILER: Final = Lock()  # LLVM
REMEMBERED: Final = Lock()  # caches of schedules and kernels
TENSORS: Final = Lock()  # the nodes of tensors
TRACES: Final = Lock()  # records of firings
NUMBERS: Final = Lock()  # the state of the random number generator
SOLVER: Final = Lock()  # the solver process
MEMORY: Final = Lock()  # the pool of freed memory

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
    _mine.forks = True


def _free_all() -> None:
    if not _mine.forks:  # the fork had begun when another thread imported this module
        return
    _mine.forks = False
    for lock in _ALL:
        lock.inner.release()
    _turnstile.release()
    deferred.__exit__()


hold_before_a_fork(_get_all, _free_all)
os.register_at_fork(after_in_parent=_free_all, after_in_child=_free_all)
