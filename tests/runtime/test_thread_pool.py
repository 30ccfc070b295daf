"""Threads that share kernels: the same bits on any number of them, and workers that survive what happens to a process."""

from __future__ import annotations

import ctypes
import functools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from programs import busy

from morok import Tensor, config
from morok.codegen.rendered import WHOLE, Effort
from morok.errors import ConfigError
from morok.ir.dtype import dtypes
from morok.optimize import thread_loops
from morok.runtime import thread_pool
from morok.runtime.buffer import Buffer
from morok.runtime.cpu import CPUKernel
from morok.runtime.device import device
from morok.runtime.jit import Code, compile_text
from morok.runtime.kernel import PreparedKernel
from morok.runtime.plan import ExecutionPlan

CPU = device("CPU")
RNG = np.random.default_rng(0)
A, B = (RNG.standard_normal((67, 53)).astype(np.float32) for _ in range(2))

PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "elementwise": lambda: (Tensor(A) * 3 + Tensor(B)).relu(),
    "vector of 1003": lambda: Tensor(A.reshape(-1)[:1003]).exp() + 1,
    "sum of rows": lambda: Tensor(A).sum(1),
    "sum of columns": lambda: Tensor(A).sum(0),
    "matmul": lambda: Tensor(A) @ Tensor(np.ascontiguousarray(B.T)),
    "matmul, transposed": lambda: Tensor(A) @ Tensor(B).transpose(0, 1),
    "softmax": lambda: Tensor(A).softmax(-1),
    "transpose": lambda: Tensor(A).transpose(0, 1).contiguous(),
    "conv": lambda: Tensor(A.reshape(-1)[:1296].reshape(1, 4, 18, 18)).conv2d(Tensor(B.reshape(-1)[:180].reshape(5, 4, 3, 3))),
    "pad": lambda: Tensor(A).pad(((1, 2), (3, 4))) * 2,
    "cat": lambda: Tensor(A).cat(Tensor(B)) + 1,
}  # fmt: skip


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel is worth threads."""
    monkeypatch.setattr(thread_loops, "WORTH_NS", 0.0)


def computed(name: str, count: int) -> tuple[np.ndarray, ExecutionPlan]:
    with config.settings(threads=count):
        plan = PROGRAMS[name]().prepare()
        return plan.execute().numpy().copy(), plan


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_do_not_depend_on_threads(name: str, everything: None) -> None:
    one, plan = computed(name, 1)
    assert not any(k.kernel.rendered.parts for k in plan.kernels)
    for count in (2, 3, 7):
        many, plan = computed(name, count)
        assert any(k.kernel.rendered.parts for k in plan.kernels)
        assert many.tobytes() == one.tobytes()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_are_a_whole_in_any_order(name: str, everything: None) -> None:
    """Each part stores what it should and nothing else: together, in any order and with any number, they are one run."""
    expected, _ = computed(name, 1)
    _, plan = computed(name, 2)
    if len(plan.kernels) > 1:
        plan.kernels[:] = plan.kernels[-1:]  # what those before it computed is in memory
    kernel = plan.kernels[0].kernel
    assert isinstance(kernel, CPUKernel)
    for parts in (1, 2, 5, 64, 100_000):
        plan.output.numpy()[:] = -1
        numbers = [*range(min(parts, 200)), *({parts - 1} if parts > 200 else ())]
        random.Random(parts).shuffle(numbers)
        words = [plan.buffers[b].address for b in plan.kernels[0].buffers]
        scratch = np.zeros(kernel.rendered.scratch + 64, np.uint8)
        words += [scratch.ctypes.data] if kernel.rendered.scratch else []
        for k in numbers:
            args = (ctypes.c_uint64 * (len(words) + 1))(*words, k | parts << 32)
            kernel._call(ctypes.addressof(args), None)
        if parts <= 200:
            assert plan.output.numpy().tobytes() == expected.tobytes()
    assert WHOLE == 1 << 32


def test_small_kernels_stay_on_one_thread() -> None:
    with config.settings(threads=2):
        small, large = (Tensor(A) + 1).prepare(), (Tensor(np.zeros(1 << 20, np.float32)) + 1).prepare()
    assert [k.kernel.rendered.parts for k in small.kernels] == [0]
    assert [k.kernel.rendered.parts > 0 for k in large.kernels] == [True]
    before = thread_pool.pool.shared
    small.execute()
    assert thread_pool.pool.shared == before
    large.execute()
    large.execute()
    assert thread_pool.pool.shared == before + 2


@pytest.mark.long
def test_kernels_side_by_side() -> None:
    """A group of kernels that do not wait for each other is one job; threads run them at the same time."""
    kernels = [CPU.compile(busy(30_000_000, 50 + k), f"beside{k}") for k in range(3)]
    small = CPU.compile(busy(2, 59), "small")
    buffers = [Buffer(CPU, dtypes.u32, 1).allocate() for _ in range(5)]
    steps = [PreparedKernel(k, (i, 4)) for i, k in enumerate([kernels[0], small, kernels[1], kernels[2]])]
    plan = ExecutionPlan(steps, [[0, 1, 2, 3]], buffers, 0, threads=2)
    expected = ExecutionPlan(steps, [[0, 1, 2, 3]], buffers, 0)
    expected.execute()
    values = [int(b.numpy()[0]) for b in buffers]
    for b in buffers[:4]:
        b.numpy()[:] = 0
    before = thread_pool.pool.shared
    plan.execute()
    assert thread_pool.pool.shared == before + 1
    assert [int(b.numpy()[0]) for b in buffers] == values
    times = {t.name: t for t in plan.profile()}
    assert list(times) == ["beside0", "small", "beside1", "beside2"]
    a, b = times["beside0"], times["beside1"]
    assert a.start < b.start + b.seconds
    assert b.start < a.start + a.seconds


def test_the_times_of_shared_kernels(everything: None) -> None:
    """A kernel that threads share is timed from the first part's begin to the last one's end, and computes the same."""
    expected, _ = computed("softmax", 1)
    _, plan = computed("softmax", 3)
    assert any(k.kernel.rendered.parts for k in plan.kernels)
    plan.output.numpy()[:] = 0
    before = thread_pool.pool.shared
    times = plan.profile()
    assert thread_pool.pool.shared == before + sum(k.kernel.rendered.parts > 0 for k in plan.kernels)
    assert plan.output.numpy().tobytes() == expected.tobytes()
    assert [t.name for t in times] == [k.kernel.name for k in plan.kernels]
    ends = [round((t.start + t.seconds) * 1e9) for t in times]
    assert all(end <= round(t.start * 1e9) for end, t in zip(ends, times[1:], strict=False))
    assert all(t.seconds > 0 for t in times)


def test_workers_sleep_when_there_is_nothing_to_do(everything: None) -> None:
    computed("elementwise", 3)
    workers = len(thread_pool.pool.handles)
    assert workers >= 2
    deadline = time.monotonic() + 30
    while thread_pool.pool.asleep != workers and time.monotonic() < deadline:
        time.sleep(0.01)
    assert thread_pool.pool.asleep == workers
    assert computed("elementwise", 3)[0].tobytes() == computed("elementwise", 1)[0].tobytes()  # and wake


def test_many_callers(everything: None) -> None:
    """Callers that find the workers taken compute alone; nobody computes with another's arguments."""
    wrong: list[str] = []

    def call(k: int) -> None:
        x = np.full(5000, k, np.float32)
        with config.settings(threads=2):
            plan = (Tensor(x) * 2 + 1).prepare()
            for _ in range(200):
                plan.output.numpy()[:] = 0
                if not (plan.execute().numpy() == 2 * k + 1).all():
                    wrong.append(f"caller {k}")

    callers = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert not wrong


