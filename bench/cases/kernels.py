"""Kernel time, one thread, outputs preallocated: against NumPy, and torch where it is installed.

The time is that of the computing thread, so that what else the machine does is not counted.
"""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.harness import Contest

N = 16 * 2**20
PRODUCTS = (("matmul", 512, 512, 512), ("matmul", 1024, 1024, 1024), ("matmul", 64, 1024, 1024), ("x @ W.T", 1024, 1024, 1024))
contest = functools.partial(Contest, clock=time.thread_time)


def _torch() -> Any:
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(1)
    return torch


def contests() -> Iterator[Contest]:
    from morok import Tensor

    torch = _torch()
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    def plan(t: Tensor) -> Callable[[], object]:
        return t.prepare().execute

    for name, m, k, n in PRODUCTS:
        a, out = floats(m, k), np.empty((m, n), np.float32)
        b = floats(n, k).T if name == "x @ W.T" else floats(k, n)
        peers: dict[str, Callable[[], object]] = {"numpy": functools.partial(np.matmul, a, b, out=out)}
        if torch:
            peers["torch"] = functools.partial(torch.matmul, *map(torch.from_numpy, (a, b)), out=torch.from_numpy(out.copy()))
        right = Tensor(b.T).T if name == "x @ W.T" else Tensor(b)
        yield contest(f"{name} ({m}, {k}, {n})", plan(Tensor(a) @ right), peers, goal=1 / 0.95, against="numpy")

    a, b, c = floats(N), floats(N), floats(N)
    out, t1 = np.empty_like(a), np.empty_like(a)

    def chain() -> None:
        np.multiply(a, b, out=out)
        np.add(out, c, out=out)
        np.maximum(out, 0, out=out)
        np.multiply(out, 2, out=out)
        np.subtract(out, a, out=t1)

    x, y, z = Tensor(a), Tensor(b), Tensor(c)
    peers = {"numpy": chain}
    yield contest("elementwise chain on 16M", plan((x * y + z).relu() * 2 - x), peers, goal=1 / 2.5, against="numpy", rounds=9)

    s = floats(4096, 1024)
    wide, tall = np.empty_like(s), np.empty((4096, 1), np.float32)

    def softmax() -> None:
        np.max(s, axis=1, keepdims=True, out=tall)
        np.subtract(s, tall, out=wide)
        np.exp(wide, out=wide)
        np.sum(wide, axis=1, keepdims=True, out=tall)
        np.divide(wide, tall, out=wide)

    peers = {"numpy": softmax}
    if torch:
        ts = torch.from_numpy(s)
        to = torch.empty_like(ts)
        peers["torch"] = lambda: torch.softmax(ts, -1, out=to)
    yield contest("softmax (4096, 1024)", plan(Tensor(s).softmax(-1)), peers, rounds=9)

    peers = {"numpy": lambda: a.sum()}
    if torch:
        tv = torch.from_numpy(a)
        peers["torch"] = lambda: tv.sum()
    yield contest("sum of 16M", plan(Tensor(a).sum()), peers, rounds=9)
