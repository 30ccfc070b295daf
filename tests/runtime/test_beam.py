"""Beam search: what it tries, what it keeps, what it survives and remembers. Times are made up, but where kernels run."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from morok import Beam, Heuristics, OptimizerConfig, Tensor, Unoptimized, config
from morok.codegen.rendered import Argument, Rendered
from morok.ir.dtype import dtypes
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp
from morok.optimize import beam, heuristics
from morok.optimize.opts import Opt, OptOp
from morok.runtime import kernel_timing, tune, tuned
from morok.runtime.device import device
from morok.runtime.kernel_timing import FAILED, Timing, Workshop
from tests.passes import kernels as K

A = np.random.default_rng(0).standard_normal((24, 24)).astype(np.float32)


def test_the_actions() -> None:
    assert len(beam.ACTIONS) == len(set(beam.ACTIONS)) == 162
    assert Counter(a.op.name for a in beam.ACTIONS) == {
        "UPCAST": 48, "UNROLL": 15, "LOCAL": 42, "GROUPTOP": 24, "GROUP": 12, "TC": 10, "SWAP": 10, "NOLOCALS": 1,
    }  # fmt: skip
    assert OptOp.THREAD not in {a.op for a in beam.actions(K.CPU)}
    assert OptOp.THREAD in {a.op for a in beam.actions(replace(K.CPU, threads=2))}


def lanes(ast: UOp) -> int:
    return math.prod(
        int(n.vmax) + 1 for n in ast.toposort() if n.op is Op.Range and n.arg[1] in (AxisType.Upcast, AxisType.Unroll)
    )


def searched(
    cost: Callable[[UOp], float], first: Sequence[Opt] = (), ast: UOp | None = None, **limits: object
) -> tuple[tuple[Opt, ...], list[UOp]]:
    """What a search on a 16 x 8 x 16 product finds where kernels take as long as `cost` says, and all it asked about."""
    asked: list[UOp] = []

    def measure(kernels: Sequence[UOp], best: float) -> list[float]:
        asked.extend(kernels)
        return [cost(k) for k in kernels]

    found = beam.search(ast or K.matmul(16, 8, 16), K.AVX2, first, measure, beam.Limits(**limits))  # type: ignore[arg-type]
    return found, asked


def test_it_finds_what_is_fastest() -> None:
    """One over the number of lanes, up to 64 of them: three actions away from nothing."""
    found, asked = searched(lambda k: 1 / min(lanes(k), 64))
    assert lanes(beam._made(K.matmul(16, 8, 16), K.AVX2, found).ast) >= 64
    assert len(asked) == len(set(asked)) + 2 * beam.AGAIN  # each kernel once, and the last two again


@pytest.mark.long
def test_never_slower_than_the_heuristics() -> None:
    first = heuristics.optimize(K.matmul(16, 8, 16), K.AVX2).arg.opts
    assert first
    best = beam._kernel(beam._made(K.matmul(16, 8, 16), K.AVX2, first))
    found, asked = searched(lambda k: 1.0 if k is best else 1.5, first)
    assert asked[0] is best
    assert found == first
    # a lucky measurement does not win: measured again, it is no better
    lucky: Counter[UOp] = Counter()

    def noise(k: UOp) -> float:
        lucky[k] += 1
        return 1.0 if k is best else 0.5 if lucky[k] == 1 and lanes(k) == 4 else 1.5

    assert searched(noise, first)[0] == first
    assert searched(lambda k: math.inf, first)[0] == first  # nothing can be measured


@pytest.mark.long
def test_limits_of_candidates() -> None:
    _, asked = searched(lambda k: 1 / lanes(k), upcast=8)
    assert max(map(lanes, asked)) == 8
    _, asked = searched(lambda k: 1 / lanes(k), outputs=False)
    assert not any(n.op is Op.Range and n.arg[1] is AxisType.Upcast for k in asked for n in k.toposort())
    few = searched(lambda k: 1 / lanes(k), width=1)[1]
    many = searched(lambda k: 1 / lanes(k), width=8)[1]
    assert len(few) < len(many)
    _, asked = searched(lambda k: 1 / lanes(k), seconds=0.0)
    assert len(asked) <= 3 + 2 * beam.AGAIN


# In processes.


def timing(text: str, seconds: float = 20.0) -> Timing:
    code = f"define void @kernel_k(ptr %args, ptr %vars) {{\n{text}\n}}\n"
    rendered = Rendered("k", "LLVM", code, (Argument(0, dtypes.f32, True),))
    return Timing("CPU", rendered, ((dtypes.f32, 4),), {}, 1, 1, math.inf, {"cache_dir": config.cache_dir()}, seconds)


@pytest.mark.long
def test_processes_survive_what_kernels_do(cache: Path) -> None:
    """A compiler that aborts, one that complains, a kernel that never ends, one that traps: none is a candidate, all else is."""
    good = timing("  ret void")
    aborts = timing('  call void asm sideeffect "nonsense", ""()\n  ret void')
    complains = timing("  ret i32")
    hangs = timing("  br label %again\nagain:\n  br label %again", 1.5)
    traps = timing("  %x = load volatile i64, ptr null\n  ret void")
    workshop = Workshop()
    try:
        answers = workshop.run([good, aborts, complains, hangs, traps, good], 2)
        assert [a == FAILED for a in answers] == [False, True, True, True, True, False]
        assert workshop.died == 3
        assert 0 < answers[0] < 1
        pid = workshop.processes[0].popen.pid
        assert workshop.run([good], 1)[0] < 1
        assert workshop.processes[0].popen.pid == pid  # they stay
    finally:
        workshop.close()
    assert not workshop.processes


@pytest.mark.long
def test_only_compiled(cache: Path) -> None:
    workshop = Workshop()
    try:
        assert workshop.run([replace(timing("  ret void"), runs=0)], 1) == [0.0]
    finally:
        workshop.close()


@pytest.fixture
def quick(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Kernels take as long as they have instructions: nothing is compiled to find out. How many were timed, call by call."""
    calls: list[int] = []

    def run(self: Workshop, tasks: Sequence[Timing], jobs: int) -> list[float]:
        calls.append(len(tasks))
        return [float(t.rendered.work) for t in tasks]

    monkeypatch.setattr(Workshop, "run", run)
    return calls


