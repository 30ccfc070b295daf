"""Threads that share kernels: jobs, each one foreign call that runs the records of a plan, and the workers that help with them.

Parts are handed out one by one to whoever is free, the caller first of all: a worker that sleeps, or that the system runs late,
delays nothing, and without workers the caller does it all. Workers spin for some microseconds after their last part, then
sleep. They run no Python, block all signals, are told to leave and joined at exit, and do not exist in a forked child, which
starts its own. One caller at a time has the workers; another meanwhile computes alone. `shared_kernels` is what all of them run.
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
    """The addresses of `run`, `worker` and `timed`, loaded once a process, since workers stay in what they began with.

    Two threads that both asked first would both load it, and what one of them got would be unloaded under its workers.
    """
    with THREAD_POOL:
        return _loaded().addresses


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


class ThreadPool:
    """The workers of this process, made when they are first asked for.

    address  of the state that they and their callers share
    """

    def __init__(self) -> None:
        words = np.zeros(POOL_WORDS + 8, np.int64)
        self.state = words[-words.ctypes.data % 64 // 8 :][:POOL_WORDS]
        self.address: int = self.state.ctypes.data
        self.handles: list[int] = []
        self.refused = False

    def ensure(self, workers: int, worker: int) -> None:
        """See that there are so many workers, as far as the system lets us; the function at `worker` is what they run."""
        if len(self.handles) >= workers or self.refused:
            return
        with THREAD_POOL:
            # a signal meant for Python must not arrive in a thread that knows nothing of it
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            try:
                while len(self.handles) < workers and not self.refused:
                    handle = ctypes.c_ulong()
                    status = _libc().pthread_create(
                        ctypes.byref(handle), None, ctypes.c_void_p(worker), ctypes.c_void_p(self.address)
                    )
                    if status:
                        self.refused = True  # the caller computes what they would have
                    else:
                        self.handles.append(handle.value)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    @property
    def asleep(self) -> int:
        """The number of workers that sleep now."""
        return int(self.state[SLEEPERS])

    @property
    def shared(self) -> int:
        """The number of kernels, or groups of them, handed to workers so far."""
        return int(self.state[SHARED])

    def dismiss(self) -> None:
        """Let every worker finish what it does, and wait for it to leave."""
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
    """The state of a forked child: there are no workers, and a caller that had them will never give them back."""
    global pool
    pool = ThreadPool()


os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: pool.dismiss())  # of this process: not the one that a child forgets


class Job:
    """Records, a row each, to be run again and again on up to `threads` threads, one at a time.

    times  two 64-bit numbers a record, into which go its begin and its end in nanoseconds of the monotonic clock; None: not asked
    """

    def __init__(self, records: np.ndarray[Any, Any], threads: int = 1, times: np.ndarray[Any, Any] | None = None) -> None:
        self.threads = threads
        self._pool: ThreadPool | None = None
        self._run = _RUN(_addresses()["run"])
        timed = len(records) if times is not None else 0
        self._words = np.zeros((1 + timed, JOB_WORDS), np.int64)  # of this job, and of one for each record with a time of its own
        self._at: int = self._words.ctypes.data
        self._records = records if times is None else self._timed(records, times)
        self._words[0] = self._records.ctypes.data, len(self._records), 0, threads - 1

    def _timed(self, records: np.ndarray[Any, Any], times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Records that run each of `records` as a job and take its times."""
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
