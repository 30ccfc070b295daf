"""Worker processes that compile and time kernels for beam search: a kernel that aborts the compiler, never ends or traps
terminates a worker and not the program.

A worker is a new interpreter that runs this module. It exits when its parent closes the connection, or when a task exceeds its
time limit.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final

import numpy as np

from morok import config
from morok.codegen.rendered import Rendered
from morok.ir.dtype import DType
from morok.runtime.buffer import NUMPY, Buffer
from morok.runtime.device import device
from morok.runtime.kernel import PreparedKernel
from morok.runtime.plan import ExecutionPlan

FAILED: Final = math.inf
_SAMPLE_SECONDS: Final = 0.002  # seconds of repeated runs in one sample
_HOPELESS: Final = 3.0  # multiple of the best time so far above which a kernel is not timed again
_GRACE: Final = 5.0  # seconds after a task's limit at which a worker exits by itself


@dataclass(frozen=True, slots=True)
class Timing:
    """The request to a worker: compile a kernel, and take `runs` samples of its time.

    buffers   dtype and size of each buffer, by slot
    values    values of the variables
    limit     the best time so far, in seconds: much slower kernels are not timed exactly
    settings  the settings of the program
    seconds   the time limit of the task
    """

    device: str
    rendered: Rendered
    buffers: tuple[tuple[DType, int], ...]
    values: Mapping[str, Any]
    threads: int
    runs: int
    limit: float
    settings: Mapping[str, Any]
    seconds: float


# In a worker.


def measured(task: Timing) -> float:
    """The seconds of one run of the kernel, the least of task.runs samples; 0 without samples."""
    with config.settings(**task.settings):
        target = device(task.device)
        kernel = target.load(task.rendered)
        if not task.runs:
            return 0.0
        memory = [Buffer(target, d, size) for d, size in task.buffers]
        for b in memory:
            # zeros are no (slow) denormals, and valid indices; writing them makes the system allocate the pages
            b.copy_in(np.zeros(b.size, NUMPY[b.dtype]))
        plan = ExecutionPlan(
            [PreparedKernel(kernel, tuple(range(len(memory))), task.values)], [[0]], memory, 0, task.threads
        )
        start = time.perf_counter()
        plan.execute(vars=task.values)
        plan.execute()
        once = (time.perf_counter() - start) / 2
        if once > _HOPELESS * task.limit:
            return once
        repeat = max(1, min(1000, int(_SAMPLE_SECONDS / max(once, 1e-7))))
        best = math.inf
        for _ in range(task.runs):
            start = time.perf_counter()
            for _ in range(repeat):
                plan.execute()
            best = min(best, (time.perf_counter() - start) / repeat)
        return best


def serve(connection: Connection) -> None:
    """Answer tasks until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts, and ends its workers
    with contextlib.suppress(EOFError, OSError):
        while True:
            task: Timing = pickle.loads(connection.recv_bytes())
            faulthandler.dump_traceback_later(task.seconds + _GRACE, exit=True)
            try:
                answer = measured(task)
            except Exception:  # any error means that the kernel is no candidate
                answer = FAILED
            faulthandler.cancel_dump_traceback_later()
            connection.send_bytes(pickle.dumps(answer))


# In the program.


@dataclass(slots=True, eq=False)
class _Process:
    """One worker, the number of its current task, and the time at which it started that, in seconds."""

    popen: subprocess.Popen[bytes]
    connection: Connection
    number: int = -1
    started: float = 0.0

    @staticmethod
    def start() -> _Process:
        here, there = socket.socketpair()
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        # the program's packages, without the current folder (-P), whose modules could hide them
        popen = subprocess.Popen(
            [sys.executable, "-P", "-m", "morok.runtime.kernel_timing", str(there.fileno())],
            pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        there.close()
        return _Process(popen, Connection(here.detach()))

    def end(self) -> None:
        self.connection.close()
        self.popen.kill()
        self.popen.wait()


@dataclass(slots=True)
class Workshop:
    """The workers of this process, kept for the next search; `died` counts those that failed."""

    processes: list[_Process] = field(default_factory=list)
    died: int = 0

    def run(self, tasks: Sequence[Timing], jobs: int) -> list[float]:
        """The answer to each task, in seconds, from up to `jobs` workers; FAILED if one dies or exceeds the time limit."""
        answers = [FAILED] * len(tasks)
        waiting = list(reversed(range(len(tasks))))
        busy: list[_Process] = []
        try:
            while waiting or busy:
                while waiting and len(busy) < jobs:
                    idle = next((p for p in self.processes if p not in busy), None)
                    if idle is None:
                        idle = _Process.start()
                        self.processes.append(idle)
                    idle.number, idle.started = waiting.pop(), time.monotonic()
                    busy.append(idle)
                    with contextlib.suppress(OSError):  # a dead worker is noticed below
                        idle.connection.send_bytes(pickle.dumps(tasks[idle.number]))
                ready = wait([p.connection for p in busy], timeout=0.2)
                for p in list(busy):
                    late = time.monotonic() - p.started > tasks[p.number].seconds
                    if p.connection in ready:
                        try:
                            answers[p.number] = pickle.loads(p.connection.recv_bytes())
                        except (EOFError, OSError):
                            late = True
                    elif not late:
                        continue
                    busy.remove(p)
                    if late and answers[p.number] == FAILED:
                        self.died += 1
                        self.processes.remove(p)
                        p.end()
        except BaseException:  # an interrupt: the answers are not needed
            for p in busy:
                self.processes.remove(p)
                p.end()
            raise
        return answers

    def close(self) -> None:
        while self.processes:
            self.processes.pop().end()


workshop = Workshop()


def _forget() -> None:
    """Forget the parent's workers, in a forked child."""
    for p in workshop.processes:
        p.connection.close()
        p.popen.returncode = 0  # only the parent may wait for it
    workshop.processes.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(workshop.close)

if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