def program() -> Tensor:
    return (Tensor(A) * 2).relu()


@pytest.mark.long
def test_the_second_run_times_nothing(quick: list[int]) -> None:
    before = replace(tune.COUNTERS)
    with config.settings(beam=1, threads=1):
        first = program().kernels()
        assert tune.COUNTERS.searches == before.searches + 1
        assert sum(quick) > 10
        quick.clear()
        second = program().kernels()
        assert not quick
        assert tune.COUNTERS.remembered == before.remembered + 1
        assert second == first
        with config.settings(ignore_beam_cache=True):
            program().kernels()
        assert quick
        quick.clear()
        with config.settings(beam_upcast_max=2):  # another search
            program().kernels()
        assert quick


@pytest.mark.long
def test_another_process_finds_what_was_found() -> None:
    text = """
        from morok import config
        from morok.runtime import tune, tuned
        from morok.runtime.device import device
        from tests.passes import kernels as K

        cpu = device("CPU")
        with config.settings(fast_math="contract,nsz,arcp,afn"):
            print(tuned.key(K.matmul(4, 4, 4), cpu.identity, cpu.target, config.code_key(), tune.limits()))
    """
    keys = set()
    for seed in "123":  # of Python's hashes, which give sets their order
        command = [sys.executable, "-c", textwrap.dedent(text)]
        keys.add(
            subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        )
    assert len(keys) == 1


@pytest.mark.long
def test_results_of_a_search(quick: list[int]) -> None:
    expected = np.maximum(A * 2, 0)
    t = program().realize(config=OptimizerConfig(strategy=Beam(2, timeout=5.0), threads=1))
    assert np.allclose(t.numpy(), expected, rtol=1e-5, atol=1e-5)
    assert quick
    built = OptimizerConfig.builder().strategy(Beam(3, runs=7)).threads(1).k_vectorize().no_output_upcast().build()
    assert built.settings() == {
        "noopt": False, "beam": 3, "opts": "", "beam_timeout": 60.0, "beam_upcast_max": 256, "beam_local_max": 1024,
        "beam_uops_max": 3000, "beam_runs": 7, "threads": 1, "k_vectorize": True, "no_output_upcast": True,
    }  # fmt: skip
    quick.clear()
    for strategy in (Heuristics(), Unoptimized()):
        plan = program().prepare(config=OptimizerConfig(strategy))
        assert np.allclose(plan.execute().numpy().reshape(24, 24), expected, rtol=1e-5, atol=1e-5)
    assert not quick


