"""Every setting does what it says, and a variable that is no setting is named."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from morok import Tensor, config, dtypes
from morok.codegen.targets import CUDA
from morok.errors import ConfigError
from morok.ir.uop import UOp
from morok.optimize import heuristics
from morok.optimize.opts import OptOp
from morok.passes.accesses import access_widths
from morok.runtime import tune
from tests.passes import kernels as K


def opts(ast: UOp) -> set[OptOp]:
    return {o.op for o in heuristics.optimize(ast, K.AVX2).arg.opts}


def test_k_vectorize_and_no_output_upcast() -> None:
    ast = K.matmul(16, 32, 16)
    assert opts(ast) == {OptOp.UPCAST}
    with config.settings(k_vectorize=True):
        assert OptOp.UNROLL in opts(ast)
    for program in (ast, K.elementwise(64), K.columns(16, 32), K.matmul_transposed(16, 32, 16), K.transpose(32, 32)):
        with config.settings(no_output_upcast=True):
            assert OptOp.UPCAST not in opts(program)


def test_the_interpreter_as_backend() -> None:
    x = np.array([[1.5, -2.0, 3.0], [0.5, 0.25, -1.0]], np.float32)
    with config.settings(cpu_backend="interpreter"):
        t = Tensor(x)
        assert (t * 2 + t.sum(1, keepdim=True)).numpy().tolist() == (x * 2 + x.sum(1, keepdims=True)).tolist()
        assert (Tensor(x).cast(dtypes.bf16) + 1).cast(dtypes.f32).numpy().tolist() == (x + 1).tolist()
        plan = (Tensor(x) + 1).prepare()
        assert [k.kernel.backend for k in plan.kernels] == ["interpreter"]
        with config.settings(beam=2):
            before = tune.COUNTERS.searches
            (Tensor(x) * 3).realize()
            assert tune.COUNTERS.searches == before
    plan = (Tensor(x) + 1).prepare()
    assert [k.kernel.backend for k in plan.kernels] == ["LLVM"]


def test_half8() -> None:
    assert [max(access_widths(CUDA, d)) for d in (dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.i8)] == [8, 8, 4, 16]
    with config.settings(allow_half8=False):
        assert [max(access_widths(CUDA, d)) for d in (dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.i8)] == [4, 4, 4, 16]
        assert max(access_widths(K.AVX2, dtypes.f16)) == 8


def test_beam_settings() -> None:
    with config.settings(beam=7, beam_timeout=2.5, beam_upcast_max=32, beam_local_max=64, no_output_upcast=True):
        limits = tune.limits()
    assert (limits.width, limits.seconds, limits.upcast, limits.local, limits.outputs) == (7, 2.5, 32, 64, False)
    for name, value in (("beam", -1), ("beam_timeout", 0), ("beam_runs", 0), ("cpu_backend", "gcc"), ("beam_uops_max", "many")):
        with pytest.raises(ConfigError, match=name), config.settings(**{name: value}):
            pass


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **variables}, timeout=60
    )


def test_a_variable_that_is_no_setting() -> None:
    code = "from morok import config; [s.value for s in config.SETTINGS]; [s.value for s in config.SETTINGS]"
    found = run(code, MOROK_THREAD="2", MOROK_XYZ="1", MOROK_NOOPT="1").stderr
    assert found.count("MOROK_THREAD is no setting of Morok; did you mean MOROK_THREADS?") == 1
    assert found.count("MOROK_XYZ is no setting of Morok; `morok config` lists") == 1
    assert "MOROK_NOOPT" not in found
    assert run(code).stderr == ""
