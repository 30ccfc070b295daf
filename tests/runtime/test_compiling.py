"""Compiling beside lowering."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from programs import affine

import morok
from morok import Tensor, config
from morok.codegen.machines import host_machine
from morok.errors import CompileError
from morok.remembered import Remembered
from morok.runtime import jit
from morok.runtime.compiling import Aside
from morok.runtime.device import device
from morok.tensor import plans, schedule


def test_it_is_done_on_another_thread_under_the_callers_settings():
    seen = []
    with morok.settings(noopt=True):
        work = Aside(lambda: seen.append((config.NOOPT.value, threading.current_thread())) or "done", "work")
        assert work.result() == "done"
    assert seen == [(True, work)]


def test_its_error_is_the_callers():
    problem = CompileError("no")

    def fail():
        raise problem

    with pytest.raises(CompileError) as caught:
        Aside(fail, "work").result()
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
    begin = cpu.begin
    names = [ast.arg.name for ast in asts]

    def failing(instructions, name, between):
        if name == names[1]:
            raise CompileError("on purpose")
        return begin(instructions, name, between)

    plans.forget_kernels()
    with monkeypatch.context() as patched:
        patched.setattr(cpu, "begin", failing)
        with pytest.raises(CompileError, match="on purpose"):
            plans.compiled(asts, cpu)
    assert t.numpy() == total


def test_one_is_rendered_while_the_one_ahead_is_compiled(three, monkeypatch):
    asts, t, total = three
    cpu = device("CPU")
    render, start, events = cpu.render, cpu.start, []

    def rendered(instructions, name):
        events.append(("rendered", name))
        return render(instructions, name)

    def started(code):
        events.append(("started", code.name))
        finish = start(code)

        def finished():
            events.append(("finished", code.name))
            return finish()

        return finished

    plans.forget_kernels()
    monkeypatch.setattr(cpu, "_kernels", Remembered())
    monkeypatch.setattr(cpu, "render", rendered)
    monkeypatch.setattr(cpu, "start", started)
    plans.compiled(asts, cpu)
    a, b, c = (ast.arg.name for ast in asts)
    began = [("rendered", a), ("started", a), ("rendered", b), ("finished", a), ("started", b)]
    assert events == [*began, ("finished", b), ("rendered", c)]  # of the last, nothing is left to do meanwhile
    assert t.numpy() == total


def test_one_begun_twice_is_compiled_once():
    cpu = device("CPU")
    program = affine(3.5, 1.25)
    compiled = jit.COUNTERS.compiled + jit.COUNTERS.from_disk
    first, second = cpu.begin(program, "begun"), cpu.begin(program, "begun")
    kernel = second()
    assert first() is kernel
    assert cpu.compile(program, "begun") is kernel
    assert jit.COUNTERS.compiled + jit.COUNTERS.from_disk == compiled + 1


def test_what_fails_may_be_compiled_again(monkeypatch):
    cpu = device("CPU")
    program = affine(-3.5, 0.75)
    with monkeypatch.context() as patched:
        patched.setattr(cpu, "start", lambda rendered: Aside(lambda: 1 // 0, "fails").result)
        finish = cpu.begin(program, "again")
    with pytest.raises(ZeroDivisionError):
        finish()
    assert finish() is cpu.compile(program, "again")


def test_llvm_is_set_as_usual_after_compiling():
    text = device("CPU").render(affine(0.1, 0.5), "several").text
    made = [jit._emission(text, host_machine(), effort) for effort in ("plain", "code", "all", "plain")]
    for make in made:
        assert make()
        assert jit._settings == jit._USUAL
