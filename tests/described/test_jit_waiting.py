"""Functions that wait, while they are described, for a thread that needs what a description keeps from other threads."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import morok
from morok import Tensor
from morok.errors import JitEffectError

PROGRAM = """
import os, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import morok
from morok import Tensor

def vector(*values):
    return Tensor(np.array(values, np.float32)).realize()

state = vector(0.0)
triple = morok.jit(lambda x: x * 3)
add = morok.jit(lambda x: [state.assign(state + x)])
add(vector(1.0))

def first():
    assert triple(vector(5.0)).tolist() == [15.0]

def adds():
    add(vector(1.0))

def forks():
    child = os.fork()
    if child == 0:
        first()
        adds()
        os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

@morok.jit
def through(x):
    {how}
    return x + 1

def by_future(work):
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result()

def by_join(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

assert [through(vector(k)).tolist() for k in (1.0, 2.0)] == [[2.0], [3.0]]
first()
print(state.tolist())
"""
WORK = {
    "first call": ("by_future(first)", "1"),
    "first call, joined": ("by_join(first)", "1"),
    "write": ("by_future(adds)", "3"),  # in each of two descriptions
    "fork": ("assert by_future(forks) == 3", "1"),
    "first call in a thread of a thread": ("by_future(lambda: by_future(first))", "1"),
    "function that waits itself": ("by_future(morok.jit(lambda: by_future(first)))", "1"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", WORK)
def test_a_function_that_waits_for_a_thread(name: str) -> None:
    how, written = WORK[name]
    program = textwrap.dedent(PROGRAM.format(how=how))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"[{written}.0]\n"


def vector(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32)).realize()


@pytest.mark.parametrize("is_new", [False, True])
def test_an_argument_given_to_a_jitted_function_in_a_thread(is_new: bool) -> None:
    double = morok.jit(lambda x: x * 2)
    if not is_new:
        double(vector(1.0))

    @morok.jit
    def f(x: Tensor) -> Tensor:
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(double, x).result()

    with pytest.raises(JitEffectError, match="another thread"):
        f(vector(3.0))
    assert double(vector(4.0)).tolist() == [8.0]


def test_threads_that_describe_one_function_at_a_time_make_one_plan() -> None:
    """Each of them waits for another to be there too, so that neither can wait for the other's description."""
    here = threading.Barrier(2)

    @morok.jit
    def f(x: Tensor) -> Tensor:
        here.wait(60)
        return x * 2

    with ThreadPoolExecutor(2) as threads:
        assert [t.tolist() for t in threads.map(f, (vector(1.0), vector(2.0)))] == [[2.0], [4.0]]
    assert f.plans == 1


def test_what_another_thread_writes_while_a_function_is_described() -> None:
    state = vector(1.0)

    @morok.jit
    def f(x: Tensor) -> Tensor:
        thread = threading.Thread(target=lambda: None if state.tolist() == [7.0] else state.assign(vector(7.0)))
        thread.start()
        thread.join()
        return x * state

    f(vector(1.0))
    assert [f(vector(k)).tolist() for k in (1.0, 2.0)] == [[7.0], [14.0]]