@pytest.mark.long
def test_without_workers_the_caller_does_it_all(everything: None, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = thread_pool.ThreadPool()
    alone.refused = True  # as where the system lets nobody start a thread
    monkeypatch.setattr(thread_pool, "pool", alone)
    assert computed("matmul", 4)[0].tobytes() == computed("matmul", 1)[0].tobytes()
    assert alone.shared > 0
    assert not alone.handles


def test_a_forked_child_has_workers_of_its_own(everything: None) -> None:
    expected, _ = computed("matmul", 1)
    _, plan = computed("matmul", 2)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            same = plan.execute().numpy().tobytes() == expected.tobytes()
            status = 0 if same and len(thread_pool.pool.handles) == 1 and thread_pool.pool.shared == 1 else 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert plan.execute().numpy().tobytes() == expected.tobytes()


_LOOP = """
import signal
import numpy as np
from morok import Tensor, settings
with settings(threads=2):
    plan = (Tensor(np.zeros(1 << 20, np.float32)) + 1).prepare()
plan.execute()
assert plan.kernels[0].kernel.rendered.parts
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job, and so its children, would ignore it
print("ready", flush=True)
while {forever}:
    plan.execute()
"""


@pytest.mark.long
def test_interrupts_and_the_end_of_the_program() -> None:
    ends = subprocess.run(
        [sys.executable, "-c", _LOOP.format(forever=False)], capture_output=True, text=True, timeout=60
    )
    assert (ends.returncode, ends.stdout, ends.stderr) == (0, "ready\n", "")
    runs = subprocess.Popen(
        [sys.executable, "-c", _LOOP.format(forever=True)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert runs.stdout is not None
    assert runs.stdout.readline() == "ready\n"
    runs.send_signal(signal.SIGINT)
    _, err = runs.communicate(timeout=60)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert runs.returncode == -signal.SIGINT


def test_the_setting() -> None:
    with pytest.raises(ConfigError, match="threads=0"), config.settings(threads=0):
        pass
    assert config.THREADS.default == len(os.sched_getaffinity(0))
    with config.settings(threads=1):
        assert CPU.target.threads == 1
    with config.settings(threads=5):
        assert CPU.target.threads == 5


def test_threads_that_ask_first_load_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another thread loaded over it would be unloaded under its workers: a crash where they were woken."""
    loads: list[str] = []

    def slowly(text: str, name: str, effort: Effort, cache: object, also: tuple[str, ...]) -> Code:
        loads.append(name)
        time.sleep(0.02)
        return compile_text(text, name, effort, None, also)

    loaded = thread_pool._loaded
    monkeypatch.setattr(thread_pool, "compile_text", slowly)
    monkeypatch.setattr(thread_pool, "_loaded", functools.cache(loaded.__wrapped__))
    start = threading.Barrier(4)

    def ask() -> None:
        start.wait()
        thread_pool._addresses()

    asking = [threading.Thread(target=ask) for _ in range(4)]
    for t in asking:
        t.start()
    for t in asking:
        t.join()
    assert loads == ["run"]
