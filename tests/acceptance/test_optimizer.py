"""Every row of the feature table's part 1.10: what may be done to a kernel's loops, and who chooses it."""

from __future__ import annotations

import dataclasses
import math
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from acceptance.notation import ROOT
from morok import Beam, OptimizerConfig, Tensor, config, dtypes
from morok.codegen.machines import CUDA, llvm_target, machine
from morok.errors import OptError
from morok.ir import interpret
from morok.ir.dtype import AddrSpace
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize import beam, heuristics
from morok.optimize.opts import Opt, OptOp
from morok.optimize.scheduler import Scheduler
from morok.passes.pipeline import STAGES, Program, lower, run
from morok.passes.target import Target
from morok.runtime import tune
from morok.runtime.kernel_timing import Timing, Workshop
from tests.passes import kernels as K
from tests.passes.lowering import arguments

CPU = dataclasses.replace(K.AVX2, threads=4)
TC, UPCAST, LOCAL, UNROLL, GROUP = OptOp.TC, OptOp.UPCAST, OptOp.LOCAL, OptOp.UNROLL, OptOp.GROUP
GROUPTOP, THREAD, NOLOCALS, SWAP, PADTO = OptOp.GROUPTOP, OptOp.THREAD, OptOp.NOLOCALS, OptOp.SWAP, OptOp.PADTO


def made(ast: UOp, target: Target, *opts: Opt) -> Scheduler:
    scheduler = Scheduler(ast, target)
    for opt in opts:
        scheduler.apply(opt)
    return scheduler


def value(ast: UOp, target: Target, opts: Sequence[Opt]) -> list[float]:
    """What the instructions leave in buffer 0, interpreted; data are small whole numbers, so that sums are exact."""
    program = lower(UOp.new(Op.Sink, ast.src, K.KernelInfo("k", tuple(opts))), target)
    draw = random.Random(5)
    held = {slot: [float(draw.randint(-4, 4)) for _ in range(memory.size)] for slot, memory in arguments(ast).items()}
    interpret.run_instructions(program, held)
    return held[0]


def shared_rows() -> UOp:
    """Sums of rows that a block holds in shared memory, one row after the other."""
    i, t, k = K.loop(4, 0), UOp.range(8, 1, AxisType.Local, True), K.fold(8, 2)
    held = UOp.new(Op.DefineLocal, (), 0, dtypes.f32.ptr(8, AddrSpace.LOCAL))
    filled = held.index(t).store(K.buffer(1, 32).index(i * 8 + t)).end(t)
    total = held.after(UOp.new(Op.Barrier, (filled,))).index(k).reduce(Op.Add, k)
    return K.kernel(K.buffer(0, 4).index(i).store(total).end(i))


