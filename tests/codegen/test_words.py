"""Functions over words: operators, branches, loops and memory do on a processor as they are written."""

from __future__ import annotations

import ctypes

import numpy as np

from morok.codegen.llvm.words import Function, module
from morok.runtime.jit import compile_text


def called(f: Function, *operands: int) -> None:
    code = compile_text(module([f]), f.name, "code", None)
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(operands))(code.address)(*operands)


def test_operators() -> None:
    f = Function("operators", 3)
    out, x, y = f.parameters
    results = [x + y, x - y, x * 3, x | y, x << 2, x >> 60, x < y, x > y, x.equals(y), x.equals(-7)]
    for i, result in enumerate(results):
        out[i] = result
    found = np.zeros(len(results), np.int64)
    called(f, found.ctypes.data, -7, 12)
    assert found.tolist() == [5, -19, -21, -7 | 12, -28, 15, 1, 0, 0, 1]


def test_loops_and_branches() -> None:
    """Sum of the words greater than 2 among the first `n`, up to the first 0, and the number of the others there."""
    f = Function("adds", 3)
    words, n, out = f.parameters
    i, total, others = f.variable(), f.variable(), f.variable()
    with f.loop():
        f.leave_unless(i[0] < n)
        f.leave_unless(words[i[0]])
        with f.when(words[i[0]] > 2):
            total[0] = total[0] + words[i[0]]
        with f.when(words[i[0]] < 3):
            others[0] = others[0] + 1
        i[0] = i[0] + 1
    out[0], out[1] = total[0], others[0]
    found = np.zeros(2, np.int64)
    for given, n in (([5, 2, 9, -4, 7], 5), ([5, 2, 9, -4, 7], 2), ([3, 0, 9], 3), ([], 0)):
        before = [x for x in given[:n] if 0 not in given[: given.index(x) + 1]]
        called(f, np.array(given, np.int64).ctypes.data, n, found.ctypes.data)
        assert found.tolist() == [sum(x for x in before if x > 2), sum(x < 3 for x in before)]


def test_atomic_words() -> None:
    f = Function("atomic", 2)
    words, out = f.parameters
    out[0] = words.update(0, "add", 5)
    out[1] = words.update(0, "xchg", 40)
    out[2] = words.exchange(0, 41, 1)
    out[3] = words.exchange(0, 40, 1)
    out[4] = words.load(0)
    found, memory = np.zeros(5, np.int64), np.array([2], np.int64)
    called(f, memory.ctypes.data, found.ctypes.data)
    assert found.tolist() == [2, 7, 0, 1, 1]


def test_calls_of_each_other() -> None:
    """A function calls another of its module by name, in memory of its own each time."""
    inner, outer = Function("inner", 2), Function("outer", 1)
    at, n = inner.parameters
    at[0] = at[0] + n
    memory = outer.memory(1)
    memory[0] = 30
    outer.call("inner", memory, 12)
    outer.parameters[0][0] = memory[0]
    found = np.zeros(1, np.int64)
    code = compile_text(module([inner, outer]), "outer", "code", None)
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(code.address)(found.ctypes.data)
    assert found.tolist() == [42]
