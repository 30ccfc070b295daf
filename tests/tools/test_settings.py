"""Every setting does what it says, and a variable that is no setting is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from morok import Tensor, config, dtypes
from morok.codegen.machines import CUDA
from morok.errors import ConfigError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.optimize import heuristics
from morok.optimize.opts import OptOp
from morok.passes.access_widths import access_widths
from morok.runtime import tune
from morok.tools.cli import main
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


@pytest.mark.parametrize("setting", ["k_vectorize", "no_output_upcast"])
def test_vectors_along_reductions_on_a_gpu(setting: str) -> None:
    """A thread takes as many elements of a reduction as one load moves, shared with other threads or not; and no outputs."""
    for program in (
        K.matmul(64, 32, 64),
        K.matmul_transposed(64, 32, 64),
        K.rows(8, 64),
        K.columns(64, 32),
        K.total(512),
    ):
        plain = [str(o) for o in heuristics.optimize(program, CUDA).arg.opts]
        assert not any(o.startswith("UNROLL") for o in plain)
        with config.settings(**{setting: True}):
            chosen = [str(o) for o in heuristics.optimize(program, CUDA).arg.opts]
        assert "UNROLL(0, 4)" in chosen
        assert not any(o.startswith("UPCAST") for o in chosen)
        assert {o.partition("(")[0] for o in plain} - {"UPCAST"} <= {o.partition("(")[0] for o in chosen}
    (kernel,) = (Tensor.empty(64, 512) * 2).kernels(device="CUDA")
    assert "UPCAST(0, 4)" in kernel.opts
    with config.settings(**{setting: True}):
        (kernel,) = (Tensor.empty(64, 512) * 2).kernels(device="CUDA")
    assert ("UPCAST(0, 4)" in kernel.opts) is (setting == "k_vectorize")
    with config.settings(**{setting: True}):  # as many as divide the length, of elements as wide
        lanes = [
            str(heuristics.optimize(K.rows(8, n, Op.Add, d), CUDA).arg.opts[1])
            for n, d in ((96, dtypes.f16), (96, dtypes.f64))
        ]
    assert lanes == ["UNROLL(0, 8)", "UNROLL(0, 2)"]


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
    for name, value in (
        ("beam", -1),
        ("beam_timeout", 0),
        ("beam_runs", 0),
        ("cpu_backend", "gcc"),
        ("beam_uops_max", "many"),
    ):
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


@pytest.mark.long
def test_a_warning_about_a_variable_names_the_users_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import morok\n\nt = morok.Tensor([1.0])\n")
    environment = {**os.environ, "MOROK_THREDS": "3"}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True)
    assert (
        f"{program}:3: UserWarning: the variable MOROK_THREDS is no setting of Morok; did you mean MOROK_THREADS?"
        in done.stderr
    )


def test_a_setting_that_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="there is no setting 'thread'") as caught, config.settings(thread=1):
        pass
    assert caught.value.hint.startswith("did you mean threads")
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_a_cache_folder_inside_a_file_is_not_called_writable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MOROK_CACHE_DIR", f"{__file__}/none")
    assert main(["doctor", "--json"]) == 0
    assert "not writable" in json.loads(capsys.readouterr().out)["cache"]


@pytest.mark.parametrize("environment", ["os.environ", "dict(os.environ)"])
def test_variables_are_read_when_they_are_used(environment: str) -> None:
    """Also where `os.environ` has no table inside that can be looked at: there each look is slower, and as right."""
    program = (
        f"import os; os.environ = {environment}\n"
        "from morok import config\n"
        "print(config._SET is os.environ, config.THREADS.value == config.THREADS.default)\n"
        "before = config.all_key(), config.code_key()\n"
        "os.environ['MOROK_THREADS'], os.environ['MOROK_FAST_MATH'] = '3', 'fast'\n"
        "print(config.THREADS.value, config.FAST_MATH.value != config.FAST_MATH.default)\n"
        "print(config.all_key() != before[0], config.code_key() != before[1])\n"
        "del os.environ['MOROK_THREADS'], os.environ['MOROK_FAST_MATH']\n"
        "print(config.all_key() == before[0], config.code_key() == before[1])\n"
    )
    env = {k: v for k, v in os.environ.items() if k not in ("MOROK_THREADS", "THREADS", "MOROK_FAST_MATH", "FAST_MATH")}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(environment != "os.environ"), "True", "3", "True", *["True"] * 4]
