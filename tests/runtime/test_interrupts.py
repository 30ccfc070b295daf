"""Signals at any moment: nothing is lost, nothing is half done, and the program's own handlers stay in place."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, UOp, dtypes, interrupts
from morok.interrupts import check, deferred
from morok.optimize.opts import Opt, OptOp
from morok.passes.target import KernelInfo
from morok.rewrite.files import RuleFile
from morok.tensor import describing, plans

CAMPAIGN = Path(__file__).with_name("interrupt_campaign.py")


@pytest.fixture(autouse=True)
def usual_handlers() -> Iterator[None]:
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGUSR1)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it runs in the background
    yield
    for s, handler in before.items():
        signal.signal(s, handler)
    assert not interrupts.waiting
    assert not deferred.depth


def raised(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def test_a_signal_waits_for_the_end_of_the_block() -> None:
    reached = []

    def block() -> None:
        with deferred:
            raised()
            reached.append("behind the signal")
            with deferred:
                raised()
            reached.append("behind the inner block")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert reached == ["behind the signal", "behind the inner block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_waits_for_the_next_check_only() -> None:
    reached = []
    with deferred:
        raised()
        reached.append("before the check")
        with pytest.raises(KeyboardInterrupt):
            check()
        check()
        reached.append("behind it")
    assert reached == ["before the check", "behind it"]


def test_the_programs_own_handler_is_called_and_may_return() -> None:
    calls: list[tuple[int, bool]] = []

    def handler(number: int, frame: FrameType | None) -> None:
        calls.append((number, frame is not None))

    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGUSR1, handler)
    with deferred:
        raised()
        raised(signal.SIGUSR1)
        assert not calls
        check()
        assert sorted(calls) == [(signal.SIGINT, True), (signal.SIGUSR1, True)]
        assert signal.getsignal(signal.SIGINT) is not handler
        raised()
        assert len(calls) == 2
    assert len(calls) == 3
    assert signal.getsignal(signal.SIGINT) is handler
    assert signal.getsignal(signal.SIGUSR1) is handler


def test_every_handler_that_waits_is_called_where_one_raises() -> None:
    calls = []

    def handler(number: int, frame: FrameType | None) -> None:
        calls.append(number)
        raise KeyboardInterrupt(number)

    signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGUSR1, handler)

    def block() -> None:
        with deferred:
            raised()
            raised(signal.SIGUSR1)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert sorted(calls) == [signal.SIGINT, signal.SIGUSR1]


def test_an_error_inside_comes_out_where_no_signal_arrives() -> None:

    def block(signals: int) -> None:
        with deferred:
            for _ in range(signals):
                raised()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block(0)
    with pytest.raises(KeyboardInterrupt) as caught:
        block(2)
    assert isinstance(caught.value.__context__, ZeroDivisionError)


def test_ignored_signals_and_handlers_that_are_set_inside_stay() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred:
        raised()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    calls = []
    with deferred:
        signal.signal(signal.SIGUSR1, lambda *_: calls.append(1))
    raised(signal.SIGUSR1)
    assert calls == [1]


def test_other_threads_have_nothing_to_do_with_it() -> None:
    found = []

    def work() -> None:
        with deferred:
            found.append((deferred.depth, signal.getsignal(signal.SIGINT) is signal.default_int_handler))
            check()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(0, True)]


def test_a_child_of_another_thread_can_be_interrupted() -> None:
    statuses = []

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if signal.getsignal(signal.SIGINT) is signal.default_int_handler and not deferred.depth else 1)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    with deferred:
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
    assert statuses == [0]


def python_calls(work: Callable[[], Any]) -> list[str]:
    """The Python functions that run while `work` does, but those that others (hypothesis) have the collector call."""
    seen: list[str] = []
    callbacks = [*gc.callbacks]

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            seen.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")

    gc.callbacks.clear()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.callbacks.extend(callbacks)
    return [s for s in seen if s != f"{Path(__file__).name}:<lambda>"]


def test_no_python_runs_when_tensors_nodes_kernels_and_rules_die() -> None:
    """An interrupt that arrived in it would be printed, and lost."""
    tensors = [(Tensor(np.arange(7, dtype=np.float32)) * float(k) + 0.5).sum() for k in range(4)]
    tensors[0].realize(tensors[1])
    assert python_calls(lambda: tensors.clear()) == []
    nodes = [UOp.var("dies", dtypes.i32) * 12345]
    assert python_calls(lambda: nodes.clear()) == []
    pointers = [dtypes.f32.ptr(123457)]
    assert python_calls(lambda: (pointers.clear(), gc.collect())) == []
    named = [UOp.sink(info=KernelInfo("dies", (Opt(OptOp.UPCAST, 0, 4),)))]
    assert python_calls(lambda: named.clear()) == []
    plans = [(Tensor(np.arange(9, dtype=np.float32)) * 7.125).prepare()]
    morok.tensor.plans.forget_kernels()
    assert python_calls(lambda: plans.clear()) == []
    rules = [RuleFile(Path("dies.rules"), b"group g\n\na: Add(x: i32, 12345) ~> Add(12345, x)\n", "dies")]
    assert len(list(rules[0].checked.rules())) == 1
    assert python_calls(lambda: (rules.clear(), gc.collect())) == []


def test_memory_of_the_dead_is_free_at_once() -> None:
    import weakref

    t = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)) * 2
    t.realize()
    assert t.buffer is not None
    memory = weakref.ref(t.buffer)
    del t
    assert memory() is None


def test_llvm_objects_are_closed_by_whoever_opened_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never by a finalizer: interrupted, it would dispose of an object and be called for it again."""
    from llvmlite.binding import ffi

    finalized = []
    dispose = ffi.ObjectRef.__del__

    def watched(self: Any) -> None:
        if not self._closed and not self._owned:
            finalized.append(type(self).__name__)
        dispose(self)

    monkeypatch.setattr(ffi.ObjectRef, "__del__", watched)
    for k in range(3):
        x = Tensor(np.arange(5, dtype=np.float32))
        (x * 1.0625 + float(k)).sum().realize()
        (x.exp() / float(k + 3)).realize()
    assert finalized == []


