"""No kernel reads or writes beside its buffers: inputs and outputs lie beside a page that nobody may touch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, mmap, sys
import numpy as np
from morok import Tensor, dtypes, settings

libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PAGE = mmap.PAGESIZE
regions = []

def guarded(x):
    "A copy of x whose last byte (or first, if the guard is in front) lies beside a page without any right."
    pages = max(1, -(-x.nbytes // PAGE))
    region = mmap.mmap(-1, (pages + 2) * PAGE)
    regions.append(region)
    base = ctypes.addressof(ctypes.c_char.from_buffer(region))
    for page in (base, base + (pages + 1) * PAGE):
        assert libc.mprotect(page, PAGE, 0) == 0
    start = PAGE if FRONT else (pages + 1) * PAGE - x.nbytes
    out = np.frombuffer(region, x.dtype, x.size, start).reshape(x.shape)
    out[...] = x
    return out

def check(name, make, *arrays):
    wanted = make(*map(Tensor, arrays)).numpy()
    held = [guarded(a) for a in arrays]
    tensors = list(map(Tensor, held))
    assert all(t.numpy().ctypes.data == a.ctypes.data for t, a in zip(tensors, held))
    out = Tensor(guarded(np.zeros(wanted.shape, wanted.dtype)))
    out.assign(make(*tensors))
    assert np.array_equal(out.numpy(), wanted, equal_nan=wanted.dtype.kind == "f"), name
    print(name)

rng = np.random.default_rng(0)
def data(*shape, d="float32"):
    return (rng.standard_normal(shape) * 9).astype(d)

FRONT = sys.argv[1] == "front"
with settings(threads=2):
    for n in (1, 2, 7, 16, 31, 64, 101):
        check(f"map {n}", lambda x, y: (x * 2 + y).relu(), data(n), data(n))
        check(f"sum {n}", lambda x: x.sum(0, keepdim=True), data(n))
        check(f"pad {n}", lambda x: x.pad(((2, 3),)) + 1, data(n))
        check(f"flip {n}", lambda x: x.flip(0) * 3, data(n))
        check(f"halves {n}", lambda x: x * 2 + 1, data(n, d="float16"))
        check(f"bytes {n}", lambda x: x + 1, data(n, d="int8"))
        check(f"scan {n}", lambda x: x.cumsum(0), data(n))
    for m, k, n in ((5, 7, 11), (33, 17, 29), (64, 40, 50)):
        check(f"matmul {m}", lambda x, y: x @ y, data(m, k), data(k, n))
        check(f"linear {m}", lambda x, y: x @ y.T, data(m, k), data(n, k))
        check(f"turned {m}", lambda x: x.T.contiguous() * 2, data(m, n))
        check(f"rows {m}", lambda x: x.softmax(-1), data(m, n))
        check(f"columns {m}", lambda x: x.max(0), data(m, n))
        check(f"padded {m}", lambda x: x.pad(((1, 2), (3, 1))).sum(1), data(m, n))
        check(f"cut {m}", lambda x: x[1:-1, 2:] + 1, data(m, n))
    for padding in (0, 1, 2):
        check(f"conv {padding}", lambda x, w: x.conv2d(w, padding=padding), data(2, 3, 9, 7), data(5, 3, 3, 3))
        check(f"stride {padding}", lambda x, w: x.conv2d(w, padding=padding, stride=2), data(1, 4, 11, 8), data(3, 4, 3, 3))
    at = rng.integers(-40, 40, 23)
    check("gather", lambda x, i: x[i], data(37), at)
    check("gather rows", lambda x, i: x.take(i, 0), data(37, 5), at)
    check("scatter", lambda x, i, v: x.scatter_add(0, i, v), data(37), at, data(23))
    check("sort", lambda x: x.sort(0)[0], data(29))
    check("search", lambda x, v: x.searchsorted(v), np.sort(data(33)), data(17))
    check("pool", lambda x: x.max_pool2d(3, 2, padding=1), data(1, 2, 11, 13))
    check("lower", lambda x: x.tril() + 1, data(9, 13))
print("all")
"""


@pytest.mark.long
@pytest.mark.parametrize("where", ["behind", "front"])
@pytest.mark.parametrize("noopt", ["0", "1"], ids=["optimized", "plain"])
def test_nothing_is_touched_beside_buffers(where: str, noopt: str) -> None:
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, where], capture_output=True, text=True, timeout=300, cwd=root,
        env={**os.environ, "PYTHONPATH": root, "MOROK_NOOPT": noopt},
    )  # fmt: skip
    assert done.stdout.endswith("all\n"), (done.returncode, done.stdout[-300:], done.stderr[-2000:])
