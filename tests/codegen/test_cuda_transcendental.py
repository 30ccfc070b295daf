"""The CUDA text of transcendental functions, run on the CPU: as exact as their rules promise, by no library function."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cuda_runner import build, launch

from morok.accuracy import ulp
from morok.codegen.cuda import render as render_cuda
from morok.codegen.machines import CUDA, TRANSCENDENTAL, host
from morok.ir.dtype import DType, dtypes
from morok.ir.op import AxisType, Op
from morok.ir.ops.transcendental import TOLERANCE
from morok.ir.uop import UOp
from morok.passes.pipeline import lower
from morok.passes.target import KernelInfo, Target
from morok.runtime.buffer import Buffer
from morok.runtime.device import device

OPS = sorted(TRANSCENDENTAL, key=lambda op: op.name)


def operands() -> np.ndarray:
    spread = np.arange(0, 1 << 32, 1_300_003, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([ulp.special(dtypes.f32), spread]).view(np.float32)


def kernel(op: Op, n: int, d: DType) -> UOp:
    r = UOp.range(n, 0, AxisType.Loop, True)
    out, x = (UOp.new(Op.DefineGlobal, (), slot, d.ptr(n)).index(r) for slot in (0, 1))
    return UOp.sink(out.store(UOp.new(op, (x,))).end(r), info=KernelInfo(f"on_gpu_{op.name.lower()}"))


def exact(op: Op, x: np.ndarray) -> np.ndarray:
    """By the C library, in double."""
    cpu = device("CPU")
    plain = Target("LLVM", vector_bytes=host().vector_bytes)
    wide = ulp.widened(dtypes.f32, x.view(np.uint32))
    out = np.zeros_like(wide)
    program = cpu.compile(lower(kernel(op, len(x), dtypes.f64), plain), f"exact_{op.name.lower()}")
    program.launch([Buffer.wrap(cpu, out), Buffer.wrap(cpu, wide)], {})
    return out


def test_the_cuda_text_keeps_the_promises(tmp_path: Path) -> None:
    x = operands()
    kernels = [render_cuda(lower(kernel(op, len(x), dtypes.f32), CUDA), f"on_gpu_{op.name.lower()}") for op in OPS]
    library = build(kernels, tmp_path)
    for op, k in zip(OPS, kernels, strict=True):
        out = np.zeros_like(x)
        launch(library, k, [out, x])
        off = ulp.errors(dtypes.f32, ulp.widened(dtypes.f32, out.view(np.uint32)), exact(op, x))
        assert off.max() <= TOLERANCE[op], (op, x[off.argmax()], off.max())
