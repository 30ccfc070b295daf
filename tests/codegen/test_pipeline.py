"""Tensor programs through the whole pipeline: machine code, the CUDA text run on the CPU, and NumPy agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cuda_runner import Program, build
from nvrtc import compile_ptx

from morok import Tensor, Variable, config
from morok.codegen.cuda import render as render_cuda
from morok.codegen.machines import CUDA, host
from morok.codegen.rendered import Rendered
from morok.errors import DeviceError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize.opts import Opt, OptOp
from morok.passes.pipeline import lower
from morok.passes.target import KernelInfo
from morok.runtime import gpu
from morok.runtime.device import device
from morok.tensor import schedule


def data(*shape: int, seed: int = 0) -> np.ndarray:
    """Floats on a grid of eighths: sums and products of a few are exact."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-40, 40, shape) / 8).astype(np.float32)


def ints(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.int32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def convolution(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Of images with the same windows everywhere, zeros around them."""
    padded = np.pad(x, [(0, 0), (0, 0)] + [(n // 2, n // 2) for n in w.shape[2:]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w)


A, B, C = data(24, 40), data(40, 16, seed=1), data(16, seed=2)
LONG, ODD = data(1000), data(5, 37, seed=3)
WIDE, IMAGES, WINDOWS = data(4, 512, seed=4), data(1, 3, 8, 8, seed=5), data(4, 3, 3, 3, seed=6)
P, Q = ints(64), ints(64, seed=1)

PROGRAMS: dict[str, tuple[Callable[[], Tensor], np.ndarray]] = {
    "chain": (lambda: (Tensor(LONG) * 3 + 1).relu() * 2 - Tensor(LONG), np.maximum(LONG * 3 + 1, 0) * 2 - LONG),
    "odd_sizes": (lambda: Tensor(ODD) + Tensor(ODD) * 2, ODD * 3),
    "sum_of_all": (lambda: Tensor(LONG).sum(), LONG.sum(dtype=np.float64)),
    "sum_of_rows": (lambda: Tensor(ODD).sum(1), ODD.sum(1)),
    "sum_of_columns": (lambda: Tensor(ODD).sum(0), ODD.sum(0)),
    "greatest": (lambda: Tensor(ODD).max(1), ODD.max(1)),
    "matmul": (lambda: Tensor(A) @ Tensor(B), A @ B),
    "matvec": (lambda: Tensor(A.T) @ Tensor(A[:, 0]), A.T @ A[:, 0]),
    "layer": (lambda: (Tensor(A) @ Tensor(B) + Tensor(C)).relu(), np.maximum(A @ B + C, 0)),
    "transposed": (lambda: Tensor(A).T + 1, A.T + 1),
    "softmax": (lambda: Tensor(ODD).softmax(), softmax(ODD)),
    "wide_softmax": (lambda: Tensor(WIDE).softmax(), softmax(WIDE)),
    "padded_convolution": (lambda: Tensor(IMAGES).conv2d(Tensor(WINDOWS), padding=1), convolution(IMAGES, WINDOWS)),
    "flipped": (lambda: Tensor(ODD).flip(1) * 2, ODD[:, ::-1] * 2),
    "divided": (lambda: Tensor(P) // Tensor(Q), np.floor_divide(P, Q, where=Q != 0, out=np.zeros_like(P))),
    "compared": (lambda: (Tensor(P) < Tensor(Q)).where(Tensor(P), Tensor(Q)), np.minimum(P, Q)),
}


@pytest.fixture(scope="module")
def built() -> dict[str, Program]:
    return {name: Program.of(name, make()) for name, (make, _) in PROGRAMS.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_llvm(name: str) -> None:
    make, expected = PROGRAMS[name]
    np.testing.assert_allclose(make().numpy(), expected, rtol=1e-5, atol=1e-5)


def test_cuda_run_on_the_cpu(built: dict[str, Program], tmp_path: Path) -> None:
    library = build([t for p in built.values() for t in p.texts], tmp_path, "-O1")
    for name, p in built.items():
        expected = PROGRAMS[name][1]
        for backwards in (False, True):
            (got,) = p.run(library, backwards)
            np.testing.assert_allclose(got.reshape(np.shape(expected)), expected, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.long
@pytest.mark.parametrize("setting", ["k_vectorize", "no_output_upcast"])
def test_settings_of_vectors_change_no_value_on_cuda(setting: str, tmp_path: Path) -> None:
    wanted = (
        "sum_of_all",
        "sum_of_rows",
        "sum_of_columns",
        "matmul",
        "layer",
        "wide_softmax",
        "padded_convolution",
        "matvec",
    )
    with config.settings(**{setting: True}):
        programs = {name: Program.of(name, PROGRAMS[name][0]()) for name in wanted}
    library = build([t for p in programs.values() for t in p.texts], tmp_path, "-O1")
    for name, p in programs.items():
        expected = PROGRAMS[name][1]
        (got,) = p.run(library)
        np.testing.assert_allclose(got.reshape(np.shape(expected)), expected, rtol=1e-5, atol=1e-5, err_msg=name)
    assert "float4" in programs["wide_softmax"].texts[0].text


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_nvrtc(name: str, built: dict[str, Program]) -> None:
    for text in built[name].texts:
        compile_ptx(text.text, text.name)


def test_kernels_use_the_hardware(built: dict[str, Program]) -> None:
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_lengths_compile_for_cuda(name: str) -> None:
    n = Variable("n", 1, 4096).bind(7)
    program = SYMBOLIC[name](Tensor(data(4096, 64)).shrink(((0, n), (0, 64))))
    for kernel in program.kernels(device="CUDA"):
        assert "var0" in kernel.code
        assert compile_ptx(kernel.code, kernel.name).ptx


@pytest.mark.long
def test_grouped_and_padded_reductions_run_on_cuda(built: dict[str, Program], tmp_path: Path) -> None:
    """Threads fold their parts, wait for each other, and fold those, whichever thread comes first."""
    wanted = {
        "sum_of_all": (Opt(OptOp.GROUP, 0, 8),),
        "sum_of_rows": (Opt(OptOp.PADTO, 1, 8), Opt(OptOp.GROUPTOP, 0, 8)),
        "greatest": (Opt(OptOp.LOCAL, 0, 5), Opt(OptOp.PADTO, 1, 8), Opt(OptOp.GROUP, 0, 4)),
        "sum_of_columns": (Opt(OptOp.PADTO, 0, 8), Opt(OptOp.UPCAST, 0, 4), Opt(OptOp.GROUP, 0, 5)),
    }
    texts: dict[str, Rendered] = {}
    for name, opts in wanted.items():
        (step,) = built[name].schedule.steps
        ast = UOp.new(Op.Sink, step.ast.src, KernelInfo(name, opts))
        texts[name] = render_cuda(lower(ast, CUDA), name)
        assert "__shared__" in texts[name].text
        compile_ptx(texts[name].text, name)
    library = build(list(texts.values()), tmp_path, "-O1")
    for name, text in texts.items():
        expected = PROGRAMS[name][1]
        for backwards in (False, True):
            (got,) = replace(built[name], texts=[text]).run(library, backwards)
            np.testing.assert_allclose(got.reshape(np.shape(expected)), expected, rtol=1e-5, atol=1e-5, err_msg=name)