# the cases of the reference's tests of optimizations, each on a small kernel of its kind
LEGAL: dict[str, tuple[UOp, Target, tuple[Opt, ...], AxisType]] = {
    "UPCAST": (K.elementwise(64), CPU, (Opt(UPCAST, 0, 4),), AxisType.Upcast),
    "UPCAST, whole": (K.elementwise(8), CPU, (Opt(UPCAST, 0, 0),), AxisType.Upcast),
    "UPCAST with a remainder": (K.elementwise(37), CPU, (Opt(UPCAST, 0, 8),), AxisType.Upcast),
    "UPCAST with a remainder, of a scan in lanes": (K.scan(5, 8), CPU, (Opt(UNROLL, 0, 0), Opt(UPCAST, 0, 2)), AxisType.Upcast),
    "UPCAST twice": (K.spread(8, 12), CPU, (Opt(UPCAST, 1, 4), Opt(UPCAST, 0, 2)), AxisType.Upcast),
    "UPCAST of a matmul": (K.matmul(8, 4, 8), CPU, (Opt(UPCAST, 1, 8), Opt(UPCAST, 0, 4)), AxisType.Upcast),
    "UPCAST around two reductions": (K.normalize(4, 12), CPU, (Opt(UPCAST, 1, 4),), AxisType.Upcast),
    "UNROLL": (K.rows(3, 24), CPU, (Opt(UNROLL, 0, 8),), AxisType.Unroll),
    "UNROLL, whole": (K.total(16), CPU, (Opt(UNROLL, 0, 0),), AxisType.Unroll),
    "UNROLL with a remainder": (K.total(19), CPU, (Opt(UNROLL, 0, 8),), AxisType.Unroll),
    "LOCAL": (K.elementwise(64), K.GPU, (Opt(LOCAL, 0, 16),), AxisType.Local),
    "LOCAL of a matmul": (K.matmul(8, 4, 8), K.GPU, (Opt(LOCAL, 0, 4), Opt(LOCAL, 1, 4)), AxisType.Local),
    "LOCAL and UPCAST": (K.matmul(8, 4, 8), K.GPU, (Opt(LOCAL, 0, 2), Opt(UPCAST, 0, 2), Opt(UPCAST, 1, 4)), AxisType.Local),
    "GROUP": (K.total(32), K.GPU, (Opt(GROUP, 0, 8),), AxisType.GroupReduce),
    "GROUPTOP": (K.total(32), K.GPU, (Opt(GROUPTOP, 0, 8),), AxisType.GroupReduce),
    "GROUP and LOCAL": (K.rows(6, 24), K.GPU, (Opt(LOCAL, 0, 3), Opt(GROUP, 0, 8)), AxisType.GroupReduce),
    "GROUP and UPCAST": (K.columns(24, 8), K.GPU, (Opt(UPCAST, 0, 4), Opt(GROUPTOP, 0, 4)), AxisType.GroupReduce),
    "GROUP of a maximum": (K.rows(4, 16, Op.Max), K.GPU, (Opt(LOCAL, 0, 2), Opt(GROUP, 0, 16)), AxisType.GroupReduce),
    "THREAD": (K.matmul(8, 4, 8), CPU, (Opt(THREAD, 0, 4),), AxisType.Thread),
    "THREAD, whole": (K.elementwise(64), CPU, (Opt(THREAD, 0, 0),), AxisType.Thread),
    "THREAD and UPCAST": (K.matmul(8, 4, 8), CPU, (Opt(THREAD, 0, 2), Opt(UPCAST, 2, 4)), AxisType.Thread),
    "NOLOCALS": (K.elementwise(64), K.GPU, (Opt(NOLOCALS),), AxisType.Global),
    "SWAP": (K.spread(4, 12), CPU, (Opt(SWAP, 0, 1),), AxisType.Loop),
    "PADTO": (K.elementwise(37), CPU, (Opt(PADTO, 0, 8), Opt(UPCAST, 0, 8)), AxisType.Upcast),
    "PADTO of a matmul": (
        K.matmul(7, 5, 9), K.GPU, (Opt(PADTO, 0, 4), Opt(PADTO, 1, 4), Opt(PADTO, 2, 4), Opt(UPCAST, 0, 4)), AxisType.Upcast,
    ),
    "PADTO of a sum": (K.total(13), CPU, (Opt(PADTO, 0, 4), Opt(UNROLL, 0, 4)), AxisType.Unroll),
    "PADTO of a product": (K.total(13, Op.Mul), CPU, (Opt(PADTO, 0, 4),), AxisType.Reduce),
    "PADTO of a maximum": (K.rows(3, 13, Op.Max), CPU, (Opt(PADTO, 1, 4), Opt(UNROLL, 0, 4)), AxisType.Unroll),
    "PADTO where something is padded": (K.pad(10, 2, 3), CPU, (Opt(PADTO, 0, 8), Opt(UPCAST, 0, 8)), AxisType.Upcast),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LEGAL)
def test_opts_that_are_legal(name: str) -> None:
    """A legal one changes the kind of an axis, and the result is what it is without."""
    ast, target, opts, axis = LEGAL[name]
    before, scheduler = made(ast, target), made(ast, target, *opts)
    assert scheduler.applied == list(opts)
    assert axis in [r.arg[1] for r in scheduler.ranges]
    assert scheduler.ast is not before.ast or opts == (Opt(NOLOCALS),)
    assert value(ast, target, opts) == value(ast, target, ())