def test_what_a_handler_computes_meanwhile_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that is pending when a handler realizes it has happened once."""
    counter = Tensor(np.zeros(3, np.int32)).realize()
    counter.assign(counter + 1)
    planned, calls = plans.planned, []

    def interrupted(*arguments: Any) -> Any:
        plan = planned(*arguments)
        if not calls:
            calls.append(1)
            counter.realize()
        return plan

    monkeypatch.setattr(plans, "planned", interrupted)
    counter.realize((counter * 5).sum())
    assert counter.tolist() == [1, 1, 1]


TURNS = ("contextlib.py", "turns.py")


def at_call(k: int, work: Callable[[], Any]) -> int:
    """The number of calls and returns of functions of `TURNS` while `work` does, which is interrupted at the k-th."""
    seen = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal seen
        if event in ("call", "return") and Path(frame.f_code.co_filename).name in TURNS:
            seen += 1
            if seen == k:
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(profile)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.long
def test_interrupts_while_a_function_is_described_and_run() -> None:
    """A call writes everything or nothing, and later calls are right, wherever the interrupt arrives."""
    counter, twice = Tensor(np.zeros(3, np.float32)).realize(), Tensor(np.zeros(3, np.float32)).realize()

    def counted(x: Tensor) -> Tensor:
        counter.assign(counter + 1)
        twice[1:] = counter[1:] * 2
        return x + counter

    x = Tensor(np.arange(3, dtype=np.float32))
    jitted = morok.jit(counted)
    for function in (lambda: morok.jit(counted), lambda: jitted):  # described, or run, in each call
        calls = at_call(-1, lambda make=function: make()(x))
        for k in range(1, calls + 1):
            was = counter.tolist()[0]
            at_call(k, lambda make=function: make()(x))
            now = counter.tolist()
            assert now in ([was] * 3, [was + 1] * 3)
            assert twice.tolist()[1:] == [2 * now[0]] * 2
            assert (describing.current(), describing.descriptions) == (None, [])
            assert function()(x).tolist() == [now[0] + 1, now[0] + 2, now[0] + 3]
            assert counter.tolist() == [now[0] + 1] * 3


@pytest.mark.long
def test_realize_in_a_handler() -> None:
    x = Tensor(np.arange(8, dtype=np.int32)).realize()
    counter = Tensor(np.zeros(3, np.int32)).realize()
    handled = []

    def handler(number: int, frame: FrameType | None) -> None:
        handled.append((x * 17 + len(handled)).sum().item())
        counter.assign(counter + 1).realize()
        signal.setitimer(signal.ITIMER_REAL, 0.003)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.003)
    try:
        for k in range(40):
            np.testing.assert_array_equal((x * (1000 + k) + k).numpy(), np.arange(8) * (1000 + k) + k)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert handled == [28 * 17 + 8 * k for k in range(len(handled))]
    assert counter.tolist() == [len(handled)] * 3


@pytest.mark.long
@pytest.mark.parametrize("kind", ["realize", "simplify", "check", "prove", "load"])
def test_interrupts_at_random_moments(kind: str, tmp_path: Path) -> None:
    many = {"realize": 60, "simplify": 60, "check": 40}.get(kind, 12)
    done = subprocess.run(
        [sys.executable, str(CAMPAIGN), str(many), "1", kind],
        env={**os.environ, "MOROK_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["interrupts"], found["lost"], found["wrong"]) == (many, 0, 0), done.stdout
    assert "Exception ignored" not in done.stderr


def test_without_the_module_in_c() -> None:
    """The same by `signal` itself, where Python has no `_signal`."""
    program = (
        "import os, signal, sys; sys.modules['_signal'] = None\n"
        "from morok import interrupts\n"
        "assert interrupts._handler_of is signal.getsignal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n"
        "    with interrupts.deferred:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        print('inside')\n"
        "except KeyboardInterrupt:\n"
        "    print('behind', signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["inside", "behind", "True"]


@pytest.mark.parametrize("how", ["missing", "overriding", "no module"])
def test_another_llvmlite_frees_its_passes_itself(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """One whose pass managers have no `_dispose`, or use it: kernels compile, and nothing is disposed of twice."""
    from llvmlite import binding

    from morok.runtime.jit import emit

    module = binding.newpassmanagers
    disposed: list[int] = []
    dispose = module.NewPassManager._dispose

    def once(self: Any) -> None:
        disposed.append(id(self))
        dispose(self)

    if how == "missing":
        monkeypatch.delattr(module.NewPassManager, "_dispose")
    elif how == "overriding":
        monkeypatch.setattr(module.NewPassManager, "_dispose", once)
        monkeypatch.setattr(module.ModulePassManager, "_dispose", once, raising=False)
    else:
        monkeypatch.delattr(binding, "newpassmanagers")
    assert emit("define i32 @f(i32 %x) {\n  %y = add i32 %x, 0\n  ret i32 %y\n}\n", effort="all")
    assert len(disposed) == (how == "overriding")
