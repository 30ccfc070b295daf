"""Every row of the feature table's part 1.11: code, memory, execution, settings, and what one can see of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from codegen.nvrtc import compile_ptx
from llvmlite import binding

from acceptance.notation import ROOT, command
from morok import OptimizerConfig, Tensor, config, dtypes
from morok.codegen.cuda import render as render_cuda
from morok.codegen.llvm import render as render_llvm
from morok.codegen.machines import CUDA
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.optimize.strategy import Unoptimized
from morok.passes.access_widths import access_widths
from morok.passes.pipeline import lower
from morok.runtime import jit
from morok.runtime.buffer import CPU_POOL
from morok.runtime.device import device
from morok.runtime.kernel import Kernel
from morok.runtime.plan import ExecutionPlan
from morok.tensor import schedule
from morok.tools.cli import main
from tests.passes import kernels as K


def data(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "elementwise": lambda: (data(37) * 2 + data(37, seed=1)).relu(),
    "matmul": lambda: data(33, 20) @ data(20, 17, seed=1),
    "softmax": lambda: data(6, 40).softmax(-1),
    "conv": lambda: data(1, 3, 9, 9).conv2d(data(4, 3, 3, 3, seed=1), padding=1),
    "argmax": lambda: data(6, 40).argmax(-1),
    "cumsum": lambda: data(50).cumsum(0),
    "sort": lambda: data(12).sort()[0],
    "half": lambda: (data(40).cast(dtypes.f16) * 3).exp(),
    "integers": lambda: (Tensor(np.arange(-20, 20)) // 7) ^ 5,
    "bools": lambda: (data(19) > 0) & (data(19, seed=1) < 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_renderer_interface(name: str) -> None:
    """One list of instructions is rendered for both: text, and what is needed to launch it."""
    for item in PROGRAMS[name]().schedule():
        slots = sorted({n.arg for n in item.ast.toposort() if n.op is Op.DefineGlobal})
        for render, target in ((render_llvm, K.SCALAR), (render_cuda, K.SCALAR)):
            rendered = render(lower(item.ast, target), item.ast.arg.name)
            assert item.ast.arg.name in rendered.text
            assert [a.slot for a in rendered.args] == slots
            assert [a.written for a in rendered.args] == [s == 0 for s in slots]


@pytest.mark.parametrize("name", PROGRAMS)
def test_llvm_text(name: str) -> None:
    """A function of `args` and `vars`; LLVM takes every kernel's text as it stands."""
    for kernel in PROGRAMS[name]().kernels():
        assert "(ptr %args, ptr %vars)" in kernel.code.replace("noalias ", "").replace("nocapture ", "")
        binding.parse_assembly(kernel.code).verify()


def test_jit_cache() -> None:
    """By the kernel and the device: the same is compiled once, from other data and under another name too."""
    one, two = (data(23, seed=s) * 4.75 - 1 for s in (1, 2))
    one.realize()
    before = (jit.COUNTERS.compiled, jit.COUNTERS.from_disk, schedule.COUNTERS.kernels_lowered)
    two.realize()
    assert (jit.COUNTERS.compiled, jit.COUNTERS.from_disk, schedule.COUNTERS.kernels_lowered) == before
    plain, other = (
        t.prepare(config=c)
        for t, c in ((data(23) * 4.75 - 1, None), (data(23) * 4.75 - 1, OptimizerConfig(Unoptimized())))
    )
    assert plain.kernels[0].kernel is not other.kernels[0].kernel


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_cuda_text(name: str) -> None:
    """NVRTC, which needs no GPU, compiles every kernel."""
    for kernel in PROGRAMS[name]().kernels(device="CUDA"):
        assert kernel.backend == "CUDA"
        assert compile_ptx(kernel.code, kernel.name).ptx


def test_shared_memory_in_cuda() -> None:
    opts = (Opt(OptOp.LOCAL, 0, 4), Opt(OptOp.GROUP, 0, 8))
    text = render_cuda(lower(UOp.new(Op.Sink, K.rows(64, 256).src, K.KernelInfo("rows", opts)), K.GPU), "rows").text
    store, barrier = text.index("__shared__"), text.index("__syncthreads();")
    assert store < barrier
    compiled = compile_ptx(text, "rows")
    assert "bar.sync" in compiled.ptx or "barrier.sync" in compiled.ptx
    assert f"{4 * 8 * 4} bytes smem" in compiled.log