ILLEGAL: dict[str, tuple[UOp, Target, tuple[Opt, ...], str]] = {
    "UPCAST of a reduced axis": (K.matmul(6, 4, 8), CPU, (Opt(UPCAST, 2, 2),), "Reduce"),
    "UPCAST that does not divide": (K.matmul(6, 4, 8), K.GPU, (Opt(UPCAST, 0, 4),), "does not divide"),
    "UPCAST of no axis": (K.matmul(6, 4, 8), CPU, (Opt(UPCAST, 5, 2),), "no axis 5"),
    "UPCAST beyond registers": (K.elementwise(4096), CPU, (Opt(UPCAST, 0, 1024),), "1024 lanes"),
    "UPCAST after UPCAST": (K.elementwise(16), CPU, (Opt(UPCAST, 0, 0), Opt(UPCAST, 0, 2)), "Upcast"),
    "UNROLL of an output": (K.elementwise(16), CPU, (Opt(UNROLL, 0, 2),), "no axis"),
    "UNROLL of what threads share": (K.total(32), K.GPU, (Opt(GROUP, 0, 32), Opt(UNROLL, 0, 4)), "threads divide"),
    "LOCAL of a reduced axis": (K.rows(6, 24), K.GPU, (Opt(LOCAL, 1, 2),), "Reduce"),
    "LOCAL on a CPU": (K.elementwise(16), CPU, (Opt(LOCAL, 0, 4),), "no blocks"),
    "LOCAL beyond a block": (K.elementwise(4096), K.GPU, (Opt(LOCAL, 0, 2048),), "2048 threads"),
    "LOCAL around a local buffer": (shared_rows(), K.GPU, (Opt(LOCAL, 0, 4),), "local buffer"),
    "LOCAL after NOLOCALS": (K.elementwise(16), K.GPU, (Opt(NOLOCALS), Opt(LOCAL, 0, 4)), "NOLOCALS"),
    "GROUP that does not divide": (K.rows(6, 24), K.GPU, (Opt(GROUP, 0, 7),), "does not divide"),
    "GROUP of an output": (K.elementwise(16), K.GPU, (Opt(GROUP, 0, 4),), "no axis"),
    "GROUP on a CPU": (K.total(32), CPU, (Opt(GROUP, 0, 8),), "no blocks"),
    "GROUPTOP after GROUP": (K.total(64), K.GPU, (Opt(GROUP, 0, 4), Opt(GROUPTOP, 0, 4)), "GROUP"),
    "GROUP beyond shared memory": (
        K.columns(512, 64), K.GPU, (Opt(UPCAST, 0, 64), Opt(GROUP, 0, 256)), "bytes of shared memory",
    ),
    "THREAD on a GPU": (K.elementwise(16), K.GPU, (Opt(THREAD, 0, 2),), "one thread"),
    "THREAD of a reduced axis": (K.total(32), CPU, (Opt(THREAD, 0, 2),), "output axis"),
    "THREAD twice": (K.matmul(8, 4, 8), CPU, (Opt(THREAD, 0, 2), Opt(THREAD, 1, 2)), "already"),
    "NOLOCALS after LOCAL": (K.elementwise(16), K.GPU, (Opt(LOCAL, 0, 4), Opt(NOLOCALS)), "LOCAL"),
    "SWAP of a reduced axis": (K.matmul(6, 4, 8), CPU, (Opt(SWAP, 0, 2),), "output axes"),
    "SWAP with itself": (K.matmul(6, 4, 8), CPU, (Opt(SWAP, 0, 0),), "two different"),
    "PADTO of what divides": (K.elementwise(16), CPU, (Opt(PADTO, 0, 4),), "pads none"),
    "PADTO of what is vectorized": (K.elementwise(37), CPU, (Opt(UPCAST, 0, 0), Opt(PADTO, 0, 8)), "Upcast"),
    "PADTO far beyond": (K.elementwise(3), CPU, (Opt(PADTO, 0, 32),), "would be padding"),
    "TC on a CPU": (K.matmul(16, 16, 16), CPU, (Opt(TC, 0, 0),), "no matrix instruction"),
    "TC on a GPU": (K.matmul(16, 16, 16, dtypes.f16), K.GPU, (Opt(TC, 0, 0),), "no matrix instruction"),
}  # fmt: skip


