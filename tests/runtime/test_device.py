"""Devices by name, targets, and CUDA on a machine without a GPU."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from programs import affine, f32

from morok import config
from morok.codegen.machines import CUDA, host, llvm_target, machine
from morok.errors import CompileError, DeviceError
from morok.ir.op import Op
from morok.runtime import gpu
from morok.runtime.buffer import Buffer
from morok.runtime.device import device, status
from morok.runtime.jit import parse


def test_devices_by_name() -> None:
    assert device("cpu") is device("CPU")
    assert device().name == "CPU"
    with config.settings(device="NULL"):
        assert device().name == "NULL"
    with pytest.raises(DeviceError, match="'TPU'"):
        device("TPU")


def test_targets() -> None:
    target = host()
    assert target.name == "LLVM"
    assert target.vector_bytes in (16, 32, 64)
    assert Op.Exp2 in target.unsupported
    assert CUDA.lanes(f32) == 1
    wide = llvm_target(machine("skylake-avx512", "+avx,+avx2,+avx512f,+fma"))
    assert (wide.vector_bytes, wide.registers, wide.fma) == (64, 32, True)
    plain = llvm_target(machine("x86-64", "+sse2"))
    assert (plain.vector_bytes, plain.fma) == (16, False)


def test_cuda_renders_without_a_gpu() -> None:
    text = device("CUDA").render(affine(2.0, 1.0), "affine").text
    assert text.startswith('extern "C" __global__ void')


def _without(monkeypatch: pytest.MonkeyPatch, how: Any) -> None:
    gpu._cupy.cache_clear()
    monkeypatch.setattr(gpu, "status", how)


def test_cuda_without_a_gpu_is_a_device_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gpu.status()
    assert status() == found.message
    if found.usable:
        _without(monkeypatch, lambda: gpu.Status(False, "CUDA cannot be used: none here"))
    cuda = device("CUDA")
    with pytest.raises(DeviceError, match="CUDA cannot be used"):
        cuda.allocate(4)
    with pytest.raises(DeviceError, match="CUDA cannot be used"):
        cuda.compile(affine(2.0, 1.0), "affine")
    with pytest.raises(DeviceError):
        Buffer.wrap(cuda, np.zeros(3, np.float32))
    gpu._cupy.cache_clear()


def test_cuda_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    found = gpu.status()
    assert not found.usable
    assert "CuPy is not installed" in found.message


def test_contraction_decides_nvrtcs_option() -> None:
    assert "--fmad=true" in gpu.compile_options(frozenset({"contract"}))
    assert "--fmad=false" in gpu.compile_options(frozenset())


def test_bad_ir_is_a_compile_error() -> None:
    with pytest.raises(CompileError, match="LLVM rejects"):
        parse("define void @f() { ret i32 0 }")


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    script = "import sys, morok, morok.codegen.machines; print([m for m in ('llvmlite', 'numpy', 'cupy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