def test_bool_storage() -> None:
    """A byte each: 0 or 1, whatever made them."""
    results = [data(67) > 0, (data(67) > 0) ^ (data(67, seed=1) > 0), data(5, 40).cast(dtypes.bool), ~(data(67) > 0)]
    for t in results:
        memory = t.realize().numpy()
        assert memory.dtype == np.bool_
        assert set(np.unique(memory.view(np.uint8))) <= {0, 1}
    any_, all_ = (data(5, 33) > 0).any(1), (data(5, 33) > -9).all(1)
    assert (any_.tolist(), all_.tolist()) == ([True] * 5, [True] * 5)


@pytest.mark.long
def test_fused_multiply_add() -> None:
    program = data(32, 32) @ data(32, 32, seed=1)
    (kernel,), (gpu,) = program.kernels(), program.kernels(device="CUDA")
    if device("CPU").target.fma:
        assert "@llvm.fma." in kernel.code
    assert "fmaf(" in gpu.code
    with config.settings(fast_math=""):
        assert "fma" not in (data(31, 32) @ data(32, 32, seed=1)).kernels()[0].code


def test_buffers_views_and_copies() -> None:
    """Freed memory of the same size comes back; views share; copies between devices keep the elements."""
    first = (data(12_347) + 1).realize()
    memory = first.buffer
    assert memory is not None
    reused = CPU_POOL.reused
    address = first.numpy().ctypes.data
    del first, memory
    again = (data(12_347) + 2).realize()
    assert CPU_POOL.reused > reused
    assert again.numpy().ctypes.data == address or CPU_POOL.reused > reused + 1
    assert again.reshape(1, -1).buffer is again.buffer
    np.testing.assert_array_equal(again[:100].contiguous().numpy(), again.numpy()[:100])
    assert again.to("NULL").shape == again.shape
    assert again.to("NULL").device == "NULL"


def test_independent_kernels_run_at_the_same_time() -> None:
    """By their timestamps: each of two kernels of one group begins before the other ends."""
    x = Tensor(np.linspace(0.1, 1.0, 30_000))  # one number each: nothing that threads could share
    a, b = (x.sin() * x.exp()).sum().contiguous(), (x.exp() * x.sin() * x.log()).sum().contiguous()
    with config.settings(threads=2):
        plan = Tensor.prepare_batch([a, b])
        assert max(len(g) for g in plan.parallel_groups) == 2

        def overlaps() -> bool:
            times = plan.profile()
            first, second = (times[i] for i in max(plan.parallel_groups, key=len))
            return second.start < first.start + first.seconds and first.start < second.start + second.seconds

        assert any(overlaps() for _ in range(2000))  # on a busy machine the second worker may be kept waiting for long


def test_a_plan_returns_the_first_tensor_where_that_is_stored_already() -> None:
    """One plan where the others read it, one where they do not."""
    x = data(8, 8).realize()
    for other in (data(4, seed=1) * 2, x + 1):
        plan = Tensor.prepare_batch([x, other])
        np.testing.assert_array_equal(plan.execute().numpy().reshape(8, 8), x.numpy())
        assert len(set(map(id, plan.buffers))) == len(plan.buffers)


def test_execution_plan() -> None:
    plan = (data(8, 8).sum(0).contiguous() + data(8, 8, seed=1).sum(1).contiguous()).prepare()
    assert isinstance(plan, ExecutionPlan)
    assert all(isinstance(k.kernel, Kernel) for k in plan.kernels)
    assert plan.parallel_groups == [[0, 1], [2]]
    assert plan.buffers[plan.output_buffer_idx] is plan.output
    assert plan.output.size == 8


def test_profile() -> None:
    plan = (data(64, 64).sum(0).contiguous() * data(64)).prepare()
    times = plan.profile()
    assert [t.name for t in times] == [k.kernel.name for k in plan.kernels]
    assert all(t.seconds > 0 for t in times)
    assert times[1].start >= times[0].start + times[0].seconds


# the table's names: value, and the same read back
VARIABLES = {
    "MOROK_NOOPT": "1", "MOROK_BEAM": "3", "MOROK_BEAM_TIMEOUT": "7.5", "BEAM_UPCAST_MAX": "32", "BEAM_LOCAL_MAX": "64",
    "BEAM_UOPS_MAX": "500", "BEAM_RUNS": "2", "IGNORE_BEAM_CACHE": "1", "MOROK_THREADS": "1", "MOROK_K_VECTORIZE": "1",
    "MOROK_NO_OUTPUT_UPCAST": "1", "MOROK_CPU_BACKEND": "interpreter", "MOROK_DEBUG": "ir", "DEVECTORIZE": "0",
    "MOROK_DEVICE": "NULL", "MOROK_CHECK": "1", "MOROK_TRACE": "out.json", "MOROK_CACHE_DIR": "cache", "MOROK_FAST_MATH": "nsz",
    "MOROK_MAX_BUFFERS": "8", "ALLOW_HALF8": "0", "MOROK_OPTS": "UPCAST(0, 2)", "MOROK_L1_BYTES": "32768",
    "MOROK_L2_BYTES": "1048576", "MOROK_SEARCH_CUTS": "4",
}  # fmt: skip