@pytest.mark.parametrize("name", ILLEGAL)
def test_opts_that_are_illegal(name: str) -> None:
    """An illegal one is an OptError that names it and says what could have stood there, and leaves the kernel as it was."""
    ast, target, opts, says = ILLEGAL[name]
    scheduler = made(ast, target, *opts[:-1])
    before = scheduler.ast
    with pytest.raises(OptError) as refused:
        scheduler.apply(opts[-1])
    assert says.lower() in str(refused.value).lower()
    assert str(opts[-1]) in refused.value.message
    assert scheduler.ast is before
    assert scheduler.applied == list(opts[:-1])


def test_every_opt_has_a_legal_and_an_illegal_case() -> None:
    every = {o.name for o in OptOp} - {"PACK", "STRIP", "BLOCK", "LANES"}  # of this compiler alone; the text's ten
    assert len(every) == 10
    assert {o.op.name for _, _, opts, _ in LEGAL.values() for o in opts} == every - {"TC"}
    assert {opts[-1].op.name for _, _, opts, _ in ILLEGAL.values()} == every


RANDOM = {
    "elementwise": K.elementwise(48),
    "total": K.total(36),
    "rows": K.rows(6, 20),
    "columns": K.columns(12, 10),
    "matmul": K.matmul(6, 8, 10),
    "pad": K.pad(11, 3, 4),
    "transpose": K.transpose(6, 10),
    "normalize": K.normalize(4, 12),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", [CPU, K.GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", RANDOM)
def test_random_legal_sequences_change_no_value(name: str, target: Target) -> None:
    ast: Program = RANDOM[name]
    for stage in STAGES[:6]:
        ast = run(stage, ast, target)
    assert isinstance(ast, UOp)
    wanted = value(ast, target, ())
    choices = (*beam.actions(target), *[Opt(PADTO, a, n) for a in range(3) for n in (4, 7)])
    for seed in range(4):
        draw, scheduler = random.Random(f"{name} {seed}"), Scheduler(ast, target)
        for opt in draw.sample(choices, 60):
            before = scheduler.ast
            try:
                scheduler.apply(opt)
            except OptError:
                assert scheduler.ast is before
            if len(scheduler.applied) == 3:
                break
        assert scheduler.applied
        assert value(ast, target, scheduler.applied) == wanted, scheduler.applied


def test_loops_over_outputs_are_global_on_a_gpu() -> None:
    ast = K.matmul(6, 4, 8)
    assert [r.arg[1] for r in Scheduler(ast, K.GPU).ranges] == [AxisType.Global, AxisType.Global, AxisType.Reduce]
    assert [r.arg[1] for r in Scheduler(ast, CPU).ranges] == [AxisType.Loop, AxisType.Loop, AxisType.Reduce]


AVX2 = llvm_target(machine("haswell", "+avx,+avx2,+fma"))
AVX512 = llvm_target(machine("skylake-avx512", "+avx,+avx2,+fma,+avx512f"))
# Six rows of two registers are what sixteen registers hold of a tile; thirty-two hold eight of two. A GPU's threads take 4 x 4.
SNAPSHOT: dict[str, tuple[Target, str]] = {
    "AVX2": (AVX2, "UPCAST(1, 16) UPCAST(0, 4)"),
    "AVX-512": (AVX512, "UPCAST(1, 64) UPCAST(0, 4)"),
    "CUDA": (CUDA, "UPCAST(0, 4) UPCAST(1, 4) LOCAL(1, 16) LOCAL(0, 16)"),
}


@pytest.mark.parametrize("name", SNAPSHOT)
def test_heuristics_of_a_matmul(name: str) -> None:
    """The same choice every time, in every process."""
    target, wanted = SNAPSHOT[name]
    assert " ".join(map(str, heuristics.optimize(K.matmul(64, 64, 64), target).arg.opts)) == wanted


