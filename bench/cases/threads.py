"""Kernels on two threads, by the clock on the wall: only on a machine that does nothing else are the figures of any use."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from bench.harness import Contest

THREADS, N = 2, 2048
REST = 0.3  # seconds between two runs: a peer's threads go on spinning for a while after their work, on cores that others want


def contests() -> Iterator[Contest]:
    from morok import Tensor
    from morok.config import settings

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((N, N), dtype=np.float32) for _ in range(2))
    product = functools.partial(np.matmul, a, b, out=np.empty_like(a))

    def theirs() -> None:
        with threadpool_limits(THREADS):
            product()

    with settings(threads=THREADS):
        ours = (Tensor(a) @ Tensor(b)).prepare().execute
    name = f"matmul ({N}, {N}, {N}), {THREADS} threads"
    yield Contest(name, ours, {"numpy": theirs}, goal=1 / 0.9, against="numpy", prepare=lambda: time.sleep(REST))
