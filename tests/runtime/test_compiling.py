"""Compiling beside lowering."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import morok
from morok import Tensor, config
from morok.errors import CompileError
from morok.runtime.compiling import Compiling
from morok.runtime.device import device
from morok.tensor import plans, schedule


class Recorder:
    """A device that says what it was asked for, where, and under which settings."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.problem = problem
        self.seen: list[tuple[object, ...]] = []

    def compile(self, instructions, name):
        self.seen.append((instructions, name, config.NOOPT.value, threading.current_thread()))
        if self.problem is not None:
            raise self.problem
        return f"kernel {name}"


def test_it_is_compiled_on_another_thread_under_the_callers_settings():
    recorder = Recorder()
    with morok.settings(noopt=True):
        pending = Compiling(recorder, [], "k")
        assert pending.result() == "kernel k"
    assert recorder.seen == [([], "k", True, pending)]


def test_its_error_is_the_callers():
    problem = CompileError("no")
    pending = Compiling(Recorder(problem), [], "k")
    with pytest.raises(CompileError) as caught:
        pending.result()
    assert caught.value is problem


@pytest.fixture
def three():
    """The ASTs of a program of three kernels, and what it computes."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    columns = (Tensor(x) * 2).sum(0).contiguous()
    t = (columns + 1).contiguous().sum()
    return [item.ast for item in t.schedule()], t, ((x * 2).sum(0) + 1).sum()


def test_each_kernel_is_lowered_and_compiled_once(three):
    asts, t, total = three
    assert len(set(asts)) == 3
    plans.forget_kernels()
    before = schedule.COUNTERS.kernels_lowered
    kernels = plans.compiled([*asts, asts[0], asts[2]], device("CPU"))
    assert schedule.COUNTERS.kernels_lowered == before + 3
    assert kernels[:3] == plans.compiled(asts, device("CPU"))
    assert kernels[3:] == [kernels[0], kernels[2]]
    assert schedule.COUNTERS.kernels_lowered == before + 3
    assert t.numpy() == total


def test_one_that_fails_leaves_the_others(three, monkeypatch):
    asts, t, total = three
    cpu = device("CPU")
    compile = cpu.compile
    names = [ast.arg.name for ast in asts]

    def failing(instructions, name):
        if name == names[1]:
            raise CompileError("on purpose")
        return compile(instructions, name)

    plans.forget_kernels()
    with monkeypatch.context() as patched:
        patched.setattr(cpu, "compile", failing)
        with pytest.raises(CompileError, match="on purpose"):
            plans.compiled(asts, cpu)
    assert t.numpy() == total