@pytest.mark.long
def test_a_real_search(cache: Path) -> None:
    died = kernel_timing.workshop.died
    with config.settings(beam=1, beam_timeout=4, beam_runs=1, threads=1):
        t = (Tensor(A) * 2 + 1).sum(1)
        assert np.allclose(t.numpy(), (A * 2 + 1).sum(1), rtol=1e-5)
    assert kernel_timing.workshop.died == died
    assert (cache / "beam.sqlite").exists()


def test_uops_max(quick: list[int]) -> None:
    bench = tune.Bench(K.matmul(16, 8, 16), device("CPU"))
    kernel = beam._kernel(beam._made(K.matmul(16, 8, 16), device("CPU").target, ()))
    assert bench.rendered(kernel) is not None
    with config.settings(beam_uops_max=10):
        assert bench.rendered(kernel) is None
        assert bench.measure([kernel], math.inf) == [FAILED]
    assert bench.measure([kernel, kernel], math.inf)[0] < FAILED
    assert quick[-1] == 1  # equal texts are timed once


def test_devices_that_cannot_measure(quick: list[int]) -> None:
    with config.settings(beam=2):
        assert program().kernels("CUDA")
        assert program().kernels("NULL")
    assert not quick


# On disk.

OPTS = (Opt(OptOp.UPCAST, 1, 4), Opt(OptOp.NOLOCALS), Opt(OptOp.SWAP, 0, 1))


def test_keys_are_structural() -> None:
    a, b = K.matmul(16, 8, 16), K.matmul(16, 8, 24)
    renamed = UOp.new(Op.Sink, a.src, replace(a.arg, name="another"))
    assert tuned.key(a, "x") == tuned.key(renamed, "x")
    assert (
        len({tuned.key(a, "x"), tuned.key(b, "x"), tuned.key(a, "y"), tuned.key(K.matmul(16, 8, 16, dtypes.f64), "x")})
        == 4
    )
    code = "from tests.passes import kernels as K; from morok.runtime import tuned; print(tuned.key(K.matmul(16, 8, 16), 'x'))"
    import subprocess
    import sys

    other = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert other.stdout.strip() == tuned.key(a, "x")


def test_what_is_put_is_got(tmp_path: Path) -> None:
    found = tuned.Found(tmp_path)
    assert found.get("k") is None
    assert found.put("k", OPTS)
    assert tuned.Found(tmp_path).get("k") == OPTS
    assert found.get("other") is None


def _put_until_killed(folder: Path) -> None:
    found = tuned.Found(folder)
    for k in range(1_000_000):
        found.put(f"{k}", OPTS)


@pytest.mark.long
def test_a_killed_writer(tmp_path: Path) -> None:
    found = tuned.Found(tmp_path)
    assert found.put("mine", OPTS)
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        writer = context.Process(target=_put_until_killed, args=(tmp_path,))
        writer.start()
        while found.get("0") is None:
            pass
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        assert found.get("mine") == OPTS
        assert found.put("mine", OPTS)


def test_a_damaged_file_and_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    found = tuned.Found(tmp_path)
    found.put("k", OPTS)
    found.path.write_bytes(b"no database at all" * 100)
    assert found.get("k") is None
    assert found.put("k", OPTS)
    assert found.get("k") == OPTS
    (tmp_path / "file").touch()
    nowhere = tuned.Found(tmp_path / "file")
    assert not nowhere.put("k", OPTS)
    assert nowhere.get("k") is None


@pytest.mark.long
def test_what_no_longer_applies_is_searched_again(quick: list[int], cache: Path) -> None:
    with config.settings(beam=2, threads=1):
        program().kernels()
        import sqlite3

        with sqlite3.connect(cache / "beam.sqlite") as connection:
            ((key,),) = connection.execute("select key from found").fetchall()
            said = tuned.text([Opt(OptOp.UPCAST, 7, 3)])
            connection.execute("update found set opts = ?", (tuned.sealed(key, said),))
        quick.clear()
        program().kernels()
        assert quick
