"""Plans: groups, one foreign call, rebinding, variables, threads, profiles."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

import numpy as np
import pytest
from instruction_lists import Listing, i32
from programs import affine, busy, f32, filled, total, unknown_op, with_scratch

from morok.errors import BindError, CompileError, DeviceError, DTypeError, LoweringError, ShapeError, UsageError
from morok.ir.dtype import dtypes
from morok.runtime.buffer import Buffer
from morok.runtime.cpu import CPUDevice
from morok.runtime.device import device
from morok.runtime.jit import COUNTERS
from morok.runtime.kernel import PreparedKernel
from morok.runtime.memory import assign, parallel_groups
from morok.runtime.plan import ExecutionPlan, share_memory

CPU = device("CPU")


def diamond(threads: int = 1) -> ExecutionPlan:
    """a = x * 2 + 1 and b = x * 3 + 2 are independent; the output is the sum of both."""
    x = Buffer.wrap(CPU, np.arange(16, dtype=np.float32))
    out, a, b = Buffer(CPU, f32, 16), Buffer(CPU, f32, 16), Buffer(CPU, f32, 16)
    kernels = [
        PreparedKernel(CPU.compile(affine(2.0, 1.0), "a"), (1, 3)),
        PreparedKernel(CPU.compile(affine(3.0, 2.0), "b"), (2, 3)),
        PreparedKernel(CPU.compile(total(), "c"), (0, 1, 2)),
    ]
    return ExecutionPlan(kernels, parallel_groups([[], [], [0, 1]]), [out, a, b, x], 0, threads)


def expected(x: np.ndarray) -> float:
    return float((x * 2 + 1).sum() + (x * 3 + 2).sum())


@pytest.mark.parametrize("threads", [1, 2])
def test_a_plan_runs_its_groups_in_order(threads: int) -> None:
    plan = diamond(threads)
    assert plan.parallel_groups == [[0, 1], [2]]
    assert (len(plan.kernels), len(plan.buffers), plan.output_buffer_idx) == (3, 4, 0)
    for _ in range(20):
        assert plan.execute().numpy()[0] == expected(np.arange(16))


def test_new_inputs_need_no_compilation() -> None:
    plan = diamond()
    plan.execute()
    compiled = COUNTERS.compiled
    x = np.linspace(0, 3, 16).astype(np.float32)
    assert plan.execute({3: Buffer.wrap(CPU, x)}).numpy()[0] == pytest.approx(expected(x))
    x += 1.0  # the same memory, other contents
    assert plan.execute().numpy()[0] == pytest.approx(expected(x))
    assert COUNTERS.compiled == compiled


def test_only_a_like_buffer_can_take_a_place() -> None:
    plan = diamond()
    with pytest.raises(ShapeError):
        plan.execute({3: Buffer(CPU, f32, 17)})
    with pytest.raises(DTypeError):
        plan.execute({3: Buffer(CPU, i32, 16)})
    with pytest.raises(DeviceError):
        plan.execute({3: Buffer(device("NULL"), f32, 16)})


def test_variables_are_bound_at_execution() -> None:
    out = Buffer(CPU, i32, 16)
    plan = ExecutionPlan([PreparedKernel(CPU.compile(filled(3), "f"), (0,))], [[0]], [out])
    with pytest.raises(BindError, match="value"):
        plan.execute()
    assert plan.execute(vars={"value": 7}).numpy().tolist() == [21] * 16
    assert plan.execute(vars={"value": -2}).numpy().tolist() == [-6] * 16
    with pytest.raises(BindError, match=str(1 << 40)):
        plan.execute(vars={"value": 1 << 40})


@pytest.mark.parametrize("value", [1001, -1001, 10**9, 10**400, 2.5, "7", None, True, np.float32(2.5)])
def test_a_variable_beyond_its_bounds_is_refused_and_the_plan_left_as_it_was(value: object) -> None:
    out = Buffer(CPU, i32, 16)
    plan = ExecutionPlan([PreparedKernel(CPU.compile(filled(3), "f"), (0,))], [[0]], [out])
    plan.execute(vars={"value": np.int64(7)})
    with pytest.raises(BindError, match="variable value"):
        plan.execute(vars={"value": value})
    assert plan.execute().numpy().tolist() == [21] * 16


@pytest.mark.parametrize(
    "use",
    [
        lambda plan: plan.rebind(-1, plan.output),
        lambda plan: plan.rebind(99, plan.output),
        lambda plan: plan.rebind("0", plan.output),
        lambda plan: plan.rebind(0, 3.0),
        lambda plan: plan.execute(np.arange(3)),
        lambda plan: plan.execute({0: np.zeros(16)}),
        lambda plan: plan.execute(vars=[7]),
        lambda plan: plan.profile(vars=3),
    ],
)
def test_what_a_plan_cannot_take_is_refused(use: Callable[[ExecutionPlan], object]) -> None:
    with pytest.raises(UsageError) as caught:
        use(diamond())
    assert caught.value.expected


def test_variables_fixed_by_the_schedule() -> None:
    kernel = CPU.compile(filled(3), "f")
    outs = [Buffer(CPU, i32, 16) for _ in range(2)]
    plan = ExecutionPlan([PreparedKernel(kernel, (k,), {"value": k + 5}) for k in range(2)], [[0], [1]], outs, 1)
    assert plan.execute().numpy()[0] == 18
    assert outs[0].numpy()[0] == 15


def test_a_kernel_with_working_memory() -> None:
    x = Buffer.wrap(CPU, np.arange(8, dtype=np.float32))
    out = Buffer(CPU, f32, 8)
    kernel = CPU.compile(with_scratch(), "s")
    assert kernel.rendered.scratch == 160000
    kernel.launch([out, x])
    assert out.numpy().tolist() == [1.0 + k for k in range(8)]
    out.numpy()[:] = 0
    ExecutionPlan([PreparedKernel(kernel, (0, 1))], [[0]], [out, x]).execute()
    assert out.numpy().tolist() == [1.0 + k for k in range(8)]


def test_a_hundred_kernels_in_one_call() -> None:
    """The whole execution of a hundred kernels of one vector each stays far below a call a kernel."""
    kernel = CPU.compile(affine(1.0, 1.0, 4), "tiny")
    a, b = Buffer.wrap(CPU, np.zeros(4, np.float32)), Buffer.wrap(CPU, np.zeros(4, np.float32))
    steps = [PreparedKernel(kernel, (0, 1) if k % 2 else (1, 0)) for k in range(100)]
    plan = ExecutionPlan(steps, [[k] for k in range(100)], [a, b])
    plan.execute()
    assert a.numpy().tolist() == [100.0] * 4
    one = ExecutionPlan(steps[:1], [[0]], [a, b])
    assert calls(plan) == calls(one)  # one foreign call, however many kernels


def calls(plan: ExecutionPlan) -> int:
    """How many functions, of Python or C, one run of a plan enters."""
    entered = 0

    def count(frame: FrameType, event: str, what: object) -> None:
        nonlocal entered
        entered += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        plan.execute()
    finally:
        sys.setprofile(None)
    return entered


def test_profile_times_every_kernel() -> None:
    slow, fast = CPU.compile(busy(2_000_000, 1), "slow"), CPU.compile(busy(20, 2), "fast")
    buffers = [Buffer(CPU, dtypes.u32, 1).allocate() for _ in range(2)]
    times = ExecutionPlan([PreparedKernel(fast, (0, 1)), PreparedKernel(slow, (0, 1))], [[0], [1]], buffers).profile()
    assert [t.name for t in times] == ["fast", "slow"]
    assert times[1].seconds > 10 * times[0].seconds
    assert times[1].start >= times[0].start + times[0].seconds


def test_independent_kernels_overlap() -> None:
    kernels = [CPU.compile(busy(30_000_000, k), f"busy{k}") for k in range(2)]
    buffers = [Buffer(CPU, dtypes.u32, 1).allocate() for _ in range(3)]
    plan = ExecutionPlan([PreparedKernel(k, (i, 2)) for i, k in enumerate(kernels)], [[0, 1]], buffers, 0, threads=2)
    first, second = plan.profile()
    assert second.start < first.start + first.seconds
    assert first.start < second.start + second.seconds


def test_null_device_runs_nothing() -> None:
    null = device("NULL")
    kernel = null.compile(affine(2.0, 1.0), "a")
    assert kernel.backend == "NULL"
    assert "define void @kernel_a(" in kernel.code
    out = Buffer(null, f32, 16)
    plan = ExecutionPlan([PreparedKernel(kernel, (0, 1))], [[0]], [out, Buffer(null, f32, 16)])
    assert plan.execute() is out
    with pytest.raises(DeviceError, match="NULL has no elements"):
        out.numpy()
    assert [t.name for t in plan.profile()] == ["a"]


@pytest.mark.long
def test_groups_are_levels() -> None:
    assert parallel_groups([]) == []
    assert parallel_groups([[], [], [0, 1], [0], [2, 3]]) == [[0, 1], [2, 3], [4]]
    with pytest.raises(LoweringError, match="1, 2 wait"):
        parallel_groups([[], [2], [1]])
    assert len(parallel_groups([[i - 1] if i else [] for i in range(100_000)])) == 100_000


def test_a_chain_needs_two_intermediate_buffers() -> None:
    names = [f"b{i}" for i in range(11)]
    steps = [(names[i], names[i + 1]) for i in range(10)]
    found = assign(steps, dict.fromkeys(names[1:-1], 64))
    assert len(found.nbytes) == 2
    assert all(found.slots[a] != found.slots[b] for a, b in steps[1:-1])


def test_slots_are_never_shared_while_alive() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = {int(b): int(rng.integers(1, 100)) for b in range(12)}
        steps = [[int(b) for b in rng.choice(12, rng.integers(1, 5))] for _ in range(15)]
        found = assign(steps, sizes)
        first = {b: min(i for i, s in enumerate(steps) if b in s) for s in steps for b in s}
        last = {b: max(i for i, s in enumerate(steps) if b in s) for s in steps for b in s}
        for a in first:
            assert found.nbytes[found.slots[a]] >= sizes[a]
            for b in first:
                if a < b and first[a] <= last[b] and first[b] <= last[a]:
                    assert found.slots[a] != found.slots[b]


def test_memory_of_a_plan_is_shared() -> None:
    kernel = CPU.compile(affine(1.0, 1.0), "step")
    buffers = [Buffer(CPU, f32, 16) for _ in range(11)]
    buffers[0] = Buffer.wrap(CPU, np.zeros(16, np.float32))
    steps = [PreparedKernel(kernel, (i + 1, i)) for i in range(10)]
    groups = [[i] for i in range(10)]
    shared = share_memory(steps, groups, buffers, range(1, 10))
    plan = ExecutionPlan(steps, groups, shared, 10)
    assert plan.execute().numpy().tolist() == [10.0] * 16
    assert len({b.address for b in shared}) <= 4
    assert shared[0] is buffers[0]
    assert shared[10] is buffers[10]


def test_eight_threads_compile_and_run() -> None:
    """The same and different programs on one device, at the same time."""
    cpu = CPUDevice()
    compiled = COUNTERS.compiled + COUNTERS.from_disk
    problems: list[BaseException] = []
    start = threading.Barrier(8)

    def work(k: int) -> None:
        try:
            start.wait()
            x = np.arange(16, dtype=np.float32) + k
            for i in range(12):
                out = np.zeros(16, np.float32)
                scale = float((i + k) % 6)
                cpu.compile(affine(scale, 5.5), "affine").launch([Buffer.wrap(cpu, out), Buffer.wrap(cpu, x)])
                assert np.array_equal(out, x * np.float32(scale) + np.float32(5.5))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems
    assert COUNTERS.compiled + COUNTERS.from_disk == compiled + 6


def test_launching_releases_the_interpreters_lock() -> None:
    kernel = CPU.compile(busy(100_000_000, 3), "long")
    buffers = [Buffer(CPU, dtypes.u32, 1).allocate() for _ in range(2)]
    worker = threading.Thread(target=kernel.launch, args=(buffers,))
    worker.start()
    steps = 0
    while worker.is_alive():
        steps += 1
        time.sleep(0.001)
    worker.join()
    assert steps > 3


def test_what_cannot_be_compiled_says_so() -> None:
    with pytest.raises(CompileError, match="no code for Unique"):
        CPU.compile(unknown_op(), "k")


@pytest.mark.long
def test_very_long_programs_compile_in_linear_time() -> None:
    """Fifty thousand instructions without a loop; the interpreter would need no recursion, and neither do renderers."""
    b = Listing()
    out, x = b.buffer(0, i32, 1), b.buffer(1, i32, 1)
    first = b.load(x, 0)
    value = first
    for k in range(50_000):
        value = value * first if k % 2 else value + first
        b.list.append(value)
    b.seen.update(b.list)
    b.store(out, 0, value)
    kernel = CPU.compile(b.list, "long")
    result = Buffer(CPU, i32, 1)
    kernel.launch([result, Buffer.wrap(CPU, np.array([1], np.int32))])
    assert result.numpy()[0] == 25_001
