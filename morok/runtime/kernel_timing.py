"""Processes that compile and time kernels for beam search: a kernel that aborts the compiler, never ends or traps costs one of
them and not the program.

Such a process is a fresh interpreter that runs this module. It leaves when its parent closes the connection, and by itself when
one task takes too long.
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
from morok.runtime.plan import ExecutionPlan, PreparedKernel

FAILED: Final = math.inf
_SAMPLE_SECONDS: Final = 0.002  # a sample is as many runs as fill this
_HOPELESS: Final = 3.0  # times the best so far: timed no further
_GRACE: Final = 5.0  # seconds from a task's limit to the end of a process that does not know it


@dataclass(frozen=True, slots=True)
class Timing:
    """The request to a process: compile a kernel, and time it `runs` times if that is not 0.

    buffers   dtype and size of each buffer, by slot
    values    of the variables
    limit     seconds beyond which the kernel is not interesting
    settings  of the program that asks
    seconds   in which there must be an answer
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


# In the process.


def measured(task: Timing) -> float:
    """Seconds of one run of the kernel: the least of some samples; 0 where it was only to be compiled."""
    with config.settings(**task.settings):
        target = device(task.device)
        kernel = target.load(task.rendered)
        if not task.runs:
            return 0.0
        memory = [Buffer(target, d, size) for d, size in task.buffers]
        for b in memory:
            # zeros are no denormals, and as indices they are in bounds; writing them makes the pages real
            b.copy_in(np.zeros(b.size, NUMPY[b.dtype]))
        plan = ExecutionPlan([PreparedKernel(kernel, tuple(range(len(memory))), task.values)], [[0]], memory, 0, task.threads)
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's, which ends its processes
    with contextlib.suppress(EOFError, OSError):
        while True:
            task: Timing = pickle.loads(connection.recv_bytes())
            faulthandler.dump_traceback_later(task.seconds + _GRACE, exit=True)
            try:
                answer = measured(task)
            except Exception:  # whatever is wrong with the kernel, it is no candidate
                answer = FAILED
            faulthandler.cancel_dump_traceback_later()
            connection.send_bytes(pickle.dumps(answer))


# In the program.


@dataclass(slots=True, eq=False)
class _Process:
    """One such process: `started` is when it got the task it works on."""

    popen: subprocess.Popen[bytes]
    connection: Connection
    number: int = -1
    started: float = 0.0

    @staticmethod
    def start() -> _Process:
        here, there = socket.socketpair()
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        # the interpreter finds the program's packages, not what lies in the folder it was started from
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
    """The processes of this program; they stay for the next search."""

    processes: list[_Process] = field(default_factory=list)
    died: int = 0

    def run(self, tasks: Sequence[Timing], jobs: int) -> list[float]:
        """An answer to each task, up to `jobs` of them at a time; FAILED where there is none in time, or the process dies."""
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
                    with contextlib.suppress(OSError):  # a process that has died says so below
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
        except BaseException:  # an interrupt: nobody waits for the answers
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
    """A forked child has no processes of its own yet, and the parent's are none of its business."""
    for p in workshop.processes:
        p.connection.close()
        p.popen.returncode = 0  # not this process's to wait for
    workshop.processes.clear()


os.register_at_fork(after_in_child=_forget)
atexit.register(workshop.close)

if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
