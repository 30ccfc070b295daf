"""Kernels may be called what they like: like a function of libm, a keyword, or with letters that no language takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cuda_runner import build, launch
from instruction_lists import Listing
from nvrtc import compile_ptx

from morok.codegen.cuda import render as render_cuda
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.device import device

NAMES = ["sin", "exp2", "fma", "memcpy", "main", "float", "min", "threadIdx", "atomicAdd", "softmax é 2", "k.plain"]


def program(number: int) -> Listing:
    b = Listing()
    out, x = b.buffer(0, dtypes.f32, 4), b.buffer(1, dtypes.f32, 4)
    r = b.range(4)
    b.store(out, r, b.add(UOp.new(Op.Sqrt, (b.load(x, r),)) * float(number)))
    b.end(r)
    return b


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_llvm(number: int) -> None:
    cpu = device("CPU")
    out, x = np.zeros(4, np.float32), np.array([0, 1, 4, 9], np.float32)
    kernel = cpu.compile(program(number).list, NAMES[number])
    kernel.launch([Buffer.wrap(cpu, out), Buffer.wrap(cpu, x)])
    assert out.tolist() == [0, number, 2 * number, 3 * number]
    assert kernel.name == NAMES[number]


@pytest.mark.long
def test_cuda(tmp_path: Path) -> None:
    texts = [render_cuda(program(1).list, name) for name in NAMES if name.isidentifier()]
    for text in [*texts, render_cuda(program(1).list, "softmax é 2")]:
        assert text.symbol in compile_ptx(text.text, "kernel", "compute_80").ptx
    library = build(texts, tmp_path)
    for text in texts:
        out, x = np.zeros(4, np.float32), np.array([0, 1, 4, 9], np.float32)
        launch(library, text, [out, x])
        assert out.tolist() == [0, 1, 2, 3]
