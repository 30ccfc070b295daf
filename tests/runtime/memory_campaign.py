"""The memory of a process that describes, runs and drops programs that are all different: flat, when caches are full.

    python tests/runtime/memory_campaign.py 10000 [kind ..]
    python tests/runtime/memory_campaign.py left 30 [kind ..]

Each line that is printed, every 1000 programs, counts the programs so far, the process's resident bytes, those that the C
library has in use, Python's blocks of memory and objects, and the kernels that LLVM has compiled; values are checked. With `left`
each line says of one kind what a program leaves behind for good, once all caches that are bounded have been emptied: blocks of
Python's memory, and bytes of the C library's, in which are LLVM's.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import itertools
import json
import os
import random
import sys
from collections.abc import Callable

import numpy as np

import morok
from morok import Tensor, UOp, Variable, dtypes
from morok.errors import MorokError
from morok.passes import index_maps
from morok.runtime import device as devices
from morok.runtime import loading
from morok.runtime.buffer import CPU_POOL
from morok.runtime.jit import COUNTERS
from morok.tensor import plans, schedule

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def elementwise(n: int) -> None:
    """A constant of its own."""
    got = (Tensor(X) * float(n) + 0.5).numpy()
    assert (got == X * np.float32(n) + np.float32(0.5)).all()


def shapes(n: int) -> None:
    """A shape and a constant of its own."""
    x = np.ones((n % 37 + 1, n // 37 % 41 + 1), np.int32)
    assert (Tensor(x) * n - 1).permute(1, 0).numpy().T.tolist() == (x * n - 1).tolist()


def sizes(n: int) -> None:
    """An array of a size that no other has."""
    x = np.arange(n + 7, dtype=np.float32)
    assert (Tensor(x) * 2 + 1).max().item() == 2 * n + 13
    assert (Tensor(x)[n % 5 :] + float(n)).numpy()[-1] == np.float32(2 * n + 6)


def reductions(n: int) -> None:
    """A sum, a maximum and a product of matrices: several kernels."""
    t = Tensor(X)
    a, b = (t * float(n)).sum(n % 2), ((t @ t.permute(1, 0)) + float(n)).max(1)
    a.realize(b)
    assert np.allclose(a.numpy(), (X * np.float32(n)).sum(n % 2))
    assert np.allclose(b.numpy(), (X @ X.T + n).max(1))


def bound(n: int) -> None:
    """A variable bound to several values, of a size and bounds of its own."""
    size = Variable(f"n{n % 5}", 1, 3 + n)
    for k in (1, n % 3 + 1, 3):
        assert (Tensor(X).shrink([(0, size.bind(k)), (0, 6)]) * float(n)).sum().item() == (X[:k] * np.float32(n)).sum(
            dtype=np.float64
        )


def wrong(n: int) -> None:
    """Errors, of every stage, between programs that work."""
    t = Tensor(X) * float(n)
    for work in (
        lambda: t.reshape(7),
        lambda: t + Tensor(np.ones((5, n % 7 + 2), np.float32)),
        lambda: (t * Tensor.ones(1 << 45)[0]).expand(4, 6) if n % 2 else Tensor.ones(1 << 45).contiguous().realize(),
        lambda: Tensor.empty(1 << 44).numpy(),
        lambda: morok.parse(f"Add({n}"),
        lambda: morok.simplify(UOp.var("x", dtypes.f32) + UOp.var("y", dtypes.i32)),
    ):
        with contextlib.suppress(MorokError):
            work()
    elementwise(n)


def expressions(n: int) -> None:
    """Index arithmetic, simplified."""
    x, y = UOp.var("x", dtypes.index, 0, n % 97 + 1), UOp.var(f"y{n}", dtypes.index, 0, 7)
    assert morok.simplify((x * (n + 8) + y).idiv(n + 8)) is x


def writes(n: int) -> None:
    """A buffer written in place, and a plan that runs twice."""
    counter = Tensor(np.zeros(5, np.int32)).realize()
    counter.assign(counter + n).realize()
    plan = (counter * 2 + n).prepare()
    plan.execute()
    plan.execute()
    assert counter.tolist() == [n] * 5


KINDS: dict[str, Callable[[int], None]] = {
    f.__name__: f for f in (elementwise, shapes, sizes, reductions, bound, wrong, expressions, writes)
}


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def campaign(programs: int, kinds: list[str]) -> None:
    rng = random.Random(0)
    for n in range(1, programs + 1):
        KINDS[rng.choice(kinds)](n)
        if n % min(1000, max(programs // 20, 1)) == 0:
            gc.collect()
            line = {
                "programs": n,
                "resident": resident(),
                "malloc": malloc_bytes(),
                "blocks": sys.getallocatedblocks(),
                "objects": len(gc.get_objects()),
                "compiled": COUNTERS.compiled,
            }
            print(json.dumps(line), flush=True)


class Malloc(ctypes.Structure):
    """What the C library's `mallinfo2` returns: `uordblks` are the bytes in use."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def malloc_bytes() -> int:
    """The bytes of the C library in use, all threads', 0 where it does not count them."""
    count = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if count is None:
        return 0
    count.restype = Malloc
    return int(count().uordblks)


def emptied() -> tuple[int, int]:
    """The blocks and bytes in use, with empty caches and no loader of LLVM's."""
    bounded = [c for c in gc.get_objects() if isinstance(c, functools._lru_cache_wrapper)]
    for cache in bounded:
        if cache.cache_parameters()["maxsize"] is not None:
            cache.cache_clear()
    schedule._schedules.clear()
    index_maps._maps.clear()
    plans.forget_kernels()
    devices.device("CPU")._kernels.clear()
    CPU_POOL.clear()
    gc.collect()
    loading._unload_dead()
    for loader in loading._loaders:  # one that is full goes with its last library
        if not loader.alive and loader.loaded < loading._LIBRARIES:
            loader.engine.close()
    loading._loaders.clear()
    gc.collect()
    return sys.getallocatedblocks(), malloc_bytes()


def left(programs: int, kinds: list[str]) -> None:
    """Print the least of three times: what is made once at the first program of some size is left only once."""
    for name in kinds:
        numbers = itertools.count(1000)
        marks = []
        for _ in range(4):
            for _ in range(programs):
                KINDS[name](next(numbers))
            marks.append(emptied())
        times = [((b - a) / programs, (d - c) / programs) for (a, c), (b, d) in itertools.pairwise(marks)]
        print(
            json.dumps({"kind": name, "blocks": min(t[0] for t in times), "bytes": min(t[1] for t in times)}),
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1] == "left":
        left(int(sys.argv[2]), sys.argv[3:] or list(KINDS))
    else:
        campaign(int(sys.argv[1]), sys.argv[2:] or list(KINDS))