def test_every_setting_is_listed_with_value_source_and_meaning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {n if n.startswith("MOROK_") else f"MOROK_{n}": n for n in VARIABLES}
    assert set(names) == {f"MOROK_{s.name}" for s in config.SETTINGS}
    for name, text in VARIABLES.items():
        monkeypatch.setenv(name, text)
    assert main(["config", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document["absent"]) == ["MOROK_AMX"]
    for row in document["settings"]:
        text = VARIABLES[names[row["name"]]]
        assert row["source"] == "environment", row["name"]
        assert row["value"] in (text, {"1": "True", "0": "False"}.get(text)), row["name"]
        assert row["meaning"]
        assert row["takes"]
        assert row["also"] == ("" if names[row["name"]].startswith("MOROK_") else names[row["name"]])
    assert main(["config"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*VARIABLES, "MOROK_AMX"))


@pytest.mark.parametrize(("name", "bare"), [("MOROK_DEVECTORIZE", "DEVECTORIZE"), ("MOROK_BEAM_RUNS", "BEAM_RUNS")])
def test_the_prefix_goes_first(name: str, bare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = next(s for s in config.SETTINGS if s.name == bare)
    monkeypatch.setenv(bare, "2")
    assert setting.value == 2
    monkeypatch.setenv(name, "1")
    assert setting.value == 1
    with config.settings(**{bare.lower(): 2}):
        assert setting.value == 2


def test_what_there_is_no_code_for_is_said() -> None:
    code = "from morok import config; [s.value for s in config.SETTINGS]"
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"MOROK_AMX": "1", "PATH": ""},
    ).stderr
    assert "MOROK_AMX changes nothing: there is no code for matrix coprocessors" in said


EFFECTS: dict[str, Callable[[], object]] = {
    "NOOPT": lambda: data(64, 64).sum(1).kernels(),
    "DEVECTORIZE": lambda: (data(64) * 2).kernels(),
    "FAST_MATH": lambda: (data(64) * 2 + 1).kernels(),
    "K_VECTORIZE": lambda: (data(64, 64) @ data(64, 64)).kernels(),
    "NO_OUTPUT_UPCAST": lambda: (data(64) * 2).kernels(),
    "OPTS": lambda: (data(64) * 2).kernels(),
    "CPU_BACKEND": lambda: [k.kernel.backend for k in (data(8) * 2).prepare().kernels],
    "DEVICE": lambda: Tensor([1.0]).device,
    "MAX_BUFFERS": lambda: len(sum((data(4, seed=k) for k in range(12)), data(4)).schedule()),
    "ALLOW_HALF8": lambda: access_widths(CUDA, dtypes.f16),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", EFFECTS)
def test_settings_change_what_they_say(name: str) -> None:
    before = EFFECTS[name]()
    text = next(v for n, v in VARIABLES.items() if n.removeprefix("MOROK_") == name)
    with config.settings(**{name.lower(): "" if name == "FAST_MATH" else "2" if name == "DEVECTORIZE" else text}):
        assert EFFECTS[name]() != before
    assert EFFECTS[name]() == before


def test_the_ir_after_each_transformation(capsys: pytest.CaptureFixture[str]) -> None:
    with config.settings(debug="ir"):
        (data(3, 19, seed=11) * 2.25).sum(1).kernels()
    titles = [line for line in capsys.readouterr().err.splitlines() if line.startswith("=== ")]
    assert [t.split(": ")[1] for t in titles] == [f"stage {n}" for n in range(1, 23)]
    assert any(t.endswith("(no change)") for t in titles)


def test_glossary_and_symptoms() -> None:
    """The table from symptoms to stages names commands and settings that exist."""
    symptoms = (ROOT / "docs" / "symptoms.md").read_text()
    assert "morok bisect" in symptoms
    assert len((ROOT / "docs" / "glossary.md").read_text().splitlines()) > 30
    assert command("docs", "--help").returncode == 0
