"""The thread pool of the CPU: worker threads that share kernels, and jobs, which run the records of a plan by one foreign call.

Free threads, the caller included, take parts one by one: a worker that sleeps, or is scheduled late, delays nothing, and without
workers the caller does all parts. After their last part workers poll for about 0.1 ms, then sleep. They run no Python, block all
signals, are stopped and joined at exit, and do not exist in a forked child, which starts its own. One caller at a time has the
workers; meanwhile others compute alone. The code of all threads is in `shared_kernels`.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import signal
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from morok.locks import THREAD_POOL
from morok.runtime.cache import disk_cache
from morok.runtime.jit import compile_text
from morok.runtime.loading import Library
from morok.runtime.shared_kernels import EPOCH, FUTEX, FUTEX_WAKE, JOB_WORDS, POOL_WORDS, SHARED, SLEEPERS, STOP, text

# CFUNCTYPE releases the interpreter's lock for the call; PYFUNCTYPE would keep it.
_RUN: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@functools.cache
def _loaded() -> Library:
    return compile_text(text(), "run", "code", disk_cache(), also=("worker", "timed")).keep


def _addresses() -> Mapping[str, int]:
    """The addresses of `run`, `worker` and `timed`, loaded once for each process, since workers never leave their code.

    The lock prevents two threads from loading it: one copy would be unloaded while its workers run.
    """
    with THREAD_POOL:
        return _loaded().addresses


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


class ThreadPool:
    """The workers of this process, started on first use.

    address  address of the words that they and their callers share
    """

    def __init__(self) -> None:
        words = np.zeros(POOL_WORDS + 8, np.int64)
        self.state = words[-words.ctypes.data % 64 // 8 :][:POOL_WORDS]
        self.address: int = self.state.ctypes.data
        self.handles: list[int] = []
        self.refused = False

    def ensure(self, workers: int, worker: int) -> None:
        """Start workers until there are `workers`, or the system refuses; they run the function at address `worker`."""
        if len(self.handles) >= workers or self.refused:
            return
        with THREAD_POOL:
            # workers inherit the signal mask: signals must arrive in Python's threads
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                while len(self.handles) < workers and not self.refused:
                    handle = ctypes.c_ulong()
                    status = _libc().pthread_create(
                        ctypes.byref(handle), None, ctypes.c_void_p(worker), ctypes.c_void_p(self.address)
                    )
                    if status:
                        self.refused = True  # fewer workers: callers compute more parts
                    else:
                        self.handles.append(handle.value)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    @property
    def asleep(self) -> int:
        """The number of sleeping workers."""
        return int(self.state[SLEEPERS])

    @property
    def shared(self) -> int:
        """The number of kernels, or groups of them, handed to workers so far."""
        return int(self.state[SHARED])

    def dismiss(self) -> None:
        """Stop all workers after their current parts, and join them."""
        with THREAD_POOL:
            self.state[STOP] = 1
            self.state[EPOCH] += 1
            at = ctypes.c_void_p(self.address + 8 * EPOCH)
            _libc().syscall(ctypes.c_long(FUTEX), at, FUTEX_WAKE, len(self.handles), None, None, 0)
            for handle in self.handles:
                _libc().pthread_join(ctypes.c_ulong(handle), None)
            self.handles.clear()
            self.refused = True


pool = ThreadPool()


def _forget() -> None:
    """Replace the pool in a forked child, which has no workers; the parent's caller would never release the old one."""
    global pool
    pool = ThreadPool()


os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: pool.dismiss())  # the pool at exit: a forked child has another one


class Job:
    """The records of a plan, one in each row, that run() executes in order, on up to `threads` threads.

    times  array [records, 2] of i64 for the beginning and end of each, in nanoseconds of the monotonic clock; None: no timing
    """

    def __init__(
        self, records: np.ndarray[Any, Any], threads: int = 1, times: np.ndarray[Any, Any] | None = None
    ) -> None:
        self.threads = threads
        self._pool: ThreadPool | None = None
        self._run = _RUN(_addresses()["run"])
        timed = len(records) if times is not None else 0
        self._words = np.zeros((1 + timed, JOB_WORDS), np.int64)  # this job, and a job for each timed record
        self._at: int = self._words.ctypes.data
        self._records = records if times is None else self._timed(records, times)
        self._words[0] = self._records.ctypes.data, len(self._records), 0, threads - 1

    def _timed(self, records: np.ndarray[Any, Any], times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Records that run each of `records` as a job of its own, and store its times."""
        timed = _addresses()["timed"]
        self._inside = records.copy()
        out = np.zeros_like(records)
        for i, (*_, words, _, parts) in enumerate(records.tolist()):
            self._inside[i, -1] = parts if words else 1
            self._words[1 + i] = self._inside[i].ctypes.data, 1, 0, self.threads - 1
            out[i] = timed, self._words[1 + i].ctypes.data, times[i].ctypes.data, 0, 0, 1 if words else parts
        return out

    def run(self) -> None:
        if self.threads > 1 and self._pool is not pool:
            self._pool = pool
            pool.ensure(self.threads - 1, _addresses()["worker"])
            self._words[:, 2] = pool.address
        self._run(self._at)
