"""Tensor programs through the whole pipeline: machine code, the CUDA text run on the CPU, and NumPy agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from cuda_runner import build, launch
from nvrtc import compile_ptx

from morok import Tensor, Variable
from morok.codegen.cuda import render as render_cuda
from morok.codegen.rendered import Rendered
from morok.codegen.targets import CUDA, host
from morok.errors import DeviceError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.passes.pipeline import lower
from morok.passes.target import KernelInfo
from morok.runtime import gpu
from morok.runtime.buffer import NUMPY
from morok.runtime.device import device
from morok.tensor import schedule, stored


def data(*shape: int, seed: int = 0) -> np.ndarray:
    """Floats on a grid of eighths: sums and products of a few are exact."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-40, 40, shape) / 8).astype(np.float32)


def ints(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.int32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


A, B, C = data(24, 40), data(40, 16, seed=1), data(16, seed=2)
LONG, ODD = data(1000), data(5, 37, seed=3)
P, Q = ints(64), ints(64, seed=1)

PROGRAMS: dict[str, tuple[Callable[[], Tensor], np.ndarray]] = {
    "chain": (lambda: (Tensor(LONG) * 3 + 1).relu() * 2 - Tensor(LONG), np.maximum(LONG * 3 + 1, 0) * 2 - LONG),
    "odd_sizes": (lambda: Tensor(ODD) + Tensor(ODD) * 2, ODD * 3),
    "sum_of_all": (lambda: Tensor(LONG).sum(), LONG.sum(dtype=np.float64)),
    "sum_of_rows": (lambda: Tensor(ODD).sum(1), ODD.sum(1)),
    "sum_of_columns": (lambda: Tensor(ODD).sum(0), ODD.sum(0)),
    "greatest": (lambda: Tensor(ODD).max(1), ODD.max(1)),
    "matmul": (lambda: Tensor(A) @ Tensor(B), A @ B),
    "layer": (lambda: (Tensor(A) @ Tensor(B) + Tensor(C)).relu(), np.maximum(A @ B + C, 0)),
    "transposed": (lambda: Tensor(A).T + 1, A.T + 1),
    "softmax": (lambda: Tensor(ODD).softmax(), softmax(ODD)),
    "flipped": (lambda: Tensor(ODD).flip(1) * 2, ODD[:, ::-1] * 2),
    "divided": (lambda: Tensor(P) // Tensor(Q), np.floor_divide(P, Q, where=Q != 0, out=np.zeros_like(P))),
    "compared": (lambda: (Tensor(P) < Tensor(Q)).where(Tensor(P), Tensor(Q)), np.minimum(P, Q)),
}


@dataclass
class Built:
    """A program's kernels in order, as CUDA, and what each reads and writes."""

    prepared: schedule.Prepared
    output: int
    texts: list[Rendered] = field(default_factory=list)


def kernel_names(name: str, n: int) -> list[str]:
    return [f"{name}_{i}" for i in range(n)]


@pytest.fixture(scope="module")
def built() -> dict[str, Built]:
    found: dict[str, Built] = {}
    for name, (make, _) in PROGRAMS.items():
        roots = stored.wanted([make()])
        prepared = schedule.with_memory(roots, "CPU")
        b = Built(prepared, prepared.schedule.outputs[0])
        for kernel, step in zip(kernel_names(name, len(prepared.schedule.steps)), prepared.schedule.steps, strict=True):
            b.texts.append(render_cuda(lower(step.ast, CUDA), kernel))
        found[name] = b
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_llvm(name: str) -> None:
    make, expected = PROGRAMS[name]
    np.testing.assert_allclose(make().numpy(), expected, rtol=1e-5, atol=1e-5)


def test_cuda_run_on_the_cpu(built: dict[str, Built], tmp_path: Path) -> None:
    library = build([t for b in built.values() for t in b.texts], tmp_path, "-O1")
    for name, b in built.items():
        expected = PROGRAMS[name][1]
        memory = b.prepared.memory
        inputs = b.prepared.schedule.inputs
        for backwards in (False, True):
            arrays = [m.numpy() if i < inputs else np.zeros(m.size, NUMPY[m.dtype]) for i, m in enumerate(memory)]
            for text, step in zip(b.texts, b.prepared.schedule.steps, strict=True):
                launch(library, text, [arrays[n] for n in step.buffers], b.prepared.values, backwards)
            got = arrays[b.output].reshape(np.shape(expected))
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_nvrtc(name: str, built: dict[str, Built]) -> None:
    for text in built[name].texts:
        compile_ptx(text.text, text.name)


def test_kernels_use_the_hardware(built: dict[str, Built]) -> None:
    """A matmul is spread over blocks and threads; its CPU code has vectors, accumulators in registers and fused arithmetic."""
    (text,) = built["matmul"].texts
    assert int(text.grid[0].arg) * int(text.block[0].arg) > 1
    (item,) = schedule.create_schedule([Tensor(data(64, 64)) @ Tensor(data(64, 64, seed=1))])
    instructions = lower(item.ast, host())
    assert any(u.dtype.count > 1 for u in instructions)
    code = device("CPU").render(instructions, "matmul").text
    assert "alloca" not in code
    assert f"phi <{host().vector_bytes // 4} x float>" in code
    assert any(u.op is Op.MulAcc for u in instructions) or "fmul contract" in code


def test_cuda_kernels_are_shown_and_refused_without_a_gpu() -> None:
    shown = (Tensor(LONG) + 1).kernels(device="CUDA")
    assert len(shown) == 1
    assert "__global__ void" in shown[0].code
    if not gpu.status().usable:
        with pytest.raises(DeviceError, match="CUDA cannot be used"):
            Tensor([1.0, 2.0], device="CUDA")


SYMBOLIC: dict[str, Callable[[Tensor], Tensor]] = {
    "map": lambda x: x * 2,
    "sum": lambda x: x.sum(),
    "rows": lambda x: x.sum(1),
    "columns": lambda x: x.sum(0),
    "matmul": lambda x: x @ Tensor(data(64, 64)),
    "softmax": lambda x: x.softmax(0),
    "transposed": lambda x: x.T.contiguous(),
    "one column": lambda x: x[:, 3] + 1,
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_lengths_compile_for_cuda(name: str) -> None:
    n = Variable("n", 1, 4096).bind(7)
    program = SYMBOLIC[name](Tensor(data(4096, 64)).shrink(((0, n), (0, 64))))
    for kernel in program.kernels(device="CUDA"):
        assert "var0" in kernel.code
        assert compile_ptx(kernel.code, kernel.name).ptx


def test_grouped_and_padded_reductions_run_on_cuda(built: dict[str, Built], tmp_path: Path) -> None:
    """Threads fold their parts, wait for each other, and fold those, whichever thread comes first."""
    wanted = {
        "sum_of_all": (Opt(OptOp.GROUP, 0, 8),),
        "sum_of_rows": (Opt(OptOp.PADTO, 1, 8), Opt(OptOp.GROUPTOP, 0, 8)),
        "greatest": (Opt(OptOp.LOCAL, 0, 5), Opt(OptOp.PADTO, 1, 8), Opt(OptOp.GROUP, 0, 4)),
        "sum_of_columns": (Opt(OptOp.PADTO, 0, 8), Opt(OptOp.UPCAST, 0, 4), Opt(OptOp.GROUP, 0, 5)),
    }
    texts: dict[str, Rendered] = {}
    for name, opts in wanted.items():
        (step,) = built[name].prepared.schedule.steps
        ast = UOp.new(Op.Sink, step.ast.src, KernelInfo(name, opts))
        texts[name] = render_cuda(lower(ast, CUDA), name)
        assert "__shared__" in texts[name].text
        compile_ptx(texts[name].text, name)
    library = build(list(texts.values()), tmp_path, "-O1")
    for name, text in texts.items():
        expected = PROGRAMS[name][1]
        b = built[name]
        inputs = b.prepared.schedule.inputs
        for backwards in (False, True):
            arrays = [m.numpy() if i < inputs else np.zeros(m.size, NUMPY[m.dtype]) for i, m in enumerate(b.prepared.memory)]
            launch(library, text, [arrays[n] for n in b.prepared.schedule.steps[0].buffers], b.prepared.values, backwards)
            np.testing.assert_allclose(arrays[b.output].reshape(np.shape(expected)), expected, rtol=1e-5, atol=1e-5, err_msg=name)
