"""The bench: a compiler's time is the making of code, and nothing of its running; and when a figure is reached."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from acceptance.notation import ROOT

from bench.harness import Outcome

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


def test_a_goal_is_a_ratio_unless_it_has_a_second_half() -> None:
    one = Outcome("", 0.5, {"peer": 1.0}, 0.4, "peer", 0.0, None)
    assert [replace(one, ours=t).reached for t in (0.4, 0.41, 1.0)] == [True, False, False]
    either = replace(one, goal=1.3, or_more=0.5)
    assert [replace(either, ours=t).reached for t in (1.3, 1.5, 1.51)] == [True, True, False]
    assert replace(one, peers={}).reached is None
