"""What the bench counts as the time of a compiler: the making of code, and nothing of its running."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from acceptance.notation import ROOT

SMALL = {"a": (3, 4), "b": (4,)}


def test_compile_latency_is_the_compilers_own_time(tmp_path: Path) -> None:
    """Kernels do not run, so that no run's time need be taken off, and no figure can be negative."""
    text = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from bench.cases.latency import PROGRAMS, Program, _code
exec(_code("morok", Program({SMALL!r}, "(a * b).relu().sum(1)", "")).replace(
    "begin = ", "from morok.runtime.plan import ExecutionPlan\\nExecutionPlan.execute = None\\nbegin = "))
assert {{who for who in ("morok", "tinygrad", "jax") for p in PROGRAMS.values() if compile(_code(who, p), who, "exec")}}
assert kept.kernels
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0