def test_heuristics_of_a_matvec() -> None:
    """1024 rows are too few threads for a GPU: those of a block share the sums of some rows, through shared memory."""
    (item,) = (Tensor.empty(1024, 1024, device="CUDA") @ Tensor.empty(1024, device="CUDA")).schedule()
    chosen = [o.op for o in heuristics.optimize(item.ast, CUDA).arg.opts]
    assert {GROUP, LOCAL} <= set(chosen)
    (kernel,) = (Tensor.empty(1024, 1024) @ Tensor.empty(1024)).kernels(device="CUDA")
    assert "__shared__" in kernel.code
    assert "__syncthreads();" in kernel.code
    many = K.rows(1 << 15, 64)
    assert not {GROUP, GROUPTOP} & {o.op for o in heuristics.optimize(many, CUDA).arg.opts}


GROUPED = {
    "a matrix and a vector": K.rows(8, 24),
    "columns": K.columns(48, 24),
    "one number": K.total(96),
    "a maximum": K.rows(3, 32, Op.Max),
    "a row's own": K.normalize(2, 16),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", GROUPED)
def test_heuristics_of_a_gpu_change_no_value(name: str) -> None:
    ast = GROUPED[name]
    opts = heuristics.optimize(ast, K.GPU).arg.opts
    assert opts
    assert value(ast, K.GPU, opts) == value(ast, K.GPU, ())


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Kernels take as long as they have instructions; how many were timed, call by call."""
    calls: list[int] = []

    def run(self: Workshop, tasks: Sequence[Timing], jobs: int) -> list[float]:
        calls.append(len(tasks))
        return [float(t.rendered.work) for t in tasks]

    monkeypatch.setattr(Workshop, "run", run)
    with config.settings(cache_dir=tmp_path):
        yield calls


@pytest.mark.long
def test_beam_search_is_never_slower_than_the_heuristics() -> None:
    """Whatever the times are: what it chooses is at least as fast as what the heuristics choose."""
    ast = K.rows(8, 16)
    first = heuristics.optimize(ast, K.AVX2).arg.opts
    assert first
    for seed in range(4):
        took: dict[UOp, float] = {}
        draw = random.Random(seed)

        def measure(
            kernels: Sequence[UOp], best: float, took: dict[UOp, float] = took, draw: random.Random = draw
        ) -> list[float]:
            return [took.setdefault(k, draw.choice((1.0, 2.0, 3.0, math.inf))) for k in kernels]

        found = beam.search(ast, K.AVX2, first, measure, beam.Limits(width=4))
        chosen, heuristic = (took[beam._kernel(beam._made(ast, K.AVX2, opts))] for opts in (found, first))
        assert chosen <= heuristic


@pytest.mark.long
def test_beam_search_reads_its_cache(quick: list[int]) -> None:
    def program() -> Tensor:
        return Tensor(np.ones((12, 20), np.float32)) * 2.5

    with config.settings(beam=4, threads=1):
        first = program().numpy()
        assert sum(quick) > 10
        quick.clear()
        before = tune.COUNTERS.searches
        assert [k.code for k in program().kernels()] == [k.code for k in program().kernels()]
        np.testing.assert_array_equal(program().numpy(), first)
        assert (quick, tune.COUNTERS.searches) == ([], before)


def test_the_action_space() -> None:
    assert len(beam.ACTIONS) == len(set(beam.ACTIONS)) == 162
    assert THREAD not in {a.op for a in beam.ACTIONS}
    assert {a.op for a in beam.actions(dataclasses.replace(K.AVX2, threads=2))} == {a.op for a in beam.ACTIONS} | {
        THREAD
    }


@pytest.mark.long
def test_beam_config(quick: list[int]) -> None:
    """The defaults of the text, from the environment, and built step by step."""
    assert Beam() == Beam(width=4, timeout=60.0, upcast_max=256, local_max=1024, uops_max=3000, runs=3)
    code = "from morok.runtime import tune; from morok import config; print(tune.limits(), config.BEAM_RUNS.value)"
    environment = {"BEAM": "5", "BEAM_TIMEOUT": "7", "BEAM_UPCAST_MAX": "32", "BEAM_LOCAL_MAX": "64", "BEAM_RUNS": "2"}
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60,
        env={f"MOROK_{k}": v for k, v in environment.items()} | {"PYTHONPATH": str(ROOT)},
    ).stdout  # fmt: skip
    assert said.strip() == f"{beam.Limits(width=5, seconds=7.0, upcast=32, local=64)} 2"


def test_what_a_renderer_can_do() -> None:
    """Blocks, limits, widths of vectors and the ops that must be decomposed, of each target."""
    assert (CUDA.has_local, CUDA.block_threads, CUDA.local_bytes, CUDA.lanes(dtypes.f32)) == (True, 1024, 48 * 1024, 1)
    assert CUDA.grid_max == (2**31 - 1, 65535, 65535)
    assert (AVX2.has_local, AVX2.lanes(dtypes.f32), AVX2.lanes(dtypes.f64), AVX2.registers) == (False, 8, 4, 16)
    assert (AVX512.lanes(dtypes.f32), AVX512.registers, AVX512.fma) == (16, 32, True)
    assert not llvm_target(machine("x86-64", "+sse2")).fma
    assert Op.Exp2 in CUDA.unsupported & AVX2.unsupported


@pytest.mark.long
def test_optimizer_config(quick: list[int]) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    t = (Tensor(x) * 3 + 1).realize(config=OptimizerConfig(strategy=Beam(8, timeout=5.0), threads=1))
    np.testing.assert_array_equal(t.numpy(), x * 3 + 1)
    assert quick
    built = OptimizerConfig.builder().strategy(Beam(8)).threads(1).build()
    assert built == OptimizerConfig(strategy=Beam(8), threads=1)
    quick.clear()
    np.testing.assert_array_equal((Tensor(x) * 3 - 1).realize_with(OptimizerConfig()).numpy(), x * 3 - 1)
    assert not quick


@pytest.mark.parametrize("shape", [(33, 29), (31, 33), (17, 63), (47, 31), (16, 31), (31, 16)], ids=str)
@pytest.mark.parametrize("target", [AVX2, AVX512], ids=["AVX2", "AVX-512"])
def test_heuristics_choose_nothing_illegal_for_remainders(shape: tuple[int, int], target: Target) -> None:
    """What a tile of a transposed matrix leaves along both axes, together, is more than vectors may have lanes."""
    for ast in (K.transpose(*shape), K.matmul(shape[0], 5, shape[1]), K.matmul_transposed(shape[0], 40, shape[1])):
        assert heuristics.optimize(ast, target).arg.opts


@pytest.mark.long
@pytest.mark.parametrize("target", [CPU, CUDA])
def test_a_choice_that_a_kernel_cannot_have_ends_the_choices_and_no_program(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the heuristics ask for, and wherever among their choices it stands, the kernel computes what it did."""
    refusals: list[OptError] = []
    monkeypatch.setattr(heuristics, "refused", refusals.append)
    for ast in (K.matmul(16, 16, 16), shared_rows(), K.rows(8, 32), K.pooled(8, 32, True), K.scan(8, 16)):
        expected = value(ast, target, [])
        for after in range(4):
            apply = Scheduler.apply

            def misled(
                self: Scheduler, opt: Opt, apply: Callable[[Scheduler, Opt], None] = apply, after: int = after
            ) -> None:
                apply(self, Opt(OptOp.UPCAST, 99, 4) if len(self.applied) == after else opt)

            with monkeypatch.context() as patch:
                patch.setattr(Scheduler, "apply", misled)
                chosen = heuristics.optimize(ast, target)
            assert isinstance(chosen.arg, K.KernelInfo)
            assert chosen.arg.opts is not None
            assert len(chosen.arg.opts) <= after
            assert value(ast, target, [o for o in chosen.arg.opts if isinstance(o, Opt)]) == expected
    assert refusals
    assert all("99" in str(error) for error in refusals)


def test_an_optimization_that_is_refused_changes_nothing() -> None:
    """STRIP splits its axis before it knows that the fold is one it can keep."""
    ast = K.matmul(16, 16, 16)
    for opt in [Opt(op, axis, amount) for op in OptOp for axis in range(3) for amount in (0, 2, 3, 4, 5, 64)]:
        for target in (CPU, CUDA):
            s = made(ast, target)
            before = s.ast, list(s.applied)
            try:
                s.apply(opt)
            except OptError:
                assert (s.ast, s.applied) == before
