"""The CUDA device, with the tests' own CuPy in place of the real one: what it is asked for, and what comes of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import fake_cupy
import numpy as np
import pytest
from instruction_lists import Listing, i32, special
from programs import affine, f32, filled

from morok.errors import CompileError, OutOfMemoryError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.runtime import gpu
from morok.runtime.buffer import Buffer
from morok.runtime.gpu import CUDADevice
from morok.runtime.kernel import PreparedKernel
from morok.runtime.plan import ExecutionPlan


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[CUDADevice]:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    gpu._cupy.cache_clear()
    yield CUDADevice()
    gpu._cupy.cache_clear()


def test_status_names_the_gpu(cuda: CUDADevice) -> None:
    assert gpu.status() == gpu.Status(True, "CUDA runs on a processor (compute capability 8.0, 1 GPU(s))")
    assert gpu.pool_statistics() == {"used": 512, "held": 1536}


@pytest.mark.parametrize(
    ("gpus", "broken", "says"), [(0, "", "there is no GPU"), (1, "driver version is insufficient", "insufficient")]
)
def test_status_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, gpus: int, broken: str, says: str) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module(gpus, broken))
    found = gpu.status()
    assert not found.usable
    assert says in found.message


def test_buffers_travel_there_and_back(cuda: CUDADevice) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    b = Buffer.wrap(cuda, x)
    assert b.address != x.ctypes.data
    assert np.array_equal(b.numpy(), x.reshape(-1))
    part = b.view(4, 4)
    part.copy_in(np.zeros(4))
    assert b.numpy().tolist() == [0, 1, 2, 3, 0, 0, 0, 0, 8, 9, 10, 11]
    assert Buffer.wrap(cuda, x.T).numpy().tolist() == x.T.reshape(-1).tolist()


@pytest.mark.long
def test_kernels_run(cuda: CUDADevice) -> None:
    x = np.arange(16, dtype=np.float32)
    out = Buffer(cuda, f32, 16)
    kernel = cuda.compile(affine(2.0, 1.0), "affine")
    assert kernel.backend == "CUDA"
    kernel.launch([out, Buffer.wrap(cuda, x)])
    assert np.array_equal(out.numpy(), x * 2 + 1)


def test_grids_and_variables(cuda: CUDADevice) -> None:
    b = Listing()
    out = b.buffer(0, i32, 64)
    n, step = b.var("n", i32, 0, 8), b.var("step", dtypes.i64)
    g, t = b.add(UOp.new(Op.Special, (n,), "gidx0")), b.add(special("lidx0", 8))
    b.store(out, g * 8 + t, b.add((g * 8 + t) * step.cast(i32)))
    kernel = cuda.compile(b.list, "counted")
    buffer = Buffer.wrap(cuda, np.full(64, -1, np.int32))
    kernel.launch([buffer], {"n": 0, "step": 5})
    assert (buffer.numpy() == -1).all()
    kernel.launch([buffer], {"n": 3, "step": 5})
    assert buffer.numpy().tolist() == [k * 5 for k in range(24)] + [-1] * 40


@pytest.mark.long
def test_views_that_begin_anywhere_are_read_element_by_element(cuda: CUDADevice) -> None:
    kernel = cuda.compile(affine(2.0, 1.0), "affine")
    assert "float4" in kernel.code
    assert "float4" not in kernel.rendered.narrow
    whole = Buffer.wrap(cuda, np.arange(20, dtype=np.float32))
    out = Buffer(cuda, f32, 16)
    for start in (1, 4, 3):
        kernel.launch([out, whole.view(start, 16)])
        assert out.numpy().tolist() == [2.0 * (start + k) + 1 for k in range(16)]


@pytest.mark.long
def test_plans_run_kernel_by_kernel(cuda: CUDADevice) -> None:
    buffers = [Buffer.wrap(cuda, np.zeros(16, np.float32)), Buffer(cuda, f32, 16), Buffer(cuda, f32, 16)]
    kernel = cuda.compile(affine(1.0, 1.0), "step")
    plan = ExecutionPlan([PreparedKernel(kernel, (1, 0)), PreparedKernel(kernel, (2, 1))], [[0], [1]], buffers, 2)
    assert plan.execute().numpy().tolist() == [2.0] * 16
    assert plan.execute({0: Buffer.wrap(cuda, np.full(16, 5.0, np.float32))}).numpy().tolist() == [7.0] * 16
    assert [t.name for t in plan.profile()] == ["step", "step"]
    values = [Buffer(cuda, i32, 16)]
    counted = ExecutionPlan([PreparedKernel(cuda.compile(filled(2), "f"), (0,))], [[0]], values)
    assert counted.execute(vars={"value": 21}).numpy().tolist() == [42] * 16


def test_errors_are_ours(cuda: CUDADevice, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutOfMemoryError):
        cuda.allocate(1 << 40)
    rendered = cuda.render(affine(2.0, 1.0), "affine")
    monkeypatch.setattr(
        fake_cupy.RawKernel, "compile", lambda self: (_ for _ in ()).throw(fake_cupy.CompileException("bad"))
    )
    with pytest.raises(CompileError, match="NVRTC rejects the kernel affine: bad"):
        cuda.load(rendered)
